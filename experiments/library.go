package experiments

import (
	"bytes"
	"embed"
	"fmt"
	"path"
	"strings"
)

//go:embed library/*.yaml
var library embed.FS

// Entry is one experiment of the library.
type Entry struct {
	Name  string `json:"name"`  // the file's name without .yaml, for Open
	Title string `json:"title"` // the question it asks
	Line  string `json:"line"`  // what it is, in one line: the first comment of the file
}

// Library lists the experiments that ship with ngxlab, sorted by name.
func Library() []Entry {
	files, err := library.ReadDir("library")
	if err != nil {
		return nil // cannot be: the folder is embedded
	}
	var entries []Entry
	for _, f := range files {
		name := strings.TrimSuffix(f.Name(), ".yaml")
		text, err := Open(name)
		if err != nil {
			continue
		}
		entry := Entry{Name: name, Line: firstComment(text)}
		if e, err := Decode(f.Name(), bytes.NewReader(text)); err == nil {
			entry.Title = e.Title
		}
		entries = append(entries, entry)
	}
	return entries
}

// Open returns the text of a library experiment; an unknown name is an error that names the nearest.
func Open(name string) ([]byte, error) {
	text, err := library.ReadFile(path.Join("library", name+".yaml"))
	if err == nil {
		return text, nil
	}
	var names []string
	if files, err := library.ReadDir("library"); err == nil {
		for _, f := range files {
			names = append(names, strings.TrimSuffix(f.Name(), ".yaml"))
		}
	}
	return nil, fmt.Errorf("no experiment %q in the library; %s", name, suggestion(name, names))
}

func firstComment(text []byte) string {
	first, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimSpace(strings.TrimPrefix(first, "#"))
}
