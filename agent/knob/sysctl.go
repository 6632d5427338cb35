package knob

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"ngxlab/lab"
)

// sysctls reads and writes the tree below /proc/sys (Documentation/admin-guide/sysctl of Linux).
type sysctls struct {
	root string
	// wrote is called after a write, for trees that play the kernel's part; nil otherwise.
	wrote func(path string)
}

// Path is the file of a sysctl below /proc/sys by the convention of sysctl(8): whichever of "." and "/" comes first
// separates, and the other stands for a dot or slash within a name (net.ipv4.conf.eth0/100.mtu or
// net/ipv4/conf/eth0.100/mtu). A name that leaves the tree is an error.
func Path(name string) (string, error) {
	path := name
	if i := strings.IndexAny(name, "./"); i >= 0 && name[i] == '.' {
		path = strings.Map(swapSeparators, name)
	}
	if !filepath.IsLocal(path) || filepath.Clean(path) != path || path == "." || strings.ContainsRune(path, 0) {
		return "", fmt.Errorf("sysctl %q: not a name of a sysctl", name)
	}
	return path, nil
}

func swapSeparators(r rune) rune {
	switch r {
	case '.':
		return '/'
	case '/':
		return '.'
	}
	return r
}

func (s sysctls) file(id lab.KnobID) (string, error) {
	path, err := Path(id.Name)
	return filepath.Join(s.root, path), err
}

// read returns the value less its final newline, byte for byte; Absent when there is no such sysctl.
func (s sysctls) read(_ context.Context, id lab.KnobID, _ lab.Value) (lab.Value, error) {
	path, err := s.file(id)
	if err != nil {
		return lab.Value{}, err
	}
	text, there, err := readText(id, path)
	return lab.Value{Text: strings.TrimSuffix(text, "\n"), Absent: !there && err == nil}, err
}

// write hands the value to the kernel.
func (s sysctls) write(_ context.Context, id lab.KnobID, to lab.Value) error {
	path, err := s.file(id)
	if err != nil {
		return err
	}
	if err := overwrite(id, path, to); err != nil {
		return err
	}
	if s.wrote != nil {
		s.wrote(path)
	}
	return nil
}

// probe answers for the tree as it is; what a sysctl takes is known to the planner.
func (s sysctls) probe(ctx context.Context, asked lab.Setting) []lab.KnobFact {
	fact := lab.KnobFact{Asked: asked, Knob: asked.Knob, To: lab.Value{Text: asked.Value, Absent: asked.Absent}}
	var err error
	switch fact.Now, err = s.read(ctx, asked.Knob, lab.Value{}); {
	case err != nil:
		fact.Reason, fact.Cure = err.Error(), "check the name"
	case fact.Now.Absent:
		fact.Reason, fact.Cure = "this kernel does not have it", "check the name"
	}
	return []lab.KnobFact{fact}
}
