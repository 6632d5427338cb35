package report

import (
	"crypto/sha256"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"

	"ngxlab/lab"
	"ngxlab/lab/capacity"
)

// unusableGoodput is the goodput of every run of the cell that is invalid throughout, to be found struck or nowhere.
const unusableGoodput = 77777.0

var began = time.Date(2026, 11, 30, 17, 15, 2, 0, time.UTC)

func fakeExperiment() lab.Experiment {
	ratio := 1.2
	published := 1.5
	e := lab.Experiment{
		Name: "quickstart", Title: "What do the usual nginx tuning steps bring on this machine?", Source: "A tuning page, 2014",
		Hosts:  []lab.Host{{Name: "here", Local: true, Roles: []lab.Role{lab.RoleTarget, lab.RoleLoad}}},
		Builds: map[string]lab.Recipe{"nginx": {Name: "nginx", Flavor: "nginx", Modules: []string{"stub_status", "echo"}}},
		Server: lab.ServerSpec{Build: "nginx", Port: 8081, StatusPort: 8082, Site: "file", BodyBytes: 1024},
		Ladder: lab.Ladder{Kind: lab.Cumulative},
		Steps: []lab.Step{
			{Name: "baseline", Why: "nginx as it comes, with its access log on", Nginx: map[string]string{"access_log": "logs/access.log"}},
			{Name: "access log off", Why: "every request saves the formatting of a log line and a write", Nginx: map[string]string{"access_log": "off"}},
			{Name: "file cache", Why: "an open file is kept with its size and time", Nginx: map[string]string{"open_file_cache": "max=1000 inactive=60s", "sendfile": "on"}},
			{Name: "sockets", Why: "a longer accept queue | and a listening socket for each worker", Nginx: map[string]string{"events.worker_connections": "16384", "listen.backlog": "4096", "listen.reuseport": "true"}},
		},
		Load: []lab.LoadSpec{
			{Tool: "wrk", URL: "/1k.bin", KeepAlive: []bool{true}, Connections: []int{10, 100}, Duration: lab.Seconds(2), Processes: 1, Pin: true},
			{Tool: "ab", URL: "/1k.bin", KeepAlive: []bool{false}, Connections: []int{100}, Duration: lab.Seconds(2), Processes: 1, Pin: true},
		},
		Repeat: lab.Repeat{Min: 6, Max: 6, Precision: 0.05, Effect: 0.05, CoolDown: lab.Seconds(0.5), Control: true, Why: "a demonstration of some minutes on a shared machine"},
		Order:  lab.Interleaved,
		Claims: []lab.Claim{
			{Name: "worth it", Of: lab.Goodput, State: "sockets", Over: "baseline", AtLeast: &ratio},
			{Name: "as published", Of: lab.Goodput, State: "sockets", Over: "baseline", Published: &published},
		},
		Publish:  lab.Published{Conditions: map[string]string{"cpu": "2 x Xeon E5-2650 v2", "kernel": "3.17.2"}},
		Capacity: &lab.CapacitySpec{Connections: []int{0, 1000, 2000, 5000, 10000, 20000}, Kinds: []lab.HoldKind{lab.HoldIdle}, Ramps: 3, SizesBytes: []int64{2 << 30, 8 << 30, 32 << 30}, ReserveBytes: 1 << 30, ConnectionsPerUser: []int{2, 4, 6}},
		File:     "/home/bench/quickstart.yaml", Text: "name: quickstart\ntitle: What do the usual nginx tuning steps bring on this machine?\n", Hash: "4f0c9d6f3a",
	}
	return e
}

