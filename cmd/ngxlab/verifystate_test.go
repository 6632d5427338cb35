package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"ngxlab/agent/wire"
	"ngxlab/lab"
	"ngxlab/lab/conduct"
	"ngxlab/lab/observe"
	"ngxlab/store"
)

// changed are two knobs that a campaign changed, of which somebody else changed one meanwhile.
func changed() *fakeHost {
	somaxconn, thp := lab.KnobID{Kind: lab.KnobSysctl, Name: "net.core.somaxconn"}, lab.KnobID{Kind: lab.KnobFile, Name: "/etc/x.conf"}
	since, file := "2026-11-30T17:00:02Z", lab.FileValue{Mode: "0644", Owner: "0:0"}.WithContent([]byte("a\n")).String()
	return &fakeHost{
		facts: testFacts(),
		pending: []lab.Pending{
			{Knob: somaxconn, Original: lab.Value{Text: "4096"}, Campaign: "old-1", Since: since}, {Knob: thp, Original: lab.Value{Absent: true}, Campaign: "old-1", Since: since},
		},
		standing: []lab.Standing{
			{Knob: somaxconn, Expected: lab.Value{Text: "8192"}, Found: lab.Value{Text: "128"}, Drifted: true, Campaign: "old-1", Since: since},
			{Knob: thp, Expected: lab.Value{Text: file}, Found: lab.Value{Text: file}, Campaign: "old-1", Since: since},
		},
	}
}

func TestVerifyStateTellsDriftFromWhatStands(t *testing.T) {
	c := newCommand(t)
	host := changed()
	c.attach = fakeAttach(host)
	code := c.run("verify-state")
	c.golden("verify-state", code)
	if code != exitFailed || !strings.Contains(c.err.String(), "local: changed by somebody else: sysctl net.core.somaxconn\nhint: ") || strings.Contains(c.err.String(), "x.conf") {
		t.Errorf("exit code %d: %s", code, c.err)
	}
	if len(host.claimed) != 0 || len(host.pending) != 2 || host.closed != 1 {
		t.Errorf("claimed %v, pending %v, closed %d times", host.claimed, host.pending, host.closed)
	}
	host.standing = []lab.Standing{{Knob: lab.KnobID{Kind: lab.KnobSysctl, Name: "net.core.somaxconn"}, Expected: lab.Value{Text: "8192"}, Found: lab.Value{Text: "8192"}}}
	if code := c.run("verify-state"); code != exitDone || !strings.Contains(c.out.String(), "as set") {
		t.Errorf("as set: exit code %d: %s%s", code, c.out, c.err)
	}
	host.standing[0].Error = "read: input/output error"
	if code := c.run("verify-state"); code != exitFailed || !strings.Contains(c.err.String(), "cannot be read: sysctl net.core.somaxconn") {
		t.Errorf("not read: exit code %d: %s", code, c.err)
	}
	host.standing = nil
	if code := c.run("verify-state"); code != exitDone || c.out.String() != "local: nothing is changed\n" {
		t.Errorf("nothing: exit code %d: %s", code, c.out)
	}
}

func TestVerifyStateReportsTheOthersWhenAHostCannotBeAsked(t *testing.T) {
	c := newCommand(t)
	c.attach = fakeAttach(changed())
	code := c.run("verify-state", "--json", "web1", "local")
	var all []stood
	must(t, json.Unmarshal(c.out.Bytes(), &all))
	if len(all) != 2 || all[0].Error == "" || all[0].Standing == nil || len(all[1].Standing) != 2 || !strings.Contains(c.err.String(), "the host key of web1") || code != exitFailed {
		t.Errorf("exit code %d: %+v: %s", code, all, c.err)
	}
}

func TestRestoreCheckListsWhatIsPendingAndHowItStands(t *testing.T) {
	c := newCommand(t)
	host := changed()
	c.attach = fakeAttach(host)
	code := c.run("restore", "--check")
	c.golden("restore-check", code)
	if code != exitUnrestored || len(host.pending) != 2 {
		t.Errorf("exit code %d, pending %v", code, host.pending)
	}
	c.run("restore", "--check", "--json")
	var all []restored
	must(t, json.Unmarshal(c.out.Bytes(), &all))
	if len(all) != 1 || len(all[0].Pending) != 2 || len(all[0].Standing) != 2 {
		t.Errorf("as JSON: %+v", all)
	}
}

func TestRestoreNamesTheKnobsThatStayChanged(t *testing.T) {
	c := newCommand(t)
	host := changed()
	host.restoreErr = errors.New("local: write /etc/x.conf: read-only file system")
	host.restored = []lab.Restored{{Knob: host.pending[1].Knob, Outcome: lab.RestoreFailed, Error: "read-only file system"}, {Knob: host.pending[0].Knob, Outcome: lab.RestoreDone}}
	c.attach = fakeAttach(host)
	if code := c.run("restore"); code != exitUnrestored || !strings.Contains(c.err.String(), "not put back as it was: local (file /etc/x.conf)\n") {
		t.Errorf("exit code %d: %s", code, c.err)
	}
}

