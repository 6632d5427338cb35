package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"ngxlab/experiments"
	"ngxlab/lab"
)

func newCheck(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "check FILE",
		Short:   "Check an experiment file without touching any host",
		Example: "  ngxlab check study.yaml",
		Args:    args(cobra.ExactArgs(1)),
		RunE:    func(_ *cobra.Command, given []string) error { return check(a, given[0], asJSON) },
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print what was decoded, with every default, as JSON")
	return cmd
}

func check(a *app, file string, asJSON bool) error {
	e, err := loadExperiment(file)
	if err != nil {
		return err
	}
	states, err := lab.States(e)
	if err != nil {
		return err
	}
	loads, err := lab.LoadPoints(e)
	if err != nil {
		return err
	}
	if asJSON {
		return writeJSON(a.out, e)
	}
	p := &page{w: a.out}
	p.line("%s: %s is valid: %s, %s, %s, %s", file, e.Name, count(len(e.Hosts), "host"), count(len(states), "state"),
		count(len(loads), "load point"), roundsText(e.Repeat))
	p.line("next: ngxlab plan %s", file)
	return p.err
}

// loadExperiment reads an experiment file, or the library's experiment of that name when there is no such file.
func loadExperiment(file string) (lab.Experiment, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) && !strings.ContainsAny(file, "./") {
		if text, err = experiments.Open(file); err != nil {
			return lab.Experiment{}, &hinted{err: fmt.Errorf("there is no file %s, and %w", file, err), hint: `"ngxlab library" lists what ships with ngxlab, "ngxlab init" writes a file`}
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return lab.Experiment{}, &hinted{err: fmt.Errorf("there is no file %s", file), hint: `"ngxlab init FILE" writes one to start from`}
	}
	if err != nil {
		return lab.Experiment{}, err
	}
	return experiments.Decode(file, bytes.NewReader(text))
}

// count prints a number of things: "1 state", "3 states".
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// countOf is count for words with an irregular plural.
func countOf(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
