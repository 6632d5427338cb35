package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ngxlab/agent/wire"
	"ngxlab/experiments"
	"ngxlab/lab"
	"ngxlab/lab/plan"
	"ngxlab/store"
)

func TestCommandsPrintWhatTheyAreKnownToPrint(t *testing.T) {
	for _, tc := range []struct {
		name string
		code int
		line []string
	}{
		{"help", 0, []string{"help"}},
		{"version", 0, []string{"version"}},
		{"init", 0, []string{"init", "DIR/new.yaml"}},
		{"init-again", 1, []string{"init", "DIR/small.yaml"}},
		{"check", 0, []string{"check", "DIR/small.yaml"}},
		{"check-unknown-key", 1, []string{"check", "DIR/bad.yaml"}},
		{"check-missing-file", 1, []string{"check", "DIR/nowhere.yaml"}},
		{"check-missing-name", 1, []string{"check", "quickstrat"}},
		{"unknown-command", 2, []string{"chek"}},
		{"unknown-flag", 2, []string{"list", "--jsn"}},
		{"missing-argument", 2, []string{"plan"}},
		{"plan", 0, []string{"plan", "DIR/small.yaml"}},
		{"plan-refused", 1, []string{"plan", "DIR/refused.yaml"}},
		{"plan-ssh", 1, []string{"plan", "DIR/ssh.yaml"}},
		{"list", 0, []string{"list"}},
		{"list-json", 0, []string{"list", "--json"}},
		{"show", 0, []string{"show"}},
		{"show-run", 0, []string{"show", "5"}},
		{"show-run-raw", 0, []string{"show", "5", "--raw"}},
		{"show-missing-run", 1, []string{"show", "5000"}},
		{"show-missing-campaign", 1, []string{"show", "smal-20261130-171503"}},
		{"show-ambiguous", 1, []string{"show", "small"}},
		{"compare", 0, []string{"compare", "log off", "default"}},
		{"compare-missing-state", 1, []string{"compare", "log of", "default"}},
		{"compare-campaigns", 0, []string{"compare", "small-20261130-171502", "small-20261130-181502"}},
		{"verify", 0, []string{"verify", "small-20261130-181502"}},
		{"capacity-none", 1, []string{"capacity", "small-20261130-181502"}},
		{"report", 0, []string{"report", "small-20261130-181502", "--out", "DIR/report"}},
		{"status", 0, []string{"status"}},
		{"restore", 0, []string{"restore"}},
		{"restore-ssh", 1, []string{"restore", "web1"}},
		{"resume-done", 1, []string{"resume"}},
		{"hosts-facts", 0, []string{"hosts", "facts"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newCommand(t)
			c.write("small.yaml", study)
			c.write("bad.yaml", strings.Replace(study, "title:", "titel:", 1))
			c.write("refused.yaml", strings.Replace(strings.Replace(study, "    unsupported: skip\n", "", 1), "connections: 10,", "connections: 2000,", 1))
			c.write("ssh.yaml", strings.Replace(study, "local: true", "address: 10.0.0.1", 1))
			c.filled("small-20261130-171502", 1.3)
			c.filled("small-20261130-181502", 1.2)
			if code := c.run(tc.line...); code != tc.code {
				t.Errorf("exit code %d, want %d", code, tc.code)
			}
			c.golden(tc.name, tc.code)
		})
	}
}

func TestJSONOfReadingCommandsIsOneValueWithSnakeCaseKeys(t *testing.T) {
	c := newCommand(t)
	c.write("small.yaml", study)
	c.filled("small-20261130-171502", 1.3)
	for _, line := range [][]string{
		{"version"}, {"library"}, {"check", "DIR/small.yaml"}, {"plan", "DIR/small.yaml"}, {"list"}, {"show"}, {"show", "1"}, {"show", "1", "--raw"},
		{"compare", "log off", "default"}, {"compare", "small", "small"}, {"verify", "small"}, {"status"}, {"restore"}, {"hosts", "facts"},
		{"report", "--out", "DIR/r"},
	} {
		if code := c.run(append(line, "--json")...); code != 0 {
			t.Errorf("%v: exit code %d: %s", line, code, c.err)
			continue
		}
		d := json.NewDecoder(c.out)
		var v any
		must(t, d.Decode(&v))
		if d.More() {
			t.Errorf("%v: more than one value", line)
		}
		for _, key := range keys(v) {
			if strings.ToLower(key) != key && !strings.ContainsAny(key, " .:/") && strings.ToUpper(key) != key {
				t.Errorf("%v: key %q", line, key)
			}
		}
	}
}

