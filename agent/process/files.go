package process

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
)

// write fills the fresh directory: configuration, files and generated bodies.
func (sv *serving) write() error {
	files := map[string]string{errorLog: ""}
	if sv.asked.Command == nil {
		files["nginx.conf"] = sv.loading() + sv.place(sv.asked.Config)
	}
	for name, content := range sv.files() {
		files[name] = sv.place(content)
	}
	if err := writeFiles(sv.prefix, files); err != nil {
		return err
	}
	for name, body := range sv.asked.Bodies {
		if err := sv.putBody(name, body); err != nil {
			return err
		}
	}
	if err := sv.readable(); err != nil {
		return err
	}
	if err := sv.putCertificate(); err != nil {
		return err
	}
	return sv.as.own(sv.prefix)
}

// loading loads the modules of an installed server, whose places only this host knows, but for those that the
// configuration names itself.
func (sv *serving) loading() string {
	if sv.asked.Build.Dir != "" {
		return ""
	}
	var lines strings.Builder
	for _, object := range sv.asked.Build.Dynamic {
		if !strings.Contains(sv.asked.Config, "/"+filepath.Base(object)) {
			fmt.Fprintf(&lines, "load_module \"%s\";\n", object)
		}
	}
	return lines.String()
}

// files are those that the server needs besides nginx.conf.
func (sv *serving) files() map[string]string {
	files := maps.Clone(sv.asked.Files)
	if files == nil {
		files = map[string]string{}
	}
	if sv.asked.Command != nil {
		maps.Copy(files, sv.asked.Command.Files)
	}
	return files
}

func writeFiles(work string, files map[string]string) error {
	for name, content := range files {
		if !filepath.IsLocal(name) {
			return fmt.Errorf("write file %q of a command: it would lie outside its directory", name)
		}
		path := filepath.Join(work, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("write a file of a command: %w", err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			return fmt.Errorf("write a file of a command: %w", err)
		}
	}
	return nil
}

// readable makes sure that workers, which are not root when their master is, reach and read the directory whatever the
// umask was. Only directories of the lab's own are opened to them.
func (sv *serving) readable() error {
	if os.Geteuid() != 0 {
		return nil
	}
	err := filepath.WalkDir(sv.prefix, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return os.Chmod(path, 0o755)
		}
		return os.Chmod(path, 0o644)
	})
	for dir := filepath.Dir(sv.prefix); err == nil && dir != "/" && dir != "."; dir = filepath.Dir(dir) {
		err = enterable(dir, dir == sv.r.Dir || within(dir, sv.r.Dir))
	}
	return err
}

// enterable lets everybody pass a directory of ours, and refuses another that lets not.
func enterable(dir string, ours bool) error {
	info, err := os.Stat(dir)
	if err != nil || info.Mode()&0o001 != 0 {
		return err
	}
	if ours {
		return os.Chmod(dir, info.Mode().Perm()|0o011)
	}
	return fmt.Errorf("the workers of a server cannot enter %s (mode %v); chmod o+x it, or give the agent another --dir", dir, info.Mode().Perm())
}
