package report

import (
	"fmt"
	"slices"
	"strings"

	"ngxlab/lab"
	"ngxlab/templates"
)

// summary is the first thing read: what helped, what did not, what could not be told, and how far to trust it.
func (s *study) summary() (templates.Section, error) {
	section := templates.Section{ID: "summary"}
	if text := s.unfinished(); text != "" {
		section.Blocks = append(section.Blocks, paragraph(styled(text, templates.Doubt)))
	}
	section.Blocks = append(section.Blocks, paragraph(plain(s.what())))
	for _, target := range s.targets {
		for _, m := range headlines {
			section.Blocks = append(section.Blocks, paragraph(s.outcome(target, m)))
		}
		if text := s.errorsText(target); len(text) > 0 {
			section.Blocks = append(section.Blocks, paragraph(text))
		}
		if n := len(s.mixedBuilds(target)); n > 0 {
			section.Blocks = append(section.Blocks, paragraph(styled(fmt.Sprintf("⚠ In %s of versions the builds differ in more than their version; the ladder says in what.", plural(n, "comparison")), templates.Doubt)))
		}
		if text := s.controlText(target); len(text) > 0 {
			section.Blocks = append(section.Blocks, paragraph(text))
		}
	}
	section.Blocks = append(section.Blocks, paragraph(plain(s.trust())))
	return section, nil
}

// unfinished says so when the campaign did not run to its end.
func (s *study) unfinished() string {
	switch s.Campaign.Status {
	case lab.StatusRunning:
		return "This campaign is still running; everything below is provisional."
	case lab.StatusInterrupted:
		return "This campaign was interrupted; what follows rests on the rounds measured until then."
	case lab.StatusUnrestored:
		return "Every run was measured, but not every host could be put back as it was."
	case lab.StatusFailed:
		return "This campaign failed before its end; what follows rests on what was measured until then."
	}
	return ""
}

// what says what was measured.
func (s *study) what() string {
	e := s.Plan.Experiment
	states := 0
	for _, state := range s.Plan.States {
		if !state.Control {
			states++
		}
	}
	text := fmt.Sprintf("%s and %s were measured in %s", plural(states, "state"), plural(len(s.Plan.Loads), "load point"), plural(s.rounds(), "round"))
	if s.Campaign.Reason != "" {
		text += " (stopped because " + string(s.Campaign.Reason) + ")"
	}
	text += fmt.Sprintf(". An effect below ±%s does not matter here, and intervals were to be no wider than ±%s", perCent(e.Repeat.Effect), perCent(e.Repeat.Precision))
	if e.Repeat.Why != "" {
		text += ": " + strings.TrimSuffix(e.Repeat.Why, ".")
	}
	return text + "."
}

// rounds is the number of rounds with at least one run.
func (s *study) rounds() int {
	seen := map[[2]int]bool{}
	for _, r := range s.Runs {
		seen[[2]int{r.Part, r.Round}] = true
	}
	return len(seen)
}

// outcome sorts the steps by what is known of their effect on one metric.
func (s *study) outcome(target lab.HostName, m lab.Metric) templates.Text {
	groups := map[lab.Word][]string{}
	unjudged, all := []string{}, templates.Text(nil)
	for _, r := range s.rungs(target) {
		if r.control {
			continue
		}
		v, known := r.verdicts[m]
		switch {
		case r.together:
			all = plain(" " + s.togetherText(r, v, known))
		case !known:
			unjudged = append(unjudged, quoted(r.name))
		default:
			groups[v.Word] = append(groups[v.Word], s.mention(r, v))
		}
	}
	text := styled(s.outcomeTitle(target, m), templates.Strong)
	for _, g := range s.outcomeGroups() {
		if names := groups[g.word]; len(names) > 0 {
			text = join(text, plain(" "+g.lead), plain(" "+strings.Join(names, "; ")+"."))
		}
	}
	if len(groups[lab.Helps]) == 0 && len(groups[lab.AtLeast]) == 0 {
		text = join(text, plain(" No step was found to help."))
	}
	if len(unjudged) > 0 {
		text = join(text, plain(" Not judged: "+strings.Join(unjudged, ", ")+"."))
	}
	return join(text, all)
}

func (s *study) outcomeTitle(target lab.HostName, m lab.Metric) string {
	title := "Goodput."
	if m == lab.CPUPerRequest {
		title = "Server CPU time per request (less is better)."
	}
	if len(s.targets) > 1 {
		title = string(target) + ": " + title
	}
	return title
}

type outcomeGroup struct {
	word lab.Word
	lead string
}

