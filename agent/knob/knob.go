// Package knob reads, sets and puts back the knobs of the host it runs on.
//
// Before a knob is first written, its original value goes into a journal on the host. What a killed process left
// behind is put back from that journal alone, by any later process. Nothing else in ngxlab writes a host's knobs.
package knob

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"ngxlab/lab"
	"ngxlab/lab/tune"
)

// procSys is where the kernel shows its sysctls.
const procSys = "/proc/sys"

// Keeper reads and writes knobs, and keeps the journal of what it changed. Several keepers, in one process or in
// several, may use one directory: they take turns.
type Keeper struct {
	Wall func() time.Time // the clock of the journal's times, for people; nil = time.Now

	dir     string
	boot    string // the file of the boot id
	procSys string
	drivers map[string]driver
	faults  faults
}

// Open returns the keeper of this host's knobs whose journal is the file "journal" in dir, which is made when missing.
func Open(dir string) (*Keeper, error) { return OpenRoots(dir, realRoots()) }

// OpenRoots is Open for the kinds whose places are among the roots: a tree of ordinary files can stand in for them.
func OpenRoots(dir string, r Roots) (*Keeper, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("journal directory: %w", err)
	}
	return &Keeper{dir: dir, boot: r.bootIDFile(), procSys: r.ProcSys, drivers: newDrivers(r, dir)}, nil
}

// ChangedError is returned when a change expects another value than the one present: someone else changed it.
type ChangedError struct {
	Knob     lab.KnobID
	Expected lab.Value
	Found    lab.Value
}

// Error names the knob and both values.
func (e *ChangedError) Error() string {
	return fmt.Sprintf("%s: changed by someone else: expected %s, found %s", e.Knob, lab.Quoted(e.Knob, e.Expected), lab.Quoted(e.Knob, e.Found))
}

// ReadBackError is returned when the value read back after a write is not the one asked for.
type ReadBackError struct {
	Knob  lab.KnobID
	Asked lab.Value
	Found lab.Value
}

// Error names the knob and both values.
func (e *ReadBackError) Error() string {
	return fmt.Sprintf("%s: asked for %s, the host keeps %s", e.Knob, lab.Quoted(e.Knob, e.Asked), lab.Quoted(e.Knob, e.Found))
}

// Read returns the present values of the knobs that the settings name, in their order. A knob that this host does not
// have is Absent. Only the knobs of commands need the settings' values, which tell how to read them.
func (k *Keeper) Read(ctx context.Context, settings []lab.Setting) ([]lab.Value, error) {
	values := make([]lab.Value, len(settings))
	for i, s := range settings {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		v, err := k.read(ctx, s.Knob, lab.Value{Text: s.Value})
		if err != nil {
			return nil, err
		}
		values[i] = v
	}
	return values, nil
}

// Apply makes the changes in order, each one journaled, written and read back. It stops at the first that fails and
// returns what was done until then. A change whose present value is not From is refused with *ChangedError; a value
// read back that differs from To is *ReadBackError, or recorded as Differs when the change is a best effort.
func (k *Keeper) Apply(ctx context.Context, campaign lab.CampaignID, changes []lab.Change) (done []lab.Applied, err error) {
	if len(changes) == 0 {
		return nil, nil
	}
	err = k.alone(ctx, func(j *journal) error {
		if j.damage != nil {
			return j.damage
		}
		last := k.readInForce(j)
		if err := k.unsettle(j); err != nil {
			return fmt.Errorf("journal directory: %w", err)
		}
		done, err = k.applyAll(ctx, j, campaign, changes)
		k.remember(last, j.readBack)
		return err
	})
	return done, err
}

func (k *Keeper) applyAll(ctx context.Context, j *journal, campaign lab.CampaignID, changes []lab.Change) (done []lab.Applied, err error) {
	for _, c := range changes {
		if err := ctx.Err(); err != nil {
			return done, err
		}
		a, err := k.apply(ctx, j, campaign, c)
		if a != nil {
			done = append(done, *a)
		}
		if err != nil {
			return done, err
		}
	}
	return done, nil
}

// apply makes one change. Its result is nil when nothing was written.
func (k *Keeper) apply(ctx context.Context, j *journal, campaign lab.CampaignID, c lab.Change) (*lab.Applied, error) {
	found, err := k.look(ctx, c.Knob, c.To)
	if err != nil {
		return nil, err
	}
	if coupled(c.Knob) && same(c.Knob, found, c.To) && j.pending(c.Knob) != nil {
		j.readBack = append(j.readBack, held{c.Knob, found})
		return &lab.Applied{Change: c, ReadBack: found}, nil // the write of its other half did it
	}
	if !same(c.Knob, found, c.From) && !j.brought(c, found) {
		return nil, &ChangedError{Knob: c.Knob, Expected: c.From, Found: found}
	}
	if err := k.foreignTouched(ctx, j, c.Knob); err != nil {
		return nil, err
	}
	if !removable(c.Knob.Kind) && (found.Absent || c.To.Absent) {
		return nil, fmt.Errorf("%s: cannot change %s to %s: %w", c.Knob, lab.Quoted(c.Knob, found), lab.Quoted(c.Knob, c.To), os.ErrNotExist)
	}
	if err := k.unkept(j, c.Knob); err != nil {
		return nil, err
	}
	if err := k.announce(ctx, j, campaign, c, found); err != nil {
		return nil, err
	}
	k.markChanged(j)
	return k.carryOut(ctx, j, c)
}

