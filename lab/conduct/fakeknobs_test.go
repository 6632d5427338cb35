package conduct

import (
	"context"
	"errors"
	"fmt"

	"ngxlab/lab"
	"ngxlab/lab/tune"
)

// fakeEntry is a knob in the journal of a fake host.
type fakeEntry struct{ original, ours lab.Value }

// value is the present value of a knob; f is locked.
func (f *fakeHost) value(k lab.KnobID) lab.Value {
	text, ok := f.knobs[k]
	return lab.Value{Text: text, Absent: !ok}
}

// set gives a knob a value, or takes it away; f is locked.
func (f *fakeHost) set(k lab.KnobID, v lab.Value) {
	if v.Absent {
		delete(f.knobs, k)
		return
	}
	f.knobs[k] = v.Text
}

// someoneSets is what happens behind the lab's back.
func (f *fakeHost) someoneSets(k lab.KnobID, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.knobs[k] = text
}

func (f *fakeHost) Read(ctx context.Context, ks []lab.Setting) ([]lab.Value, error) {
	if err := f.call(ctx, "read"); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	values := make([]lab.Value, len(ks))
	for i, k := range ks {
		values[i] = f.value(k.Knob)
	}
	return values, nil
}

// Apply is strict: a change under a running server, or from another value than the present one, is refused.
func (f *fakeHost) Apply(ctx context.Context, _ lab.CampaignID, cs []lab.Change) ([]lab.Applied, error) {
	if err := f.call(ctx, "apply"); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.serving != "" && !f.live {
		f.t.Errorf("knobs are changed under the server of %q", f.serving)
	}
	var applied []lab.Applied
	for _, c := range cs {
		if !tune.EqualValues(c.Knob, f.value(c.Knob), c.From) {
			return applied, fmt.Errorf("%s: %w: expected %v, found %v", c.Knob, errForeign, c.From, f.value(c.Knob))
		}
		if f.journal[c.Knob] == nil {
			f.journal[c.Knob] = &fakeEntry{original: c.From}
		}
		back := c.To
		if f.clamp != "" && c.To.Text == "65535" {
			back.Text = f.clamp
		}
		f.journal[c.Knob].ours = back
		f.set(c.Knob, back)
		f.writes = append(f.writes, c.Knob.Name+"="+back.Text)
		applied = append(applied, lab.Applied{Change: c, ReadBack: back, Differs: back != c.To})
	}
	return applied, nil
}

var errForeign = errors.New("changed by someone else")

func (f *fakeHost) Restore(ctx context.Context) ([]lab.Restored, error) {
	if err := f.call(ctx, "restore"); err != nil {
		return nil, err
	}
	f.mu.Lock()
	stopping := f.stopped
	f.mu.Unlock()
	if stopping != nil {
		<-stopping
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var restored []lab.Restored
	var errs []error
	for k, entry := range f.journal {
		r := f.putBack(k, entry)
		if r.Outcome == lab.RestoreFailed {
			errs = append(errs, fmt.Errorf("%srestore %s: %w", f.named(), k, errInjected))
		} else {
			delete(f.journal, k)
		}
		restored = append(restored, r)
	}
	return restored, errors.Join(errs...)
}

// putBack restores one entry; f is locked.
func (f *fakeHost) putBack(k lab.KnobID, entry *fakeEntry) lab.Restored {
	r := lab.Restored{Knob: k, Original: entry.original, Found: f.value(k), Outcome: lab.RestoreDone}
	switch {
	case f.foreign || !tune.EqualValues(k, r.Found, entry.ours) && !tune.EqualValues(k, r.Found, entry.original):
		r.Outcome = lab.RestoreForeign
	case f.stuck != nil && f.stuck(k):
		r.Outcome, r.Error = lab.RestoreFailed, errInjected.Error()
	default:
		f.set(k, entry.original)
	}
	return r
}
