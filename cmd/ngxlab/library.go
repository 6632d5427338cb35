package main

import (
	"github.com/spf13/cobra"

	"ngxlab/experiments"
)

func newLibrary(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "library [NAME]",
		Short:   "List the experiments that ship with ngxlab, or print one",
		Example: "  ngxlab library\n  ngxlab library quickstart > study.yaml",
		Args:    args(cobra.MaximumNArgs(1)),
		RunE: func(_ *cobra.Command, given []string) error {
			if len(given) == 1 {
				return printLibraryFile(a, given[0])
			}
			return printLibrary(a, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the list as JSON")
	return cmd
}

func printLibraryFile(a *app, name string) error {
	text, err := experiments.Open(name)
	if err != nil {
		return err
	}
	_, err = a.out.Write(text)
	return err
}

func printLibrary(a *app, asJSON bool) error {
	entries := experiments.Library()
	if asJSON {
		return writeJSON(a.out, entries)
	}
	t := newTable(nil)
	for _, e := range entries {
		t.row(e.Name, e.Line)
	}
	p := &page{w: a.out}
	p.table("", t)
	return p.err
}
