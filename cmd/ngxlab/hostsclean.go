package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"ngxlab/lab"
)

func newHostsClean(a *app) *cobra.Command {
	var asJSON bool
	var o access
	cmd := &cobra.Command{
		Use:   "clean [FILE] [HOST…]",
		Short: "Remove what ngxlab keeps on hosts: builds, sources, work, old agents (default: this machine)",
		Long: "clean is refused by a host that a campaign holds, and while something is left changed there: \"ngxlab restore\" puts\n" +
			"it back. Packages that were installed stay.",
		Example: "  ngxlab hosts clean\n  ngxlab hosts clean study.yaml\n  ngxlab hosts clean --json root@web1",
		RunE: func(cmd *cobra.Command, given []string) error {
			x, err := chosen(given, o)
			if err != nil {
				return err
			}
			return hostsClean(cmd.Context(), a, x, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print an array")
	o.flags(cmd)
	return cmd
}

// cleaned is what was removed from a host.
type cleaned struct {
	Host lab.HostName `json:"host"`
	lab.Cleaned
}

// hostsClean cleans every host at the same time. A container that is not there has nothing.
func hostsClean(ctx context.Context, a *app, x lab.Experiment, asJSON bool) error {
	all := askHosts(ctx, a, x, func(ctx context.Context, i int, m *machine) (cleaned, error) {
		return a.cleanOne(ctx, x, i, m)
	})
	for i := range all {
		if isGone(all[i].err) {
			all[i] = asked[cleaned]{answer: cleaned{Host: x.Hosts[i].Name}}
		}
	}
	var err error
	if asJSON {
		err = writeJSON(a.out, answersJSON(x, all))
	} else {
		err = printCleaned(a, all)
	}
	return errors.Join(err, failures(x, all))
}

// cleanOne cleans a host on which nothing is left changed: the agent refuses others, without knowing the cure.
func (a *app) cleanOne(ctx context.Context, x lab.Experiment, i int, m *machine) (cleaned, error) {
	name := x.Hosts[i].Name
	if err := a.mayChange(ctx, x.Name, x.Hosts[i]); err != nil {
		return cleaned{}, err
	}
	left, err := m.pending(ctx)
	if err == nil && len(left) > 0 {
		err = &hinted{
			err:  fmt.Errorf("%s: campaign %s left %s changed", name, left[0].Campaign, count(len(left), "knob")),
			hint: fmt.Sprintf("run %q first", a.restoreCommand(x, []lab.HostName{name})),
		}
	}
	if err != nil {
		return cleaned{}, err
	}
	c, err := m.clean(ctx)
	return cleaned{name, c}, err
}

func printCleaned(a *app, all []asked[cleaned]) error {
	p := &page{w: a.out}
	for _, one := range all {
		c := one.answer
		switch {
		case one.err != nil:
			continue
		case len(c.Removed) == 0:
			p.line("%s: nothing to remove", c.Host)
		default:
			p.line("%s: %s freed; removed %s", c.Host, size(float64(c.FreedBytes)), joined(c.Removed))
		}
	}
	return p.err
}
