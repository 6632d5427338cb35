package experiments

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"

	"ngxlab/lab"
)

// Bounds of a template's files, all of them together: a configuration, and not a site's content.
const (
	maxTemplateBytes = 1 << 20
	maxTemplateFiles = 1000
)

// template is texts by name, or the path of a file beside the experiment.
var template = value[map[string]string]{schema{"anyOf": []schema{text.schema, relativeFiles.schema}}, func(d *decoding, at string, n ast.Node) (map[string]string, bool) {
	if n.Type() == ast.MappingType {
		files, ok := relativeFiles.read(d, at, n)
		if _, there := files[lab.TemplateRoot]; ok && !there {
			d.problem(at, "nginx is started with it", "no text of the template is called %s", lab.TemplateRoot)
			return nil, false
		}
		return files, ok
	}
	name, ok := text.read(d, at, n)
	if !ok {
		return nil, false
	}
	files, err := readTemplate(d.folder, name)
	if err != nil {
		d.problem(at, "it names a file beside the experiment file: site/nginx.conf; with it come the files below its folder", "template: %s", err)
		return nil, false
	}
	d.read[at] = files
	return files, true
}}

// readTemplate reads a template below a folder: the file of that name as TemplateRoot and, when it lies in a folder of its
// own, every other file there and below by its path from there, but for those whose names begin with a dot.
func readTemplate(folder, name string) (map[string]string, error) {
	if message, _ := refuseRelative(name); message != "" {
		return nil, errors.New(message)
	}
	if folder == "" {
		return nil, fmt.Errorf("read %s: the experiment is no file that others could be beside", name)
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	defer func() { _ = root.Close() }() // it was only read
	t := templateFiles{root: root, texts: map[string]string{}, left: maxTemplateBytes}
	if err := t.add(name, lab.TemplateRoot); err != nil {
		return nil, err
	}
	if dir := path.Dir(name); dir != "." {
		err = t.below(dir, name)
	}
	return t.texts, err
}

// templateFiles are the files of a template while they are read.
type templateFiles struct {
	root  *os.Root
	texts map[string]string
	left  int64 // bytes that may still come
}

// below reads what is in a folder and below, without the file that was read first.
func (t *templateFiles) below(dir, first string) error {
	return fs.WalkDir(t.root.FS(), dir, func(at string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case at != dir && strings.HasPrefix(e.Name(), ".") && e.IsDir():
			return fs.SkipDir
		case e.IsDir(), at == first, strings.HasPrefix(e.Name(), "."):
			return nil
		}
		return t.add(at, strings.TrimPrefix(at, dir+"/"))
	})
}

// add reads one file. A link is followed as far as it stays below the folder of the experiment.
func (t *templateFiles) add(at, as string) error {
	if _, twice := t.texts[as]; twice {
		return fmt.Errorf("%s would be %s, which another file is already", at, as)
	}
	if len(t.texts) == maxTemplateFiles {
		return fmt.Errorf("%s: more than %d files", at, maxTemplateFiles)
	}
	info, err := t.root.Stat(filepath.FromSlash(at))
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", at)
	}
	f, err := t.root.Open(filepath.FromSlash(at))
	if err != nil {
		return err
	}
	content, err := io.ReadAll(io.LimitReader(f, t.left+1))
	switch err := errors.Join(err, f.Close()); {
	case err != nil:
		return err
	case int64(len(content)) > t.left:
		return fmt.Errorf("%s: the files are larger than %d bytes together", at, maxTemplateBytes)
	case !utf8.Valid(content) || bytes.IndexByte(content, 0) >= 0:
		return fmt.Errorf("%s is not a text", at)
	}
	t.left -= int64(len(content))
	t.texts[as] = string(content)
	return nil
}

// hashed is the hash of an experiment: of its text and, when there are any, of the files that were read with it.
func (d *decoding) hashed(text []byte) string {
	sum := sha256.New()
	_, _ = sum.Write(text) // a hash takes everything
	for _, at := range slices.Sorted(maps.Keys(d.read)) {
		for _, name := range slices.Sorted(maps.Keys(d.read[at])) {
			part(sum, at)
			part(sum, name)
			part(sum, d.read[at][name])
		}
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// part adds a text and its length, so that no two lists of texts are the same bytes.
func part(sum hash.Hash, text string) {
	_, _ = fmt.Fprintf(sum, "\x00%d\x00%s", len(text), text)
}
