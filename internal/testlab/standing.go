package testlab

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"ngxlab/lab"
)

// knobFacts asks for files of the kernel that every Linux has, one of them of a process, and for one that none has.
func (c contract) knobFacts(t *testing.T) {
	h := c.session(t)
	asked := []lab.Setting{
		{Knob: lab.KnobID{Kind: lab.KnobSysfs, Name: "/proc/[s]elf/oom_score_adj"}, Value: "7"},
		{Knob: lab.KnobID{Kind: lab.KnobSysfs, Name: "/sys/class/net/lo/no_such_*"}, Value: "1"},
		{Knob: lab.KnobID{Kind: lab.KnobSysfs, Name: "/sys/class/net/l[o]/mtu"}, Value: "9000"},
	}
	f, err := h.Facts(t.Context(), lab.FactsQuery{Knobs: asked})
	if err != nil || len(f.Knobs) != len(asked) {
		t.Fatalf("facts %+v, %v", f.Knobs, err)
	}
	for i, fact := range f.Knobs {
		if fact.Asked != asked[i] {
			t.Errorf("fact %d: %+v", i, fact)
		}
	}
	if fact := f.Knobs[0]; !strings.Contains(fact.Reason, "processes come and go") {
		t.Errorf("fact %+v", fact)
	}
	if fact := f.Knobs[1]; !fact.Now.Absent || fact.Reason == "" || !strings.Contains(fact.Cure, "/sys/class/net/lo is there") {
		t.Errorf("fact %+v", fact)
	}
	mtu := f.Knobs[2]
	now, err := h.Read(t.Context(), lab.Naming(mtu.Knob))
	if err != nil || mtu.Knob.Name != "/sys/class/net/lo/mtu" || now[0] != mtu.Now || now[0].Text == "" {
		t.Errorf("fact %+v; read %v, %v", mtu, now, err)
	}
	if brief, err := h.Facts(t.Context(), lab.FactsQuery{Knobs: asked, Brief: true}); err != nil || len(brief.Knobs) > 0 {
		t.Errorf("brief facts %+v, %v", brief.Knobs, err)
	}
}

// standing changes a knob, and then changes it as someone else.
func (c contract) standing(t *testing.T) {
	h := c.tunable(t)
	one := func(when string, drifted bool, expected, found lab.Value) {
		t.Helper()
		all, err := h.Standing(t.Context())
		if err != nil || len(all) != 1 {
			t.Fatalf("%s: %+v, %v", when, all, err)
		}
		if s := all[0]; s.Knob != contractKnob || s.Drifted != drifted || s.Expected != expected || s.Found != found || s.Campaign != "c1" || s.Since == "" || s.Error != "" {
			t.Errorf("%s: %+v", when, s)
		}
	}
	original := valueOf(t, h, contractKnob)
	n, err := strconv.Atoi(original.Text)
	if err != nil {
		t.Fatal(err)
	}
	changed, foreign := lab.Value{Text: strconv.Itoa(n + 1)}, lab.Value{Text: strconv.Itoa(n + 2)}
	if all, err := h.Standing(t.Context()); err != nil || len(all) > 0 {
		t.Fatalf("before any change: %+v, %v", all, err)
	}
	if _, err := h.Apply(t.Context(), "c1", []lab.Change{{Knob: contractKnob, From: original, To: changed}}); err != nil {
		t.Fatal(err)
	}
	one("changed", false, changed, changed)
	someoneElse(t, h, foreign)
	one("changed by someone else", true, changed, foreign)
	someoneElse(t, h, changed)
	one("as it should be again", false, changed, changed)
	if restored, err := h.Restore(t.Context()); err != nil || len(restored) != 1 || restored[0].Outcome != lab.RestoreDone {
		t.Errorf("restored %+v, %v", restored, err)
	}
	if all, err := h.Standing(t.Context()); err != nil || len(all) > 0 {
		t.Errorf("after the restore: %+v, %v", all, err)
	}
}

// someoneElse writes the contract's knob past the lab.
func someoneElse(t *testing.T, h Host, v lab.Value) {
	t.Helper()
	path := "/proc/sys/" + strings.ReplaceAll(contractKnob.Name, ".", "/")
	if p := run(t, h, "sh", "-c", fmt.Sprintf("echo %s > %s", v.Text, path)); p.Exit != 0 {
		t.Fatalf("write %s: exit %d", path, p.Exit)
	}
}
