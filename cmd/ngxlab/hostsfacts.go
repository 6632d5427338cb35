package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"ngxlab/lab"
)

func newHostsFacts(a *app) *cobra.Command {
	var asJSON bool
	var o access
	cmd := &cobra.Command{
		Use:     "facts [FILE] [HOST…]",
		Short:   "Print what is known of hosts (default: this machine)",
		Example: "  ngxlab hosts facts\n  ngxlab hosts facts study.yaml\n  ngxlab hosts facts --sudo bench@load1 bench@load2\n  ngxlab hosts facts --json | jq '.[0].sysctls'",
		RunE: func(cmd *cobra.Command, given []string) error {
			x, err := chosen(given, o)
			if err != nil {
				return err
			}
			if err := a.bringUpNamed(cmd.Context(), given, x); err != nil {
				return err
			}
			return hostFacts(cmd.Context(), a, x, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print an array of all facts, with every sysctl")
	o.flags(cmd)
	return cmd
}

// bringUpNamed brings up the whole lab of an experiment, also when only some of its hosts are named.
func (a *app) bringUpNamed(ctx context.Context, given []string, x lab.Experiment) error {
	if !slices.ContainsFunc(x.Hosts, isDocker) {
		return nil
	}
	whole, err := chosen(given[:1], access{})
	if err != nil {
		return err
	}
	return a.bringUp(ctx, whole)
}

// factsTools are the programs whose presence facts tells.
var factsTools = []string{"wrk", "ab", "cc", "make"}

// hostFacts prints the facts of every host that answers; one that does not is an error, after those that do.
func hostFacts(ctx context.Context, a *app, x lab.Experiment, asJSON bool) error {
	all := askHosts(ctx, a, x, func(ctx context.Context, _ int, m *machine) (lab.Facts, error) {
		return m.facts(ctx, lab.FactsQuery{Commands: factsTools})
	})
	var err error
	if asJSON {
		err = writeJSON(a.out, answersJSON(x, all))
	} else {
		err = printFacts(a, x, all)
	}
	return errors.Join(err, failures(x, all))
}

func printFacts(a *app, x lab.Experiment, all []asked[lab.Facts]) error {
	p := &page{w: a.out}
	for i, one := range all {
		if one.err == nil {
			factsText(p, x.Hosts[i], one.answer)
		}
	}
	return p.err
}

// factsText prints one host, from what it is to what it has.
func factsText(p *page, h lab.Host, f lab.Facts) {
	named := ""
	if f.Hostname != string(h.Name) {
		named = f.Hostname + "; "
	}
	p.line("%s (%s%s)", h.Name, named, whereHost(h, f))
	p.line("  %s", factsLine(f))
	if len(f.NICs) > 0 {
		p.line("  network: %s", nics(f.NICs))
	}
	p.line("  control groups version %d; files open at once: %s, hard limit %s, of the kernel %s per process", f.Cgroup,
		number(float64(f.NofileSoft)), number(float64(f.NofileHard)), number(float64(f.NrOpen)))
	if f.ClockDoubtS > 0 {
		p.line("  clock %s", clockText(f.ClockOffsetS, f.ClockDoubtS))
	}
	for _, tool := range factsTools {
		path := f.Commands[tool]
		if path == "" {
			path = "missing"
		}
		p.line("  %s: %s", tool, path)
	}
	p.line("  journal and builds in %s, %s free", f.StateDir, size(float64(f.LogBytesFree)))
}

// clockText says how a host's wall clock stands to this machine's, as far as that is known.
func clockText(offset, doubt float64) string {
	switch {
	case math.Abs(offset) <= doubt:
		return "as this machine's, ± " + seconds(doubt)
	case offset < 0:
		return seconds(-offset) + " behind this machine's, ± " + seconds(doubt)
	}
	return seconds(offset) + " ahead of this machine's, ± " + seconds(doubt)
}

// nics prints network interfaces with what is known of each.
func nics(all []lab.NIC) string {
	parts := make([]string, len(all))
	for i, n := range all {
		parts[i] = fmt.Sprintf("%s, MTU %d", n.Name, n.MTUBytes)
		if n.SpeedMbitS > 0 {
			parts[i] += fmt.Sprintf(", %s Mbit/s", number(float64(n.SpeedMbitS)))
		}
		if n.Queues > 0 {
			parts[i] += ", " + count(n.Queues, "queue")
		}
	}
	return strings.Join(parts, "; ")
}