// TestRestoreTriesAHostWhoseLinkWasLostOnceMore loses the link in the first attempt.
func TestRestoreTriesAHostWhoseLinkWasLostOnceMore(t *testing.T) {
	for name, tc := range map[string]struct {
		second error
		code   int
	}{"back": {nil, exitDone}, "failing": {errors.New("disk is full"), exitUnrestored}} {
		t.Run(name, func(t *testing.T) {
			c := newCommand(t)
			first, second := &fakeHost{restoreErr: fmt.Errorf("local: %w", lab.ErrLost)}, &fakeHost{facts: testFacts(), restoreErr: tc.second}
			second.restored = []lab.Restored{{Knob: lab.KnobID{Kind: lab.KnobSysctl, Name: "a.b"}, Found: lab.Value{Text: "2"}, Original: lab.Value{Text: "1"}, Outcome: lab.RestoreDone}}
			attached := 0
			c.attach = func(ctx context.Context, in string, h lab.Host) (*machine, error) {
				attached++
				return fakeAttach([]*fakeHost{first, second}[min(attached, 2)-1])(ctx, in, h)
			}
			code := c.run("restore")
			if code != tc.code || attached != 2 || first.closed != 1 || second.closed != 1 || !strings.Contains(c.out.String(), "put back from 2 to 1") {
				t.Errorf("exit code %d, attached %d times, closed %d and %d times: %s%s", code, attached, first.closed, second.closed, c.out, c.err)
			}
		})
	}
}

// TestRestoreTellsTheDatabase restores this machine after a campaign that could not, under another state directory and
// under its own.
func TestRestoreTellsTheDatabase(t *testing.T) {
	c := newCommand(t)
	ctx, path := t.Context(), filepath.Join(c.dir, "lab.db")
	s, err := store.Open(ctx, path)
	must(t, err)
	_, err = s.Begin(ctx, "small-1", planned(t, study))
	must(t, err)
	must(t, s.Originals(ctx, "small-1", "here", []lab.Change{{Knob: lab.KnobID{Kind: lab.KnobSysctl, Name: "net.core.somaxconn"}}}))
	must(t, s.Commit(ctx, "small-1", lab.Record{Outcome: &lab.Outcome{Campaign: "small-1", Status: lab.StatusUnrestored, Unrestored: map[lab.HostName][]lab.Restored{"here": nil}}}))
	must(t, s.Close())
	host := &fakeHost{facts: testFacts()}
	c.attach = fakeAttach(host)
	for _, tc := range []struct {
		stateDir string
		status   lab.CampaignStatus
	}{{"/elsewhere", lab.StatusUnrestored}, {testFacts().StateDir, lab.StatusDone}} {
		host.facts.StateDir = tc.stateDir
		if code := c.run("restore"); code != exitDone || c.err.Len() > 0 {
			t.Errorf("restore: exit code %d: %s", code, c.err)
		}
		if code := c.run("list", "--json"); code != exitDone || !strings.Contains(c.out.String(), `"status": "`+string(tc.status)+`"`) {
			t.Errorf("after a restore from %s: %s", tc.stateDir, c.out)
		}
	}
	c.write("lab.db", "no database")
	if code := c.run("restore"); code != exitDone || !strings.Contains(c.err.String(), "could not be told") {
		t.Errorf("with a broken database: exit code %d: %s", code, c.err)
	}
}

// TestKilledCampaignIsInterruptedOnceItsHostIsPutBack: by the campaign after it, which does not get further here.
func TestKilledCampaignIsInterruptedOnceItsHostIsPutBack(t *testing.T) {
	c := newCommand(t)
	ctx, knob := t.Context(), lab.KnobID{Kind: lab.KnobSysctl, Name: "net.core.somaxconn"}
	c.write("study.yaml", study)
	s, err := store.Open(ctx, filepath.Join(c.dir, "lab.db"))
	must(t, err)
	_, err = s.Begin(ctx, "small-1", planned(t, study))
	must(t, err)
	must(t, s.Originals(ctx, "small-1", "here", []lab.Change{{Knob: knob}}))
	must(t, s.Event(ctx, "small-1", lab.Event{At: at, Kind: lab.EventChange, Campaign: "small-1", Host: "here"}))
	must(t, s.Close())
	host := &fakeHost{facts: testFacts(), pending: []lab.Pending{{Knob: knob, Campaign: "small-1"}}, restoreErr: errors.New("here: read-only file system")}
	c.attach = fakeAttach(host)
	for _, want := range []lab.CampaignStatus{lab.StatusRunning, lab.StatusInterrupted} {
		if code := c.run("run", "DIR/study.yaml"); !strings.Contains(c.err.String(), "here: campaign small-1 left 1 knob changed") {
			t.Errorf("exit code %d: %s", code, c.err)
		}
		if code := c.run("list"); code != exitDone || !regexp.MustCompile(`small-1 .* `+string(want)+` `).MatchString(c.out.String()) {
			t.Errorf("list has no %s: %s", want, c.out)
		}
		host.restoreErr = nil
	}
	c.run("show", "small-1")
	if !strings.Contains(c.out.String(), string(lab.StatusInterrupted)) {
		t.Errorf("show says %s", c.out)
	}
}

