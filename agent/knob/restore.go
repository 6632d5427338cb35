package knob

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"ngxlab/lab"
	"ngxlab/lab/tune"
)

// Restore puts back all that the journal holds, newest first. It tries everything, what fails once more after the rest;
// it returns one element per entry and joins the errors; entries in error stay pending. When no entry is left the
// journal is put aside. Of a damaged one it puts back what the good lines prove, and returns ErrJournal too.
func (k *Keeper) Restore(ctx context.Context) ([]lab.Restored, error) {
	var all []lab.Restored
	err := k.alone(ctx, func(j *journal) error {
		if j.lost {
			return j.damage
		}
		if len(j.entries) == 0 {
			err := errors.Join(j.archive(), k.dropInForce())
			return errors.Join(j.damage, err)
		}
		dropped := k.unsettle(j)
		boot, err := k.bootID()
		if err != nil {
			return err
		}
		k.await(ctx, j.entries)
		cases := k.cases(ctx, j, boot)
		k.noteForeign(j, cases)
		k.round(ctx, j, cases)
		k.secondRound(ctx, j, boot, cases)
		k.sweepAll(ctx, cases)
		errs := []error{dropped}
		for _, c := range cases {
			all = append(all, c.out)
			if c.err != nil {
				errs = append(errs, fmt.Errorf("restore %w", c.err))
			}
		}
		errs = append(errs, k.settle(ctx, j, cases))
		return errors.Join(append([]error{j.damage}, errs...)...)
	})
	return all, err
}

// sweepAll removes what stands beside the knobs that are dealt with.
func (k *Keeper) sweepAll(ctx context.Context, cases []restoring) {
	for i := range cases {
		if c := &cases[i]; c.err == nil {
			if err := k.sweep(ctx, c.entry.knob); err != nil {
				c.fail(err)
			}
		}
	}
}

// settle puts the journal aside when every entry is dealt with (which needs no space on the disk), and otherwise
// closes those that are. A file that names a knob in error stays: it tells why that knob outlives a boot.
// So does what such a knob touches, for it is yet to be written.
func (k *Keeper) settle(ctx context.Context, j *journal, cases []restoring) error {
	var failed []lab.KnobID
	for _, c := range cases {
		if c.err != nil {
			failed = append(failed, c.entry.knob)
		}
	}
	k.faults.reach("before settling")
	if len(failed) == 0 {
		if err := j.archive(); err != nil {
			return err
		}
		return k.dropInForce()
	}
	var rs []record
	for _, c := range cases {
		switch {
		case c.tried && c.err != nil:
			rs = append(rs, k.remains(ctx, c.entry)...)
		case c.err == nil && !slices.ContainsFunc(failed, func(id lab.KnobID) bool { return c.entry.names(id) || k.touches(id, c.entry.knob) }):
			rs = append(rs, record{Kind: settledRecord, Knob: c.entry.knob, Value: c.out.Found, Outcome: c.out.Outcome})
		}
	}
	return j.commit(rs...)
}

// remains notes what a write that failed has left, for the next restore not to take it for someone else's.
func (k *Keeper) remains(ctx context.Context, e *entry) []record {
	v, err := k.read(ctx, e.knob, e.original)
	if err != nil || same(e.knob, v, e.original) || !e.news(v) {
		return nil
	}
	return []record{{Kind: foundRecord, Knob: e.knob, Value: v}}
}

// restoring is one entry with what was found before anything was put back, and what becomes of it.
type restoring struct {
	entry *entry
	out   lab.Restored
	err   error // why it could not be judged or put back
	tried bool  // it was written back once
	done  bool  // with success
	maybe bool  // a command of which there may be nothing to revert
}

// cases judges every entry, newest first, by the value found now.
func (k *Keeper) cases(ctx context.Context, j *journal, boot string) []restoring {
	var cases []restoring
	for i := len(j.entries) - 1; i >= 0; i-- {
		cases = append(cases, k.judge(ctx, j, j.entries[i], boot))
	}
	keepForeignCouples(cases)
	return cases
}

// keepForeignCouples leaves alone the half of a couple whose other is in foreign hands: writing it would undo that.
func keepForeignCouples(cases []restoring) {
	for i := range cases {
		other := partner(cases, cases[i].entry.knob)
		if other != nil && other.out.Outcome == lab.RestoreForeign && cases[i].out.Outcome == lab.RestoreDone {
			cases[i].out.Outcome = lab.RestoreForeign
		}
	}
}

// errGone is of a knob that the host had and has no more.
var errGone = errors.New("the host has it no more")

// judge decides what is to become of an entry; lab.RestoreDone means that it is to be written back.
func (k *Keeper) judge(ctx context.Context, j *journal, e *entry, boot string) restoring {
	found, err := k.look(ctx, e.knob, e.original)
	r := restoring{entry: e, maybe: e.mayBeNothing(), out: lab.Restored{Knob: e.knob, Original: e.original, Found: found}}
	booted := e.boot != boot && tune.Volatile(e.knob.Kind)
	switch {
	case err != nil:
		r.fail(err)
	case booted && !j.setAgain(e, found):
		r.out.Outcome = lab.RestoreRebooted
		if e.isOurs(found) && !same(e.knob, found, e.original) {
			r.out.Outcome, r.out.Note = lab.RestoreForeign, "set at boot by a configuration that is not the lab's"
		}
	case e.foreign != nil && !same(e.knob, found, *e.foreign) && k.interrupted(ctx, j, e, found):
		r.out.Outcome, r.out.Found = lab.RestoreForeign, *e.foreign
	case same(e.knob, found, e.original) && !e.halfway():
		r.out.Outcome = lab.RestoreAlready
	case found.Absent && !removable(e.knob.Kind):
		r.fail(fmt.Errorf("%s: %w", e.knob, errGone))
	case same(e.knob, found, e.original) || e.isOurs(found) || e.unknown || k.left(ctx, j, e, found):
		r.out.Outcome = lab.RestoreDone
	default:
		r.out.Outcome = lab.RestoreForeign
		if e.knob.Kind == lab.KnobFile && !e.original.Absent {
			r.out.Note = "what it was stands in " + filepath.Join(k.dir, archiveName)
		}
	}
	return r
}

