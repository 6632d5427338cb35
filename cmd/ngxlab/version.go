package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
)

func newVersion(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version of ngxlab",
		Example: "  ngxlab version",
		Args:    args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				return writeJSON(a.out, map[string]string{"version": a.version, "go": runtime.Version(), "architecture": runtime.GOARCH})
			}
			_, err := fmt.Fprintf(a.out, "ngxlab %s (%s, %s)\n", a.version, runtime.Version(), runtime.GOARCH)
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
