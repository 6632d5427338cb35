package build

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"

	"ngxlab/lab"
)

// sumsFile is the first file of an exported build: the SHA-256 of every other, as JSON (name → hex).
const sumsFile = "sums.json"

// unpackedLimit bounds what an imported build may hold, in bytes; an nginx with its log has 10 MB.
const unpackedLimit = 1 << 30

// Export writes a finished build of this host to w: a tar archive compressed with zstandard, which Import of another host
// takes. Errors: no such build here, a build that names directories of this host, so that it runs nowhere else.
func (c Cache) Export(ctx context.Context, b lab.Build, w io.Writer) error {
	if err := c.export(ctx, b, w); err != nil {
		return fmt.Errorf("copy build %s: %w", b.Recipe, err)
	}
	return nil
}

func (c Cache) export(ctx context.Context, b lab.Build, w io.Writer) error {
	if b.Dir == "" {
		return errors.New("it is a server that is installed on its host, and stays there")
	}
	kept, err := c.open(b.ID)
	if errors.Is(err, errDamaged) {
		return err
	}
	if err != nil {
		return fmt.Errorf("there is no build %q on this host", b.ID)
	}
	if dir := filepath.Clean(c.Dir); strings.Contains(kept.Configured, dir) {
		return fmt.Errorf("it was configured with paths below %s: it runs nowhere else", dir)
	}
	dir := filepath.Join(c.builds(), b.ID)
	sums, err := sumsOf(dir)
	if err != nil {
		return err
	}
	delete(sums, filesFile) // with times of this host
	zipped, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		return err
	}
	err = pack(ctx, tar.NewWriter(zipped), dir, sums)
	return errors.Join(err, zipped.Close())
}

// linkSum begins what stands for the sum of a symbolic link, before its target.
const linkSum = "link "

// sumsOf returns the SHA-256 of every file below dir, by its name there, and the targets of the symbolic links. A build has
// nothing else.
func sumsOf(dir string) (map[string]string, error) {
	sums := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		switch d.Type() {
		case 0:
			sums[name], err = hashFile(path)
		case fs.ModeSymlink:
			var target string
			target, err = os.Readlink(path)
			sums[name] = linkSum + target
		default:
			err = fmt.Errorf("%s is not a file", path)
		}
		return err
	})
	return sums, err
}

// pack writes the list of sums and then the files, below a directory of the build's name, as unpack takes it.
func pack(ctx context.Context, archive *tar.Writer, dir string, sums map[string]string) error {
	list, err := json.Marshal(sums)
	if err != nil {
		return err
	}
	top := filepath.Base(dir) + "/"
	if err := archive.WriteHeader(&tar.Header{Name: top + sumsFile, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(list))}); err != nil {
		return err
	}
	if _, err := archive.Write(list); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		if err := errors.Join(ctx.Err(), packFile(archive, filepath.Join(dir, name), top+name)); err != nil {
			return err
		}
	}
	return archive.Close()
}

func packFile(archive *tar.Writer, path, name string) error {
	if target, err := os.Readlink(path); err == nil {
		return archive.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeSymlink, Mode: 0o777, Linkname: target})
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // only read
	info, err := f.Stat()
	if err != nil {
		return err
	}
	h := &tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: int64(info.Mode().Perm()), Size: info.Size(), ModTime: info.ModTime()}
	if err := archive.WriteHeader(h); err != nil {
		return err
	}
	_, err = io.Copy(archive, f)
	return err
}

// Import keeps a build that another host of the same distribution and architecture exported, so that Build of the same
// recipe finds it made, with or without a compiler here; b is the build as that host gave it. A build that is here
// already is returned with Cached set, and nothing is read from r. Errors, after which nothing is kept: another
// distribution or architecture, a stream that is cut off or not what its sums say, a binary that does not run here
// (with the libraries that are missing).
func (c Cache) Import(ctx context.Context, b lab.Build, r io.Reader) (lab.Build, error) {
	done, err := c.importOnce(ctx, b, r)
	if err != nil {
		return lab.Build{}, fmt.Errorf("take over build %s: %w", b.Recipe, err)
	}
	done.Recipe = b.Recipe
	return done, nil
}

// idForm is what hash gives; an ID becomes the name of a directory.
var idForm = regexp.MustCompile(`^[0-9a-f]{16}$`)

func (c Cache) importOnce(ctx context.Context, b lab.Build, r io.Reader) (lab.Build, error) {
	if !idForm.MatchString(b.ID) || !idForm.MatchString(b.Identity) {
		return lab.Build{}, fmt.Errorf("it has no usable name: id %q, identity %q", b.ID, b.Identity)
	}
	if here := distribution(); b.Distribution != here || b.Architecture != runtime.GOARCH {
		return lab.Build{}, fmt.Errorf("it was made on %s, %s; this host is %s, %s", b.Distribution, b.Architecture, here, runtime.GOARCH)
	}
	if err := os.MkdirAll(c.builds(), 0o755); err != nil {
		return lab.Build{}, err
	}
	unlock, err := lock(ctx, c.lockOf(b.ID))
	if err != nil {
		return lab.Build{}, err
	}
	defer unlock()
	_, there := c.finished(b.ID)
	if !there {
		if err := c.take(ctx, b, r); err != nil {
			return lab.Build{}, err
		}
	}
	if err := writeFile(c.resolution(b.Identity), []byte(b.ID)); err != nil {
		return lab.Build{}, err
	}
	done, err := c.open(b.ID)
	if err != nil {
		return lab.Build{}, fmt.Errorf("it cannot be read back: %w", err)
	}
	c.touch(b.ID)
	done.Cached = there
	return done, nil
}

