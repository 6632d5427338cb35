package knob

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"ngxlab/lab"
)

// untouchable are files, and directories of files, that are never knobs, with what depends on them: while one of them
// is not as it was, nobody may be able to come and put it back.
var untouchable = []struct{ path, why string }{
	{"/etc/passwd", "logins depend on it"}, {"/etc/shadow", "logins depend on it"},
	{"/etc/group", "logins depend on it"}, {"/etc/gshadow", "logins depend on it"},
	{"/etc/nsswitch.conf", "logins depend on it"}, {"/etc/pam.d", "logins depend on it"},
	{"/etc/sudoers", "the lab's way to root may depend on it"}, {"/etc/sudoers.d", "the lab's way to root may depend on it"},
	{"/etc/ssh", "the lab comes by SSH"},
	{"/etc/ld.so.preload", "every program is started through it"}, {"/etc/ld.so.cache", "every program is started through it"},
	{"/etc/fstab", "the host starts by it"}, {"/boot", "the host starts by it"},
}

// probe says what the file is and what the setting comes to. The knob of its answer is the path without symbolic
// links in its directories, so that one file is one knob.
func (f files) probe(ctx context.Context, s lab.Setting) []lab.KnobFact {
	facts := oneFact(ctx, s, f.examine)
	if fact := &facts[0]; fact.Reason != "" && !fact.Privilege && same(fact.Knob, fact.Now, fact.To) {
		fact.To = lab.Value{} // it came to nothing: what is there is not what was asked for
	}
	return facts
}

func (f files) examine(_ context.Context, fact *lab.KnobFact) refusal {
	if r := judgeName(fact.Knob.Name); r.is() {
		return r
	}
	fact.Knob.Name = resolved(f.root, fact.Knob.Name)
	if r := judgeName(fact.Knob.Name); r.is() {
		return r
	}
	if f.labsOwn(fact.Knob.Name) {
		return refusal{reason: "the lab keeps it for itself, and what it has to put back with it", cure: "leave it out"}
	}
	path := filepath.Join(f.root, fact.Knob.Name)
	if r := f.standing(path, fact); r.is() {
		return r
	}
	now, err := presentFile(path)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return needsRoot("reading it")
	case err != nil:
		return refusal{reason: err.Error()}
	}
	fact.Now = valueOf(now)
	if !fact.To.Absent {
		to, r := asked(fact.Asked.Value, now)
		if fact.To = valueOf(&to); r.is() {
			return r
		}
	}
	if same(fact.Knob, fact.Now, fact.To) {
		return refusal{}
	}
	if r := f.occupied(fact.Knob); r.is() {
		return r
	}
	return f.replaceable(path, fact.To)
}

// occupied judges what stands where the original is to be kept: without an entry in the journal it is not the lab's.
func (f files) occupied(id lab.KnobID) refusal {
	path := f.leftover(id)
	if path == "" {
		return refusal{}
	}
	if j, err := readJournal(f.journals); f.journals != "" && err == nil && j.pending(id) != nil {
		return refusal{}
	}
	return refusal{reason: path + " is there: " + errLeftover.Error(), cure: "look at it, put it back or move it away"}
}

// labsOwn reports whether a file without links in its path is among what the lab keeps on a host, whoever its user is:
// journals, builds, what servers run on, the agents themselves and the host's lock.
func (f files) labsOwn(name string) bool {
	path := filepath.Join(f.root, name)
	if f.journals != "" && (path == f.journals || strings.HasPrefix(path, f.journals+"/")) {
		return true
	}
	if name == "/run/lock/ngxlab.lock" || name == "/var/tmp/ngxlab.lock" || strings.HasPrefix(name, "/var/tmp/ngxlab-") {
		return true
	}
	return slices.ContainsFunc([]string{"/var/lib/ngxlab", "/.local/state/ngxlab", "/.cache/ngxlab"}, func(dir string) bool {
		before, _, found := strings.Cut(name+"/", dir+"/")
		return found && (before == "" || strings.HasPrefix(dir, "/."))
	})
}

// asked is the setting's value with all that it leaves out.
func asked(text string, now *lab.FileValue) (lab.FileValue, refusal) {
	value, err := lab.ParseFileValue(text)
	if err != nil {
		return value, refusal{reason: err.Error()}
	}
	return complete(value, now)
}