// keys are the keys of all objects in v, but for maps whose keys are data (sysctls, configuration).
func keys(v any) []string {
	var all []string
	switch v := v.(type) {
	case map[string]any:
		for k, inner := range v {
			all = append(all, k)
			if k != "sysctls" && k != "files" {
				all = append(all, keys(inner)...)
			}
		}
	case []any:
		for _, inner := range v {
			all = append(all, keys(inner)...)
		}
	}
	return all
}

func TestSchemaAndLibraryPrintWhatTheProgramHolds(t *testing.T) {
	c := newCommand(t)
	if code := c.run("schema"); code != 0 || !json.Valid(c.out.Bytes()) {
		t.Errorf("schema: exit code %d, valid JSON %v", code, json.Valid(c.out.Bytes()))
	}
	if code := c.run("library"); code != 0 || !strings.Contains(c.out.String(), "quickstart") {
		t.Errorf("library: exit code %d: %s", code, c.out)
	}
	want, err := experiments.Open("quickstart")
	must(t, err)
	if code := c.run("library", "quickstart"); code != 0 || c.out.String() != string(want) {
		t.Errorf("library quickstart: exit code %d", code)
	}
	if code := c.run("library", "quickstrat"); code != 1 || !strings.Contains(c.err.String(), "quickstart") {
		t.Errorf("library quickstrat: exit code %d: %s", code, c.err)
	}
}

func TestScaffoldPassesItsOwnCheck(t *testing.T) {
	c := newCommand(t)
	if code := c.run("init", "DIR/mine.yaml"); code != 0 {
		t.Fatalf("init: exit code %d: %s", code, c.err)
	}
	if code := c.run("check", "DIR/mine.yaml"); code != 0 || !strings.Contains(c.out.String(), "mine is valid") {
		t.Errorf("check: exit code %d: %s%s", code, c.out, c.err)
	}
}

func TestUnreadableDatabasesAreNamedWithTheCure(t *testing.T) {
	c := newCommand(t)
	if code := c.run("list"); code != 1 || !strings.Contains(c.err.String(), "hint: \"ngxlab run\" makes a database") {
		t.Errorf("no database: exit code %d: %s", code, c.err)
	}
	c.write("lab.db", "this is a text and not a database")
	for _, line := range [][]string{{"list"}, {"resume"}, {"verify", "x"}} {
		if code := c.run(line...); code != 1 || !strings.Contains(c.err.String(), "not an ngxlab database") || !strings.Contains(c.err.String(), "hint: ") {
			t.Errorf("%v on a text: exit code %d: %s", line, code, c.err)
		}
	}
}

func TestNewerDatabaseIsNamedWithTheCure(t *testing.T) {
	c := newCommand(t)
	c.filled("small-20261130-171502", 1.3)
	newer(t, filepath.Join(c.dir, "lab.db"))
	c.write("small.yaml", study)
	for _, line := range [][]string{{"list"}, {"run", "DIR/small.yaml"}} {
		if code := c.run(line...); code != 1 || !strings.Contains(c.err.String(), "is newer than this program's") || !strings.Contains(c.err.String(), "hint: update ngxlab") {
			t.Errorf("%v: exit code %d: %s", line, code, c.err)
		}
	}
}

// newer raises the schema number in the header of a database file (offset 60, big endian).
func newer(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	must(t, err)
	_, err = f.WriteAt([]byte{0, 0, 0, 99}, 60)
	must(t, errors.Join(err, f.Close()))
}

func TestRefusedPlanRunsNothingAndMakesNoDatabase(t *testing.T) {
	c := newCommand(t)
	c.write("refused.yaml", strings.Replace(study, "    unsupported: skip\n", "", 1))
	if code := c.run("run", "DIR/refused.yaml"); code != 1 || !strings.Contains(c.err.String(), "refused.yaml:12:14:") {
		t.Errorf("exit code %d: %s", code, c.err)
	}
	if _, err := os.Stat(filepath.Join(c.dir, "lab.db")); err == nil {
		t.Error("a database was made")
	}
}

