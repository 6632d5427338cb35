package main

import (
	"github.com/spf13/cobra"

	"ngxlab/experiments"
)

func newSchema(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "schema",
		Short:   "Print the JSON Schema of experiment files, for editors",
		Example: "  ngxlab schema > ngxlab.schema.json",
		Args:    args(cobra.NoArgs),
		RunE:    func(*cobra.Command, []string) error { return experiments.Schema(a.out) },
	}
}
