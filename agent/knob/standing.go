package knob

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ngxlab/lab"
)

// inForceName is a file beside the journal with the values that the lab wrote last. The journal knows all values but
// not, after going to and fro, which was the last. It is a convenience: without it any value of the lab's will do.
const inForceName = "in-force"

// inForce is what the file holds. Of another boot it means nothing.
type inForce struct {
	Boot   string `json:"boot"`
	Values []held `json:"values"`
	Now    string `json:"now,omitempty"` // the knob that is being changed: then there are no values
}

// held is a knob and its value as it was read back.
type held struct {
	Knob  lab.KnobID `json:"knob"`
	Value lab.Value  `json:"value"`
}

// Standing returns how the knobs stand that are not restored, oldest first; nil when there are none. It changes nothing.
// Of a damaged journal it returns what is left, and ErrJournal.
// Others may have the journal while the knobs are read, which may take as long as a command to verify does.
func (k *Keeper) Standing(ctx context.Context) (all []lab.Standing, err error) {
	var entries []*entry
	var last inForce
	err = k.alone(ctx, func(j *journal) error {
		entries, last = j.entries, k.readInForce(j)
		return j.damage
	})
	for _, e := range entries {
		all = append(all, k.standing(ctx, e, last))
	}
	return all, errors.Join(err, ctx.Err())
}

func (k *Keeper) standing(ctx context.Context, e *entry, last inForce) lab.Standing {
	s := lab.Standing{Knob: e.knob, Campaign: e.campaign, Since: e.since}
	found, err := k.look(ctx, e.knob, e.original)
	if err != nil {
		s.Error = err.Error()
	}
	s.Found = found
	expected, known := last.value(e.knob)
	switch {
	case known:
		s.Expected = expected
	case e.isOurs(found):
		s.Expected = found
	case len(e.ours) > 0:
		s.Expected = e.ours[len(e.ours)-1]
	default:
		s.Expected = e.original // nothing was written yet
	}
	s.Drifted = err == nil && !same(e.knob, found, s.Expected)
	return s
}

func (f inForce) value(id lab.KnobID) (lab.Value, bool) {
	i := slices.IndexFunc(f.Values, func(h held) bool { return h.Knob == id || sameKnob(h.Knob, id) })
	if i < 0 {
		return lab.Value{}, false
	}
	return f.Values[i].Value, true
}

func (f *inForce) set(h held) {
	f.Values = slices.DeleteFunc(f.Values, func(o held) bool { return o.Knob == h.Knob || sameKnob(o.Knob, h.Knob) })
	f.Values = append(f.Values, h)
}

// readInForce is empty when the file is not there, cannot be read, or is of another boot or of a journal that was settled.
func (k *Keeper) readInForce(j *journal) inForce {
	var f inForce
	boot, err := k.bootID()
	if err != nil {
		return inForce{}
	}
	text, err := os.ReadFile(filepath.Join(k.dir, inForceName))
	if err != nil || json.Unmarshal(text, &f) != nil || f.Boot != boot || len(j.entries) == 0 {
		return inForce{Boot: boot}
	}
	return f
}

// missing is the knobs that the lab has changed, by what is in force, and of which the journal has no entry: the file is
// written after the journal, and goes before an entry does. "" = none.
func (j *journal) missing(dir string) string {
	var f inForce
	text, err := os.ReadFile(filepath.Join(dir, inForceName))
	if err != nil || json.Unmarshal(text, &f) != nil {
		return ""
	}
	var names []string
	for _, h := range f.Values {
		if j.pending(h.Knob) == nil {
			names = append(names, h.Knob.String())
		}
	}
	if len(j.entries) == 0 && f.Now != "" {
		names = append(names, f.Now)
	}
	return strings.Join(names, ", ")
}

// unsettle takes the values out of the file before something is changed, so that it never tells of those that a killed
// process replaced. That the journal has entries, it goes on telling.
func (k *Keeper) unsettle(j *journal) error {
	if err := k.dropInForce(); err != nil {
		return err
	}
	k.markChanged(j)
	return nil
}

// markChanged notes that something is being changed, once the journal tells of it.
func (k *Keeper) markChanged(j *journal) {
	if j.marked || len(j.entries) == 0 {
		return
	}
	j.marked = true
	k.writeInForce(inForce{Now: j.entries[0].knob.String()})
}

func (k *Keeper) dropInForce() error {
	err := os.Remove(filepath.Join(k.dir, inForceName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// remember writes the file anew with what was read back. That it cannot is no error: the file is then missing.
func (k *Keeper) remember(f inForce, changed []held) {
	for _, h := range changed {
		f.set(h)
	}
	if len(f.Values) > 0 && k.faults.fail("remember") == nil {
		k.writeInForce(f)
	}
}

func (k *Keeper) writeInForce(f inForce) {
	text, err := json.Marshal(f)
	if err != nil {
		return
	}
	path := filepath.Join(k.dir, inForceName)
	_ = os.Remove(path + ".new") // of a killed process, with whatever mode
	if os.WriteFile(path+".new", text, ownerOnly) != nil || os.Rename(path+".new", path) != nil {
		_ = os.Remove(path + ".new") // half of it is of no use
	}
}
