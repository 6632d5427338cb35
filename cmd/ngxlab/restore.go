package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"ngxlab/lab"
)

// restoreOptions are the flags of restore.
type restoreOptions struct{ check, json bool }

func newRestore(a *app) *cobra.Command {
	o := restoreOptions{}
	cmd := &cobra.Command{
		Use:     "restore [HOST…]",
		Short:   "Put hosts back as they were, from their own journals (default: this machine)",
		Example: "  ngxlab restore --check\n  ngxlab restore",
		RunE: func(cmd *cobra.Command, given []string) error {
			return restore(cmd.Context(), a, restoreHosts(given), o)
		},
	}
	cmd.Flags().BoolVar(&o.check, "check", false, "only say what is not as it was")
	cmd.Flags().BoolVar(&o.json, "json", false, "print an array")
	return cmd
}

// restoreHosts are the hosts named; this machine when none is, or by any of its usual names.
func restoreHosts(given []string) []lab.Host {
	if len(given) == 0 {
		return []lab.Host{{Name: "local", Local: true}}
	}
	hosts := make([]lab.Host, len(given))
	for i, name := range given {
		local := name == "local" || name == "localhost" || name == "127.0.0.1"
		hosts[i] = lab.Host{Name: lab.HostName(name), Local: local}
		if !local {
			hosts[i].Address = name
		}
	}
	return hosts
}

// restored is what restore says of one host.
type restored struct {
	Host     lab.HostName   `json:"host"`
	Pending  []lab.Pending  `json:"pending,omitempty"`
	Restored []lab.Restored `json:"restored,omitempty"`
	Error    string         `json:"error,omitempty"`
	err      error
}

// restore tries every host, prints what became of each knob, and fails when a host is not as it was.
func restore(ctx context.Context, a *app, hosts []lab.Host, o restoreOptions) error {
	results := make([]restored, len(hosts))
	var bad []lab.HostName
	var errs []error
	for i, h := range hosts {
		results[i] = a.restoreOne(ctx, h, o.check)
		if err := results[i].err; err != nil {
			errs = append(errs, err)
		}
		if results[i].err != nil && !errors.Is(results[i].err, errSSH) || len(results[i].Pending) > 0 {
			bad = append(bad, h.Name)
		}
	}
	if err := printRestored(a, results, o); err != nil {
		return err
	}
	if len(bad) > 0 {
		errs = append(errs, &unrestoredError{hosts: bad, restore: a.restoreCommand()})
	}
	return errors.Join(errs...)
}

// restoreOne restores one host, or asks what is pending. A cancelled ctx does not stop a restore half-way.
func (a *app) restoreOne(ctx context.Context, h lab.Host, check bool) (r restored) {
	r.Host = h.Name
	m, err := a.attach(ctx, h)
	if errors.Is(err, errSSH) { // other errors name the host
		err = fmt.Errorf("%s: %w", h.Name, err)
	}
	if err != nil {
		r.err, r.Error = err, err.Error()
		return r
	}
	if check {
		r.Pending, err = m.pending(ctx)
	} else {
		a.touching.Store(true)
		r.Restored, err = m.Restore(context.WithoutCancel(ctx))
		a.touching.Store(err != nil)
	}
	if r.err = errors.Join(err, m.close()); r.err != nil {
		r.Error = r.err.Error()
	}
	return r
}

func printRestored(a *app, results []restored, o restoreOptions) error {
	if o.json {
		return writeJSON(a.out, results)
	}
	p := &page{w: a.out}
	for _, r := range results {
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
