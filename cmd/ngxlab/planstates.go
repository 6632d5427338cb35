package main

import (
	"fmt"
	"path"
	"strings"

	"ngxlab/lab"
	"ngxlab/lab/tune"
)

func planStates(p *page, pl lab.Plan) {
	p.heading("States (%s ladder; %s)", pl.Experiment.Ladder.Kind, restarts(pl.Experiment.Server.Restart))
	for i, s := range pl.States {
		p.line("  %d. %s", i+1, stateLine(s))
		if why := stepOf(pl.Experiment, s.Step).Why; why != "" {
			p.line("     %s", why)
		}
		planChanges(p, pl, s)
	}
}

// restarts says when a server is started afresh.
func restarts(r lab.Restart) string {
	if r == lab.RestartNeeded {
		return "a fresh server only where something differs that it takes over at its start"
	}
	return "a fresh server for every state and round"
}

func stateLine(s lab.State) string {
	switch {
	case s.Control:
		return s.Name + ": the baseline measured a second time, to prove the intervals"
	case s.Over == "":
		return s.Name + ": the baseline"
	case s.Without:
		return fmt.Sprintf("%s: all steps but %q, compared with %q", s.Name, s.Step, s.Over)
	}
	return fmt.Sprintf("%s: compared with %q", s.Name, s.Over)
}

func stepOf(x lab.Experiment, name string) lab.Step {
	for _, s := range x.Steps {
		if s.Name == name {
			return s
		}
	}
	return lab.Step{}
}

// planChanges prints what a state changes on every host, from the value in the state that it is compared with, and with what
// is there now where that is another.
func planChanges(p *page, pl lab.Plan, s lab.State) {
	if s.Control {
		return
	}
	t, same := newTable(nil), 0
	for _, h := range pl.Experiment.Hosts {
		for _, c := range pl.Changes[h.Name] {
			if c.State != s.Name {
				continue
			}
			t.row(string(h.Name), c.Knob.String(), knobValue(c.Knob, c.Before), "→ "+toValue(c), changeNote(c))
			if c.Same {
				same++
			}
		}
	}
	switch {
	case len(t.rows) == 0:
		p.line("     changes nothing")
	case same == len(t.rows) && s.Over != "":
		p.line("     empty: every value is there already")
	}
	p.table("     ", t)
}

// valueRunes bounds how much of a value is shown in a table.
const valueRunes = 48

// knobValue is the value of a knob for a table: short, in one line, with a word for what a server does without it.
func knobValue(k lab.KnobID, v lab.Value) string {
	switch {
	case v.Absent && !tune.OnHost(k.Kind):
		return "(default)"
	case !v.Absent && v.Text == "":
		return `""`
	}
	runes := []rune(strings.Join(strings.Fields(lab.Shown(k, v)), " "))
	if len(runes) > valueRunes {
		return strings.TrimRight(string(runes[:valueRunes-1]), " ") + "…"
	}
	return string(runes)
}

// toValue is the value that a change brings; what differs in its text only is said to differ.
func toValue(c lab.StateChange) string {
	text := knobValue(c.Knob, c.To)
	if !c.Same && text == knobValue(c.Knob, c.Before) {
		return text + " (another)"
	}
	return text
}

// persistName is what the files are called that keep sysctls and limits over a boot.
const persistName = "99-ngxlab.conf"

func changeNote(c lab.StateChange) string {
	notes := []string{}
	if c.Same {
		notes = append(notes, "already so: changes nothing")
	}
	if c.Knob.Kind == lab.KnobFile && path.Base(c.Knob.Name) == persistName && !c.To.Absent {
		notes = append(notes, "persists over a boot, until restored")
	}
	if !c.Knob.Served() && !tune.EqualValues(c.Knob, c.Now, c.Before) {
		notes = append(notes, "the host has "+knobValue(c.Knob, c.Now)+" now")
	}
	if c.Note != "" {
		notes = append(notes, c.Note)
	}
	return strings.Join(notes, "; ")
}
