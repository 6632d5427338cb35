package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"ngxlab/lab"
	"ngxlab/lab/verdict"
	"ngxlab/plots"
	"ngxlab/templates"
)

// ladder is the steps with their verdicts, as a table and as a chart.
func (s *study) ladder() (templates.Section, error) {
	section := templates.Section{ID: "ladder", Title: "The ladder"}
	section.Blocks = append(section.Blocks, paragraph(plain(ladderWords(s.Plan.Experiment.Ladder.Kind))))
	for _, target := range s.targets {
		rungs := s.rungs(target)
		if len(s.targets) > 1 {
			section.Blocks = append(section.Blocks, heading(string(target)))
		}
		section.Blocks = append(section.Blocks, s.ladderTable(rungs))
		section.Blocks = append(section.Blocks, s.mixedBlocks(target)...)
		figure, err := s.ladderChart(target, rungs)
		if err != nil {
			return section, err
		}
		section.Blocks = append(section.Blocks, figure...)
	}
	if left := s.leftOut(); len(left) > 0 {
		section.Blocks = append(section.Blocks, paragraph(plain("Left out of the study:")), templates.Block{List: left})
	}
	if where := s.where(); !where.empty() {
		section.Blocks = append(section.Blocks, heading("Where a step acts"),
			paragraph(plain("The same comparisons at each load point by itself; the words allow for looking at all load points of a step.")), where.block())
	}
	return section, nil
}

func ladderWords(k lab.LadderKind) string {
	switch k {
	case lab.Isolated:
		return "Each step is added to the baseline alone, and compared with the baseline."
	case lab.LeaveOneOut:
		return "Each step is taken out of the full set once; its effect is that of the full set over the set without it."
	case lab.Listed:
		return "Each state is a list of steps, compared with the baseline."
	}
	return "Each step is added to those before it, and compared with the state before it."
}

func (s *study) ladderTable(rungs []rung) templates.Block {
	t := newTable("state", "over", "why", "what changed", "goodput", "server CPU per request", "limited by")
	base := s.Plan.Baseline()
	t.row(styled(base.Name, templates.Strong), plain(lab.Unknown), plain(s.why(base)), s.changed(base), plain("the baseline"), plain("the baseline"), s.limits(rungs, base.Name))
	for _, r := range rungs {
		why, changed := s.why(r.state), s.changed(r.state)
		if r.together {
			why, changed = "the sum of the steps", plain(lab.Unknown)
		}
		if r.control {
			why, changed = "the baseline once more: the intervals should include no difference", plain("nothing")
		}
		t.row(styled(r.name, templates.Strong), plain(r.over), plain(why), changed,
			s.goodputCell(r), s.verdictCell(r, lab.CPUPerRequest), s.limits(rungs, r.with))
	}
	return t.block()
}

func (s *study) verdictCell(r rung, m lab.Metric) templates.Text {
	v, known := r.verdicts[m]
	return s.verdictText(v, known)
}

// goodputCell is the verdict on goodput, and on errors where they were judged because rates could not be.
func (s *study) goodputCell(r rung) templates.Text {
	cell := s.verdictCell(r, lab.Goodput)
	if v, known := r.verdicts[lab.ErrorRatio]; known {
		cell = join(cell, plain("; "), s.verdictText(v, true))
	}
	return cell
}

// why is the reason the file gives for a state's step.
func (s *study) why(state lab.State) string {
	name := state.Step
	if name == "" {
		name = state.Name
	}
	for _, step := range s.Plan.Experiment.Steps {
		if step.Name == name {
			return orUnknown(step.Why)
		}
	}
	return lab.Unknown
}

// changed lists the settings that the state's own step brings; those of the baseline for the baseline.
func (s *study) changed(state lab.State) templates.Text {
	if state.Without { // the full set has the step's settings
		full, _ := s.Plan.State(state.Over)
		state.Settings = full.Settings
	}
	own := state.Step
	if own == "" {
		own = state.Name
	}
	var names []string
	for _, host := range hostNames(state.Settings) {
		for _, setting := range state.Settings[host] {
			if setting.Step == own {
				names = append(names, setting.Knob.String()+" = "+lab.Shown(setting.Knob, valueOf(setting)))
			}
		}
	}
	if len(names) == 0 {
		return plain(lab.Unknown)
	}
	return codes(union(names))
}