func TestRefusalPointsAtTheNearestAncestor(t *testing.T) {
	x := lab.Experiment{Where: map[string]lab.Position{"steps[1]": {Line: 4, Column: 2}, "steps": {Line: 1, Column: 1}}}
	for path, want := range map[string]int{"steps[1].sysctl.net.core.x": 4, "steps[7].nginx": 1, "load[0]": 0, "steps[1]": 4} {
		if at, known := position(x, path); at.Line != want || known != (want > 0) {
			t.Errorf("%s: line %d, want %d", path, at.Line, want)
		}
	}
}

func TestLongCampaignNeedsYes(t *testing.T) {
	c := newCommand(t)
	c.write("long.yaml", strings.Replace(study, "duration: 2s", "duration: 30m", 1))
	if code := c.run("run", "DIR/long.yaml"); code != exitUsage || !strings.Contains(c.err.String(), "add --yes") {
		t.Errorf("exit code %d: %s", code, c.err)
	}
}

func TestHostInUseIsNamedWithItsOwner(t *testing.T) {
	c := newCommand(t)
	host := &fakeHost{facts: testFacts(), claimErr: wire.Locked(wire.Lock{Owner: "ana@desk", Campaign: "other-1", Since: at})}
	c.attach = fakeAttach(host)
	c.write("small.yaml", study)
	code := c.run("run", "DIR/small.yaml")
	for _, want := range []string{"ana@desk", "other-1", "2026-11-30", "hint: "} {
		if code != 1 || !strings.Contains(c.err.String(), want) {
			t.Errorf("exit code %d, %q is missing: %s", code, want, c.err)
		}
	}
	if host.closed != 1 {
		t.Errorf("the host was let go %d times, want once", host.closed)
	}
}

func TestFailedCampaignIsKeptAndSaysHowToGoOn(t *testing.T) {
	c := newCommand(t)
	c.write("small.yaml", study)
	code := c.run("run", "DIR/small.yaml")
	for _, want := range []string{"there is no compiler", "hint: \"ngxlab resume small-20261130-171502\"", "here: as it was before the campaign"} {
		if code != exitFailed || !strings.Contains(c.err.String(), want) {
			t.Errorf("exit code %d, %q is missing: %s", code, want, c.err)
		}
	}
	if code := c.run("list", "--json"); code != 0 || !strings.Contains(c.out.String(), `"status": "failed"`) {
		t.Errorf("list: exit code %d: %s", code, c.out)
	}
	if code := c.run("resume", "small"); code != exitFailed || !strings.Contains(c.err.String(), "there is no compiler") {
		t.Errorf("resume: exit code %d: %s", code, c.err)
	}
}

func TestHostThatCannotBeRestoredEndsTheCampaignWithItsOwnCode(t *testing.T) {
	c := newCommand(t)
	c.attach = fakeAttach(&fakeHost{facts: testFacts(), restoreErr: errors.New("read-only file system")})
	c.write("small.yaml", study)
	if code := c.run("run", "DIR/small.yaml"); code != exitUnrestored || !strings.Contains(c.err.String(), "here: NOT as it was before the campaign") {
		t.Errorf("exit code %d: %s", code, c.err)
	}
	if got := c.leave(); got != exitUnrestored {
		t.Errorf("leaving a host that is not restored: exit code %d", got)
	}
}

func TestRestoreSaysWhatBecameOfEveryKnob(t *testing.T) {
	knob := lab.KnobID{Kind: lab.KnobSysctl, Name: "net.core.somaxconn"}
	for name, tc := range map[string]struct {
		restored lab.Restored
		want     string
	}{
		"restored": {lab.Restored{Knob: knob, Original: lab.Value{Text: "4096"}, Found: lab.Value{Text: "8192"}, Outcome: "restored"}, "put back from 8192 to 4096"},
		"already":  {lab.Restored{Knob: knob, Original: lab.Value{Text: "4096"}, Outcome: "already"}, "already 4096"},
		"foreign":  {lab.Restored{Knob: knob, Original: lab.Value{Text: "4096"}, Found: lab.Value{Text: "1"}, Outcome: "foreign"}, "kept at 1: changed by someone else"},
		"rebooted": {lab.Restored{Knob: knob, Found: lab.Value{Text: "4096"}, Outcome: "rebooted"}, "rebooted"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCommand(t)
			c.attach = fakeAttach(&fakeHost{restored: []lab.Restored{tc.restored}})
			if code := c.run("restore"); code != 0 || !strings.Contains(c.out.String(), tc.want) {
				t.Errorf("exit code %d: %s%s", code, c.out, c.err)
			}
		})
	}
}

