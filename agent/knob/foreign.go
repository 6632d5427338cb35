package knob

import (
	"context"
	"errors"

	"ngxlab/lab"
)

// left reports whether found is what the kernel made of a write that was announced, and after which the process
// was killed before it could note the outcome. Only writing the same again tells; a value that turns out to be
// someone else's is put back. It is noted before, so that a kill in between does not lose it; where the disk is full,
// it is tried all the same. Other kinds than the kernel's own have the value that is written, or the one before.
func (k *Keeper) left(ctx context.Context, j *journal, e *entry, found lab.Value) bool {
	if e.open == nil || found.Absent || coupled(e.knob) || !clampable(e.knob.Kind) {
		return false
	}
	if e.foreign == nil || !same(e.knob, *e.foreign, found) {
		_ = j.commit(record{Kind: foreignRecord, Knob: e.knob, Value: found})
	}
	k.faults.reach("before rewrite")
	if k.write(ctx, e.knob, *e.open) != nil {
		return false
	}
	k.faults.reach("after rewrite")
	again, err := k.read(ctx, e.knob, e.original)
	if err == nil && same(e.knob, again, found) {
		_ = j.append(record{Kind: foundRecord, Knob: e.knob, Value: found}) // where it is not noted, it is tried again
		return true
	}
	failed := k.write(ctx, e.knob, found) != nil
	k.faults.reach("after foreign value")
	return failed // what stands there now is ours
}

// interrupted reports whether found is what a restore wrote over someone else's value before it was killed; it puts that
// value back. What is neither is a newer value of someone's, and stays.
func (k *Keeper) interrupted(ctx context.Context, j *journal, e *entry, found lab.Value) bool {
	if !e.isOurs(found) && !j.touchedNow(k, e) && !k.rewritten(ctx, e, found) {
		return false
	}
	err := k.write(ctx, e.knob, *e.foreign)
	k.faults.reach("after foreign value")
	return err == nil
}

// touchedNow reports whether a knob of the journal touches that of the entry.
func (j *journal) touchedNow(k *Keeper, e *entry) bool {
	for _, other := range j.entries {
		if other != e && !coupled(e.knob) && k.touches(other.knob, e.knob) {
			return true
		}
	}
	return false
}

// rewritten reports whether found is what the kernel makes of the open value; what is not is put back.
func (k *Keeper) rewritten(ctx context.Context, e *entry, found lab.Value) bool {
	if e.open == nil || found.Absent || k.write(ctx, e.knob, *e.open) != nil {
		return false
	}
	again, err := k.read(ctx, e.knob, e.original)
	if err == nil && same(e.knob, again, found) {
		return true
	}
	return k.write(ctx, e.knob, found) != nil
}

// endangered reports whether a value of someone else's is one that putting back another knob may change.
func (k *Keeper) endangered(cases []restoring, c restoring) bool {
	if c.out.Outcome != lab.RestoreForeign || coupled(c.entry.knob) {
		return false
	}
	for _, other := range cases {
		if (other.out.Outcome == lab.RestoreDone || other.tried) && k.touches(other.entry.knob, c.entry.knob) {
			return true
		}
	}
	return false
}

// noteForeign notes the values of others that are about to be changed, for the next restore to put them back should this
// one be killed. A full disk does not keep a host from being restored.
func (k *Keeper) noteForeign(j *journal, cases []restoring) {
	var rs []record
	for _, c := range cases {
		if k.endangered(cases, c) && !c.out.Found.Absent && c.entry.foreign == nil {
			rs = append(rs, record{Kind: foreignRecord, Knob: c.entry.knob, Value: c.out.Found})
		}
	}
	_ = j.commit(rs...)
}

// leaveForeign gives others back the values that putting back a knob has changed.
func (k *Keeper) leaveForeign(ctx context.Context, cases []restoring) {
	for i := range cases {
		c := &cases[i]
		if !k.endangered(cases, *c) || c.out.Found.Absent {
			continue
		}
		now, err := k.read(ctx, c.entry.knob, c.entry.original)
		if err == nil && !now.Absent && !same(c.entry.knob, now, c.out.Found) {
			err = k.write(ctx, c.entry.knob, c.out.Found)
		}
		if err != nil {
			c.fail(err)
		}
	}
}

// newcomers gives interfaces that were made while the lab had another default in force the original default, which they
// would have had. Those that were there before have entries of their own.
func (k *Keeper) newcomers(ctx context.Context, j *journal, e *entry) error {
	if !ofInterfaces(e.knob) {
		return nil
	}
	var errs []error
	for _, id := range k.touched(e.knob) {
		if j.pending(id) != nil {
			continue
		}
		v, err := k.read(ctx, id, e.original)
		if err == nil && !v.Absent && !same(id, v, e.original) && e.isOurs(v) {
			err = k.write(ctx, id, e.original)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
