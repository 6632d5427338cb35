package conduct

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"ngxlab/lab"
	"ngxlab/lab/tune"
)

// move brings all hosts at once from the state in force to another one: the ordered differences and nothing else.
func (c *campaign) move(ctx context.Context, to lab.State) error {
	names := c.names()
	applied := make([][]lab.Applied, len(names))
	err := each(names, func(name lab.HostName) error {
		changes, err := c.changes(to, name)
		if err != nil {
			return err
		}
		applied[slices.Index(names, name)], err = c.apply(ctx, name, changes)
		return err
	})
	if err != nil {
		return fmt.Errorf("move to state %q: %w", to.Name, err)
	}
	for i, name := range names {
		to = asReadBack(to, name, applied[i])
	}
	c.inForce = to
	return nil
}

// asReadBack is the state as it is really in force: a best-effort change may have read back differently, and the next
// transition starts from what is there.
func asReadBack(s lab.State, name lab.HostName, applied []lab.Applied) lab.State {
	inForce := map[lab.KnobID]lab.Value{}
	for _, a := range applied {
		if a.Differs {
			inForce[a.Change.Knob] = a.ReadBack
		}
	}
	if len(inForce) == 0 {
		return s
	}
	s.Settings = maps.Clone(s.Settings)
	s.Settings[name] = slices.Clone(s.Settings[name])
	for i, setting := range s.Settings[name] {
		if v, ok := inForce[setting.Knob]; ok {
			s.Settings[name][i].Value, s.Settings[name][i].Absent = v.Text, v.Absent
		}
	}
	return s
}

// otherThanAsked are the knobs of a cell's target that are not in force as its state asks: best efforts.
func (c *campaign) otherThanAsked(id lab.CellID) []lab.Applied {
	var all []lab.Applied
	state, _ := c.plan.State(id.State)
	for _, s := range state.Settings[id.Target] {
		asked, now := lab.Value{Text: s.Value, Absent: s.Absent}, c.wanted(id.Target, s.Knob)
		if tune.OnHost(s.Knob.Kind) && !tune.EqualValues(s.Knob, asked, now) {
			change := lab.Change{Knob: s.Knob, To: asked, BestEffort: s.BestEffort}
			all = append(all, lab.Applied{Change: change, ReadBack: now, Differs: true})
		}
	}
	return all
}

// changes are what is written on a host from the state in force to another one, in order; all else is in force through a
// fresh server.
func (c *campaign) changes(to lab.State, name lab.HostName) ([]lab.Change, error) {
	all, err := tune.Transition(c.inForce, to, name)
	if err != nil {
		return nil, fmt.Errorf("from state %q on %s: %w", c.inForce.Name, name, err)
	}
	var kept []lab.Change
	for _, change := range all {
		if tune.OnHost(change.Knob.Kind) {
			kept = append(kept, change)
		}
	}
	return kept, nil
}

// apply records the originals in the store, then lets the host journal, write and read back.
func (c *campaign) apply(ctx context.Context, name lab.HostName, changes []lab.Change) ([]lab.Applied, error) {
	if len(changes) == 0 {
		return nil, nil
	}
	if err := c.recordOriginals(ctx, name, changes); err != nil {
		return nil, fmt.Errorf("record originals of %s: %w", name, err)
	}
	applied, err := c.hosts[name].Apply(ctx, c.id, changes)
	for _, a := range applied {
		text := fmt.Sprintf("%s: %s → %s", a.Change.Knob, lab.Shown(a.Change.Knob, a.Change.From), lab.Shown(a.Change.Knob, a.ReadBack))
		if unsaid := c.say(ctx, lab.Event{Kind: lab.EventChange, Host: name, Text: text}); err == nil {
			err = unsaid
		}
	}
	return applied, err
}

func (c *campaign) recordOriginals(ctx context.Context, name lab.HostName, changes []lab.Change) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rec.Originals(ctx, c.id, name, c.originals(name, changes))
}

// originals are the changes as seen from the host before the campaign.
func (c *campaign) originals(name lab.HostName, changes []lab.Change) []lab.Change {
	first := map[lab.KnobID]lab.Value{}
	for _, s := range c.plan.Original.Settings[name] {
		first[s.Knob] = lab.Value{Text: s.Value, Absent: s.Absent}
	}
	kept := make([]lab.Change, len(changes))
	for i, change := range changes {
		if v, ok := first[change.Knob]; ok {
			change.From = v
		}
		kept[i] = change
	}
	return kept
}