func (s *study) outcomeGroups() []outcomeGroup {
	return []outcomeGroup{
		{lab.Helps, "Helps:"},
		{lab.AtLeast, "Helps, by at least what is given, because the load generator was the limit:"},
		{lab.Hurts, "Hurts:"},
		{lab.NoDifference, "Makes no difference larger than ±" + perCent(s.Plan.Experiment.Repeat.Effect) + ":"},
		{lab.Undecided, "Could not be told:"},
		{lab.NotMeasurable, "Could not be measured:"},
	}
}

// mention names a step with its effect.
func (s *study) mention(r rung, v lab.Verdict) string {
	c := v.Comparison
	if v.Word == lab.NotMeasurable {
		if c.Prevented != "" {
			return quoted(r.name) + " (" + c.Prevented + ")"
		}
		return quoted(r.name)
	}
	text := strings.TrimPrefix(ratioText(c), ": ")
	if v.Word == lab.AtLeast {
		text = lab.PercentChange(c.Low, c.Low, c.High)
	}
	if c.Mixed {
		return quoted(r.name) + " (" + v.Text + ")"
	}
	if v.Word == lab.Undecided && v.MoreRounds > 0 {
		text += fmt.Sprintf("; about %s would tell", plural(v.MoreRounds, "more round"))
	}
	return quoted(r.name) + " " + text
}

func quoted(s string) string { return "“" + s + "”" }

func (s *study) togetherText(r rung, v lab.Verdict, known bool) string {
	if !known || v.Comparison.Pairs == 0 {
		return ""
	}
	return fmt.Sprintf("All steps together, %s over %s: %s.", quoted(r.state.Name), quoted(r.over), s.sentence(v))
}

// errorsText tells of the steps that are judged by their errors, because these keep their rates from being compared;
// nothing when there are none.
func (s *study) errorsText(target lab.HostName) templates.Text {
	var told []string
	for _, r := range s.rungs(target) {
		if v, known := r.verdicts[lab.ErrorRatio]; known && !r.control {
			told = append(told, quoted(r.name)+" "+s.sentence(v))
		}
	}
	if len(told) == 0 {
		return nil
	}
	return join(styled("Errors.", templates.Strong), plain(" "+strings.Join(told, "; ")+"."))
}

// controlText says what the baseline measured a second time proves.
func (s *study) controlText(target lab.HostName) templates.Text {
	var sentences []string
	for _, r := range s.rungs(target) {
		for _, m := range headlines {
			if v, known := r.verdicts[m]; r.control && known && v.Comparison.Pairs > 0 {
				sentences = append(sentences, s.controlSentence(m, v))
			}
		}
	}
	text := styled("Control (A/A).", templates.Strong)
	switch {
	case len(sentences) > 0:
		return join(text, plain(" The baseline was measured a second time in every round. "+strings.Join(sentences, " ")))
	case s.hasControl():
		return join(text, plain(" The baseline was to be measured twice in every round, but the two cannot be compared; nothing shows whether the intervals are honest."))
	}
	return join(text, plain(" None was asked for; nothing shows whether the intervals are honest on this machine."))
}

func (s *study) hasControl() bool {
	return slices.ContainsFunc(s.Plan.States, func(x lab.State) bool { return x.Control })
}

func (s *study) controlSentence(m lab.Metric, v lab.Verdict) string {
	name := metricName(m)
	text := strings.ToUpper(name[:1]) + name[1:] + " differs by " + strings.TrimPrefix(ratioText(v.Comparison), ": ")
	switch v.Word {
	case lab.Holds:
		return text + ": none that matters, as it should be."
	case lab.Contradicted:
		return text + ": it should not, and every verdict on it deserves doubt."
	}
	return text + ": no difference is within that, but the interval is too wide to prove much."
}

// trust says in numbers how many runs were clean.
func (s *study) trust() string {
	counts := map[lab.Validity]int{}
	for _, r := range s.Runs {
		counts[r.Validity]++
	}
	lost, retried := 0, 0
	for _, c := range s.cells {
		lost += len(c.invalid)
	}
	for _, r := range s.Runs {
		if r.Attempt > 1 {
			retried++
		}
	}
	text := fmt.Sprintf("Of %s, %d are clean, %d warned and %d invalid.", plural(len(s.Runs), "run"), counts[lab.Clean], counts[lab.Warned], counts[lab.Invalid])
	if counts[lab.Invalid] > 0 {
		text += fmt.Sprintf(" Invalid runs enter no comparison; %s made, and %s.", were(retried, "repetition"), complete(lost))
	}
	return text
}

// complete says in how many cases a cell has no valid run of a round.
func complete(lost int) string {
	if lost == 0 {
		return "every cell has a valid run in every round"
	}
	return "in " + plural(lost, "case") + " a cell has no valid run of a round"
}

func were(n int, word string) string {
	if n == 1 {
		return "1 " + word + " was"
	}
	return plural(n, word) + " were"
}
