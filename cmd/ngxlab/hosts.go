package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"ngxlab/lab"
)

func newHosts(a *app) *cobra.Command {
	hosts := group(&cobra.Command{
		Use:     "hosts",
		Short:   "Look at hosts",
		Example: "  ngxlab hosts facts",
	})
	var asJSON bool
	facts := &cobra.Command{
		Use:     "facts",
		Short:   "Print what is known of this machine",
		Example: "  ngxlab hosts facts --json | jq .sysctls",
		Args:    args(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return hostFacts(cmd.Context(), a, asJSON) },
	}
	facts.Flags().BoolVar(&asJSON, "json", false, "print all facts, with every sysctl, as JSON")
	hosts.AddCommand(facts)
	return hosts
}

func hostFacts(ctx context.Context, a *app, asJSON bool) (err error) {
	m, err := a.attach(ctx, lab.Host{Name: "local", Local: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.close()) }()
	f, err := m.facts(ctx, lab.FactsQuery{Commands: []string{"wrk", "ab", "cc", "make"}})
	if err != nil {
		return err
	}
	if asJSON {
		return writeJSON(a.out, f)
	}
	p := &page{w: a.out}
	p.line("%s", f.Hostname)
	p.line("  %s", factsLine(f))
	for _, tool := range []string{"wrk", "ab", "cc", "make"} {
		path := f.Commands[tool]
		if path == "" {
			path = "missing"
		}
		p.line("  %s: %s", tool, path)
	}
	p.line("  journal and builds in %s, %s free", f.StateDir, size(float64(f.LogBytesFree)))
	return p.err
}
