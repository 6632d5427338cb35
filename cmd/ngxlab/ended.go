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

// mend tries the hosts that could not be put back once more, each through a new agent: the one before may have ended.
// What it puts back is taken out of the outcome, in the store too.
func (a *app) mend(ctx context.Context, s *store.Store, f *fleet, x lab.Experiment, out *lab.Outcome) error {
	if len(out.Unrestored) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), restoreTimeout)
	defer cancel()
	for _, h := range x.Hosts {
		if _, bad := out.Unrestored[h.Name]; !bad {
			continue
		}
		a.note("%s: trying again to put it back, through a new agent", h.Name)
		restored, err := a.again(ctx, f, h)
		if err != nil {
			a.note("%v", err)
			continue
		}
		delete(out.Unrestored, h.Name)
		for _, r := range restored {
			if r.Outcome == lab.RestoreForeign {
				out.Kept[h.Name] = append(out.Kept[h.Name], r)
			}
		}
	}
	return s.Commit(ctx, out.Campaign, lab.Record{Outcome: out})
}

// lockPoll is how often a host is asked again that the ending agent still holds.
const lockPoll = 100 * time.Millisecond

// again lets a host go, attaches it anew and restores it. It waits for the agent before to end what it started.
func (a *app) again(ctx context.Context, f *fleet, h lab.Host) ([]lab.Restored, error) {
	_ = f.machines[h.Name].close() // how its agent ended is in the campaign's error
	m, err := a.attach(ctx, h)
	if err != nil {
		return nil, err
	}
	f.machines[h.Name] = m
	ticks := time.NewTicker(lockPoll)
	defer ticks.Stop()
	for {
		restored, err := m.Restore(ctx)
		var remote *wire.Error
		if !errors.As(err, &remote) || remote.Kind != wire.KindLocked {
			return restored, err
		}
		select {
		case <-ctx.Done():
			return restored, err
		case <-ticks.C:
		}
	}
}

// restoreStatus says of every host whether it is as it was.
func (a *app) restoreStatus(f *fleet, out lab.Outcome) {
	for _, name := range f.names {
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
			a.note("  %s: %s", r.Knob, restoredText(r))
		}
	}
}

// unrestored is the error of hosts that could not be put back; nil when all were.
func (a *app) unrestored(f *fleet, out lab.Outcome) error {
	var hosts []lab.HostName
	for _, name := range f.names {
		if _, bad := out.Unrestored[name]; bad {
			hosts = append(hosts, name)
		}
	}
	if len(hosts) == 0 {
		return nil
	}
	return &unrestoredError{hosts: hosts, restore: a.restoreCommand()}
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
	if store.IsFull(err) {
		hint = "make space for the database; then " + hint
	}
	if out.Runs > 0 {
		hint += fmt.Sprintf(", \"ngxlab report %s\" writes up those there are", out.Campaign)
	}
	return &hinted{err: err, hint: hint}
}

// refusedByHost is what a host refused before the first run, in the form of the plan's own refusals; nil for all other
// errors. To resume would be in vain: it obeys the stored plan.
func refusedByHost(pl lab.Plan, err error) error {
	var refused *conduct.RefusedError
	var answer *wire.Error
	if !errors.As(err, &refused) || !errors.As(err, &answer) {
		return nil
	}
	r := refused.Refusal
	r.Reason = fmt.Sprintf("%s: %s", r.Host, answer.Message)
	pl.Refused = []lab.Refusal{r}
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
