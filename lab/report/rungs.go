package report

import (
	"fmt"
	"math"
	"strings"

	"ngxlab/lab"
	"ngxlab/lab/verdict"
	"ngxlab/plots"
	"ngxlab/templates"
)

// headlines are the two figures that steps are judged on, apart.
var headlines = []lab.Metric{lab.Goodput, lab.CPUPerRequest}

// metricName is how the report calls a metric.
func metricName(m lab.Metric) string {
	switch m {
	case lab.Goodput:
		return "goodput"
	case lab.CPUPerRequest:
		return "server CPU per request"
	case lab.ErrorRatio:
		return "error ratio"
	}
	return string(m)
}

// rung is one comparison of the ladder: a state over another, judged on both headline figures.
type rung struct {
	target   lab.HostName
	name     string // of the state, of the step that is taken out, or "… together"
	with     string // the state that has the step
	over     string
	state    lab.State
	verdicts map[lab.Metric]lab.Verdict
	control  bool
	together bool // the last state over the baseline
}

// rungs are the states in the plan's order, then the last one over the baseline where it was judged, then the control.
func (s *study) rungs(target lab.HostName) []rung {
	var all, last []rung
	for _, state := range s.Plan.States {
		if state.Over == "" {
			continue
		}
		r := rung{target: target, name: state.Name, with: state.Name, over: state.Over, state: state, control: state.Control}
		if state.Without { // judged as the full set over the set without the step
			r.name, r.with, r.over = state.Step, state.Over, state.Name
		}
		family := verdict.FamilySteps
		if state.Control {
			family = verdict.FamilyControl
		}
		r.verdicts = s.judged(family, target, r.with, r.over)
		if state.Control {
			last = append(last, r)
			continue
		}
		all = append(all, r)
	}
	return append(append(all, s.together(target)...), last...)
}

// together is the comparison of a state with the baseline that is no rung of its own.
func (s *study) together(target lab.HostName) []rung {
	base := s.Plan.Baseline().Name
	for i := len(s.Plan.States) - 1; i > 0; i-- {
		state := s.Plan.States[i]
		if state.Control || state.Over == base {
			continue
		}
		if v := s.judged(verdict.FamilySteps, target, state.Name, base); len(v) > 0 {
			return []rung{{target: target, name: state.Name + ", all steps together", with: state.Name, over: base, state: state, verdicts: v, together: true}}
		}
	}
	return nil
}

// judged returns the verdicts on the one figure per step, by metric.
func (s *study) judged(family string, target lab.HostName, state, over string) map[lab.Metric]lab.Verdict {
	found := map[lab.Metric]lab.Verdict{}
	for _, v := range s.verdicts {
		c := v.Comparison
		if v.Family == family && c.Load == "" && c.Target == target && c.State == state && c.Over == over {
			found[c.Metric] = v
		}
	}
	return found
}

// word is the verdict word in full.
func (s *study) word(w lab.Word) string {
	return strings.ReplaceAll(string(w), "±δ", "±"+perCent(s.Plan.Experiment.Repeat.Effect))
}

// verdictText is a table cell: the verdict's sentence, coloured, with what qualifies it.
func (s *study) verdictText(v lab.Verdict, known bool) templates.Text {
	if !known {
		return styled("not judged", templates.Quiet)
	}
	text := s.sentence(v)
	word, rest := text, ""
	if at := strings.IndexAny(text, ":,("); at > 0 {
		word, rest = text[:at], text[at:]
	}
	cell := join(styled(word, tone(v.Word)), plain(rest))
	if v.Comparison.Pairs > 0 {
		cell = join(cell, styled(fmt.Sprintf(", n = %d", v.Comparison.Pairs), templates.Quiet))
	}
	if len(v.Reasons) > 0 {
		cell = join(cell, styled("; "+strings.Join(v.Reasons, "; "), templates.Quiet))
	}
	return cell
}

// sentence is the verdict in words with its numbers.
func (s *study) sentence(v lab.Verdict) string {
	if v.Text != "" {
		return v.Text
	}
	return s.word(v.Word) + ratioText(v.Comparison)
}

// ratioText is ": +38.4% (+37.6% … +39.2%)", or nothing when there is no pair.
func ratioText(c lab.Comparison) string {
	if c.Pairs == 0 {
		return ""
	}
	low, high := interval(c)
	ratio := lab.PercentChange(c.Ratio, low, high)
	if math.IsNaN(low) {
		return ": " + ratio + ", no interval"
	}
	return fmt.Sprintf(": %s (%s … %s)", ratio, lab.PercentChange(low, low, high), lab.PercentChange(high, low, high))
}

// interval returns the ends of a comparison's interval, NaN when there is none: fewer than two pairs have none.
func interval(c lab.Comparison) (low, high float64) {
	if c.Pairs < 2 || c.Low <= 0 || c.High <= 0 {
		return math.NaN(), math.NaN()
	}
	return c.Low, c.High
}

// effect is a verdict as the ladder chart takes it.
func (s *study) effect(v lab.Verdict, known bool) plots.Effect {
	if !known {
		return plots.Effect{Word: "not judged", Tone: plots.None}
	}
	c := v.Comparison
	e := plots.Effect{Word: s.word(v.Word), Tone: toneOf(v.Word)}
	if v.Family == verdict.FamilyControl {
		e.Word = controlWords(v.Word)
	}
	if c.Pairs == 0 || v.Word == lab.NotMeasurable {
		return e
	}
	e.Figure = plots.Figure{Value: c.Ratio, Mark: plots.Clean}
	if len(c.Doubts) > 0 {
		e.Mark = plots.Warned
	}
	e.Low, e.High = interval(c)
	if c.LowerBound || v.Word == lab.AtLeast {
		e.Mark = plots.LowerBound
	}
	return e
}

// controlWords say what a control's verdict word means.
func controlWords(w lab.Word) string {
	switch w {
	case lab.Holds:
		return "equals the baseline"
	case lab.Contradicted:
		return "differs from the baseline"
	}
	return string(w)
}

func toneOf(w lab.Word) plots.Tone {
	switch w {
	case lab.Helps, lab.AtLeast:
		return plots.Better
	case lab.Hurts, lab.Contradicted:
		return plots.Worse
	case lab.NoDifference, lab.Holds:
		return plots.Same
	case lab.NotMeasurable:
		return plots.None
	}
	return plots.Open
}
