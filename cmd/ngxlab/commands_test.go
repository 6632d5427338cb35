package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ngxlab/experiments"
	"ngxlab/hosts"
	"ngxlab/hosts/ssh"
	"ngxlab/lab"
	"ngxlab/lab/conduct"
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
		{"restore-file", 0, []string{"restore", "DIR/small.yaml", "here"}},
		{"restore-missing-host", 2, []string{"restore", "DIR/small.yaml", "her"}},
		{"restore-bad-host", 2, []string{"restore", "user@"}},
		{"hosts-facts", 0, []string{"hosts", "facts"}},
		{"hosts-facts-unreachable", 1, []string{"hosts", "facts", "web1", "local", "bench@load1:2222"}},
		{"hosts-facts-json", 1, []string{"hosts", "facts", "--json", "web1"}},
		{"hosts-list", 1, []string{"hosts", "list", "DIR/two.yaml"}},
		{"hosts-clean", 0, []string{"hosts", "clean"}},
		{"hosts-list-down", 1, []string{"hosts", "list", "web1"}},
		{"hosts-trust-local", 2, []string{"hosts", "trust", "local"}},
		{"hosts-up-none", 1, []string{"hosts", "up", "DIR/small.yaml"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newCommand(t)
			c.write("small.yaml", study)
			c.write("bad.yaml", strings.Replace(study, "title:", "titel:", 1))
			c.write("refused.yaml", strings.Replace(strings.Replace(study, "    unsupported: skip\n", "", 1), "connections: 10,", "connections: 2000,", 1))
			c.write("ssh.yaml", strings.Replace(study, "local: true", "address: 10.0.0.1", 1))
			c.write("two.yaml", strings.Replace(study, "hosts:", "hosts:\n  web: {address: 10.0.0.1, user: root, port: 2222, roles: [load]}", 1))
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
		{"compare", "log off", "default"}, {"compare", "small", "small"}, {"verify", "small"}, {"status"}, {"restore"}, {"restore", "--check"}, {"verify-state"}, {"hosts", "facts"}, {"hosts", "list", "local"}, {"hosts", "clean"},
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

func TestRefusalPointsAtTheNearestAncestor(t *testing.T) {
	x := lab.Experiment{Where: map[string]lab.Position{"steps[1]": {Line: 4, Column: 2}, "steps": {Line: 1, Column: 1}}}
	for path, want := range map[string]int{"steps[1].sysctl.net.core.x": 4, "steps[7].nginx": 1, "load[0]": 0, "steps[1]": 4} {
		if at, known := position(x, path); at.Line != want || known != (want > 0) {
			t.Errorf("%s: line %d, want %d", path, at.Line, want)
		}
	}
}

func TestRefusalOfAHostIsToldAtItsPlaceInTheFile(t *testing.T) {
	r := lab.Refusal{Host: "gen1", Path: "hosts.web", Reason: "gen1 cannot reach web at 10.0.0.10:8081: connection refused", Cure: "let port 8081 through", Fatal: true}
	x := lab.Experiment{File: "study.yaml", Text: "hosts:\n  web: {}", Where: map[string]lab.Position{"hosts.web": {Line: 2, Column: 3}}}
	err := refusedByHost(lab.Plan{Experiment: x}, fmt.Errorf("rehearse: %w", &conduct.RefusedError{Refusal: r, Err: errors.New(r.Reason)}))
	want := "study.yaml:2:3: gen1 cannot reach web at 10.0.0.10:8081: connection refused\n      web: {}\nhint: let port 8081 through"
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if err := refusedByHost(lab.Plan{}, lab.ErrLost); err != nil {
		t.Errorf("a lost host refuses nothing: %v", err)
	}
}

func TestWhatAHostSaysCannotSteerTheTerminal(t *testing.T) {
	c := newCommand(t)
	c.note("%s", "web: \x1b[2Jgone\u009b1m\tand\rback\nnext")
	printError(c.app.err, errors.New("web: \x1b]0;title\a"))
	(&page{w: c.app.out}).line("web \x1b[31mred")
	want := "web: \uFFFD[2Jgone\uFFFD1m\tand\uFFFDback\nnext\nngxlab: web: \uFFFD]0;title\uFFFD\n"
	if c.err.String() != want || c.out.String() != "web \uFFFD[31mred\n" {
		t.Errorf("printed %q and %q, want %q", c.err.String(), c.out.String(), want)
	}
}

// TestHostileHostCannotSteerTheTerminalOfAnyCommand has escapes in everything that a host says of itself, of who holds it,
// and of what went wrong.
func TestHostileHostCannotSteerTheTerminalOfAnyCommand(t *testing.T) {
	const evil = "\x1b]0;PWNED\a\x1b[31m\u009b2J\r\u202e"
	f := testFacts()
	f.Hostname, f.Distribution, f.Kernel, f.CPUModel = evil, "debian 12"+evil, evil, evil
	f.Compiler, f.StateDir, f.Architecture = evil, "/var/lib/"+evil, evil
	f.Commands["wrk"] = "/usr/bin/wrk" + evil
	f.NICs = []lab.NIC{{Name: evil}}
	knob := lab.KnobID{Kind: lab.KnobSysctl, Name: "net." + evil}
	pending := []lab.Pending{{Knob: knob, Campaign: "c" + evil, Original: lab.Value{Text: evil}}}
	hosts := map[string]*fakeHost{
		"talks": {facts: f, holder: lab.Holder{Owner: evil, Campaign: evil}, cleaned: lab.Cleaned{Removed: []string{evil}}, pending: pending},
		"fails": {facts: f, cleanErr: errors.New("the script ended: exit status 3: " + evil), claimErr: errors.New(evil)},
	}
	for name, host := range hosts {
		for _, line := range [][]string{
			{"hosts", "facts"}, {"hosts", "facts", "--json"}, {"hosts", "list"}, {"hosts", "list", "--json"}, {"hosts", "clean"},
			{"hosts", "clean", "--json"}, {"status"}, {"status", "--json"}, {"restore"}, {"plan", "DIR/small.yaml"},
			{"plan", "--json", "DIR/small.yaml"}, {"run", "DIR/small.yaml"}, {"list"},
		} {
			c := newCommand(t)
			c.attach = fakeAttach(host)
			c.write("small.yaml", study)
			c.run(line...)
			for _, r := range c.out.String() + c.err.String() {
				if lab.Steers(r) {
					t.Errorf("%s: %v prints %q:\n%q\n%q", name, line, r, c.out.String(), c.err.String())
					break
				}
			}
			if c.out.Len()+c.err.Len() == 0 {
				t.Errorf("%s: %v prints nothing", name, line)
			}
		}
	}
}

func TestHintOfAKeyThatCannotBeUsedSaysWhy(t *testing.T) {
	for want, e := range map[string]*ssh.AuthError{
		"ssh-add": {Host: "web", Unused: []string{"k: encrypted"}, Locked: []string{"k"}},
		"/nonexist is no private key that can be read": {Host: "web", Unused: []string{"/nonexist: none"}, Broken: []string{"/nonexist"}},
		"name the key that web takes":                  {Host: "web", Unused: []string{"ask the ssh-agent at /x: refused"}},
	} {
		if hint := loginHint(e); !strings.Contains(hint, want) {
			t.Errorf("hint %q, want %q", hint, want)
		}
	}
}

func TestHostThatCannotBeEnteredSaysItsOwnCure(t *testing.T) {
	for want, err := range map[string]error{
		"login shell":                   &hosts.ShellError{},
		"bench ALL=(root) NOPASSWD: /a": &hosts.SudoError{User: "bench", Agent: "/a"},
	} {
		if hint := hostHint(lab.Experiment{}, lab.Host{}, errors.Join(err)); !strings.Contains(hint, want) {
			t.Errorf("hint %q, want %q", hint, want)
		}
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