// TestKilledCampaignThatChangedNothingIsToldByStatus: a campaign that runs holds its hosts.
func TestKilledCampaignThatChangedNothingIsToldByStatus(t *testing.T) {
	c := newCommand(t)
	s, err := store.Open(t.Context(), filepath.Join(c.dir, "lab.db"))
	must(t, err)
	_, err = s.Begin(t.Context(), "small-1", planned(t, study))
	must(t, err)
	must(t, s.Close())
	host := &fakeHost{facts: testFacts(), holder: lab.Holder{Owner: "ana@desk", Campaign: "small-1", Since: at}}
	c.attach = fakeAttach(host)
	const killed = `it holds none of its hosts: it was killed, or has lost them; when it is gone, "ngxlab resume small-1" goes on`
	for _, holder := range []lab.Holder{host.holder, {Owner: "bob@desk", Campaign: "other-1", Since: at}, {}} {
		host.holder = holder
		want := holder.Campaign != "small-1"
		if code := c.run("status"); code != exitDone || strings.Contains(c.out.String(), killed) != want {
			t.Errorf("held by %q: exit code %d: %s", holder.Campaign, code, c.out)
		}
		if code := c.run("status", "--json"); code != exitDone || strings.Contains(c.out.String(), `"hostless": true`) != want {
			t.Errorf("held by %q: exit code %d: %s", holder.Campaign, code, c.out)
		}
	}
}

// TestSecondInterruptPrintsTheCommandThatPutsTheHostsBack: after the first, leaving names those that are not back yet.
func TestSecondInterruptPrintsTheCommandThatPutsTheHostsBack(t *testing.T) {
	c := newCommand(t)
	x := lab.Experiment{Hosts: []lab.Host{{Name: "web", Address: "10.0.0.1", User: "root", Key: "~/my keys/lab"}, {Name: "here", Local: true}}}
	c.stateDir = "/var/my lab"
	c.touched.add(x, "web", "here")
	c.interrupted()
	c.touched.remove("here")
	if code := c.leave(); code != exitUnrestored || !strings.Contains(c.err.String(), "putting the hosts back; interrupt again") ||
		!strings.Contains(c.err.String(), `hint: run "ngxlab restore --state-dir '/var/my lab' --key '~/my keys/lab' root@10.0.0.1"`) {
		t.Errorf("exit code %d: %s", code, c.err)
	}
	c.touched.remove("web")
	if code := c.leave(); code != exitInterrupted {
		t.Errorf("with all back: exit code %d", code)
	}
}

// TestDriftInACampaignIsToldWithItsCure: found before a run, or met by a host that was to write the next state.
func TestDriftInACampaignIsToldWithItsCure(t *testing.T) {
	c := newCommand(t)
	c.filled("small-1", 1.2)
	c.db = filepath.Join(c.dir, "lab.db")
	drift := &conduct.DriftError{Readings: []observe.KnobReading{{Host: "web", Knob: "sysctl net.core.somaxconn", Drifted: true}}}
	met := &wire.Error{Kind: wire.KindForeign, Message: "sysctl net.core.somaxconn was changed by someone else"}
	for _, tc := range []struct {
		err  error
		cure bool
	}{{fmt.Errorf("baseline, round 2: %w", drift), true}, {fmt.Errorf("move to state \"all\": web: %w", met), true}, {&wire.Error{Kind: wire.KindReadBack, Message: "net.core.somaxconn"}, false}} {
		var err error
		must(t, c.reading(t.Context(), func(s *store.Store) error {
			err = stopped(t.Context(), s, lab.Plan{}, lab.Outcome{Campaign: "small-1", Runs: 2, Status: lab.StatusFailed}, tc.err)
			return nil
		}))
		var said strings.Builder
		printError(&said, err)
		want := "\nhint: \"ngxlab resume small-1\""
		if tc.cure {
			want = "\nhint: " + conduct.DriftCure + "; then \"ngxlab resume small-1\" does the missing runs, "
		}
		if !strings.Contains(said.String(), "net.core.somaxconn") || !strings.Contains(said.String(), want) {
			t.Errorf("%q is missing: %s", want, said.String())
		}
	}
}
