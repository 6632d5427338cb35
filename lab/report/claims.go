package report

import (
	"fmt"
	"slices"
	"strings"

	"ngxlab/lab"
	"ngxlab/lab/verdict"
	"ngxlab/templates"
)

// claims are the statements of the file, each with what the data say.
func (s *study) claims() (templates.Section, error) {
	section := templates.Section{ID: "claims", Title: "Claims"}
	e := s.Plan.Experiment
	if len(e.Claims) == 0 {
		return section, nil
	}
	if e.Source != "" {
		section.Blocks = append(section.Blocks, paragraph(plain("Published in: "+e.Source+".")))
	}
	t := newTable("claim", "statement", "measured", "verdict", "remarks")
	for _, c := range e.Claims {
		v, known := s.claimVerdict(c)
		if !known {
			t.row(styled(c.Name, templates.Strong), plain(statement(c)), plain(lab.Unknown), styled("not judged", templates.Quiet), plain(lab.Unknown))
			continue
		}
		t.row(styled(c.Name, templates.Strong), plain(statement(c)), plain(timesText(v.Comparison)),
			styled(s.word(v.Word), tone(v.Word)), plain(orUnknown(strings.Join(v.Reasons, "; "))))
	}
	section.Blocks = append(section.Blocks, t.block())
	if differ := s.publishedConditions(); !differ.empty() {
		section.Blocks = append(section.Blocks, paragraph(plain("The conditions that the publication gives, beside those here:")), differ.block())
	}
	return section, nil
}

func (s *study) claimVerdict(c lab.Claim) (lab.Verdict, bool) {
	for _, v := range s.verdicts {
		if v.Family == verdict.FamilyClaims && v.Claim == c.Name {
			return v, true
		}
	}
	return lab.Verdict{}, false
}

// statement is a claim in words.
func statement(c lab.Claim) string {
	text := fmt.Sprintf("%s of %s over %s", metricName(c.Of), quoted(c.State), quoted(c.Over))
	var bounds []string
	if c.AtLeast != nil {
		bounds = append(bounds, "at least "+times(*c.AtLeast))
	}
	if c.AtMost != nil {
		bounds = append(bounds, "at most "+times(*c.AtMost))
	}
	if c.Published != nil {
		bounds = append(bounds, "published as "+times(*c.Published))
	}
	if len(bounds) == 0 {
		return text
	}
	return text + ": " + strings.Join(bounds, ", ")
}

func times(ratio float64) string { return "× " + lab.Significant(ratio, 3) }

// timesText is a comparison as a multiple, as claims are stated.
func timesText(c lab.Comparison) string {
	if c.Pairs == 0 {
		return lab.Unknown
	}
	text := times(c.Ratio)
	if c.LowerBound {
		text = "≥ " + text
	}
	if low, high := interval(c); low > 0 {
		text += fmt.Sprintf(" (%s … %s)", times(low), times(high))
	}
	return fmt.Sprintf("%s, n = %d", text, c.Pairs)
}

// publishedConditions sets what a publication says of its machines beside what the facts say of ours.
func (s *study) publishedConditions() *tableBuilder {
	t := newTable("condition", "published", "here")
	conditions := s.Plan.Experiment.Publish.Conditions
	var names []string
	for name := range conditions {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		t.row(plain(name), plain(conditions[name]), plain(s.condition(name)))
	}
	return t
}

// condition is what the first target's facts say to a published condition's name.
func (s *study) condition(name string) string {
	if len(s.targets) == 0 {
		return lab.Unknown
	}
	f, known := s.Plan.Facts[s.targets[0]]
	if !known {
		return lab.Unknown
	}
	switch name {
	case "cpu":
		return orUnknown(f.CPUModel)
	case "cores":
		return fmt.Sprint(f.Cores)
	case "kernel":
		return orUnknown(f.Kernel)
	case "memory":
		return bytesIn(float64(f.MemoryBytes))
	case "distribution", "os":
		return orUnknown(f.Distribution)
	}
	return lab.Unknown
}
