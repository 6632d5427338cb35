package store

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"ngxlab/lab"
)

// began is the time of the first test run.

var began = time.Date(2026, 11, 30, 17, 15, 2, 123456000, time.UTC)

// opened opens a new database in a fresh directory.

func opened(t testing.TB) (*Store, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "lab.db")
	s, err := Open(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, path
}

// plan is a plan of two states and one load point.

func plan() lab.Plan {
	cells := []lab.Cell{}
	for _, st := range []string{"default", "log off"} {
		cells = append(cells, lab.Cell{ID: lab.CellID{Target: "web", State: st, Load: "wrk 10"}})
	}
	return lab.Plan{
		Experiment: lab.Experiment{Name: "quickstart", Title: "A study", Text: "name: quickstart\n", Hash: "abc123"},
		Facts:      map[lab.HostName]lab.Facts{"web": {Host: "web", Kernel: "6.18", Cores: 2, BootID: "b1"}},
		Seed:       1<<63 + 7,
		Part:       1,
		States:     []lab.State{{Name: "default"}, {Name: "log off", Step: "log off", Over: "default"}},
		Cells:      cells,
	}
}

// run is a run with everything a run can have.

func run(state string, round int) lab.Run {
	at := began.Add(time.Duration(round) * time.Minute)
	return lab.Run{
		Cell: lab.CellID{Target: "web", State: state, Load: "wrk 10"}, Round: round, Attempt: 1, Part: 1, Began: at,
		Window: lab.Window{Begin: 10, End: 2_000_000_010, DurationS: 2, Overlap: 1, SkewS: 0.0001},
		Processes: []lab.Process{{
			Host: "load", Command: lab.Command{Tool: "wrk", Argv: []string{"wrk", "-c", "10"}, Share: lab.Share{Connections: 10}}, PID: 7,
			Asked: 5, Released: 9, Ended: 2_000_000_020, Stdout: []byte("Requests/sec: 100\n"), Stderr: []byte("note\n"),
			Files: map[string][]byte{"e.csv": []byte("0,1\n")}, Reductions: map[string]lab.Report{"e": {Tool: "ab"}},
			CPUS: 1.5, MaxRSSBytes: 4096, Report: lab.Report{Tool: "wrk", Figures: lab.Figures{lab.RequestRate: 100.1}, Histogram: []byte("HIST")},
		}},
		Samples: []lab.Sample{
			{Host: "web", At: 1, WallNS: 1000, CPUs: []lab.CPUTimes{{CPU: 0, UserS: 1}}},
			{Host: "load", At: 9, WallNS: 1001, CPUs: []lab.CPUTimes{{CPU: 0, UserS: 2}}},
			{Host: "web", At: 2, WallNS: 2000, CPUs: []lab.CPUTimes{{CPU: 0, UserS: 3}}},
		},
		Server:     lab.Server{Serving: state, Master: 5, Effective: "events {}", EffectiveSHA: "e", Probes: map[string]lab.Probe{"/": {Status: 200}}},
		Yardsticks: []lab.Yardstick{{Host: "web", CPUS: []float64{0.01, 0.01}, WallS: 0.01}},
		Figures:    lab.Figures{lab.Goodput: 1.0 / 3 * float64(round), lab.CPUPerRequest: 3.3e-5, lab.P99S: 0.0021},
		Histogram:  []byte("HIST"), Grade: lab.GradeA, LoopModel: lab.ClosedLoop,
		Findings: []lab.Finding{
			{Code: "client-cpu", Outcome: lab.Quiet},
			{Code: "server-cpu", Outcome: lab.Fired, Consequence: lab.Limit, Evidence: "1.0 of 1 cores", Values: map[string]float64{"cores": 1}},
			{Code: "non-2xx", Outcome: lab.NotEvaluated, Evidence: "no probe"},
			{Code: "short-run", Outcome: lab.Fired, Consequence: lab.Warn, Evidence: "2 s"},
		},
		Validity: lab.Warned, Limit: "server CPU", OverheadS: 0.05,
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func begun(t testing.TB, s *Store, id lab.CampaignID) {
	t.Helper()
	_, err := s.Begin(context.Background(), id, plan())
	must(t, err)
}

func commit(t testing.TB, s *Store, id lab.CampaignID, r lab.Run) {
	t.Helper()
	must(t, s.Commit(context.Background(), id, lab.Record{Run: &r}))
}

func TestRunComesBackAsItWasCommitted(t *testing.T) {
	s, _ := opened(t)
	begun(t, s, "c")
	want := run("default", 1)
	commit(t, s, "c", want)
	res, err := s.Results(context.Background(), "c", Options{Samples: true, Raw: true})
	must(t, err)
	want.ID = 1
	if len(res.Runs) != 1 || !reflect.DeepEqual(res.Runs[0], want) {
		t.Errorf("got  %+v\nwant %+v", res.Runs, want)
	}
	one, err := s.Run(context.Background(), 1)
	must(t, err)
	if !reflect.DeepEqual(one, want) {
		t.Errorf("Run: got %+v", one)
	}
}

func TestResultsLeaveOutRawOutputAndSamplesUnlessAsked(t *testing.T) {
	s, _ := opened(t)
	begun(t, s, "c")
	commit(t, s, "c", run("default", 1))
	res, err := s.Results(context.Background(), "c", Options{})
	must(t, err)
	r := res.Runs[0]
	if r.Samples != nil || r.Processes[0].Stdout != nil || r.Processes[0].Files != nil {
		t.Errorf("raw output or samples were read: %+v", r)
	}
	if r.Processes[0].Report.Figures[lab.RequestRate] != 100.1 {
		t.Errorf("the report is missing: %+v", r.Processes[0])
	}
}

func TestRunWithoutFiguresIsKept(t *testing.T) {
	s, _ := opened(t)
	begun(t, s, "c")
	r := lab.Run{Cell: run("default", 1).Cell, Round: 1, Attempt: 1, Part: 1, Began: began, Validity: lab.Invalid, Problem: "server died"}
	commit(t, s, "c", r)
	res, err := s.Results(context.Background(), "c", Options{Samples: true, Raw: true})
	must(t, err)
	r.ID = 1
	if !reflect.DeepEqual(res.Runs[0], r) {
		t.Errorf("got %+v", res.Runs[0])
	}
}

func TestCountsFollowEveryRun(t *testing.T) {
	s, _ := opened(t)
	begun(t, s, "c")
	commit(t, s, "c", run("default", 1))
	bad := run("log off", 1)
	bad.Validity = lab.Invalid
	bad.Findings = append(bad.Findings, lab.Finding{Code: "errors", Outcome: lab.Fired, Consequence: lab.Invalidate})
	commit(t, s, "c", bad)
	c, err := s.Campaign(context.Background(), "c")
	must(t, err)
	if c.Runs != 2 || c.Invalid != 1 || c.Findings != 3 {
		t.Errorf("got %d runs, %d invalid, %d findings; want 2, 1, 3", c.Runs, c.Invalid, c.Findings)
	}
	cells, err := s.Cells(context.Background(), "c")
	must(t, err)
	want := []CellCount{{run("default", 1).Cell, 1, 0}, {run("log off", 1).Cell, 1, 1}}
	if !reflect.DeepEqual(cells, want) {
		t.Errorf("cells: got %+v, want %+v", cells, want)
	}
}

func TestSameRunTwiceIsRefused(t *testing.T) {
	s, _ := opened(t)
	begun(t, s, "c")
	r := run("default", 1)
	commit(t, s, "c", r)
	if err := s.Commit(context.Background(), "c", lab.Record{Run: &r}); !errors.Is(err, ErrDuplicate) {
		t.Errorf("got %v, want ErrDuplicate", err)
	}
	c, err := s.Campaign(context.Background(), "c")
	must(t, err)
	if c.Runs != 1 {
		t.Errorf("%d runs counted, want 1", c.Runs)
	}
}

func TestFailedCommitLeavesNothing(t *testing.T) {
	s, path := opened(t)
	begun(t, s, "c")
	r := run("default", 1)
	r.Samples[2].CPUs[0].UserS = nan() // fails after run, figures, findings and processes are written
	if err := s.Commit(context.Background(), "c", lab.Record{Run: &r}); err == nil {
		t.Fatal("a sample that cannot be kept was accepted")
	}
	whole(t, path, 0)
}

func TestUnknownFigureMustBeAbsent(t *testing.T) {
	s, _ := opened(t)
	begun(t, s, "c")
	r := run("default", 1)
	r.Figures[lab.P99S] = nan()
	err := s.Commit(context.Background(), "c", lab.Record{Run: &r})
	if err == nil || !strings.Contains(err.Error(), "p99_s") {
		t.Errorf("got %v, want an error that names p99_s", err)
	}
}

func nan() float64 { zero := 0.0; return zero / zero }

func TestResumeReturnsWhatIsDone(t *testing.T) {
	s, _ := opened(t)
	ctx := context.Background()
	begun(t, s, "c")
	commit(t, s, "c", run("default", 1))
	level := lab.CapacityLevel{Kind: lab.HoldIdle, Ramp: 1, Asked: 1000, Connections: 1000, Parts: map[string]int64{"server": 5}}
	must(t, s.Commit(ctx, "c", lab.Record{Level: &level}))
	must(t, s.Commit(ctx, "c", lab.Record{Outcome: &lab.Outcome{Campaign: "c", Status: lab.StatusInterrupted}}))
	again := plan()
	again.Part = 2
	again.Facts["web"] = lab.Facts{Host: "web", Kernel: "6.19"}
	done, err := s.Begin(ctx, "c", again)
	must(t, err)
	if len(done.Runs) != 1 || done.Runs[0].Figures[lab.Goodput] != 1.0/3 {
		t.Errorf("runs done: %+v", done.Runs)
	}
	if !reflect.DeepEqual(done.Levels, []lab.CapacityLevel{level}) {
		t.Errorf("levels done: %+v", done.Levels)
	}
	c, err := s.Campaign(ctx, "c")
	must(t, err)
	if c.Status != lab.StatusRunning || c.Ended != nil || c.Parts != 2 {
		t.Errorf("campaign resumed: %+v", c)
	}
	p, err := s.Plan(ctx, "c")
	must(t, err)
	if p.Part != 2 || p.Seed != 1<<63+7 {
		t.Errorf("plan: part %d, seed %d", p.Part, p.Seed)
	}
	var kernels int
	must(t, s.read.QueryRow("SELECT count(DISTINCT kernel) FROM facts WHERE campaign = 'c'").Scan(&kernels))
	if kernels != 2 {
		t.Errorf("facts of %d parts, want 2", kernels)
	}
}

func TestResumeOfAnotherExperimentIsRefused(t *testing.T) {
	s, _ := opened(t)
	begun(t, s, "c")
	other := plan()
	other.Experiment.Hash = "def"
	if _, err := s.Begin(context.Background(), "c", other); err == nil {
		t.Fatal("the runs of two experiments were mixed")
	}
}

func TestOriginalValueIsNeverOverwritten(t *testing.T) {
	s, _ := opened(t)
	ctx := context.Background()
	begun(t, s, "c")
	somaxconn := lab.KnobID{Kind: lab.KnobSysctl, Name: "net.core.somaxconn"}
	gone := lab.KnobID{Kind: lab.KnobSysctl, Name: "net.gone"}
	must(t, s.Originals(ctx, "c", "web", []lab.Change{{Knob: somaxconn, From: lab.Value{Text: "4096"}}, {Knob: gone, From: lab.Value{Absent: true}}}))
	must(t, s.Originals(ctx, "c", "web", []lab.Change{{Knob: somaxconn, From: lab.Value{Text: "65535"}}}))
	var value string
	must(t, s.read.QueryRow("SELECT value FROM originals WHERE name = ?", somaxconn.Name).Scan(&value))
	if value != "4096" {
		t.Errorf("original is %q, want 4096", value)
	}
	var absent sql.NullString
	must(t, s.read.QueryRow("SELECT value FROM originals WHERE name = ?", gone.Name).Scan(&absent))
	if absent.Valid {
		t.Errorf("an absent value became %q", absent.String)
	}
}

func TestCampaignRecordsComeBack(t *testing.T) {
	s, _ := opened(t)
	s.Version = "v1"
	ctx := context.Background()
	begun(t, s, "c")
	build := lab.Build{ID: "h", Recipe: "nginx", Version: "1.22.1", Sources: map[string]string{"a": "b"}}
	must(t, s.Commit(ctx, "c", lab.Record{Build: &build}))
	must(t, s.Commit(ctx, "c", lab.Record{Build: &build})) // the same build on another host
	event := lab.Event{At: began, Kind: lab.EventState, Campaign: "c", Host: "web", Text: "log off"}
	must(t, s.Event(ctx, "c", event))
	vs := []lab.Verdict{{Family: "steps", Word: lab.Helps, Text: "helps", Comparison: lab.Comparison{State: "log off", Over: "default", Metric: lab.Goodput, Ratio: 1.1, LogRatios: []float64{0.1}}}}
	must(t, s.SaveVerdicts(ctx, "c", vs))
	must(t, s.SaveVerdicts(ctx, "c", vs))
	outcome := lab.Outcome{Campaign: "c", Status: lab.StatusDone, Reason: lab.ReasonMax, Unrestored: map[lab.HostName][]lab.Restored{"web": {{Outcome: "error"}}}}
	must(t, s.Commit(ctx, "c", lab.Record{Outcome: &outcome}))
	res, err := s.Results(ctx, "c", Options{})
	must(t, err)
	if !reflect.DeepEqual(res.Builds, []lab.Build{build}) || !reflect.DeepEqual(res.Events, []lab.Event{event}) || !reflect.DeepEqual(res.Verdicts, vs) {
		t.Errorf("got builds %+v\nevents %+v\nverdicts %+v", res.Builds, res.Events, res.Verdicts)
	}
	if res.Version != "v1" || res.Campaign.Status != lab.StatusDone || res.Campaign.Reason != lab.ReasonMax || res.Campaign.Ended == nil {
		t.Errorf("campaign: %+v, version %q", res.Campaign, res.Version)
	}
	kept, err := collectJSON[lab.Outcome](ctx, s.read, "SELECT outcome FROM campaigns WHERE id = 'c'")
	must(t, err)
	if !reflect.DeepEqual(kept, []lab.Outcome{outcome}) {
		t.Errorf("outcome: %+v", kept)
	}
}

func TestCampaignIsFoundByTheBeginningOfItsID(t *testing.T) {
	s, _ := opened(t)
	ctx := context.Background()
	var none *NotFoundError
	if _, err := s.Latest(ctx); !errors.As(err, &none) {
		t.Errorf("Latest of an empty database: %v", err)
	}
	for _, id := range []lab.CampaignID{"quickstart-20261130-171502", "quickstart-20261130-181502", "other-20261130-171502"} {
		begun(t, s, id)
	}
	c, err := s.Campaign(ctx, "oth")
	must(t, err)
	if c.ID != "other-20261130-171502" || c.Name != "quickstart" || c.Began.Location() != time.UTC {
		t.Errorf("got %+v", c)
	}
	var both *AmbiguousError
	if _, err := s.Campaign(ctx, "quick"); !errors.As(err, &both) || len(both.Both) != 2 {
		t.Errorf("an ambiguous beginning: %v", err)
	}
	_, err = s.Campaign(ctx, "quickstrat-20261130-181502")
	if !errors.As(err, &none) || none.Near[0] != "quickstart-20261130-181502" {
		t.Errorf("a near miss: %v %+v", err, none)
	}
	latest, err := s.Latest(ctx)
	must(t, err)
	if latest.ID != "other-20261130-171502" {
		t.Errorf("latest is %s", latest.ID)
	}
}

// incompressible returns n bytes that look random, the same each time.

// whole checks that the file holds exactly n runs, each with all its parts, and that the counts say so.

// imported is a run as import makes it from one output of a load tool.
