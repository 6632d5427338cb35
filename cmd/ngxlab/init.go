package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"ngxlab/experiments"
)

func newInit(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "init [FILE]",
		Short:   "Write a commented experiment file to start from",
		Example: "  ngxlab init study.yaml",
		Args:    args(cobra.MaximumNArgs(1)),
		RunE: func(_ *cobra.Command, given []string) error {
			file := "study.yaml"
			if len(given) == 1 {
				file = given[0]
			}
			return writeScaffold(a, file)
		},
	}
}

// writeScaffold writes a new file; one that exists is left alone.
func writeScaffold(a *app, file string) (err error) {
	name := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(file), ".yaml"), ".yml")
	var text bytes.Buffer
	if err := experiments.Scaffold(&text, experiments.ScaffoldOptions{Name: name}); err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return &hinted{err: fmt.Errorf("%s exists", file), hint: "name another file"}
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := text.WriteTo(f); err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	_, err = fmt.Fprintf(a.out, "wrote %s\nnext: ngxlab plan %s\n", file, file)
	return err
}
