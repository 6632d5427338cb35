package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"ngxlab/lab"
	"ngxlab/templates"
)

// validity says which runs can be trusted and why the others cannot.
func (s *study) validity() (templates.Section, error) {
	section := templates.Section{ID: "validity", Title: "Validity"}
	section.Blocks = append(section.Blocks, paragraph(plain(s.trust())))
	fired, silent := s.findings()
	if t := s.firedTable(fired); !t.empty() {
		section.Blocks = append(section.Blocks, heading("What the lab noticed"), t.block())
	} else {
		section.Blocks = append(section.Blocks, paragraph(plain("No rule fired in any run.")))
	}
	section.Blocks = append(section.Blocks, advice(fired)...)
	if t, more := s.invalidTable(); !t.empty() {
		section.Blocks = append(section.Blocks, heading("Invalid runs"),
			paragraph(plain("Their figures are kept and appear in no comparison and no chart.")), t.block())
		if more > 0 {
			section.Blocks = append(section.Blocks, paragraph(plain("And "+count(int64(more))+" more.")))
		}
	}
	if len(silent) > 0 {
		section.Blocks = append(section.Blocks, heading("Not evaluated"),
			paragraph(plain("These rules lacked an observation in some runs. They did not pass there: nobody looked.")),
			templates.Block{List: silentList(silent)})
	}
	return section, nil
}

// noticed is what one code did over the campaign.
type noticed struct {
	code        string
	consequence lab.Consequence
	runs        int
	first       lab.Run
	example     lab.Finding
}

// findings gathers fired findings by code and consequence, gravest first, and the rules that were not evaluated.
func (s *study) findings() (fired, silent []noticed) {
	type key struct {
		code        string
		consequence lab.Consequence
	}
	loud, quiet := map[key]*noticed{}, map[key]*noticed{}
	for _, r := range s.Runs {
		for _, f := range r.Findings {
			into, k := loud, key{f.Code, f.Consequence}
			switch f.Outcome {
			case lab.Quiet:
				continue
			case lab.NotEvaluated:
				into, k = quiet, key{code: f.Code}
			}
			if into[k] == nil {
				into[k] = &noticed{code: f.Code, consequence: f.Consequence, first: r, example: f}
			}
			into[k].runs++
		}
	}
	return sortedNotices(loud), sortedNotices(quiet)
}

var gravity = map[lab.Consequence]int{lab.Invalidate: 0, lab.Warn: 1, lab.LowerBound: 2, lab.Limit: 3, lab.Note: 4}

func sortedNotices[K comparable](m map[K]*noticed) []noticed {
	var all []noticed
	for _, n := range m {
		all = append(all, *n)
	}
	slices.SortFunc(all, func(a, b noticed) int {
		return cmp.Or(gravity[a.consequence]-gravity[b.consequence], b.runs-a.runs, strings.Compare(a.code, b.code))
	})
	return all
}

func (s *study) firedTable(fired []noticed) *tableBuilder {
	t := newTable("finding", "consequence", ">runs", "an example", "where")
	for _, n := range fired {
		t.row(mono(n.code), plain(consequenceWords(n.consequence)), plain(fmt.Sprintf("%d of %d", n.runs, len(s.Runs))),
			prose(orUnknown(n.example.Evidence)), plain(runName(n.first)))
	}
	return t
}

func consequenceWords(c lab.Consequence) string {
	switch c {
	case lab.Note:
		return "note"
	case lab.Limit:
		return "the target's limit: compared"
	case lab.LowerBound:
		return "lower bound: compared one-sided"
	case lab.Warn:
		return "warned: compared, marked"
	case lab.Invalidate:
		return "invalid: not compared"
	}
	return orUnknown(string(c))
}

func runName(r lab.Run) string {
	text := fmt.Sprintf("%s at %s, round %d", r.Cell.State, r.Cell.Load, r.Round)
	if r.Attempt > 1 {
		text += fmt.Sprintf(", attempt %d", r.Attempt)
	}
	if r.Part > 1 {
		text += fmt.Sprintf(", part %d", r.Part)
	}
	return text
}

// advice lists what the fired rules advise, and the steps they would try, once each.
func advice(fired []noticed) []templates.Block {
	var list []templates.Text
	var steps []templates.Block
	seen := map[string]bool{}
	for _, n := range fired {
		if n.example.Advice != "" && !seen[n.example.Advice] {
			seen[n.example.Advice] = true
			list = append(list, join(mono(n.code), prose(": "+n.example.Advice)))
		}
		if n.example.Step != "" && !seen[n.example.Step] {
			seen[n.example.Step] = true
			steps = append(steps, templates.Block{Code: &templates.Code{Language: "yaml", Text: ended(n.example.Step)}})
		}
	}
	var blocks []templates.Block
	if len(list) > 0 {
		blocks = append(blocks, paragraph(plain("What to do about them:")), templates.Block{List: list})
	}
	if len(steps) > 0 {
		blocks = append(blocks, paragraph(plain("Steps to try:")))
	}
	return append(blocks, steps...)
}

// ended is text with a newline at its end.
func ended(text string) string { return strings.TrimRight(text, "\n") + "\n" }

// mostInvalid is how many invalid runs are listed one by one.
const mostInvalid = 100

// invalidTable lists invalid runs, and says how many more there are.
func (s *study) invalidTable() (t *tableBuilder, more int) {
	t = newTable("run", ">goodput, per s", "reason", "what became of it")
	for _, r := range s.Runs {
		if r.Validity != lab.Invalid {
			continue
		}
		if len(t.t.Rows) == mostInvalid {
			more++
			continue
		}
		figure := styled(lab.Unknown, templates.Quiet)
		if v, known := r.Figures[lab.Goodput]; known {
			figure = join(styled(rate(v), templates.Struck), styled(" ✗", templates.Bad))
		}
		t.row(plain(runName(r)), figure, s.reason(r), plain(s.fate(r)))
	}
	return t, more
}

// reason is why a run is invalid, with the evidence.
func (s *study) reason(r lab.Run) templates.Text {
	var parts []templates.Text
	for _, f := range r.Findings {
		if fired(f, lab.Invalidate) {
			text := mono(f.Code)
			if f.Evidence != "" {
				text = join(text, prose(": "+f.Evidence))
			}
			parts = append(parts, text)
		}
	}
	if r.Problem != "" {
		parts = append(parts, prose(r.Problem))
	}
	if len(parts) == 0 {
		return plain("no reason was recorded")
	}
	return listed(parts, "; ")
}

// fate says whether the round got a valid run in the end.
func (s *study) fate(r lab.Run) string {
	for _, valid := range s.cells[cellKey{r.Part, r.Cell}].valid {
		if valid.Round == r.Round {
			return fmt.Sprintf("repeated: attempt %d is %s", valid.Attempt, valid.Validity)
		}
	}
	return "the round is lost for this cell"
}

// silentList names the rules not evaluated, with how often and, where it was said, why.
func silentList(silent []noticed) []templates.Text {
	var list []templates.Text
	for _, n := range silent {
		text := join(mono(n.code), plain(": "+plural(n.runs, "run")))
		if n.example.Evidence != "" {
			text = join(text, prose(" ("+n.example.Evidence+")"))
		}
		list = append(list, text)
	}
	return list
}
