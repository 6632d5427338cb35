package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// identity is another user that a process becomes; the zero identity is nobody else.
type identity struct {
	name, home string
	uid, gid   int
	groups     []int
}

// identityOf looks a user up in the host's own files. Errors: no such user, one that only root could become.
func identityOf(name string) (identity, error) {
	if name == "" {
		return identity{}, nil
	}
	u, err := user.Lookup(name)
	if err != nil {
		return identity{}, fmt.Errorf("there is no user %q on this host: %w", name, err)
	}
	numbers, err := u.GroupIds()
	if err != nil {
		return identity{}, fmt.Errorf("groups of user %s: %w", name, err)
	}
	as := identity{name: name, home: u.HomeDir}
	as.uid, err = strconv.Atoi(u.Uid)
	gid, bad := strconv.Atoi(u.Gid)
	as.gid = gid
	for _, number := range numbers {
		group, wrong := strconv.Atoi(number)
		as.groups, bad = append(as.groups, group), errors.Join(bad, wrong)
	}
	switch {
	case errors.Join(err, bad) != nil:
		return identity{}, fmt.Errorf("numbers of user %s: %w", name, errors.Join(err, bad))
	case as.uid == os.Geteuid():
		return identity{}, nil
	case os.Geteuid() != 0:
		return identity{}, fmt.Errorf("run as user %s: only root can; connect as root, with sudo, or leave the user out", name)
	}
	return as, nil
}

// text is the identity as the waiting process gets it: "uid:gid:group,group".
func (i identity) text() string {
	if i.name == "" {
		return ""
	}
	groups := make([]string, len(i.groups))
	for k, group := range i.groups {
		groups[k] = strconv.Itoa(group)
	}
	return fmt.Sprintf("%d:%d:%s", i.uid, i.gid, strings.Join(groups, ","))
}

// own gives a directory of ours, with all below it, to the user.
func (i identity) own(dir string) error {
	if i.name == "" {
		return nil
	}
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, i.uid, i.gid)
	})
}

// become gives up what this process is for what text says. It cannot be taken back.
func become(text string) error {
	if text == "" {
		return nil
	}
	fields := strings.Split(text, ":")
	if len(fields) != 3 {
		return fmt.Errorf("user %q: not uid, gid and groups", text)
	}
	uid, err := strconv.Atoi(fields[0])
	gid, bad := strconv.Atoi(fields[1])
	var groups []int
	for number := range strings.SplitSeq(fields[2], ",") {
		group, wrong := strconv.Atoi(number)
		groups, bad = append(groups, group), errors.Join(bad, wrong)
	}
	if err := errors.Join(err, bad); err != nil {
		return fmt.Errorf("user %q: %w", text, err)
	}
	if !slices.Contains(groups, gid) {
		groups = append(groups, gid)
	}
	if err := errors.Join(syscall.Setgroups(groups), syscall.Setgid(gid), syscall.Setuid(uid)); err != nil {
		return fmt.Errorf("become user %d: %w", uid, err)
	}
	return nil
}