func fakePlan(t *testing.T) lab.Plan {
	t.Helper()
	e := fakeExperiment()
	states, err := lab.States(e)
	if err != nil {
		t.Fatal(err)
	}
	loads, err := lab.LoadPoints(e)
	if err != nil {
		t.Fatal(err)
	}
	p := lab.Plan{Experiment: e, Seed: 123456789, Part: 1, States: states, Loads: loads}
	for _, s := range states {
		p.Servings = append(p.Servings, lab.Serving{Target: "here", State: s.Name, Recipe: "nginx", Port: 8081, StatusPort: 8082})
		for _, l := range loads {
			p.Cells = append(p.Cells, lab.Cell{ID: lab.CellID{Target: "here", State: s.Name, Load: l.Name}})
		}
	}
	p.Facts = map[lab.HostName]lab.Facts{"here": {
		Host: "here", CPUModel: "Intel(R) Xeon(R) Processor", Cores: 2, CPUs: []int{0, 1}, MemoryBytes: 24 << 30, Kernel: "6.18.5", Distribution: "debian 12",
		Architecture: "amd64", Virtualisation: "kvm", NofileSoft: 20000, NofileHard: 20000, Root: true, Compiler: "gcc (Debian 12.2.0-14) 12.2.0",
		ToolVersions: map[string]string{"wrk": "wrk 4.1.0 [epoll]", "ab": "Version 2.4.71"}, Packages: map[string]string{"libpcre2-dev": "10.42-1"}, Agent: "9b1c55"}}
	p.Refused = []lab.Refusal{{Host: "here", Step: "kernel", Knob: lab.KnobID{Kind: lab.KnobSysctl, Name: "net.core.somaxconn"}, Reason: "only root may write it, and the agent does not run as root", Cure: "run as root, or give the host `sudo: true`"}}
	p.Warnings = []lab.Warning{{Host: "here", Text: "load and target share one kernel"}}
	p.Drivings = []lab.Driving{{Target: "here", Load: loads[0].Name, Measured: map[lab.HostName][]lab.Command{"here": {{Tool: "wrk", Argv: []string{"wrk", "-t1", "-c10", "-d2s", "-H", "Connection: keep-alive", "http://127.0.0.1:8081/1k.bin"}}}}}}
	p.Capacity = &lab.CapacityPlan{Target: "here", State: "sockets", Kinds: []lab.HoldKind{lab.HoldIdle}, Ramps: 3, SharedKernel: true,
		Limits: []lab.CapacityLimit{{Name: "worker_connections", Connections: 32768, Detail: "2 workers × 16,384"}, {Name: "hard nofile", Connections: 39900, Detail: "20,000 for each of 2 workers"}}}
	return p
}

// fakeResults is a campaign with clean, warned, lower-bound and invalid runs, a retry, a cell without a single valid
// run, a figure that is unknown, and capacity levels. It is the same at every call.
func fakeResults(t *testing.T) lab.Results {
	t.Helper()
	p := fakePlan(t)
	ended := began.Add(6 * time.Minute)
	r := lab.Results{
		Campaign: lab.Campaign{ID: "quickstart-20261130-171502", Name: "quickstart", Began: began, Ended: &ended, Status: lab.StatusDone, Reason: lab.ReasonMax, Parts: 1},
		Plan:     p, Version: "0.1.0",
		Builds: []lab.Build{{ID: "nginx-1.22.1-3fa9", Recipe: "nginx", Version: "1.22.1", Configured: "nginx version: nginx/1.22.1\nconfigure arguments: --with-threads --add-module=echo", Compiler: "gcc 12.2.0", Sources: map[string]string{"nginx_1.22.1.orig.tar.gz": "9ebb333a9e802f5d3e9aee7ab6ecbc1c4c9b1b1bbb1d4e4f4c8b0b2e2b6e1f1a"},
			Modules: []string{"ngx_core_module", "ngx_http_echo_module", "ngx_http_stub_status_module"}, Libraries: []lab.Library{{Name: "libc.so.6", Version: "2.36"}, {Name: "libpcre2-8.so.0", Version: "10.42-1"}},
			Notes: []string{"source package nginx 1.22.1-9"}, MadeBy: "nobody", TookS: 41.3, Distribution: "debian 12", Architecture: "amd64"}},
	}
	random := rand.New(rand.NewPCG(7, 7))
	for round := 1; round <= 6; round++ {
		host := 1 + 0.08*random.NormFloat64() // the whole machine drifts from round to round
		for _, s := range p.States {
			for _, l := range p.Loads {
				r.Runs = append(r.Runs, fakeRuns(random, host, round, s, l)...)
			}
		}
	}
	r.Levels = fakeLevels()
	concluded := capacity.Conclude(p, r.Levels)
	r.Capacity = &concluded
	return r
}

var gains = map[string]float64{"baseline": 1, "access log off": 1.37, "file cache": 1.38, "sockets": 1.55, lab.ControlName: 1}