func (r *restoring) fail(err error) {
	r.err, r.out.Outcome, r.out.Error = err, lab.RestoreFailed, err.Error()
}

// clampable reports whether the kernel may make another value of one that is written.
func clampable(kind string) bool {
	return kind == lab.KnobSysctl || kind == lab.KnobSysfs || kind == lab.KnobEthtool
}

// round carries out every decision.
func (k *Keeper) round(ctx context.Context, j *journal, cases []restoring) {
	for i := range cases {
		c := &cases[i]
		if err := ctx.Err(); err != nil && c.err == nil {
			c.fail(fmt.Errorf("%s: %w", c.entry.knob, err))
		}
		k.faults.reach("before restore")
		if c.out.Outcome != lab.RestoreDone {
			continue
		}
		err := k.newcomers(ctx, j, c.entry)
		if !c.done {
			_ = j.commit(reverting(intentRecord, c.entry)...) // a full disk must not keep the host from coming back
		}
		if err = errors.Join(err, k.putBack(ctx, c, partner(cases, c.entry.knob))); err != nil {
			c.fail(err)
		}
		c.tried, c.done = true, err == nil
		if c.done {
			_ = j.append(reverting(foundRecord, c.entry)...)
		}
	}
}

// reverting is the record that a command is about to be reverted, or is: a restore that is killed between the two is followed
// by one that reverts it anew, whatever verifying says of it then. Of all other knobs reading tells enough.
func reverting(kind recordKind, e *entry) []record {
	if e.knob.Kind != lab.KnobCommand {
		return nil
	}
	return []record{{Kind: kind, Knob: e.knob, Value: e.original}}
}

// secondRound tries again what failed, for its cause may have been a knob that was put back only after it, and what
// putting back another has undone. What the host still has no more is left as it is.
func (k *Keeper) secondRound(ctx context.Context, j *journal, boot string, cases []restoring) {
	if ctx.Err() != nil {
		return
	}
	for i := range cases {
		c := &cases[i]
		switch {
		case c.err != nil:
			*c = k.judgeAgain(ctx, j, *c, boot)
		case c.out.Outcome == lab.RestoreAlready && !k.stands(ctx, c.entry):
			c.out.Outcome = lab.RestoreDone
		}
	}
	keepForeignCouples(cases)
	k.round(ctx, j, cases)
	k.leaveForeign(ctx, cases)
}

// judgeAgain judges an entry that failed.
func (k *Keeper) judgeAgain(ctx context.Context, j *journal, failed restoring, boot string) restoring {
	c := k.judge(ctx, j, failed.entry, boot)
	c.tried = failed.tried
	switch {
	case errors.Is(c.err, errGone):
		c.err, c.out.Error, c.out.Outcome = nil, "", lab.RestoreForeign
	case failed.tried && c.out.Outcome == lab.RestoreAlready: // the write that failed did it, or that of another
		c.out.Outcome, c.out.Found = lab.RestoreDone, failed.out.Found
	case failed.tried && c.out.Outcome == lab.RestoreForeign: // the write that failed left it so
		c.out.Outcome, c.out.Found = lab.RestoreDone, failed.out.Found
	}
	return c
}

// stands reports whether a knob has its original value; one that cannot be read is as it was a moment ago.
func (k *Keeper) stands(ctx context.Context, e *entry) bool {
	now, err := k.read(ctx, e.knob, e.original)
	return err != nil || same(e.knob, now, e.original)
}

// putBack writes the original. A command is reverted whatever verifying says of it: it may have done a part. Of a couple only the half that was not zero is written: the kernel zeroes the other.
func (k *Keeper) putBack(ctx context.Context, c *restoring, other *restoring) error {
	now, err := k.read(ctx, c.entry.knob, c.entry.original)
	if err != nil {
		return err
	}
	if same(c.entry.knob, now, c.entry.original) && (c.done || c.entry.knob.Kind != lab.KnobCommand) {
		return nil // its other half did it
	}
	e := c.entry
	if other != nil && e.original.Text == "0" && other.entry.original.Text != "0" {
		e = other.entry
	}
	if !k.keepsOriginal(e) {
		c.out.Note = "as a new file: the kept original was gone"
	}
	writeErr := k.write(ctx, e.knob, e.original)
	if writeErr != nil && !c.maybe {
		return writeErr
	}
	k.faults.reach("after restore")
	now, err = k.read(ctx, c.entry.knob, c.entry.original)
	if err == nil && !same(c.entry.knob, now, c.entry.original) {
		err = errors.Join(writeErr, &ReadBackError{Knob: c.entry.knob, Asked: c.entry.original, Found: now})
	}
	return err
}

// partner is the case of a knob's other half; nil when it has none.
func partner(all []restoring, id lab.KnobID) *restoring {
	other, ok := half(id)
	if !ok {
		return nil
	}
	if i := slices.IndexFunc(all, func(r restoring) bool { return sameKnob(r.entry.knob, other) }); i >= 0 {
		return &all[i]
	}
	return nil
}
