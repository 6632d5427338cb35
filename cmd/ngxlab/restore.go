package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/spf13/cobra"

	"ngxlab/agent/wire"
	"ngxlab/lab"
	"ngxlab/store"
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
			"~/.ssh/config, or local; after an experiment FILE it is a name from there (default: all of its hosts).\n\n" +
			"The exit code is 3 when a host is known not to be as it was: its journal says so, or it was not put back, or it cannot be\n" +
			"asked and the database (--db) has a campaign that changed it and did not put it back. It is 1 when a host cannot be\n" +
			"asked and nothing of that is known.",
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
	Gone     bool           `json:"gone,omitempty"`    // a container that is not up: its sysctls are gone with it
	Unknown  bool           `json:"unknown,omitempty"` // the host could not be asked
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
		if len(r.Pending) > 0 || r.err != nil && !r.Unknown && !inUse(r.err) && !isForeign(r.err) || r.Unknown && a.leftChanged(ctx, x, x.Hosts[i]) {
			bad = append(bad, r.Host)
		}
	}
	err := atHosts(x, errs)
	if len(bad) > 0 {
		err = errors.Join(err, &unrestoredError{hosts: bad, restore: a.restoreCommand(x, bad)})
	}
	return err
}

// leftChanged reports whether the database has a campaign that changed a host, which cannot be asked, and did not put it
// back.
func (a *app) leftChanged(ctx context.Context, x lab.Experiment, h lab.Host) bool {
	found := false
	err := a.reading(ctx, func(s *store.Store) error {
		left, err := s.Left(ctx)
		for _, l := range left {
			pl, err := s.Plan(ctx, l.Campaign)
			if err != nil {
				return err
			}
			found = found || slices.ContainsFunc(pl.Experiment.Hosts, func(other lab.Host) bool {
				return other.Name == l.Host && sameHost(x.Name, h, pl.Experiment.Name, other)
			})
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		a.note("what campaigns left changed on %s could not be read: %v", h.Name, err)
	}
	return found
}

// sameHost reports whether two hosts are one, as far as their experiments show it.
func sameHost(labA string, a lab.Host, labB string, b lab.Host) bool {
	if isDocker(a) || isDocker(b) {
		return isDocker(a) && isDocker(b) && labA == labB && a.Name == b.Name
	}
	return a.Local == b.Local && a.Address == b.Address && a.Port == b.Port
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
		r.err, r.Error, r.Unknown = err, err.Error(), true
		return r
	case check:
		r.Pending, err = m.pending(ctx)
		r.Unknown = err != nil
	default:
		if err = a.mayChange(ctx, x.Name, h); err == nil {
			r.Restored, err = a.putBack(ctx, x, h.Name, m)
		}
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
		if r.Unknown {
			p.line("%s: cannot be asked", r.Host)
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
