package experiments

import (
	_ "embed"
	"fmt"
	"io"
	"regexp"
	"strings"
)

//go:embed scaffold.yaml
var scaffold string

// ScaffoldOptions says what file to write; zero values have defaults.
type ScaffoldOptions struct {
	Name string // default "my-study"; must be a name as the file allows it
}

var nameRE = regexp.MustCompile(namePattern)

// Scaffold writes a commented experiment file to start from. It is valid, and it runs on this machine.
func Scaffold(w io.Writer, o ScaffoldOptions) error {
	if o.Name == "" {
		o.Name = "my-study"
	}
	if !nameRE.MatchString(o.Name) {
		return fmt.Errorf("%q cannot be the name of an experiment: it must match %s", o.Name, namePattern)
	}
	if _, err := io.WriteString(w, strings.Replace(scaffold, "NAME", o.Name, 1)); err != nil {
		return fmt.Errorf("write experiment: %w", err)
	}
	return nil
}