func TestUnrestoredHostWinsOverEveryOtherExitCode(t *testing.T) {
	c := newCommand(t)
	c.attach = fakeAttach(&fakeHost{restoreErr: errors.New("write /proc/sys/net/core/somaxconn: permission denied")})
	if code := c.run("restore", "web1", "local"); code != exitUnrestored || !strings.Contains(c.err.String(), "not put back as it was: local") {
		t.Errorf("exit code %d: %s", code, c.err)
	}
	all := errors.Join(context.Canceled, &usageError{err: errors.New("x")}, &doubtfulError{}, &unrestoredError{})
	if code := exitCode(all); code != exitUnrestored {
		t.Errorf("exit code %d, want %d", code, exitUnrestored)
	}
}

func TestPendingChangesAreTold(t *testing.T) {
	c := newCommand(t)
	host := &fakeHost{facts: testFacts(), pending: []lab.Pending{{Knob: lab.KnobID{Kind: lab.KnobSysctl, Name: "a"}, Original: lab.Value{Text: "1"}, Campaign: "old-1", Since: "2026-11-30T17:00:00Z"}}}
	c.attach = fakeAttach(host)
	c.write("small.yaml", study)
	if code := c.run("restore", "--check"); code != exitUnrestored || !strings.Contains(c.out.String(), "changed by campaign old-1") {
		t.Errorf("restore --check: exit code %d: %s", code, c.out)
	}
	if code := c.run("plan", "DIR/small.yaml"); code != 0 || !strings.Contains(c.err.String(), "old-1 left 1 knob changed") {
		t.Errorf("plan: exit code %d: %s", code, c.err)
	}
	if code := c.run("status"); code != 0 || !strings.Contains(c.out.String(), "1 knob left changed by campaign old-1") {
		t.Errorf("status: exit code %d: %s", code, c.out)
	}
	if len(host.pending) == 0 {
		t.Fatal("a command that changes nothing restored the host")
	}
	c.run("run", "DIR/small.yaml") // fails later: the fake cannot run anything
	if len(host.pending) != 0 || !strings.Contains(c.err.String(), "putting it back first") {
		t.Errorf("run planned with what an earlier campaign left: %s", c.err)
	}
}

func TestExitCodes(t *testing.T) {
	for want, err := range map[int]error{
		exitDone: nil, exitFailed: errors.New("x"), exitUsage: &usageError{err: errors.New("x")}, exitDoubtful: &doubtfulError{reason: "x"},
		exitInterrupted: &hinted{err: &interruptedError{id: "c"}}, exitUnrestored: &unrestoredError{},
	} {
		if got := exitCode(err); got != want {
			t.Errorf("%v: exit code %d, want %d", err, got, want)
		}
	}
}

func TestDoubtfulCampaigns(t *testing.T) {
	invalid := lab.Results{Campaign: lab.Campaign{Runs: 3, Invalid: 3}}
	claim := lab.Results{Verdicts: []lab.Verdict{{Claim: "twice as fast", Word: lab.Contradicted, Text: "contradicted: 1.1"}}}
	fine := lab.Results{Campaign: lab.Campaign{Runs: 3, Invalid: 2}, Verdicts: []lab.Verdict{{Claim: "x", Word: lab.Holds}, {Word: lab.Hurts}}}
	for _, r := range []lab.Results{invalid, claim} {
		if exitCode(doubtful(r)) != exitDoubtful {
			t.Errorf("%+v is not doubted", r)
		}
	}
	if err := doubtful(fine); err != nil {
		t.Errorf("a sound campaign is doubted: %v", err)
	}
}

func TestVerifyTellsWhatDoesNotFit(t *testing.T) {
	c := newCommand(t)
	c.filled("small-20261130-171502", 1.3)
	s, err := store.Open(context.Background(), filepath.Join(c.dir, "lab.db"))
	must(t, err)
	cell := lab.CellID{Target: "here", State: "default", Load: "wrk 10 keep-alive"}
	r := measured(t, cell, 99, 1)
	r.Processes[0].Report.Figures[lab.RequestRate]++
	r.Figures[lab.Goodput] *= 2
	r.Validity = lab.Warned
	must(t, s.Commit(context.Background(), "small-20261130-171502", lab.Record{Run: &r}))
	must(t, s.Close())
	code := c.run("verify", "small")
	for _, want := range []string{"parsed again, gives another report", "is stored as warned, its findings say clean", "goodput_per_s is stored as 40,119/s, merged again it is 20,060/s"} {
		if code != exitFailed || !strings.Contains(c.out.String(), want) {
			t.Errorf("exit code %d, %q is missing: %s%s", code, want, c.out, c.err)
		}
	}
}

