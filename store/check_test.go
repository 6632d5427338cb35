package store

import (
	"context"
	"strings"
	"testing"

	"ngxlab/lab"
)

func TestCheckFindsWhatWasTamperedWith(t *testing.T) {
	for name, tc := range map[string]struct{ tamper, want string }{
		"nothing":   {"SELECT 1", ""},
		"a count":   {"UPDATE campaigns SET runs = 7", "runs: listed as 7, counted as 1"},
		"a cell":    {"UPDATE campaign_cells SET runs = 3 WHERE state = 'default'", "runs of cell web, default, wrk 10: listed as 3"},
		"text":      {"UPDATE experiments SET text = 'other'", "hash"},
		"a config":  {"UPDATE configurations SET text = 'other'", "the configuration 9853170246fc… is not what its hash says"},
		"reference": {"PRAGMA foreign_keys = off; DELETE FROM servers", "refers to a row of servers that is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := opened(t)
			p := plan()
			p.Experiment.Text, p.Experiment.Hash = "a", "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"
			_, err := s.Begin(context.Background(), "c", p)
			must(t, err)
			commit(t, s, "c", run("default", 1))
			_, err = s.write.Exec(tc.tamper)
			must(t, err)
			broken, err := s.Check(context.Background(), "c")
			must(t, err)
			got := strings.Join(broken, "\n")
			if (tc.want == "") != (got == "") || !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestLastEventsAreTheNewestInOrder(t *testing.T) {
	s, _ := opened(t)
	begun(t, s, "c")
	for _, text := range []string{"a", "b", "c"} {
		must(t, s.Event(context.Background(), "c", lab.Event{At: began, Kind: lab.EventState, Text: text}))
	}
	events, err := s.LastEvents(context.Background(), "c", 2)
	must(t, err)
	if len(events) != 2 || events[0].Text != "b" || events[1].Text != "c" {
		t.Errorf("got %+v", events)
	}
}
