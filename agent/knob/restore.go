package knob

import (
	"context"
	"errors"
	"fmt"

	"ngxlab/lab"
)

// Restore puts back all that the journal holds, newest first. It tries everything, returns one element per entry
// and joins the errors; entries in error stay pending. When no entry is left the journal is put aside.
func (k *Keeper) Restore(ctx context.Context) ([]lab.Restored, error) {
	var all []lab.Restored
	err := k.alone(ctx, func(j *journal) error {
		if len(j.entries) == 0 {
			return j.archive()
		}
		boot, err := k.bootID()
		if err != nil {
			return err
		}
		cases := k.cases(ctx, j, boot)
		var errs []error
		for i, c := range cases {
			if err := ctx.Err(); err != nil && c.err == nil {
				c.out.Outcome, c.err = lab.RestoreFailed, err
			}
			k.faults.reach("before restore")
			r, err := k.restore(ctx, c, cases)
			all, errs = append(all, r), append(errs, err)
			cases[i].out = r
		}
		return errors.Join(append(errs, k.settle(j, all))...)
	})
	return all, err
}

// settle puts the journal aside when every entry is dealt with (which needs no space on the disk), and otherwise
// closes those that are.
func (k *Keeper) settle(j *journal, all []lab.Restored) error {
	var rs []record
	for _, r := range all {
		if r.Outcome != lab.RestoreFailed {
			rs = append(rs, record{Kind: settledRecord, Knob: r.Knob, Value: r.Found, Outcome: r.Outcome})
		}
	}
	k.faults.reach("before settling")
	switch len(rs) {
	case len(all):
		return j.archive()
	case 0:
		return nil
	default:
		return j.commit(rs...)
	}
}

// restoring is one entry with what was found before anything was put back.
type restoring struct {
	entry *entry
	out   lab.Restored
	err   error
}

// cases judges every entry, newest first, by the value found now.
func (k *Keeper) cases(ctx context.Context, j *journal, boot string) []restoring {
	var cases []restoring
	for i := len(j.entries) - 1; i >= 0; i-- {
		cases = append(cases, k.judge(ctx, j.entries[i], boot))
	}
	for i := range cases { // one half of a couple in foreign hands: writing the other would undo it
		other := partner(cases, cases[i].entry.knob)
		if other != nil && other.out.Outcome == lab.RestoreForeign && cases[i].out.Outcome == lab.RestoreDone {
			cases[i].out.Outcome = lab.RestoreForeign
		}
	}
	return cases
}

// judge decides what is to become of an entry; lab.RestoreDone means that it is to be written back.
func (k *Keeper) judge(ctx context.Context, e *entry, boot string) restoring {
	found, err := k.read(ctx, e.knob, e.original)
	r := restoring{entry: e, err: err, out: lab.Restored{Knob: e.knob, Original: e.original, Found: found}}
	switch {
	case err != nil:
		r.out.Outcome = lab.RestoreFailed
	case e.boot != boot:
		r.out.Outcome = lab.RestoreRebooted
	case same(e.knob, found, e.original):
		r.out.Outcome = lab.RestoreAlready
	case e.isOurs(found) || k.left(ctx, e, found):
		r.out.Outcome = lab.RestoreDone
	default:
		r.out.Outcome = lab.RestoreForeign
	}
	return r
}

// left reports whether found is what the kernel made of a write that was announced, and after which the process
// was killed before it could note the outcome. Only writing the same again tells; a value that turns out to be
// someone else's is put back.
func (k *Keeper) left(ctx context.Context, e *entry, found lab.Value) bool {
	if e.open == nil || found.Absent || coupled(e.knob) {
		return false
	}
	if k.write(ctx, e.knob, *e.open) != nil {
		return false
	}
	again, err := k.read(ctx, e.knob, e.original)
	if err == nil && same(e.knob, again, found) {
		return true
	}
	failed := k.write(ctx, e.knob, found) != nil
	return failed // what stands there now is ours
}

// restore carries out one decision.
func (k *Keeper) restore(ctx context.Context, c restoring, all []restoring) (lab.Restored, error) {
	if c.out.Outcome == lab.RestoreDone {
		c.err = k.putBack(ctx, c, partner(all, c.entry.knob))
	}
	if c.err != nil {
		c.out.Outcome, c.out.Error = lab.RestoreFailed, c.err.Error()
		return c.out, fmt.Errorf("restore %w", c.err)
	}
	return c.out, nil
}

// putBack writes the original. Of a couple only the half that was not zero is written: the kernel zeroes the other.
func (k *Keeper) putBack(ctx context.Context, c restoring, other *restoring) error {
	now, err := k.read(ctx, c.entry.knob, c.entry.original)
	if err != nil {
		return err
	}
	if same(c.entry.knob, now, c.entry.original) {
		return nil // its other half did it
	}
	e := c.entry
	if other != nil && e.original.Text == "0" && other.entry.original.Text != "0" {
		e = other.entry
	}
	if err := k.write(ctx, e.knob, e.original); err != nil {
		return err
	}
	k.faults.reach("after restore")
	now, err = k.read(ctx, c.entry.knob, c.entry.original)
	if err == nil && !same(c.entry.knob, now, c.entry.original) {
		err = &ReadBackError{Knob: c.entry.knob, Asked: c.entry.original, Found: now}
	}
	return err
}

// partner is the case of a knob's other half; nil when it has none.
func partner(all []restoring, id lab.KnobID) *restoring {
	for i, other := range touched(id) {
		for n := range all {
			if i > 0 && sameKnob(all[n].entry.knob, other) {
				return &all[n]
			}
		}
	}
	return nil
}