func hostNames[T any](m map[lab.HostName]T) []lab.HostName {
	var names []lab.HostName
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// limits names the limiting resource of a state: one name, or one per load point when they differ.
func (s *study) limits(rungs []rung, state string) templates.Text {
	byLimit, order := map[string][]string{}, []string{}
	for _, load := range s.Plan.Loads {
		c := s.cells[cellKey{s.lastPart(), lab.CellID{Target: s.targetOf(rungs), State: state, Load: load.Name}}]
		limit := c.limit()
		if limit == "" {
			continue
		}
		if byLimit[limit] == nil {
			order = append(order, limit)
		}
		byLimit[limit] = append(byLimit[limit], load.Name)
	}
	var parts []templates.Text
	for _, limit := range order {
		text := mono(limit)
		if len(order) > 1 {
			text = join(text, styled(" ("+strings.Join(byLimit[limit], ", ")+")", templates.Quiet))
		}
		parts = append(parts, text)
	}
	if len(parts) == 0 {
		return plain("not identified")
	}
	return listed(parts, "; ")
}

func (s *study) targetOf(rungs []rung) lab.HostName {
	if len(rungs) > 0 {
		return rungs[0].target
	}
	return s.targets[0]
}

// lastPart is the part that the ladder and the charts show: the latest conditions.
func (s *study) lastPart() int { return s.parts[len(s.parts)-1] }

func (s *study) ladderChart(target lab.HostName, rungs []rung) ([]templates.Block, error) {
	l := plots.Ladder{Title: "What each step does", Delta: s.Plan.Experiment.Repeat.Effect,
		Names: []string{"goodput (more is better)", "server CPU per request (less is better)"}}
	name := "ladder"
	if len(s.targets) > 1 {
		l.Title += ", " + string(target)
		name += "-" + slug(string(target))
	}
	for _, r := range rungs {
		step := plots.Rung{State: r.name, Over: r.over}
		for _, m := range headlines {
			v, known := r.verdicts[m]
			step.Effects = append(step.Effects, s.effect(v, known))
		}
		l.Rungs = append(l.Rungs, step)
	}
	if len(l.Rungs) == 0 {
		return nil, nil
	}
	caption := "The effect of each step on both headline figures: ratio to the state it is compared with, 95% interval, and the verdict."
	return s.figure(name, caption, func(w io.Writer, f plots.Format) error { return plots.DrawLadder(w, f, l) })
}

// leftOut names the knobs and steps that the plan could not have, with reason and cure.
func (s *study) leftOut() []templates.Text {
	var left []templates.Text
	for _, r := range s.Plan.Refused {
		if r.Fatal {
			continue
		}
		text := styled(strings.TrimSpace(r.Step), templates.Strong)
		if r.Knob.Kind != "" {
			text = join(text, plain(": "), mono(r.Knob.String()))
		}
		text = join(text, prose(" on "+orUnknown(string(r.Host))+": "+r.Reason))
		if r.Cure != "" {
			text = join(text, prose(". Cure: "+r.Cure))
		}
		left = append(left, text)
	}
	return left
}

// where is the verdicts inside the steps, by load point.
func (s *study) where() *tableBuilder {
	t := newTable("state", "over", "load point", "metric", "verdict")
	for _, v := range s.verdicts {
		if v.Family != verdict.FamilyWhere {
			continue
		}
		name := v.Comparison.State
		if len(s.targets) > 1 {
			name = fmt.Sprintf("%s, %s", v.Comparison.Target, name)
		}
		t.row(plain(name), plain(v.Comparison.Over), plain(v.Comparison.Load), plain(metricName(v.Comparison.Metric)), s.verdictText(v, true))
	}
	return t
}
