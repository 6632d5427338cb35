package report

import (
	"fmt"
	"path"
	"strings"

	"ngxlab/lab"
	"ngxlab/templates"
)

// method says how the figures came about: what a reader needs to doubt them well.
func (s *study) method() (templates.Section, error) {
	lines := []struct{ what, how string }{
		{"Goodput", "responses that are what the probe promised, per second of the measured window. Errors and unexpected statuses are taken off, and it is never above the server's own count."},
		{"Server CPU per request", "CPU time of all server processes over the window, from the scheduler's nanosecond counters, divided by the requests the server counted. Judged apart from goodput and never merged with it."},
		{"Evidence grade", "A: every response was checked. B: status and exact byte total against the probe. C: status only. D: a count only."},
		{"Latency", "as the load tool measures it. Percentiles over processes and hosts come from merged histograms, never from averages. Percentiles of different loop models are not compared."},
		{"Window", "warm-up is a run of its own before the window. All load processes are let go at one instant."},
		{"Comparison", s.comparisonWords()},
		{"Families", "the one figure per step is the mean log ratio over the headline load points; its p values are adjusted over the steps (Holm). Load points within a step and claims are families of their own."},
		{"Words", fmt.Sprintf("helps, hurts: adjusted p below 0.05 and the interval excludes no effect. No difference larger than ±%s: the interval lies inside. Undecided: neither. At least: the load generator was the limit. Not measurable: with the finding that prevents it.", perCent(s.Plan.Experiment.Repeat.Effect))},
		{"Validity", "only the instrument and the environment can make a run invalid. What limited the target is the result being studied."},
		{"Units", "SI; 1 KiB is 1,024 bytes. CPU in cores: CPU seconds per second."},
	}
	var list []templates.Text
	for _, l := range lines {
		list = append(list, join(styled(l.what, templates.Strong), plain(": "+l.how)))
	}
	return templates.Section{ID: "method", Title: "How it was measured", Blocks: []templates.Block{{List: list}}}, nil
}

func (s *study) comparisonWords() string {
	text := "mean over the rounds of the paired log ratio; 95% interval by paired t, beside which the signed-rank interval must agree."
	for _, v := range s.verdicts {
		if v.Comparison.Stopping {
			return text + " Rounds went on until the intervals were narrow, and the intervals allow for that stopping."
		}
	}
	return text
}

// again is everything needed to run the study once more.
func (s *study) again() (templates.Section, error) {
	e := s.Plan.Experiment
	section := templates.Section{ID: "again", Title: "How to run it again"}
	file := path.Base(strings.ReplaceAll(e.File, `\`, "/"))
	if e.File == "" {
		file = e.Name + ".yaml"
	}
	section.Blocks = append(section.Blocks,
		paragraph(plain("Save the experiment below as "), mono(file), plain(" and run it; on other machines, change its hosts first.")),
		templates.Block{Code: &templates.Code{Language: "sh", Text: fmt.Sprintf("ngxlab plan %[1]s\nngxlab run %[1]s\n", quoteShell(file))}})
	about := []templates.Text{join(plain("campaign "), mono(string(s.Campaign.ID)))}
	if s.Version != "" {
		about = append(about, join(plain("ngxlab "), mono(s.Version)))
	}
	if e.Hash != "" {
		about = append(about, join(plain("SHA-256 of the experiment file "), mono(e.Hash)))
	}
	section.Blocks = append(section.Blocks, templates.Block{List: about})
	if e.Text != "" {
		section.Blocks = append(section.Blocks, heading("The experiment file"), templates.Block{Code: &templates.Code{Language: "yaml", Text: ended(e.Text)}})
	}
	if lines := s.commandLines(); lines != "" {
		section.Blocks = append(section.Blocks, heading("The commands of the load"), templates.Block{Code: &templates.Code{Language: "sh", Text: lines}})
	}
	return section, nil
}

// commandLines are the measured commands of every load point, as the load hosts ran them.
func (s *study) commandLines() string {
	var b strings.Builder
	for _, d := range s.Plan.Drivings {
		fmt.Fprintf(&b, "# %s\n", d.Load)
		for _, host := range hostNames(d.Measured) {
			for _, c := range d.Measured[host] {
				b.WriteString(commandLine(c) + "\n")
			}
		}
	}
	return b.String()
}

func commandLine(c lab.Command) string {
	words := make([]string, 0, len(c.Env)+len(c.Argv))
	for _, w := range append(append([]string{}, c.Env...), c.Argv...) {
		words = append(words, quoteShell(w))
	}
	return strings.Join(words, " ")
}

// quoteShell quotes a word for people who paste it into a POSIX shell.
func quoteShell(w string) string {
	safe := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:=,+@%{}", r)
	}
	if w != "" && strings.IndexFunc(w, func(r rune) bool { return !safe(r) }) < 0 {
		return w
	}
	return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
}
