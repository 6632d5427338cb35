package report

import (
	"fmt"
	"slices"
	"strings"

	"ngxlab/lab"
	"ngxlab/plots"
	"ngxlab/templates"
)

// matrix is every state at every load point, with the mark of each figure.
func (s *study) matrix() (templates.Section, error) {
	section := templates.Section{ID: "matrix", Title: "The matrix"}
	section.Blocks = append(section.Blocks,
		paragraph(plain("Median over the rounds (95% order-statistic interval of the median; there is none below six rounds). These describe; the verdicts above come from pairs within rounds, which see much smaller effects.")),
		paragraph(plain("✓ clean. ⚠ a finding qualifies the figure. ≥ a lower bound: the load generator was the limit. "), styled("struck", templates.Struck), plain(" ✗ every run was invalid: not to be used, in no comparison. – not measured; p99 needs 10,000 requests in a run.")))
	for _, part := range s.parts {
		for _, target := range s.targets {
			section.Blocks = append(section.Blocks, s.matrixOf(part, target)...)
		}
	}
	return section, nil
}

func (s *study) matrixOf(part int, target lab.HostName) []templates.Block {
	var blocks []templates.Block
	if len(s.parts) > 1 || len(s.targets) > 1 {
		blocks = append(blocks, heading(s.place(part, target)))
	}
	for _, load := range s.Plan.Loads {
		blocks = append(blocks, heading(load.Name), paragraph(plain(s.loadWords(part, target, load))))
		t := newTable("state", ">goodput, per s", ">CPU per request", ">errors", ">p50", ">p99", ">n", "grade", "limited by", "findings")
		for _, state := range s.Plan.States {
			c := s.cells[cellKey{part, lab.CellID{Target: target, State: state.Name, Load: load.Name}}]
			t.row(s.matrixRow(state, c)...)
		}
		blocks = append(blocks, t.block())
	}
	return blocks
}

func (s *study) place(part int, target lab.HostName) string {
	var words []string
	if len(s.targets) > 1 {
		words = append(words, string(target))
	}
	if len(s.parts) > 1 {
		words = append(words, fmt.Sprintf("part %d", part))
	}
	return strings.Join(words, ", ")
}

// loadWords describes a load point: what drives it, and what its latency can be compared with.
func (s *study) loadWords(part int, target lab.HostName, load lab.LoadPoint) string {
	words := []string{load.Tool, load.URL, plural(load.Connections, "connection"), keepAliveWords(load)}
	if load.Timed() {
		words = append(words, load.Duration.String())
	} else {
		words = append(words, plural(load.Requests, "request"))
	}
	if len(load.Hosts) > 1 || load.Processes > 1 {
		words = append(words, plural(len(load.Hosts), "host")+" with "+plural(load.Processes, "process")+" each")
	}
	return strings.Join(words, ", ") + ". Latency: " + s.loopWords(part, target, load)
}

func keepAliveWords(load lab.LoadPoint) string {
	if load.KeepAlive {
		return "keep-alive"
	}
	return "a connection per request"
}

// loopWords names the loop models that the load point's runs had, the invalid ones too: it is the tool's.
func (s *study) loopWords(part int, target lab.HostName, load lab.LoadPoint) string {
	seen := map[lab.LoopModel]bool{}
	corrected := false
	for key, c := range s.cells {
		if key.part != part || key.id.Target != target || key.id.Load != load.Name {
			continue
		}
		for _, r := range slices.Concat(c.valid, c.invalid) {
			if r.LoopModel == "" {
				continue // it measured nothing
			}
			seen[r.LoopModel] = true
			for _, p := range r.Processes {
				corrected = corrected || p.Report.Corrected
			}
		}
	}
	text := "loop model unknown."
	switch {
	case len(seen) > 1:
		text = "its runs have different loop models and must not be compared with each other."
	case seen[lab.ClosedLoop]:
		text = "closed loop (a connection waits for its reply before it sends again)."
	case seen[lab.OpenLoop]:
		text = "open loop (requests keep to a schedule)."
	case seen[lab.OpenLimited]:
		text = "open loop that fell behind its schedule."
	}
	if corrected {
		text += " The tool back-fills what it thinks it missed."
	}
	return text
}

func (s *study) matrixRow(state lab.State, c cell) []templates.Text {
	goodput := c.figure(lab.Goodput)
	return []templates.Text{
		plain(state.Name),
		goodput.text(ratePerS),
		c.figure(lab.CPUPerRequest).text(duration),
		c.figure(lab.ErrorRatio).text(ratio),
		c.figure(lab.P50S).text(duration),
		c.figure(lab.P99S).text(duration),
		plain(roundsText(c)),
		plain(grades(c)),
		plain(orUnknown(c.limit())),
		cellFindings(c, goodput),
	}
}

// roundsText is how many rounds stand behind a row, and how many were lost.
func roundsText(c cell) string {
	if len(c.valid)+len(c.invalid) == 0 {
		return lab.Unknown
	}
	text := fmt.Sprint(len(c.valid))
	if len(c.invalid) > 0 {
		text += fmt.Sprintf(" of %d", len(c.valid)+len(c.invalid))
	}
	return text
}

// grades are the evidence grades of the cell's runs.
func grades(c cell) string {
	var all []string
	for _, r := range c.valid {
		if r.Grade != "" {
			all = append(all, string(r.Grade))
		}
	}
	return orUnknown(strings.Join(union(all), ", "))
}

// cellFindings names what qualifies or forbids the row's figures.
func cellFindings(c cell, goodput summary) templates.Text {
	if goodput.mark == plots.Invalid {
		return join(styled("invalid: ", templates.Bad), invalidReason(c.invalid))
	}
	found := union(codesOf(c.valid, lab.LowerBound), codesOf(c.valid, lab.Warn))
	text := codes(found)
	if len(c.invalid) > 0 {
		if len(text) > 0 {
			text = join(text, plain("; "))
		}
		text = join(text, plain(plural(len(c.invalid), "round")+" lost: "), invalidReason(c.invalid))
	}
	if len(text) == 0 {
		return plain("none")
	}
	return text
}

// invalidReason is the codes that made runs invalid, or what stopped them.
func invalidReason(runs []lab.Run) templates.Text {
	if found := codesOf(runs, lab.Invalidate); len(found) > 0 {
		return codes(found)
	}
	for _, r := range runs {
		if r.Problem != "" {
			return plain(r.Problem)
		}
	}
	return plain("no reason was recorded")
}
