package conduct

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"ngxlab/lab"
)

// drift is the finding of a run, and whether it made it invalid.
func drift(t *testing.T, r lab.Run) (lab.Finding, bool) {
	t.Helper()
	for _, f := range r.Findings {
		if f.Code == "knob-drift" {
			return f, f.Outcome == lab.Fired && r.Validity == lab.Invalid
		}
	}
	t.Fatalf("the rule was not applied to %v", r.Cell)
	return lab.Finding{}, false
}

// atCall does something at the nth call of a name.
func atCall(host *fakeHost, name string, n int, do func()) {
	seen, before := 0, host.before
	host.before = func(call int, called string) error {
		if called == name {
			if seen++; seen == n {
				do()
			}
		}
		return before(call, called)
	}
}

func TestKnobChangedDuringARunInvalidatesThatRunAlone(t *testing.T) {
	host, store, p := newFakeHost(t), &fakeStore{}, smallPlan(1)
	atCall(host, "fire", 2, func() { host.someoneSets(somaxconn, "128") }) // the first measurement
	atCall(host, "fire", 3, func() { host.someoneSets(somaxconn, "4096") })
	out, err := run(t.Context(), host, store, p)
	if err != nil || out.Invalid != 1 || len(store.runs) != len(p.Cells)+1 {
		t.Fatalf("%d runs, outcome %+v, error %v", len(store.runs), out, err)
	}
	f, invalid := drift(t, store.runs[0])
	if want := "web: sysctl net.core.somaxconn should be 4096, was 128 after the run"; !invalid || f.Evidence != want {
		t.Errorf("%s, evidence %q, want %q", store.runs[0].Validity, f.Evidence, want)
	}
	for _, r := range store.runs[1:] {
		if f, invalid := drift(t, r); invalid || f.Outcome != lab.Quiet {
			t.Errorf("%v: %+v", r.Cell, f)
		}
	}
	host.mustBeAsBefore()
}

func TestKnobFoundDriftedBeforeARunEndsTheCampaignWithoutLoad(t *testing.T) {
	host, store := newFakeHost(t), &fakeStore{}
	atCall(host, "arm", 6, func() { host.someoneSets(somaxconn, "128") }) // the first measurement of the tuned state
	out, err := run(t.Context(), host, store, smallPlan(1))
	var drifted *DriftError
	if !errors.As(err, &drifted) || len(drifted.Readings) != 1 || drifted.Cure() == "" || out.Status != lab.StatusFailed {
		t.Fatalf("outcome %+v, error %v", out, err)
	}
	want := "web: sysctl net.core.somaxconn should be 65535, was 128 before the run"
	if !strings.HasSuffix(err.Error(), want) {
		t.Errorf("error %v, want %q in it", err, want)
	}
	last := store.runs[len(store.runs)-1]
	f, invalid := drift(t, last)
	if len(store.runs) != 3 || last.Cell.State != "sockets" || !invalid || f.Evidence != want || last.Problem != "not measured: "+want {
		t.Errorf("%d runs, the last of %v: %s, problem %q, evidence %q", len(store.runs), last.Cell, last.Validity, last.Problem, f.Evidence)
	}
	if len(last.Figures) > 0 || len(last.Processes) > 0 || last.Began.IsZero() || host.fired != 5 {
		t.Errorf("figures %v, %d fired", last.Figures, host.fired)
	}
	if kept := out.Kept[web]; len(kept) != 1 || kept[0].Found.Text != "128" || len(out.Unrestored) > 0 || host.knobs[somaxconn] != "128" {
		t.Errorf("outcome %+v, the knob is %s", out, host.knobs[somaxconn])
	}
}

func TestResumeMeasuresTheCellWhoseLoadWasNotFired(t *testing.T) {
	host, first, p := newFakeHost(t), &fakeStore{}, smallPlan(1)
	atCall(host, "arm", 6, func() { host.someoneSets(somaxconn, "128") })
	if _, err := run(t.Context(), host, first, p); err == nil || len(first.runs) != 3 {
		t.Fatalf("%d runs, error %v", len(first.runs), err)
	}
	store := &fakeStore{done: lab.Done{Runs: first.runs}}
	out, err := run(t.Context(), newFakeHost(t), store, p)
	if err != nil || out.Status != lab.StatusDone || len(store.runs) != 4 {
		t.Fatalf("%d runs, outcome %+v, error %v", len(store.runs), out, err)
	}
	if r := store.runs[0]; r.Cell != first.runs[2].Cell || r.Attempt != 2 || r.Validity == lab.Invalid {
		t.Errorf("first came %v, attempt %d, %s", r.Cell, r.Attempt, r.Validity)
	}
}