// take unpacks a build beside the others, looks at all of it, and renames it into place.
func (c Cache) take(ctx context.Context, b lab.Build, r io.Reader) error {
	work := filepath.Join(c.builds(), workPrefix+b.ID)
	c.sweep(ctx)
	if err := os.RemoveAll(work); err != nil { // of one that was interrupted
		return err
	}
	defer os.RemoveAll(work) //nolint:errcheck // what is left is removed by the next
	if err := receive(r, work); err != nil {
		return fmt.Errorf("the copy is not whole: %w", err)
	}
	kept, err := readManifest(work)
	if err != nil {
		return fmt.Errorf("the copy: %w", err)
	}
	if kept.ID != b.ID {
		return fmt.Errorf("the copy holds the build %q, not %q", kept.ID, b.ID)
	}
	if err := c.starts(ctx, kept, work); err != nil {
		return err
	}
	kept.Distribution, kept.Architecture, kept.Identity, kept.From = b.Distribution, b.Architecture, b.Identity, b.From
	return keep(work, filepath.Join(c.builds(), b.ID), kept)
}

// receive unpacks the stream of Export to its end into the directory, and compares everything with the list of sums.
func receive(r io.Reader, into string) error {
	unzipped, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(32<<20))
	if err != nil {
		return err
	}
	defer unzipped.Close()
	bounded := &io.LimitedReader{R: unzipped, N: unpackedLimit}
	if _, err := unpackTar(bounded, into); err != nil {
		return err
	}
	for _, rest := range []io.Reader{bounded, r} { // to the end: only there a stream that is cut off is known
		if _, err := io.Copy(io.Discard, rest); err != nil {
			return err
		}
	}
	if bounded.N <= 0 {
		return fmt.Errorf("more than %d bytes", unpackedLimit)
	}
	return compare(into)
}

// compare holds the files below dir against the list among them, which it removes.
func compare(dir string) error {
	text, err := os.ReadFile(filepath.Join(dir, sumsFile))
	if err != nil {
		return fmt.Errorf("no list of its files: %w", err)
	}
	var want map[string]string
	if err := json.Unmarshal(text, &want); err != nil {
		return fmt.Errorf("the list of its files: %w", err)
	}
	if err := os.Remove(filepath.Join(dir, sumsFile)); err != nil {
		return err
	}
	got, err := sumsOf(dir)
	if err != nil {
		return err
	}
	for name := range want {
		if got[name] != want[name] {
			return fmt.Errorf("%s: the file is missing or not the one sent", name)
		}
	}
	if len(got) != len(want) {
		return fmt.Errorf("it has %d files, its list %d", len(got), len(want))
	}
	return nil
}

// starts makes sure that the loader of this host starts the binary of a build in dir: the libraries that it and its modules
// were linked with may be missing.
func (c Cache) starts(ctx context.Context, b lab.Build, dir string) error {
	var err error
	if len(b.Modules) > 0 {
		_, _, err = c.inspect(ctx, filepath.Join(dir, b.Binary), placedEnv(b.Env, dir))
	}
	if ctx.Err() != nil {
		return err
	}
	missing := c.missingLibraries(ctx, b, dir)
	switch {
	case len(missing) == 0 && err == nil:
		return nil
	case len(missing) == 0:
		return fmt.Errorf("the server does not start on this host: %w", err)
	}
	packages := libraryPackages(missing)
	return fmt.Errorf("the server needs libraries that this host lacks: %s; install them (on Debian: %s), or what it takes to build here",
		strings.Join(missing, ", "), strings.Join(packages, " "))
}

// notFound is a line of the dynamic loader's list, which glibc's prints when LD_TRACE_LOADED_OBJECTS is set (ldd(1)).
var notFound = regexp.MustCompile(`(?m)^\s*(\S+) => not found`)

func (c Cache) missingLibraries(ctx context.Context, b lab.Build, dir string) []string {
	var names []string
	for _, found := range notFound.FindAllStringSubmatch(c.loaded(ctx, b, dir), -1) {
		names = append(names, found[1])
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// libraryNames are the Debian packages of the libraries that an nginx is linked with.
var libraryNames = map[string]string{
	"libpcre2-8.so.0": "libpcre2-8-0", "libpcre.so.3": "libpcre3", "libz.so.1": "zlib1g", "libcrypt.so.1": "libcrypt1",
	"libssl.so.3": "libssl3", "libcrypto.so.3": "libssl3", "libssl.so.1.1": "libssl1.1", "libcrypto.so.1.1": "libssl1.1",
}

func libraryPackages(libraries []string) []string {
	var names []string
	for _, l := range libraries {
		name, known := libraryNames[l]
		if !known {
			name = "the one with " + l
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
