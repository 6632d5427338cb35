package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"ngxlab/lab"
)

// verifyStateOptions are the flags of verify-state.
type verifyStateOptions struct {
	json   bool
	access access
}

func newVerifyState(a *app) *cobra.Command {
	o := verifyStateOptions{}
	cmd := &cobra.Command{
		Use:   "verify-state [FILE] [HOST…]",
		Short: "Say whether what the lab has changed on hosts still stands (default: this machine)",
		Long: "verify-state asks each host how the knobs stand that the lab has changed there and not put back. It changes nothing,\n" +
			"and may be asked while a campaign of another session measures. A HOST is [user@]host[:port], a name of ~/.ssh/config,\n" +
			"or local; after an experiment FILE it is a name from there (default: all of its hosts).\n\n" +
			"The exit code is 1 when somebody else has changed a knob since, or when a host cannot be asked.",
		Example: "  ngxlab verify-state\n  ngxlab verify-state study.yaml web\n  ngxlab verify-state --json root@web1 | jq '.[].standing'",
		RunE: func(cmd *cobra.Command, given []string) error {
			x, err := chosen(given, o.access)
			if err != nil {
				return err
			}
			return verifyState(cmd.Context(), a, x, o.json)
		},
	}
	cmd.Flags().BoolVar(&o.json, "json", false, "print an array")
	o.access.flags(cmd)
	return cmd
}

// stood is what verify-state says of one host.
type stood struct {
	Host     lab.HostName   `json:"host"`
	Standing []lab.Standing `json:"standing"`       // sorted by knob; empty when nothing is changed
	Gone     bool           `json:"gone,omitempty"` // a container that is not up
	Error    string         `json:"error,omitempty"`
}

// verifyState asks every host, prints how its knobs stand, and fails when one has drifted or a host cannot be asked.
func verifyState(ctx context.Context, a *app, x lab.Experiment, asJSON bool) error {
	asked := a.askAll(ctx, x, func(ctx context.Context, m *machine, r *restored) (err error) {
		r.Standing, err = m.standing(ctx)
		r.Unknown = err != nil
		return err
	})
	all, errs := make([]stood, len(asked)), make([]error, len(asked))
	for i, r := range asked {
		slices.SortFunc(r.Standing, func(x, y lab.Standing) int { return compareKnobs(x.Knob, y.Knob) })
		all[i] = stood{Host: r.Host, Standing: append([]lab.Standing{}, r.Standing...), Gone: r.Gone, Error: r.Error}
		errs[i] = r.err
	}
	write := func() error { return a.printStanding(all) }
	if asJSON {
		write = func() error { return writeJSON(a.out, all) }
	}
	if err := write(); err != nil {
		return err
	}
	return errors.Join(atHosts(x, errs), drifted(all))
}

func (a *app) printStanding(all []stood) error {
	p := &page{w: a.out}
	t := newTable(nil, "host", "knob", "expected", "found", "state", "since", "campaign")
	for _, h := range all {
		switch {
		case h.Gone:
			p.line("%s: its container is not up: nothing is changed there", h.Host)
		case h.Error != "":
			p.line("%s: cannot be asked", h.Host)
		case len(h.Standing) == 0:
			p.line("%s: nothing is changed", h.Host)
		}
		for _, s := range h.Standing {
			t.row(string(h.Host), s.Knob.String(), knobValue(s.Knob, s.Expected), foundText(s), standingWord(s), a.since(s.Since), string(s.Campaign))
		}
	}
	if len(t.rows) > 1 {
		p.table("", t)
	}
	return p.err
}

// foundText is the value of a knob now, or why that is not known.
func foundText(s lab.Standing) string {
	if s.Error != "" {
		return "not known: " + s.Error
	}
	return knobValue(s.Knob, s.Found)
}

func standingWord(s lab.Standing) string {
	switch {
	case s.Error != "":
		return "not read"
	case s.Drifted:
		return "drifted"
	}
	return "as set"
}

// drifted is the error of knobs that somebody else has changed, or that cannot be read; nil when there is none.
func drifted(all []stood) error {
	var errs []error
	for _, h := range all {
		var changed, unread []string
		for _, s := range h.Standing {
			if s.Error != "" {
				unread = append(unread, s.Knob.String())
			} else if s.Drifted {
				changed = append(changed, s.Knob.String())
			}
		}
		if len(changed) > 0 {
			errs = append(errs, &hostError{
				err:  fmt.Errorf("%s: changed by somebody else: %s", h.Host, strings.Join(changed, ", ")),
				hint: "find what changed it (a configuration management agent, a timer, a person), stop it, and run the campaign again",
			})
		}
		if len(unread) > 0 {
			errs = append(errs, fmt.Errorf("%s: cannot be read: %s", h.Host, strings.Join(unread, ", ")))
		}
	}
	return errors.Join(errs...)
}