// foreignTouched is *ChangedError when someone else has changed a sysctl that the write of id touches since the lab did:
// the write would undo that unseen.
func (k *Keeper) foreignTouched(ctx context.Context, j *journal, id lab.KnobID) error {
	boot, err := k.bootID()
	if err != nil {
		return err
	}
	for _, other := range k.touched(id) {
		e := j.pending(other)
		if e == nil || e.boot != boot || len(e.ours) == 0 || e.unknown {
			continue
		}
		found, err := k.read(ctx, other, e.original)
		if err != nil {
			return err
		}
		if !same(other, found, e.original) && !e.isOurs(found) && !found.Absent {
			return &ChangedError{Knob: other, Expected: e.ours[len(e.ours)-1], Found: found}
		}
	}
	return nil
}

func (k *Keeper) now() time.Time {
	if k.Wall == nil {
		return time.Now()
	}
	return k.Wall()
}

// announce commits to the journal the originals of all that the change touches and the value about to be written. A
// value written before is known already, so that going to and fro between states does not make the journal grow.
func (k *Keeper) announce(ctx context.Context, j *journal, campaign lab.CampaignID, c lab.Change, found lab.Value) error {
	boot, err := k.bootID()
	if err != nil {
		return err
	}
	first := record{Kind: originalRecord, Knob: c.Knob, Value: found, Boot: boot, Campaign: campaign, At: k.now().UTC().Format(time.RFC3339)}
	own := j.opening(first)
	if len(own) == 0 && !j.pending(c.Knob).news(c.To) {
		return nil // and what it brought is known too
	}
	rs, err := k.announceTouched(ctx, j, c, first, len(own) > 0)
	if err != nil {
		return err
	}
	return j.commit(append(append(rs, own...), record{Kind: intentRecord, Knob: c.Knob, Value: c.To})...)
}

// announceTouched is the records of what a change touches. They come before those of the change itself, for the newest
// is put back first. first is the original of the change, opened whether its entry begins with it: an interface that
// is new since then has no original (newcomers).
func (k *Keeper) announceTouched(ctx context.Context, j *journal, c lab.Change, first record, opened bool) (rs []record, err error) {
	name := c.Knob.Name
	if c.Knob.Kind == lab.KnobSysctl {
		name = dotted(name)
	}
	for _, id := range k.touched(c.Knob) {
		if !opened && ofInterfaces(id) && j.pending(id) == nil {
			continue
		}
		now, err := k.read(ctx, id, lab.Value{})
		if err != nil {
			return nil, err
		}
		if now.Absent {
			continue
		}
		text, known := tune.Brings(name, c.To.Text, now.Text)
		original := first
		original.Knob, original.Value = id, now
		rs = append(rs, j.opening(original)...)
		rs = append(rs, record{Kind: touchedRecord, Knob: id, Value: lab.Value{Text: text, Absent: !known}})
	}
	return rs, nil
}

// carryOut writes an announced change, reads it back and notes what the host made of it.
func (k *Keeper) carryOut(ctx context.Context, j *journal, c lab.Change) (*lab.Applied, error) {
	k.faults.reach("before write")
	writeErr := k.write(ctx, c.Knob, c.To)
	k.faults.reach("after write")
	var rs []record
	applied := &lab.Applied{Change: c}
	for _, id := range append([]lab.KnobID{c.Knob}, k.touched(c.Knob)...) {
		if j.pending(id) == nil {
			continue
		}
		v, err := k.read(ctx, id, c.To)
		if err != nil {
			return nil, errors.Join(writeErr, err)
		}
		j.readBack = append(j.readBack, held{id, v})
		if id == c.Knob {
			applied.ReadBack, applied.Differs = v, !same(id, v, c.To)
		}
		if unsure := writeErr != nil && id.Kind == lab.KnobCommand; !unsure && j.pending(id).news(v) {
			rs = append(rs, record{Kind: foundRecord, Knob: id, Value: v})
		}
	}
	// No fsync: the note matters to a later process of this boot only, and a kill keeps what the kernel was given.
	if err := j.append(rs...); err != nil {
		return applied, errors.Join(writeErr, err)
	}
	switch {
	case c.BestEffort:
		return applied, nil
	case writeErr != nil: // whatever is read back: what is on its way to a value reads as that value
		return applied, writeErr
	case applied.Differs:
		return applied, &ReadBackError{Knob: c.Knob, Asked: c.To, Found: applied.ReadBack}
	}
	return applied, nil
}

// Pending returns the journal's entries that are not restored, oldest first; nil when there are none. Of a damaged journal
// it returns what is left, and ErrJournal.
func (k *Keeper) Pending() ([]lab.Pending, error) {
	j, err := readJournal(k.dir)
	if err != nil {
		return nil, err
	}
	var ps []lab.Pending
	for _, e := range j.entries {
		ps = append(ps, lab.Pending{Knob: e.knob, Original: e.original, Ours: e.ours, Campaign: e.campaign, Since: e.since})
	}
	return ps, j.damage
}

// lockPoll is how often a keeper looks whether another has finished: changes take milliseconds.
const lockPoll = 5 * time.Millisecond

// alone runs do with the journal, while no other keeper has it. The lock (flock on the directory) ends with the
// process that holds it.
func (k *Keeper) alone(ctx context.Context, do func(*journal) error) (err error) {
	d, err := os.Open(k.dir)
	if err != nil {
		return fmt.Errorf("journal directory: %w", err)
	}
	defer d.Close() //nolint:errcheck // opened for reading
	for unix.Flock(int(d.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the journal in %s: %w", k.dir, ctx.Err())
		case <-time.After(lockPoll):
		}
	}
	j, err := openJournal(k.dir, d, k.faults)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.close()) }()
	return do(j)
}

// removable reports whether knobs of a kind can be made and removed.
func removable(kind string) bool { return kind == lab.KnobFile }

// same reports whether two values of a knob mean the same.
func same(id lab.KnobID, a, b lab.Value) bool { return tune.EqualValues(id, a, b) }
