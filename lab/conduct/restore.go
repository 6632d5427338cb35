package conduct

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"ngxlab/lab"
)

// restoreTimeout bounds one attempt to put a host back: nothing that a cancelled campaign does may take longer.
const restoreTimeout = 60 * time.Second

// restorePauses are the times after which what a host could not put back is tried again.
var restorePauses = []time.Duration{200 * time.Millisecond, time.Second}

// restored is what a host answered to Restore.
type restored struct {
	entries []lab.Restored
	err     error
}

// restore puts every host back under its own bounded context, all at the same time so that none waits for one that does
// not answer, and returns what could not be put back and what was kept because someone else had changed it.
func (c *campaign) restore(ctx context.Context) (unrestored, kept map[lab.HostName][]lab.Restored, err error) {
	ctx = context.WithoutCancel(ctx)
	names := c.names()
	answers := c.restoreAll(ctx, names)
	ctx, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()
	unrestored, kept = map[lab.HostName][]lab.Restored{}, map[lab.HostName][]lab.Restored{}
	var errs []error
	for i, name := range names {
		if failed := c.sayRestored(ctx, name, answers[i]); failed != nil {
			unrestored[name] = failed
		}
		for _, r := range answers[i].entries {
			if r.Outcome == lab.RestoreForeign {
				kept[name] = append(kept[name], r)
			}
		}
		errs = append(errs, answers[i].err)
	}
	c.inForce = c.plan.Original
	if err = errors.Join(errs...); err != nil {
		err = fmt.Errorf("restore: %w", err)
	}
	return unrestored, kept, err
}

// restoreAll lets every host restore from its own journal, each within restoreTimeout; the answers are in the order of
// the names.
func (c *campaign) restoreAll(ctx context.Context, names []lab.HostName) []restored {
	answers := make([]restored, len(names))
	var group sync.WaitGroup
	for i, name := range names {
		group.Go(func() { answers[i] = c.restoreOne(ctx, name) })
	}
	group.Wait()
	return answers
}

// restoreOne lets a host restore, and again what it could not put back at first. A lost host is not asked again: its link
// is gone.
func (c *campaign) restoreOne(ctx context.Context, name lab.HostName) restored {
	var all []lab.Restored
	for attempt := 0; ; attempt++ {
		entries, err := c.hosts[name].Restore(ctx)
		all = append(all, entries...)
		if err == nil || errors.Is(err, lab.ErrLost) || attempt == len(restorePauses) {
			return restored{all, err}
		}
		all = slices.DeleteFunc(all, func(r lab.Restored) bool { return r.Outcome == lab.RestoreFailed })
		text := fmt.Sprintf("not put back at attempt %d, trying again: %s", attempt+1, strings.TrimPrefix(err.Error(), string(name)+": "))
		c.sayAnyway(ctx, lab.Event{Kind: lab.EventProblem, Host: name, Text: text})
		_ = pause(ctx, restorePauses[attempt]) // ctx has no end of its own
	}
}

// sayRestored says what became of a host, and returns the entries that could not be put back: nil when the host is as
// it was, empty when it did not say.
func (c *campaign) sayRestored(ctx context.Context, name lab.HostName, answer restored) []lab.Restored {
	var failed []lab.Restored
	if answer.err != nil {
		failed = []lab.Restored{}
		c.sayAnyway(ctx, lab.Event{Kind: lab.EventProblem, Host: name, Text: strings.TrimPrefix(answer.err.Error(), string(name)+": ")})
	}
	as := "as it was before the campaign"
	for _, r := range answer.entries {
		switch r.Outcome {
		case lab.RestoreFailed:
			failed = append(failed, r)
		case lab.RestoreForeign:
			as = "as it was before the campaign, but for what someone else changed"
		}
		c.sayAnyway(ctx, lab.Event{Kind: lab.EventRestore, Host: name, Text: fmt.Sprintf("%s: %s", r.Knob, r.Text())})
	}
	if failed == nil {
		c.sayAnyway(ctx, lab.Event{Kind: lab.EventRestored, Host: name, Text: as})
	}
	return failed
}