func TestSeedsAreNeverZeroAndFollowFileAndCampaign(t *testing.T) {
	x, y := lab.Experiment{Hash: "a"}, lab.Experiment{Hash: "b"}
	again := seedOf(x, "c1")
	seeds := map[uint64]bool{seedOf(x, "c1"): true, seedOf(x, "c2"): true, seedOf(y, "c1"): true}
	if len(seeds) != 3 || !seeds[again] || seeds[0] {
		t.Errorf("seeds %v", seeds)
	}
}

func TestResumeUnderOtherConditionsBeginsANewPart(t *testing.T) {
	c := newCommand(t)
	pl := planned(t, study)
	pl.Original = lab.State{Settings: map[lab.HostName][]lab.Setting{"here": {{Knob: lab.KnobID{Kind: lab.KnobSysctl, Name: "net.core.somaxconn"}, Value: "4096"}}}}
	now := testFacts()
	now.BootID, now.Kernel = "b2", "6.1.1"
	now.Sysctls = map[string]string{"net.core.somaxconn": "128", "net.ipv4.ip_local_port_range": "32768\t60999"}
	facts := map[lab.HostName]lab.Facts{"here": now}
	got := strings.Join(changes(pl, facts), "\n")
	for _, want := range []string{"kernel of here: 6.1.0 → 6.1.1", "boot of here: b1 → b2", "net.core.somaxconn of here: 4096 → 128"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in %q", want, got)
		}
	}
	s, err := store.Open(context.Background(), filepath.Join(c.dir, "lab.db"))
	must(t, err)
	defer func() { must(t, s.Close()) }()
	_, err = s.Begin(context.Background(), "small-1", pl)
	must(t, err)
	next, err := c.replanned(context.Background(), s, lab.Campaign{ID: "small-1", Parts: 1, Runs: 4}, pl, facts)
	must(t, err)
	if next.Part != 2 || next.Seed != pl.Seed || next.Facts["here"].BootID != "b2" {
		t.Errorf("part %d, seed %d, boot %s", next.Part, next.Seed, next.Facts["here"].BootID)
	}
	same, err := c.replanned(context.Background(), s, lab.Campaign{ID: "small-1", Parts: 1, Runs: 4}, planned(t, study), map[lab.HostName]lab.Facts{"here": testFacts()})
	must(t, err)
	if same.Part != 1 {
		t.Errorf("nothing changed, but part %d begins", same.Part)
	}
}

func TestPlanOfTheQuickstartIsPrinted(t *testing.T) {
	text, err := experiments.Open("quickstart")
	must(t, err)
	x, err := experiments.Decode("quickstart", strings.NewReader(string(text)))
	must(t, err)
	facts := testFacts()
	facts.Root = true
	pl, err := plan.New(x, map[lab.HostName]lab.Facts{"here": facts}, 1)
	must(t, err)
	c := newCommand(t)
	must(t, writePlan(c.out, pl))
	for _, want := range []string{"Hosts", "Software", "States", "Load points", "wrk -t1 -c10 -d2s", "Rounds", "Capacity", "about "} {
		if !strings.Contains(c.out.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, c.out)
		}
	}
}

func TestFirstInterruptCancelsAndSecondLeaves(t *testing.T) {
	c := newCommand(t)
	c.touching.Store(true)
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal)
	code := make(chan int)
	go func() { code <- wait(c.app, make(chan int), signals, cancel) }()
	signals <- os.Interrupt
	select {
	case <-ctx.Done():
	case <-time.After(10 * time.Second):
		t.Fatal("the first interrupt cancelled nothing")
	}
	signals <- os.Interrupt
	if got := <-code; got != exitUnrestored || !strings.Contains(c.err.String(), `hint: run "ngxlab restore"`) {
		t.Errorf("exit code %d: %s", got, c.err)
	}
}
