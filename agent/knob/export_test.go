package knob

import (
	"bytes"
	"context"
	"errors"
	"io"

	"ngxlab/lab"
)

// KillAt makes the keeper call at at every boundary between two effects.
func (k *Keeper) KillAt(at func(point string)) {
	k.faults.at = at
	if f, ok := k.drivers[lab.KnobFile].(files); ok {
		f.faults.at = at
		k.drivers[lab.KnobFile] = f
	}
}

// Tear makes the keeper hand what torn makes of it to the journal instead of whole lines.
func (k *Keeper) Tear(torn func([]byte) []byte) { k.faults.torn = torn }

// Kernel makes wrote play the kernel's part after each write.
func (k *Keeper) Kernel(wrote func(path string)) {
	s := k.drivers[lab.KnobSysctl].(sysctls)
	s.wrote = wrote
	k.drivers[lab.KnobSysctl] = s
	if f, ok := k.drivers[lab.KnobSysfs].(kernelFiles); ok {
		f.wrote = wrote
		k.drivers[lab.KnobSysfs] = f
	}
}

// FailAt makes each operation on the journal, each step of replacing a file, and each write of a knob before it, half-way and after it, fail with what
// err returns of its name.
func (k *Keeper) FailAt(err func(operation string) error) {
	k.faults.err = err
	if f, ok := k.drivers[lab.KnobFile].(files); ok {
		f.faults.err = err
		k.drivers[lab.KnobFile] = f
	}
	for kind, d := range k.drivers {
		k.drivers[kind] = failing{driver: d, err: err}
	}
}

// WriteHalf is how the name of a write begins that fails half-way.
const WriteHalf = "write half of "

type failing struct {
	driver
	err func(operation string) error
}

func (f failing) write(ctx context.Context, id lab.KnobID, to lab.Value) error {
	if err := f.err("write " + id.String()); err != nil {
		return err
	}
	if half := len(to.Text) / 2; half > 0 && clampable(id.Kind) {
		if err := f.err(WriteHalf + id.String()); err != nil {
			return errors.Join(err, f.driver.write(ctx, id, lab.Value{Text: to.Text[:half]}))
		}
	}
	return errors.Join(f.driver.write(ctx, id, to), f.err("written "+id.String()))
}

func (f failing) forget(ctx context.Context, id lab.KnobID) error {
	s, ok := f.driver.(sweeper)
	if !ok {
		return nil
	}
	return errors.Join(f.err("sweep "+id.String()), s.forget(ctx, id))
}

func (f failing) leftover(id lab.KnobID) string {
	if h, ok := f.driver.(holder); ok {
		return h.leftover(id)
	}
	return ""
}

func (f failing) keeps(id lab.KnobID, original lab.Value) bool {
	h, ok := f.driver.(holder)
	return !ok || h.keeps(id, original)
}

// ParseJournal returns the number of pending entries and the bytes of whole lines.
func ParseJournal(r io.Reader) (entries int, length int64, err error) {
	j, err := parseJournal(r)
	if err != nil {
		return 0, 0, err
	}
	return len(j.entries), j.length, j.damage
}

// EncodeForFuzz makes a valid journal of one entry with the value.
func EncodeForFuzz(name, value string) []byte {
	r := record{Kind: originalRecord, Boot: "b", Campaign: "c"}
	r.Knob.Kind, r.Knob.Name, r.Value.Text = "sysctl", name, value
	i := r
	i.Kind, i.Value.Text = intentRecord, value+"1"
	text, err := encode([]record{r, i})
	if err != nil {
		panic(err)
	}
	return bytes.Clone(text)
}
