package main

import (
	"strings"
	"testing"

	"ngxlab/lab"
)

func TestWhatCannotBeComparedShowsNoRatio(t *testing.T) {
	c := lab.Comparison{State: "tuned", Pairs: 6, Ratio: 0.4, Low: 0.3, High: 0.5, Prevented: "errors 100%", Doubts: []string{"non-2xx in 6 of 12 runs"}}
	if ratio(c) != "–" || interval(c) != "none" || note(c) != "not comparable: errors 100%; non-2xx in 6 of 12 runs" {
		t.Errorf("%s, %s, %s", ratio(c), interval(c), note(c))
	}
	c = lab.Comparison{State: "tuned", Pairs: 6, Ratio: 1.3, Low: 1.2, High: 1.4, LowerBound: true, LeftOut: map[string]string{"b": "x", "a": "y"}}
	if ratio(c) != "–" || interval(c) != "≥ 1.200" || note(c) != `at least: the load generator was the limit of "tuned"; without a: y; without b: x` {
		t.Errorf("%s, %s, %s", ratio(c), interval(c), note(c))
	}
	c.LowerBound, c.LeftOut = false, nil
	if ratio(c) != "1.300" || interval(c) != "1.200 … 1.400" || note(c) != "" {
		t.Errorf("%s, %s, %s", ratio(c), interval(c), note(c))
	}
}

// cellRuns are valid runs of one cell, each with the finding; "" = none.
func cellRuns(goodput, errorRatio float64, code string, c lab.Consequence) []lab.Run {
	var runs []lab.Run
	for range 3 {
		r := lab.Run{Part: 1, Validity: lab.Clean, Figures: lab.Figures{lab.Goodput: goodput, lab.CPUPerRequest: 1 / goodput, lab.ErrorRatio: errorRatio}}
		if code != "" {
			r.Validity, r.Findings = lab.Warned, []lab.Finding{{Code: code, Outcome: lab.Fired, Consequence: c}}
		}
		runs = append(runs, r)
	}
	return runs
}

func TestCellsOfTwoCampaignsCarryWhatQualifiesThem(t *testing.T) {
	clean := cellRuns(100, 0, "", "")
	for _, c := range []struct {
		name        string
		x, y        []lab.Run
		ratio, note string // of goodput
		cpu         string
	}{
		{"both clean", clean, clean, "1.000", "", "1.000"},
		{"first bound", cellRuns(200, 0, "client-cpu", lab.LowerBound), clean, "≥ 2.000", "at least:", "0.500"},
		{"second bound", clean, cellRuns(200, 0, "client-cpu", lab.LowerBound), "–", "not comparable: the load generator", "2.000"},
		{"warned", cellRuns(200, 0, "foreign-cpu", lab.Warn), clean, "2.000", "first: foreign-cpu in 3 of 3 runs", "0.500"},
		{"errors", cellRuns(900, 1, "non-2xx", lab.Warn), clean, "–", "not comparable: errors 100%", "–"},
	} {
		all := besides(c.x, c.y, lab.CellID{})
		if len(all) != 2 || all[0].ratio() != c.ratio || !strings.HasPrefix(all[0].note(), c.note) || c.note == "" && all[0].note() != "" || all[1].ratio() != c.cpu {
			t.Errorf("%s: %+v", c.name, all)
		}
	}
}

func TestCellsOfACampaignNameWhatQualifiesThem(t *testing.T) {
	if got := cellDoubts(cellRuns(200, 0, "client-cpu", lab.LowerBound)); len(got) != 1 || got[0] != "client-cpu in 3 of 3 runs" {
		t.Errorf("%q", got)
	}
	if got := grave(cellRuns(200, 0, "client-cpu", lab.LowerBound)[0].Findings); len(got) != 1 {
		t.Errorf("a lower bound is not among the findings of a run: %q", got)
	}
}
