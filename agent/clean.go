package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"ngxlab/agent/wire"
	"ngxlab/lab"
)

// clean removes what is kept on the host, while nobody uses it.
func (s *session) clean(context.Context, wire.None) (done lab.Cleaned, err error) {
	if s.lock.isHeld() {
		return done, errors.New("this session holds the host and may use what would be removed")
	}
	err = s.lock.during(wire.Claim{Owner: "a clean"}, func() error {
		if err := s.parts.clear(); err != nil {
			return err
		}
		done, err = s.parts.clean()
		return err
	})
	return done, err
}

// unbuild removes builds, while nobody uses them.
func (s *session) unbuild(ctx context.Context, u wire.Unbuild) (done lab.Cleaned, err error) {
	if s.lock.isHeld() {
		return done, errors.New("this session holds the host and may use what would be removed")
	}
	err = s.lock.during(wire.Claim{Owner: "a removal of builds"}, func() error {
		done, err = s.parts.unbuild(ctx, u.IDs)
		return err
	})
	return done, err
}

// kept are the directories in the state directory that everything in can be made again. The journal is not among them.
var kept = []string{"builds", "sources", "bodies", "certs", "work"}

// cleanHost empties the kept directories of a state directory and removes the agents that lie beside this one, unless
// a change is still to be put back. It tries everything, and returns what it did with the errors.
func cleanHost(dir string, pending func() ([]lab.Pending, error)) (lab.Cleaned, error) {
	left, err := pending()
	if err != nil {
		return lab.Cleaned{}, err
	}
	if len(left) > 0 {
		return lab.Cleaned{}, fmt.Errorf("%d changes of campaign %s are not put back, %s first", len(left), left[0].Campaign, left[0].Knob)
	}
	var paths []string
	for _, name := range kept {
		inside, e := entries(filepath.Join(dir, name), func(string) bool { return true })
		paths, err = append(paths, inside...), errors.Join(err, e)
	}
	if exe, e := os.Readlink("/proc/self/exe"); e == nil {
		others, e := otherAgents(exe)
		paths, err = append(paths, others...), errors.Join(err, e)
	}
	done, e := removeAll(paths)
	return done, errors.Join(err, e)
}

// agentName is what the program calls an agent that it has sent.
var agentName = regexp.MustCompile(`^` + wire.AgentPrefix + `[0-9a-f]{16}$`)

// unfinished is for how long half of an agent may still be on its way.
const unfinished = 5 * time.Minute

// otherAgents are the agents that do not run, and halves of agents that nobody sends any more, in the directory of a
// running one that was sent by the program. Sessions with another state directory run theirs from there, too.
func otherAgents(exe string) ([]string, error) {
	if !agentName.MatchString(filepath.Base(exe)) {
		return nil, nil
	}
	running := executables()
	all, err := entries(filepath.Dir(exe), func(name string) bool {
		return agentName.MatchString(name) || strings.HasPrefix(name, wire.TemporaryPrefix)
	})
	return slices.DeleteFunc(all, func(path string) bool {
		if agentName.MatchString(filepath.Base(path)) {
			return path == exe || running[path] || isBusy(path)
		}
		info, err := os.Lstat(path)
		return err != nil || time.Since(info.ModTime()) < unfinished
	}), err
}

// executables are the files that processes run; those of other users are seen by root only.
func executables() map[string]bool {
	found := map[string]bool{}
	links, _ := filepath.Glob("/proc/[0-9]*/exe") // the pattern is well formed
	for _, link := range links {
		if exe, err := os.Readlink(link); err == nil {
			found[exe] = true
		}
	}
	return found
}

// isBusy tells whether somebody runs a file, who may be another user: by most kernels it is then closed for writing.
func isBusy(path string) bool {
	file, err := os.OpenFile(path, os.O_WRONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err == nil {
		_ = file.Close() // nothing was written
	}
	return errors.Is(err, unix.ETXTBSY)
}

// entries are the paths in a directory whose names are wanted, none when it is missing.
func entries(dir string, wanted func(name string) bool) ([]string, error) {
	all, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var paths []string
	for _, e := range all {
		if wanted(e.Name()) {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	return paths, nil
}

func removeAll(paths []string) (done lab.Cleaned, err error) {
	for _, path := range paths {
		size := bytesBelow(path)
		if e := os.RemoveAll(path); e != nil {
			err = errors.Join(err, e)
			continue
		}
		done.Removed = append(done.Removed, path)
		done.FreedBytes += size
	}
	return done, err
}

// bytesBelow is the size of the files at and below path; what cannot be read counts nothing.
func bytesBelow(path string) (total int64) {
	_ = filepath.WalkDir(path, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil
		}
		if info, err := d.Info(); err == nil {
			total += info.Size()
		}
		return nil
	})
	return total
}
