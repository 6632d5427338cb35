package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"ngxlab/agent/wire"
	"ngxlab/lab"
	"ngxlab/lab/conduct"
	"ngxlab/lab/plan"
)

// How long one host may take for what the commands ask of it. To attach holds the upload of the agent over a slow link
// and the question for a passphrase.
const (
	attachTimeout  = 6 * time.Minute
	claimTimeout   = 20 * time.Second
	answerTimeout  = 60 * time.Second
	restoreTimeout = 60 * time.Second
)

// atOnce is how many hosts are asked at the same time.
const atOnce = 64

// forEach calls do for 0 … n-1, atOnce at a time, each with its own bound, and returns the errors by number: one host
// that fails stops no other.
func forEach(ctx context.Context, n int, bound time.Duration, do func(ctx context.Context, i int) error) []error {
	errs := make([]error, n)
	late := fmt.Errorf("no answer within %v: %w", bound, context.DeadlineExceeded)
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i := range n {
		group.Go(func() error {
			ctx, cancel := context.WithTimeoutCause(ctx, bound, late)
			defer cancel()
			errs[i] = do(ctx, i)
			return nil
		})
	}
	_ = group.Wait() // its errors are in errs
	return errs
}

// fleet is the attached hosts of an experiment.
type fleet struct {
	x        lab.Experiment
	machines []*machine // in the order of the experiment's hosts; nil for one that is not attached
}

// withFleet brings the experiment's Docker lab up when it is not, attaches every host, hands them to do, and lets them
// go. Every host that cannot be attached is named.
func (a *app) withFleet(ctx context.Context, x lab.Experiment, do func(*fleet) error) error {
	if err := a.bringUp(ctx, x); err != nil {
		return err
	}
	f, errs := a.attachAll(ctx, x)
	err := atHosts(x, errs)
	switch {
	case ctx.Err() != nil:
		err = ctx.Err() // nothing is wrong with the hosts
	case err == nil:
		err = do(f)
	}
	return errors.Join(err, f.close())
}

// attachAll attaches the hosts of an experiment all at the same time, those that can be.
func (a *app) attachAll(ctx context.Context, x lab.Experiment) (*fleet, []error) {
	f := &fleet{x: x, machines: make([]*machine, len(x.Hosts))}
	errs := forEach(ctx, len(x.Hosts), attachTimeout, func(ctx context.Context, i int) (err error) {
		f.machines[i], err = a.attach(ctx, x.Name, x.Hosts[i])
		return err
	})
	return f, errs
}

// every asks every host at the same time. Its error names each host that failed, with its place in the file.
func (f *fleet) every(ctx context.Context, bound time.Duration, do func(ctx context.Context, i int) error) error {
	return atHosts(f.x, forEach(ctx, len(f.machines), bound, do))
}

// close lets the hosts go.
func (f *fleet) close() error {
	return errors.Join(forEach(context.Background(), len(f.machines), answerTimeout, func(_ context.Context, i int) error {
		if f.machines[i] == nil {
			return nil
		}
		if err := f.machines[i].close(); err != nil {
			return fmt.Errorf("leave %s: %w", f.x.Hosts[i].Name, err)
		}
		return nil
	})...)
}

// claim takes the lock of every host for the campaign. When one is held, each that is tells its holder; those that were
// taken are free again as soon as the fleet is let go.
func (f *fleet) claim(ctx context.Context, c lab.CampaignID) error {
	return f.every(ctx, claimTimeout, func(ctx context.Context, i int) error {
		err := f.machines[i].claim(ctx, c)
		var held *wire.Error
		if errors.As(err, &held) && held.Lock != nil && held.Lock.Owner == owner() {
			return &hinted{err: fmt.Errorf("%s: another host of the experiment is the same machine", f.x.Hosts[i].Name), hint: "one host may have both roles: roles: [target, load]"}
		}
		return err
	})
}

// facts asks every host what the experiment needs to know, for which it runs the verify commands. With noInstall no host
// can install anything.
func (f *fleet) facts(ctx context.Context, x lab.Experiment, noInstall bool) (map[lab.HostName]lab.Facts, error) {
	answers, queries := make([]lab.Facts, len(f.machines)), make([]lab.FactsQuery, len(f.machines))
	bound := answerTimeout
	for i, h := range x.Hosts {
		queries[i] = plan.Query(x, h)
		bound = max(bound, answerTimeout+lab.SlownessOf(queries[i].Knobs).Read)
	}
	err := f.every(ctx, bound, func(ctx context.Context, i int) (err error) {
		answers[i], err = f.machines[i].facts(ctx, queries[i])
		return err
	})
	all := map[lab.HostName]lab.Facts{}
	for i, h := range f.x.Hosts {
		answers[i].Host = h.Name
		if noInstall {
			answers[i].CanInstall, answers[i].NoInstall = false, true
		}
		all[h.Name] = answers[i]
	}
	return all, err
}

// pending asks every host's journal; the answers are in the order of the experiment's hosts.
func (f *fleet) pending(ctx context.Context) ([][]lab.Pending, error) {
	answers := make([][]lab.Pending, len(f.machines))
	err := f.every(ctx, answerTimeout, func(ctx context.Context, i int) (err error) {
		answers[i], err = f.machines[i].pending(ctx)
		return err
	})
	return answers, err
}

// conducted is the fleet as the engine takes it for a campaign.
func (a *app) conducted(f *fleet, c lab.CampaignID) map[lab.HostName]conduct.Machine {
	all := map[lab.HostName]conduct.Machine{}
	for i, h := range f.x.Hosts {
		m := f.machines[i].Machine
		if isDocker(h) {
			m.Lender = a.lender(f, c)
		}
		all[h.Name] = m
	}
	return all
}

// recover puts back what an earlier campaign left on the hosts, before any value is read as an original one, and tells the
// database.
func (a *app) recover(ctx context.Context, f *fleet) error {
	left, err := f.pending(ctx)
	if err != nil {
		return err
	}
	for i, h := range f.x.Hosts {
		if p := left[i]; len(p) > 0 {
			a.note("%s: campaign %s left %s changed; putting it back first", h.Name, p[0].Campaign, count(len(p), "knob"))
		}
	}
	results := make([]restored, len(left))
	errs := forEach(ctx, len(left), restoreTimeout, func(ctx context.Context, i int) (err error) {
		if len(left[i]) > 0 {
			results[i].Restored, err = a.putBack(ctx, f.x, f.x.Hosts[i].Name, f.machines[i])
			results[i].fails(err)
			results[i].by(ctx, f.machines[i])
		}
		return err
	})
	a.recordPutBack(ctx, f.x, results)
	var bad []lab.HostName
	for i, err := range errs {
		if err != nil {
			bad = append(bad, f.x.Hosts[i].Name)
		}
	}
	if len(bad) == 0 {
		return nil
	}
	return errors.Join(atHosts(f.x, errs), &unrestoredError{hosts: bad, restore: a.restoreCommand(f.x, bad)})
}

// pendingNote tells what an earlier campaign left on the hosts, for commands that change nothing.
func (a *app) pendingNote(ctx context.Context, f *fleet) error {
	left, err := f.pending(ctx)
	var bad []lab.HostName
	for i, h := range f.x.Hosts {
		if p := left[i]; len(p) > 0 {
			bad = append(bad, h.Name)
			a.note("%s: campaign %s left %s changed: the values below are not the original ones", h.Name, p[0].Campaign, count(len(p), "knob"))
		}
	}
	if len(bad) > 0 {
		a.note("hint: run %q", a.restoreCommand(f.x, bad))
	}
	return err
}
