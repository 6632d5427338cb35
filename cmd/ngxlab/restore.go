package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"ngxlab/agent/wire"
	"ngxlab/lab"
)

// restoreOptions are the flags of restore.
type restoreOptions struct {
	check, json bool
	access      access
}

func newRestore(a *app) *cobra.Command {
	o := restoreOptions{}
	cmd := &cobra.Command{
		Use:   "restore [FILE] [HOST…]",
		Short: "Put hosts back as they were, from their own journals (default: this machine)",
		Long: "restore asks the journal of each host what a campaign left changed, and puts it back. It needs neither the\n" +
			"experiment file nor the database, and works from any machine. A HOST is [user@]host[:port], a name of\n" +
			"~/.ssh/config, or local; after an experiment FILE it is a name from there (default: all of its hosts).",
		Example: "  ngxlab restore --check\n  ngxlab restore\n  ngxlab restore root@web1 local\n  ngxlab restore study.yaml web1",
		RunE: func(cmd *cobra.Command, given []string) error {
			x, err := chosen(given, o.access)
			if err != nil {
				return err
			}
			return restore(cmd.Context(), a, x, o)
		},
	}
	cmd.Flags().BoolVar(&o.check, "check", false, "only say what is not as it was")
	cmd.Flags().BoolVar(&o.json, "json", false, "print an array")
	o.access.flags(cmd)
	return cmd
}

// restored is what restore says of one host.
type restored struct {
	Host     lab.HostName   `json:"host"`
	Pending  []lab.Pending  `json:"pending,omitempty"`
	Restored []lab.Restored `json:"restored,omitempty"`
	Gone     bool           `json:"gone,omitempty"` // a container that is not up: its sysctls are gone with it
	Error    string         `json:"error,omitempty"`
	err      error
}

// restore tries every host, prints what became of each knob, and fails when a host is not as it was.
func restore(ctx context.Context, a *app, x lab.Experiment, o restoreOptions) error {
	results := a.restoreAll(ctx, x, o.check)
	if err := printRestored(a, results, o); err != nil {
		return err
	}
	errs := make([]error, len(results))
	var bad []lab.HostName
	for i, r := range results {
		errs[i] = r.err
		if r.err != nil && !inUse(r.err) || len(r.Pending) > 0 {
			bad = append(bad, r.Host)
		}
	}
	err := atHosts(x, errs)
	if len(bad) > 0 {
		err = errors.Join(err, &unrestoredError{hosts: bad, restore: a.restoreCommand(x, bad)})
	}
	return err
}

// inUse reports whether a host answered that a campaign has it: that campaign puts it back.
func inUse(err error) bool {
	var remote *wire.Error
	return errors.As(err, &remote) && remote.Kind == wire.KindLocked
}

// restoreAll restores all hosts at the same time, or asks what is pending there; the results are in their order.
func (a *app) restoreAll(ctx context.Context, x lab.Experiment, check bool) []restored {
	results := make([]restored, len(x.Hosts))
	forEach(ctx, len(x.Hosts), attachTimeout, func(ctx context.Context, i int) error {
		results[i] = a.restoreOne(ctx, x, i, check)
		return nil // it is in the result
	})
	return results
}

// restoreOne restores one host, or asks what is pending. A lab that is not up is not brought up for it.
func (a *app) restoreOne(ctx context.Context, x lab.Experiment, i int, check bool) (r restored) {
	h := x.Hosts[i]
	r.Host = h.Name
	m, err := a.attach(ctx, x.Name, h)
	switch {
	case isGone(err):
		r.Gone = true
		return r
	case err != nil:
		r.err, r.Error = err, err.Error()
		return r
	case check:
		r.Pending, err = m.pending(ctx)
	default:
		r.Restored, err = a.putBack(ctx, x, h.Name, m)
	}
	if r.err = errors.Join(err, m.close()); r.err != nil {
		r.Error = r.err.Error()
	}
	return r
}

// putBack restores a host from its journal, which a cancelled ctx does not stop half-way. Until that is done, leaving at
// once leaves it changed.
func (a *app) putBack(ctx context.Context, x lab.Experiment, name lab.HostName, m *machine) ([]lab.Restored, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), restoreTimeout)
	defer cancel()
	a.touched.add(x, name)
	all, err := m.Restore(ctx)
	if err == nil {
		a.touched.remove(name)
	}
	return all, err
}

func printRestored(a *app, results []restored, o restoreOptions) error {
	if o.json {
		return writeJSON(a.out, results)
	}
	p := &page{w: a.out}
	for _, r := range results {
		if r.Gone {
			p.line("%s: its container is not up: nothing to put back", r.Host)
			continue
		}
		if r.err == nil && len(r.Pending) == 0 && len(r.Restored) == 0 {
			p.line("%s: nothing to put back", r.Host)
		}
		for _, k := range r.Pending {
			p.line("%s: %s was %s, changed by campaign %s since %s", r.Host, k.Knob, value(k.Original), k.Campaign, k.Since)
		}
		for _, k := range r.Restored {
			p.line("%s: %s: %s", r.Host, k.Knob, restoredText(k))
		}
	}
	return p.err
}

// restoredText says what became of a knob.
func restoredText(r lab.Restored) string {
	switch r.Outcome {
	case "restored":
		return fmt.Sprintf("put back from %s to %s", value(r.Found), value(r.Original))
	case "already":
		return "already " + value(r.Original)
	case "foreign":
		return fmt.Sprintf("kept at %s: changed by someone else (it was %s)", value(r.Found), value(r.Original))
	case "rebooted":
		return fmt.Sprintf("back by itself at %s: the host was rebooted", value(r.Found))
	}
	return fmt.Sprintf("%s: is %s, was %s: %s", r.Outcome, value(r.Found), value(r.Original), r.Error)
}
