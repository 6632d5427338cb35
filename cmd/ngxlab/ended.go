package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"ngxlab/agent/wire"
	"ngxlab/lab"
	"ngxlab/lab/conduct"
	"ngxlab/store"
)

// reattachTimeout bounds how long a host whose link was lost is tried to be reached again.
const reattachTimeout = 15 * time.Second

// mend tries the hosts that could not be put back once more, all at the same time and each through a new agent: the link
// to the one before may be lost, its address another now. What it puts back is taken out of the outcome, in the store
// too.
func (a *app) mend(ctx context.Context, s *store.Store, f *fleet, out *lab.Outcome) error {
	if len(out.Unrestored) == 0 {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	all := make([][]lab.Restored, len(f.x.Hosts))
	errs := forEach(ctx, len(f.x.Hosts), reattachTimeout+restoreTimeout, func(ctx context.Context, i int) (err error) {
		if _, bad := out.Unrestored[f.x.Hosts[i].Name]; bad {
			all[i], err = a.again(ctx, f, i)
		}
		return err
	})
	for i, h := range f.x.Hosts {
		if errs[i] != nil {
			a.note("%v", errs[i])
			continue
		}
		delete(out.Unrestored, h.Name)
		if kept := foreign(all[i]); len(kept) > 0 {
			out.Kept[h.Name] = append(out.Kept[h.Name], kept...)
		}
	}
	if out.Status == lab.StatusUnrestored && len(out.Unrestored) == 0 {
		out.Status = lab.StatusDone
	}
	return s.Commit(ctx, out.Campaign, lab.Record{Outcome: out})
}

// foreign are those that someone else had changed, and that were kept.
func foreign(all []lab.Restored) []lab.Restored {
	return slices.DeleteFunc(slices.Clone(all), func(r lab.Restored) bool { return r.Outcome != lab.RestoreForeign })
}

// poll is how often a host is asked again: that is not reached, or that the ending agent still holds.
const poll = 100 * time.Millisecond

// again lets a host go, attaches it anew and restores it. It waits for the agent before to end what it started.
func (a *app) again(ctx context.Context, f *fleet, i int) ([]lab.Restored, error) {
	h := f.x.Hosts[i]
	a.note("%s: trying again to put it back, through a new agent", h.Name)
	_ = f.machines[i].close() // how its agent ended is in the campaign's error
	f.machines[i] = nil
	switch err := a.reattach(ctx, f, i); {
	case isGone(err):
		a.note("%s: its container is gone: nothing to put back", h.Name)
		return nil, nil
	case err != nil:
		return nil, err
	}
	for {
		restored, err := a.putBack(ctx, f.x, h.Name, f.machines[i])
		if !inUse(err) || !pause(ctx, poll) {
			return restored, err
		}
	}
}

// reattach attaches a host anew, again and again while the bound lasts.
func (a *app) reattach(ctx context.Context, f *fleet, i int) error {
	ctx, cancel := context.WithTimeoutCause(ctx, reattachTimeout, fmt.Errorf("not reached within %v: %w", reattachTimeout, context.DeadlineExceeded))
	defer cancel()
	for {
		m, err := a.attach(ctx, f.x.Name, f.x.Hosts[i])
		if err == nil {
			f.machines[i] = m
			return nil
		}
		if isGone(err) || !pause(ctx, 5*poll) {
			return err
		}
	}
}

// pause waits that long, and reports whether ctx has not ended meanwhile.
func pause(ctx context.Context, long time.Duration) bool {
	timer := time.NewTimer(long)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// restoreStatus says of every host whether it is as it was.
func (a *app) restoreStatus(f *fleet, out lab.Outcome) {
	for _, h := range f.x.Hosts {
		name := h.Name
		left, bad := out.Unrestored[name]
		kept := out.Kept[name]
		switch {
		case bad:
			a.note("%s: NOT as it was before the campaign", name)
		case len(kept) > 0:
			a.note("%s: as it was before the campaign, but for what someone else changed", name)
		default:
			a.note("%s: as it was before the campaign", name)
		}
		for _, r := range slices.Concat(left, kept) {
			a.note("  %s: %s", r.Knob, r.Text())
		}
	}
}

// unrestored is the error of hosts that could not be put back; nil when all were.
func (a *app) unrestored(f *fleet, out lab.Outcome) error {
	var hosts []lab.HostName
	for _, h := range f.x.Hosts {
		if _, bad := out.Unrestored[h.Name]; bad {
			hosts = append(hosts, h.Name)
		}
	}
	if len(hosts) == 0 {
		return nil
	}
	return &unrestoredError{hosts: hosts, restore: a.restoreCommand(f.x, hosts)}
}

// stopped says why a campaign did not reach its end, and how it can go on.
func stopped(ctx context.Context, s *store.Store, pl lab.Plan, out lab.Outcome, err error) error {
	if out.Runs == 0 {
		if refused := refusedByHost(pl, err); refused != nil {
			return refused
		}
	}
	if _, unknown := s.Campaign(context.WithoutCancel(ctx), out.Campaign); unknown != nil {
		return err // it did not begin
	}
	if out.Status == lab.StatusInterrupted {
		err = &interruptedError{id: out.Campaign, runs: out.Runs}
	}
	hint := fmt.Sprintf("\"ngxlab resume %s\" does the missing runs", out.Campaign)
	switch cure := driftCure(err); {
	case store.IsFull(err):
		hint = "make space for the database; then " + hint
	case cure != "":
		hint = cure + "; then " + hint
	}
	if out.Runs > 0 {
		hint += fmt.Sprintf(", \"ngxlab report %s\" writes up those there are", out.Campaign)
	}
	return &hinted{err: err, hint: hint}
}

// driftCure is advice when someone else changed what the campaign has set: found before a run, or when the host was to
// write the next state. "" for all other errors.
func driftCure(err error) string {
	var drift *conduct.DriftError
	var met *wire.Error
	switch {
	case errors.As(err, &drift):
		return drift.Cure()
	case errors.As(err, &met) && met.Kind == wire.KindForeign:
		return conduct.DriftCure
	}
	return ""
}

// refusedByHost is what a host refused before the first run, in the form of the plan's own refusals; nil for all other
// errors. To resume would be in vain: it obeys the stored plan.
func refusedByHost(pl lab.Plan, err error) error {
	var refused *conduct.RefusedError
	if !errors.As(err, &refused) {
		return nil
	}
	pl.Refused = []lab.Refusal{refused.Refusal}
	return &refusedError{pl}
}

// interruptedError is a campaign that was cancelled.
type interruptedError struct {
	id   lab.CampaignID
	runs int
}

func (e *interruptedError) Error() string {
	return fmt.Sprintf("campaign %s was interrupted after %s", e.id, count(e.runs, "run"))
}

// Is makes an interruption a cancelled context, which it comes from.
func (e *interruptedError) Is(target error) bool { return target == context.Canceled }

// unwritten says how a finished campaign that could not be written up still can be.
func unwritten(id lab.CampaignID, err error) error {
	var doubt *doubtfulError
	if err == nil || errors.As(err, &doubt) {
		return err
	}
	return &hinted{err: fmt.Errorf("campaign %s is done, but not written up: %w", id, err), hint: fmt.Sprintf("\"ngxlab report %s\" writes its report", id)}
}
