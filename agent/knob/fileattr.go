package knob

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"ngxlab/lab"
)

// numbers takes "uid:gid" apart.
func numbers(owner string) (uid, gid int, err error) {
	u, g, _ := strings.Cut(owner, ":")
	id, errUser := strconv.ParseUint(u, 10, 31)
	group, errGroup := strconv.ParseUint(g, 10, 31)
	if err := errors.Join(errUser, errGroup); err != nil {
		return 0, 0, fmt.Errorf("owner %q: not two numbers", owner)
	}
	return int(id), int(group), nil
}

// parseMode reads an octal mode.
func parseMode(text string) (uint32, error) {
	mode, err := strconv.ParseUint(text, 8, 32)
	if err != nil || mode > 0o7777 {
		return 0, fmt.Errorf("mode %q: not octal, or above 7777", text)
	}
	return uint32(mode), nil
}

// ownerNumbers turns "user:group", by names or numbers, into "uid:gid". A part left out is that of before.
func ownerNumbers(owner, before string) (string, error) {
	uid, gid, _ := strings.Cut(before, ":")
	name, group, _ := strings.Cut(owner, ":")
	if _, err := strconv.ParseUint(name, 10, 31); err == nil {
		uid = name
	} else if name != "" {
		u, err := user.Lookup(name)
		if err != nil {
			return "", err
		}
		uid = u.Uid
	}
	if _, err := strconv.ParseUint(group, 10, 31); err == nil {
		gid = group
	} else if group != "" {
		g, err := user.LookupGroup(group)
		if err != nil {
			return "", err
		}
		gid = g.Gid
	}
	return uid + ":" + gid, nil
}

// complete fills in what an experiment leaves out: from the file as it is, or the usual of a new one.
func complete(asked lab.FileValue, now *lab.FileValue) (lab.FileValue, refusal) {
	before := lab.FileValue{Mode: "0644", Owner: fmt.Sprintf("%d:%d", os.Geteuid(), os.Getegid())}
	if now != nil {
		before = *now
	}
	to := before
	if asked.Mode != "" {
		mode, err := parseMode(asked.Mode)
		if err != nil {
			return to, refusal{reason: err.Error(), cure: "write the mode as in 0644"}
		}
		to.Mode = modeText(mode)
	}
	owner, err := ownerNumbers(asked.Owner, before.Owner)
	if err != nil {
		return to, refusal{reason: "owner: " + err.Error(), cure: "name a user and a group that this host has, or their numbers"}
	}
	to.Owner = owner
	content, err := asked.Bytes()
	switch {
	case err != nil:
		return to, refusal{reason: "content: " + err.Error(), cure: "write the content as text"}
	case len(content) > maxFileBytes:
		return to, refusal{reason: "the content is larger than 1 MiB", cure: "bring it with a command knob"}
	case asked.Content != nil:
		to = to.WithContent(content)
	case now == nil:
		return to, refusal{reason: "there is no such file, and no content is given for a new one", cure: "give it `content:`"}
	}
	return to, refusal{}
}

// Flags of a file that keep even root from replacing it (linux/fs.h).
const (
	immutableFlag  = 0x10
	appendOnlyFlag = 0x20
)

// locked reports whether a file or directory is immutable or append-only, as far as its file system tells.
func locked(path string) bool {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer f.Close() //nolint:errcheck // opened for reading
	flags, err := unix.IoctlGetUint32(int(f.Fd()), unix.FS_IOC_GETFLAGS)
	return err == nil && flags&(immutableFlag|appendOnlyFlag) != 0
}

// mountedAlone reports whether a file is a mount of its own, as a container's /etc/hosts is: nothing can be renamed
// over it.
func mountedAlone(path string) bool {
	var file, dir unix.Statx_t
	if unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_MNT_ID, &file) != nil ||
		unix.Statx(unix.AT_FDCWD, filepath.Dir(path), 0, unix.STATX_MNT_ID, &dir) != nil {
		return false
	}
	return file.Mask&dir.Mask&unix.STATX_MNT_ID != 0 && file.Mnt_id != dir.Mnt_id
}

// mayOwn reports whether the agent could give a file that owner.
func (f files) mayOwn(owner string) bool {
	if f.euid == 0 {
		return true
	}
	uid, gid, err := numbers(owner)
	if err != nil || uid != f.euid {
		return false
	}
	groups, err := os.Getgroups()
	if err != nil || gid == os.Getegid() {
		return err == nil
	}
	for _, g := range groups {
		if g == gid {
			return true
		}
	}
	return false
}
