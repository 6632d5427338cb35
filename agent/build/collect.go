package build

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"ngxlab/lab"
)

// collect moves what was made from work/server to work/out: the binary, the shared objects of modules, and what the recipe
// keeps. What compiled may have left links there: none is followed out of the work directory.
func (j job) collect(work string, b *lab.Build) error {
	root, err := os.OpenRoot(work)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // only a directory handle
	if err := j.collectBinary(root, b); err != nil {
		return err
	}
	if err := collectModules(root, b); err != nil {
		return err
	}
	for _, name := range j.recipe.Keep {
		if err := kept(root, name); err != nil {
			return fmt.Errorf("keep %s: %w", name, err)
		}
	}
	return nil
}

func (j job) collectBinary(root *os.Root, b *lab.Build) error {
	b.Binary = binary
	if !j.recipe.IsNginx() {
		b.Binary = path.Base(j.recipe.Binary)
	}
	made := []string{j.recipe.Binary}
	if j.recipe.Binary == "" {
		made = []string{"objs/nginx", "objs/tengine"}
	}
	for _, name := range made {
		info, err := root.Lstat(path.Join("server", name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return fmt.Errorf("the compiled server: %w", err)
		case !info.Mode().IsRegular() || info.Mode()&0o111 == 0:
			return fmt.Errorf("the compiled server %s is no program (mode %v)", name, info.Mode())
		}
		return moved(root, name, b.Binary)
	}
	return fmt.Errorf("the compiled server is not at %s, relative to the source's directory", orOf(made))
}

// moved moves work/server/from to work/out/to, where nothing may be.
func moved(root *os.Root, from, to string) error {
	if !filepath.IsLocal(from) || !filepath.IsLocal(to) {
		return errors.New("it leads out of the source's directory")
	}
	target := path.Join("out", to)
	if _, err := root.Lstat(target); err == nil || slices.Contains([]string{manifest, buildLog}, path.Clean(to)) {
		return fmt.Errorf("the build has a %s already", to)
	}
	if err := root.MkdirAll(path.Dir(target), 0o755); err != nil {
		return err
	}
	return root.Rename(path.Join("server", from), target)
}

// kept moves a file or folder to the build.
func kept(root *os.Root, name string) error {
	err := moved(root, name, name)
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("the build has not made it")
	}
	return err
}

func collectModules(root *os.Root, b *lab.Build) error {
	made, err := fs.ReadDir(root.FS(), "server/objs")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("the modules of the server: %w", err)
	}
	for _, d := range made {
		if !strings.HasSuffix(d.Name(), ".so") || !d.Type().IsRegular() {
			continue
		}
		name := path.Join(modulesDir, d.Name())
		if err := moved(root, path.Join("objs", d.Name()), name); err != nil {
			return fmt.Errorf("module %s: %w", d.Name(), err)
		}
		b.Dynamic = append(b.Dynamic, name)
	}
	return nil
}