func fakeRuns(random *rand.Rand, host float64, round int, s lab.State, l lab.LoadPoint) []lab.Run {
	gain := gains[s.Name] * host * (1 + 0.012*random.NormFloat64())
	run := lab.Run{Cell: lab.CellID{Target: "here", State: s.Name, Load: l.Name}, Round: round, Attempt: 1, Part: 1, Grade: lab.GradeB, LoopModel: lab.ClosedLoop,
		Validity: lab.Clean, Limit: "server-cpu", Began: began.Add(time.Duration(round) * time.Minute)}
	base := 31500.0
	if l.Tool == "ab" {
		base, run.Grade = 9100, lab.GradeC
	}
	run.Figures = lab.Figures{
		lab.Goodput: base * gain, lab.CPUPerRequest: 31e-6 / gains[s.Name] * (1 + 0.006*random.NormFloat64()), lab.ErrorRatio: 0,
		lab.P50S: 0.0011 * float64(l.Connections) / 100 / gain, lab.ServerCPU: 0.97, lab.ClientCPU: 0.71, lab.Requests: base * gain * 2,
	}
	run.Server = lab.Server{Serving: s.Name, Build: "nginx-1.22.1-3fa9", User: "www-data", EffectiveSHA: fmt.Sprintf("%x", sha256.Sum256([]byte(s.Name))), Workers: []int{101}, NofileSoft: 20000, NofileHard: 20000, Backlog: 511,
		ReadBack: []lab.Applied{{Change: lab.Change{Knob: lab.KnobID{Kind: lab.KnobNginx, Name: "access_log"}}, ReadBack: lab.Value{Text: "off"}}}}
	run.Findings = []lab.Finding{
		{Code: "server-cpu", Outcome: lab.Fired, Consequence: lab.Limit, Evidence: "the server used 0.97 of 1 core, threshold 0.95"},
		{Code: "client-fds", Outcome: lab.NotEvaluated, Evidence: "the tool printed no connect errors"},
		{Code: "syn-retransmit", Outcome: lab.Quiet},
	}
	if l.Tool == "wrk" { // ab's p99 stays unknown
		run.Figures[lab.P99S] = run.Figures[lab.P50S] * 2.4
		run.Histogram = fakeHistogram(run.Figures[lab.P50S])
	}
	return spoil(run, s, l)
}

func spoil(run lab.Run, s lab.State, l lab.LoadPoint) []lab.Run {
	switch {
	case s.Name == "file cache" && l.Tool == "ab":
		run.Figures[lab.Goodput] = unusableGoodput
		return []lab.Run{invalid(run, "count-mismatch", "the tool counted 155,554 responses, the server 140,112: 9.9 % apart, bound 1 %")}
	case s.Name == "baseline" && l.Connections == 10 && run.Round == 2:
		again := run
		again.Attempt = 2
		run.Figures = lab.Figures{lab.Goodput: 12345}
		return []lab.Run{invalid(run, "foreign-cpu", "0.61 core used by others (cc1), bound 0.20"), again}
	case s.Name == "sockets" && l.Name == "wrk 100 keep-alive":
		run.Validity, run.Limit = lab.Warned, "generator"
		run.Findings = append(run.Findings, lab.Finding{Code: "client-cpu", Outcome: lab.Fired, Consequence: lab.LowerBound, Evidence: "the generators' CPUs were 0.97 busy, threshold 0.90", Advice: "give the load generators another core or another host", Step: "- {name: more load, load: [{tool: wrk, processes: 2}]}"})
	case s.Name == "access log off" && l.Connections == 10 && run.Round == 3:
		run.Validity = lab.Warned
		run.Findings = append(run.Findings, lab.Finding{Code: "host-speed", Outcome: lab.Fired, Consequence: lab.Warn, Evidence: "the yardstick took 17 % longer after the run than before, bound 15 %"})
	}
	return []lab.Run{run}
}

func invalid(run lab.Run, code, evidence string) lab.Run {
	run.Validity, run.Limit = lab.Invalid, ""
	run.Findings = append(run.Findings, lab.Finding{Code: code, Outcome: lab.Fired, Consequence: lab.Invalidate, Evidence: evidence})
	return run
}

func fakeHistogram(medianS float64) []byte {
	h := hdr.New(1, 60e6, 3)
	for i := range 4000 {
		q := (float64(i) + 0.5) / 4000
		_ = h.RecordValue(int64(medianS * 1e6 * (0.6 + 0.4*math.Pow(-math.Log2(1-q), 1.3))))
	}
	encoded, err := h.Encode(hdr.V2CompressedEncodingCookieBase)
	if err != nil {
		panic(fmt.Sprint("encode a histogram: ", err))
	}
	return encoded
}

func fakeLevels() []lab.CapacityLevel {
	random := rand.New(rand.NewPCG(5, 5))
	var all []lab.CapacityLevel
	for ramp := 1; ramp <= 3; ramp++ {
		wobble := 1 + 0.004*random.NormFloat64()
		for _, n := range []int{0, 1000, 2000, 5000, 10000, 20000} {
			at := func(base, slope float64) int64 { return int64(base + slope*wobble*float64(n)) }
			all = append(all, lab.CapacityLevel{Kind: lab.HoldIdle, Ramp: ramp, Asked: n, Connections: n, SettledS: 2.5, Parts: map[string]int64{
				"server": at(27e6, 530), "TCP": at(9e5, 4900), "sock_inode_cache": at(2e6, 1664), "filp": at(4e6, 512), "dentry": at(6e7, 384), "eventpoll_epi": at(1e5, 256), "socket memory": 8192}})
		}
	}
	all[5].Problem = "the server died: worker 103 ended by signal 9"
	return all
}
