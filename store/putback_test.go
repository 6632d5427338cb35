package store

import (
	"context"
	"testing"
	"time"

	"ngxlab/lab"
)

// left returns what campaigns left changed, as "campaign host".
func left(t *testing.T, s *Store) []string {
	t.Helper()
	all, err := s.Left(context.Background())
	must(t, err)
	names := []string{}
	for _, l := range all {
		names = append(names, string(l.Campaign)+" "+string(l.Host))
	}
	return names
}

func TestHostsPutBackAfterACampaignAreNoLongerLeftChanged(t *testing.T) {
	s, _ := opened(t)
	ctx, at := context.Background(), time.Date(2026, 11, 30, 18, 0, 0, 0, time.UTC)
	change := []lab.Change{{Knob: lab.KnobID{Kind: lab.KnobSysctl, Name: "net.core.somaxconn"}, From: lab.Value{Text: "4096"}}}
	begun(t, s, "c")
	for _, h := range []lab.HostName{"web", "load"} {
		must(t, s.Originals(ctx, "c", h, change))
	}
	must(t, s.Commit(ctx, "c", lab.Record{Outcome: &lab.Outcome{Campaign: "c", Status: lab.StatusUnrestored, Rounds: 3,
		Unrestored: map[lab.HostName][]lab.Restored{"web": {{Outcome: lab.RestoreFailed}}, "load": nil}}}))
	for _, tc := range []struct {
		host   lab.HostName
		status lab.CampaignStatus
		left   int
	}{{"web", lab.StatusUnrestored, 1}, {"load", lab.StatusDone, 0}, {"load", lab.StatusDone, 0}} {
		must(t, s.PutBack(ctx, Left{Campaign: "c", Host: tc.host}, at))
		c, err := s.Campaign(ctx, "c")
		must(t, err)
		if got := left(t, s); c.Status != tc.status || len(got) != tc.left {
			t.Errorf("after %s: status %s, left %v", tc.host, c.Status, got)
		}
	}
	kept, err := collectJSON[lab.Outcome](ctx, s.read, "SELECT outcome FROM campaigns WHERE id = 'c'")
	must(t, err)
	if o := kept[0]; o.Status != lab.StatusDone || o.Rounds != 3 || len(o.Unrestored) != 0 {
		t.Errorf("outcome %+v", o)
	}
}

// TestCampaignThatGoesOnLeavesItsHostsChangedAgain kills a campaign, puts its host back, and resumes it.
func TestCampaignThatGoesOnLeavesItsHostsChangedAgain(t *testing.T) {
	s, _ := opened(t)
	ctx, at := context.Background(), time.Date(2026, 11, 30, 18, 0, 0, 0, time.UTC)
	begun(t, s, "c")
	must(t, s.Originals(ctx, "c", "web", []lab.Change{{Knob: lab.KnobID{Kind: lab.KnobSysctl, Name: "net.core.somaxconn"}}}))
	must(t, s.Event(ctx, "c", lab.Event{At: at, Kind: lab.EventChange, Host: "web"}))
	if got := left(t, s); len(got) != 1 || got[0] != "c web" {
		t.Fatalf("left %v", got)
	}
	must(t, s.PutBack(ctx, Left{Campaign: "c", Host: "web"}, at))
	if got := left(t, s); len(got) != 0 {
		t.Errorf("left %v after it was put back", got)
	}
	c, err := s.Campaign(ctx, "c")
	must(t, err)
	if c.Status != lab.StatusInterrupted || c.Ended != nil {
		t.Errorf("status %s, ended %v: it was killed, nobody knows when", c.Status, c.Ended)
	}
	begun(t, s, "c")
	if c, err = s.Campaign(ctx, "c"); err != nil || c.Status != lab.StatusRunning {
		t.Errorf("status %s after it went on: %v", c.Status, err)
	}
	must(t, s.Event(ctx, "c", lab.Event{At: at, Kind: lab.EventChange, Host: "web"}))
	if got := left(t, s); len(got) != 1 {
		t.Errorf("left %v after it went on", got)
	}
}
