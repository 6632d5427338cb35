package build

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"ngxlab/lab"
)

// The files of a finished build: a directory without its manifest is no build.
const (
	manifest  = "build.json" // describes it; paths in it are relative to its directory
	filesFile = "files.json" // its other files, as they were when it was finished: name → keptFile
	binary    = "nginx"
	buildLog  = "build.log"
)

// workPrefix begins the names of the directories of builds that are not finished, before the name of their lock.
const workPrefix = ".work-"

// errDamaged is a build that is not what it was when it was finished.
var errDamaged = errors.New("damaged")

// keptFile is what a file of a build was when the build was finished.
type keptFile struct {
	SHA256    string `json:"sha256"` // of a symbolic link its target, as in sumsOf
	SizeBytes int64  `json:"size_bytes"`
	ChangedNS int64  `json:"changed_ns"` // mtime: nanoseconds since 1970
}

// keep writes the manifest and the list of files, and renames the directory into place, whole.
func keep(out, final string, b lab.Build) error {
	b.Dir, b.Log = "", ""
	if _, err := os.Stat(filepath.Join(out, buildLog)); err == nil {
		b.Log = buildLog
	}
	info, err := os.Stat(filepath.Join(out, b.Binary))
	if err != nil {
		return err
	}
	b.SizeBytes = info.Size()
	if err := writeJSON(filepath.Join(out, manifest), b); err != nil {
		return err
	}
	files, err := filesOf(out)
	if err != nil {
		return err
	}
	if err := writeJSON(filepath.Join(out, filesFile), files); err != nil {
		return err
	}
	if err := os.RemoveAll(final); err != nil { // a directory without manifest, or damaged
		return err
	}
	return os.Rename(out, final)
}

// filesOf describes the files of a build but for its description, and for the log, which no server needs.
func filesOf(dir string) (map[string]keptFile, error) {
	sums, err := sumsOf(dir)
	if err != nil {
		return nil, err
	}
	files := map[string]keptFile{}
	for name, sum := range sums {
		if name == manifest || name == filesFile || name == buildLog {
			continue
		}
		info, err := os.Lstat(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		files[name] = keptFile{sum, info.Size(), info.ModTime().UnixNano()}
	}
	return files, nil
}

// intact holds the files of a build against their list: by size and time, and those of another time, as copies have, by
// their sums. A build that was kept without a list has only its binary to look at.
func intact(dir string, b lab.Build) error {
	text, err := os.ReadFile(filepath.Join(dir, filesFile))
	if errors.Is(err, fs.ErrNotExist) {
		return sized(filepath.Join(dir, b.Binary), b.SizeBytes)
	}
	var files map[string]keptFile
	if err == nil {
		err = json.Unmarshal(text, &files)
	}
	if err != nil {
		return fmt.Errorf("the list of its files: %w", err)
	}
	if _, ok := files[b.Binary]; !ok {
		return fmt.Errorf("no list of its files has %s", b.Binary)
	}
	for name, was := range files {
		if err := unchanged(filepath.Join(dir, name), was); err != nil {
			return err
		}
	}
	return nil
}

func unchanged(path string, was keptFile) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		target, err := os.Readlink(path)
		if err == nil && linkSum+target != was.SHA256 {
			err = fmt.Errorf("%s is another link", path)
		}
		return err
	}
	if info.Size() != was.SizeBytes {
		return fmt.Errorf("%s has %d bytes, it had %d", path, info.Size(), was.SizeBytes)
	}
	if info.ModTime().UnixNano() == was.ChangedNS {
		return nil
	}
	sum, err := hashFile(path)
	if err == nil && sum != was.SHA256 {
		err = fmt.Errorf("%s was changed at %s", path, info.ModTime().UTC().Format(time.RFC3339))
	}
	return err
}

// sized refuses a file of another size than it had; 0 is not known.
func sized(path string, sizeBytes int64) error {
	info, err := os.Stat(path)
	if err == nil && sizeBytes != 0 && info.Size() != sizeBytes {
		err = fmt.Errorf("%s has %d bytes, it had %d", path, info.Size(), sizeBytes)
	}
	return err
}

// remembered returns the finished build that the key was resolved to before.
func (c Cache) remembered(key string) (lab.Build, bool) {
	id, err := os.ReadFile(c.resolution(key))
	if err != nil {
		return lab.Build{}, false
	}
	return c.finished(string(id))
}

// finished returns the build of that ID, when it is here.
func (c Cache) finished(id string) (lab.Build, bool) {
	b, err := c.open(id)
	return b, err == nil
}

// open returns the build of that ID. Errors: fs.ErrNotExist, or errDamaged with what differs.
func (c Cache) open(id string) (lab.Build, error) {
	if !idForm.MatchString(id) {
		return lab.Build{}, fs.ErrNotExist
	}
	dir := filepath.Join(c.builds(), id)
	b, err := readManifest(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return b, err
	}
	if err == nil {
		err = intact(dir, b)
	}
	if err != nil {
		return b, fmt.Errorf("%w: %w", errDamaged, err)
	}
	b.Dir, b.Binary = dir, filepath.Join(dir, b.Binary)
	if b.Log != "" {
		b.Log = filepath.Join(dir, b.Log)
	}
	return b, nil
}

// readManifest is the description of the build in dir, with paths relative to it.
func readManifest(dir string) (b lab.Build, err error) {
	text, err := os.ReadFile(filepath.Join(dir, manifest))
	if err != nil {
		return b, err
	}
	if err := json.Unmarshal(text, &b); err != nil {
		return b, err
	}
	b.Binary, b.Log = inside(b.ID, b.Binary), inside(b.ID, b.Log)
	if !filepath.IsLocal(b.Binary) {
		return b, fmt.Errorf("it names no binary of its own: %q", b.Binary)
	}
	return b, nil
}

// inside is a path relative to the directory of a build: manifests of older agents have absolute ones.
func inside(id, path string) string {
	if _, below, ok := strings.Cut(path, "/"+id+"/"); ok && filepath.IsAbs(path) {
		return below
	}
	return path
}

// sweep removes what builders have left that were killed: who works holds the lock.
func (c Cache) sweep(ctx context.Context) {
	left, _ := filepath.Glob(filepath.Join(c.builds(), workPrefix+"*")) // the pattern is well formed
	for _, dir := range left {
		if unlock, free := lockFree(ctx, c.lockOf(strings.TrimPrefix(filepath.Base(dir), workPrefix))); free {
			_ = os.RemoveAll(dir) // the next build tries again
			unlock()
		}
	}
}

// lockFree takes a lock that nobody has.
func lockFree(ctx context.Context, path string) (unlock func(), free bool) {
	once, cancel := context.WithCancel(ctx)
	cancel()
	unlock, err := lock(once, path)
	return unlock, err == nil
}

func writeJSON(path string, content any) error {
	text, err := json.MarshalIndent(content, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(path, text)
}