func TestDriftOfAHostWithoutPartInTheLoadIsSeen(t *testing.T) {
	const idle lab.HostName = "idle"
	c, p := newCluster(t), severalPlan(1)
	p.Capacity = nil
	c.all[idle] = newFakeHost(t)
	c.all[idle].name = idle
	p.Experiment.Hosts = append(p.Experiment.Hosts, lab.Host{Name: idle, Address: "10.0.0.13", Roles: []lab.Role{lab.RoleTarget}})
	p.Original.Settings[idle] = p.Original.Settings[web]
	for _, s := range p.States {
		s.Settings[idle] = s.Settings[web]
	}
	atCall(c.all[gen1], "fire", 2, func() { c.all[idle].someoneSets(somaxconn, "128") })
	_, err := c.run(t.Context(), p)
	var drifted *DriftError
	if !errors.As(err, &drifted) || len(c.store.runs) != 2 || c.store.runs[1].Problem == "" {
		t.Fatalf("%d runs, error %v", len(c.store.runs), err)
	}
	for _, r := range c.store.runs {
		if f, invalid := drift(t, r); !invalid || !strings.HasPrefix(f.Evidence, "idle: ") {
			t.Errorf("%s: %q", r.Validity, f.Evidence)
		}
	}
}

// TestServerThatSomeoneChangedIsReplaced changes what a server runs under before and during its first run.
func TestServerThatSomeoneChangedIsReplaced(t *testing.T) {
	for key, want := range map[string]string{
		"config": "the server's configuration file should be SHA-256 " + sha256Hex(smallPlan(1).Servings[0].Config)[:12] + "…, was other", "binary": "the server's program should be /fake/nginx, was other",
		"nofile": "the server's open-file limit should be 1024, was other", "backlog": "the server's backlog should be 511, was other",
		"cpus": "the server's CPUs should be 0, was other",
	} {
		for when, n := range map[string]int{"before": 4, "after": 2} {
			host, store, p := newFakeHost(t), &fakeStore{}, smallPlan(1)
			atCall(host, "fire", n-n/4, func() { // the second warm-up, or the first measurement
				host.mu.Lock()
				defer host.mu.Unlock()
				host.inForce[key] = "other"
			})
			if _, err := run(t.Context(), host, store, p); err != nil {
				t.Fatal(err)
			}
			bad := store.runs[n/4]
			f, invalid := drift(t, bad)
			if want := "web: " + want + " " + when + " the run"; !invalid || f.Evidence != want {
				t.Errorf("%s, %s the run: %s, evidence %q, want %q", key, when, bad.Validity, f.Evidence, want)
			}
			if measured := len(bad.Figures) > 0; measured != (when == "after") {
				t.Errorf("%s, %s the run: figures %v", key, when, bad.Figures)
			}
			if extra := len(host.served) - 2*len(p.States); extra < 1 || len(store.runs) != len(p.Cells)+1 {
				t.Errorf("%s: %d servers in place of the one, %d runs", key, extra, len(store.runs))
			}
			host.mustBeAsBefore()
		}
	}
}

func TestServerOtherThanAtItsStartIsReplacedBeforeItsFirstRun(t *testing.T) {
	for _, key := range []string{"nofile", "config", "backlog"} {
		host, store := newFakeHost(t), &fakeStore{}
		atCall(host, "fire", 1, func() {
			host.mu.Lock()
			defer host.mu.Unlock()
			host.inForce[key] = "512"
		})
		if _, err := run(t.Context(), host, store, smallPlan(1)); err != nil {
			t.Fatal(err)
		}
		if _, invalid := drift(t, store.runs[0]); !invalid || len(store.runs[0].Figures) > 0 {
			t.Errorf("%s: %+v", key, store.runs[0])
		}
	}
}

func sha256Hex(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func TestDriftOfAServerThatTellsNothingIsNotEvaluated(t *testing.T) {
	host, store := newFakeHost(t), &fakeStore{}
	host.seen = func(s *lab.Sample) { s.InForce = nil }
	if _, err := run(t.Context(), host, store, smallPlan(1)); err != nil {
		t.Fatal(err)
	}
	for _, r := range store.runs {
		if f, _ := drift(t, r); f.Outcome != lab.NotEvaluated || r.Validity == lab.Invalid {
			t.Errorf("%v: %s, %+v", r.Cell, r.Validity, f)
		}
	}
}

func TestFileThatShallBeAbsentIsHeldAgainstItsAbsence(t *testing.T) {
	host, store, p := newFakeHost(t), &fakeStore{}, smallPlan(1)
	file := lab.KnobID{Kind: lab.KnobFile, Name: "/etc/x"}
	content := lab.FileValue{Mode: "0644", Owner: "0:0"}.WithContent([]byte("a")).String()
	alsoSet(p, file, content, content)
	p.States[1].Settings[web][1] = lab.Setting{Knob: file, Absent: true}
	host.knobs[file], host.original[file] = content, content
	if _, err := run(t.Context(), host, store, p); err != nil {
		t.Fatal(err)
	}
	for _, r := range store.runs {
		if f, _ := drift(t, r); f.Outcome != lab.Quiet {
			t.Errorf("%v: %+v", r.Cell, f)
		}
	}
	host.mustBeAsBefore()

	store = &fakeStore{}
	atCall(host, "fire", 2, func() { host.someoneSets(file, strings.Replace(content, `"a"`, `"b"`, 1)) })
	if _, err := run(context.Background(), host, store, p); err == nil {
		t.Error("a foreign file did not end the campaign")
	}
	if f, invalid := drift(t, store.runs[0]); !invalid || !strings.HasSuffix(f.Evidence, "with other content after the run") {
		t.Errorf("%+v", f)
	}
}