// judgeName judges a path by itself.
func judgeName(name string) refusal {
	if !filepath.IsAbs(name) || filepath.Clean(name) != name || name == "/" {
		return refusal{reason: "not an absolute path without . and .. in it", cure: "write the whole path, from /"}
	}
	for below, cure := range map[string]string{"/proc/": "use `sysctl:` or `sysfs:`", "/sys/": "use `sysfs:`", "/dev/": "use a command knob"} {
		if strings.HasPrefix(name, below) {
			return refusal{reason: "what is below " + below + " is the kernel's, not a file", cure: cure}
		}
	}
	for _, u := range untouchable {
		if name == u.path || strings.HasPrefix(name, u.path+"/") {
			return refusal{reason: u.path + " is never changed: " + u.why, cure: "change it by hand, before and after the campaign"}
		}
	}
	if strings.Contains(name, "/.ssh/") {
		return refusal{reason: "keys of SSH are never changed: the lab comes by SSH", cure: "change them by hand, before and after the campaign"}
	}
	return refusal{}
}

// resolved is a name below a root with the symbolic links of its directories followed; as it is when they lead nowhere,
// or out of the root.
func resolved(root, name string) string {
	root, err := filepath.EvalSymlinks(root)
	if err != nil {
		return name
	}
	dir, err := filepath.EvalSymlinks(filepath.Join(root, filepath.Dir(name)))
	if err != nil {
		return name
	}
	below, err := filepath.Rel(root, dir)
	if err != nil || !filepath.IsLocal(below) {
		return name
	}
	return filepath.Join("/", below, filepath.Base(name))
}

// standing judges what is at the path now.
func (f files) standing(path string, fact *lab.KnobFact) refusal {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return f.parent(filepath.Dir(path), fact.To.Absent)
	case errors.Is(err, fs.ErrPermission):
		return needsRoot("looking at it")
	case err != nil:
		return refusal{reason: err.Error()}
	case info.Mode()&fs.ModeSymlink != 0:
		return linked(path)
	case !info.Mode().IsRegular():
		return refusal{reason: "it is " + unfit(info.Mode()), cure: "name a file"}
	case info.Size() > maxFileBytes:
		return refusal{reason: fmt.Sprintf("it has %d bytes, more than the 1 MiB that a journal takes", info.Size()), cure: "use a command knob"}
	}
	if n := info.Sys().(*syscall.Stat_t).Nlink; n > 1 {
		fact.Note = fmt.Sprintf("the file has %d names: the others keep the present content meanwhile", n)
	}
	return refusal{}
}

func linked(path string) refusal {
	target, err := os.Readlink(path)
	if err != nil {
		return refusal{reason: err.Error()}
	}
	return refusal{reason: "it is a symbolic link to " + target, cure: "name the file that it leads to"}
}

// parent judges the directory of a file that is not there.
func (f files) parent(dir string, mayLack bool) refusal {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist) && mayLack:
		return refusal{}
	case err != nil || !info.IsDir():
		return refusal{reason: "there is no directory " + dir, cure: "make it, or install what it belongs to"}
	}
	return refusal{}
}

// replaceable judges whether the agent could put that value there.
func (f files) replaceable(path string, to lab.Value) refusal {
	dir := filepath.Dir(path)
	switch err := unix.Access(dir, unix.W_OK|unix.X_OK); {
	case errors.Is(err, unix.EROFS):
		return refusal{reason: "its file system is read-only", cure: "mount it for writing"}
	case err != nil && f.euid != 0:
		return needsRoot("writing to " + dir)
	case err != nil:
		return refusal{reason: "write to " + dir + ": " + err.Error()}
	}
	switch {
	case locked(path):
		return refusal{reason: "the file is immutable", cure: "chattr -i -a " + path}
	case locked(dir):
		return refusal{reason: "its directory is immutable", cure: "chattr -i -a " + dir}
	case mountedAlone(path):
		return refusal{reason: "the file is a mount of its own, so that nothing can take its place", cure: "change it outside of the container"}
	}
	if to.Absent {
		return refusal{}
	}
	if value, err := lab.ParseFileValue(to.Text); err != nil || !f.mayOwn(value.Owner) {
		return needsRoot("a file of the owner " + value.Owner)
	}
	return refusal{}
}
