package plan_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"ngxlab/lab"
	"ngxlab/lab/plan"
)

func seconds(n float64) lab.Duration { return lab.Seconds(n) }

// quick is a study like the quickstart: one machine, five steps, three load points, capacity.
func quick() lab.Experiment {
	return lab.Experiment{
		Name:  "quick",
		Hosts: []lab.Host{{Name: "here", Local: true, Roles: []lab.Role{lab.RoleTarget, lab.RoleLoad}}},
		Builds: map[string]lab.Recipe{"nginx": {Name: "nginx", Flavor: "nginx", Modules: []string{"stub_status", "echo"},
			Sources: []lab.BuildSource{{Debian: "nginx"}}}},
		Server: lab.ServerSpec{Build: "nginx", Port: 8081, StatusPort: 8082, Site: "file", BodyBytes: 1024, CPUs: "auto"},
		Ladder: lab.Ladder{Kind: lab.Cumulative},
		Steps: []lab.Step{
			{Name: "default"},
			{Name: "log off", Nginx: map[string]string{"access_log": "off"}},
			{Name: "file cache", Nginx: map[string]string{"open_file_cache": "max=100"}},
			{Name: "sockets", Nginx: map[string]string{"events.worker_connections": "16384", "listen.backlog": "4096", "listen.reuseport": "true"}, Nofile: 20000, BestEffort: true},
			{Name: "kernel", Cannot: lab.CannotSkip, Sysctl: map[string]string{"net.core.somaxconn": "65535", "net.ipv4.tcp_syncookies": "0"}},
		},
		Load: []lab.LoadSpec{
			{Tool: "wrk", URL: "/file", KeepAlive: []bool{true}, Connections: []int{10, 100}, Duration: seconds(2), WarmupFirst: seconds(2), Warmup: seconds(1), Processes: 1, Pin: true},
			{Tool: "ab", URL: "/file", KeepAlive: []bool{false}, Connections: []int{100}, Duration: seconds(2), WarmupFirst: seconds(2), Warmup: seconds(1), Processes: 1, Pin: true},
		},
		Repeat: lab.Repeat{Min: 6, Max: 12, Precision: 0.05, Effect: 0.05, CoolDown: seconds(0.5), Control: true},
		Order:  lab.Interleaved, Cannot: lab.CannotFail,
		Capacity: &lab.CapacitySpec{Connections: []int{0, 1000, 20000}, Kinds: []lab.HoldKind{lab.HoldIdle}, Ramps: 3,
			SizesBytes: []int64{8 << 30}, ReserveBytes: 1 << 30, ConnectionsPerUser: []int{2},
			Nginx: map[string]string{"worker_processes": "2"}},
	}
}

// machine is a host of two CPUs that grants everything.
func machine(name lab.HostName) lab.Facts {
	return lab.Facts{
		Host: name, Cores: 2, CPUs: []int{0, 1}, MemoryBytes: 24 << 30, Kernel: "6.18.44", BootID: "boot of " + string(name),
		Distribution: "debian 12", Architecture: "amd64", NofileSoft: 20000, NofileHard: 20000, NrOpen: 1048576,
		Root: true, CanInstall: true, Compiler: "cc 12.2.0",
		Sysctls: map[string]string{
			"net.core.somaxconn": "4096", "net.ipv4.tcp_syncookies": "1", "net.ipv4.tcp_rmem": "4096\t131072\t6291456",
			"net.ipv4.ip_local_port_range": "32768\t60999", "net.ipv4.ip_unprivileged_port_start": "1024",
			"net.ipv4.tcp_mem": "283689\t378252\t567378", "fs.file-max": "2466177", "vm.dirty_ratio": "20", "vm.dirty_bytes": "0",
			"net.netfilter.nf_conntrack_max": "262144", "net.netfilter.nf_conntrack_count": "0",
		},
		SysctlWritable: map[string]bool{
			"net.core.somaxconn": true, "net.ipv4.tcp_syncookies": true, "net.ipv4.tcp_rmem": true,
			"net.ipv4.ip_local_port_range": true, "vm.dirty_ratio": true, "net.ipv4.tcp_mem": true,
		},
		Commands: map[string]string{"wrk": "/usr/bin/wrk", "ab": "/usr/bin/ab", "cc": "/usr/bin/cc", "make": "/usr/bin/make"},
		Packages: map[string]string{"libc6-dev": "1", "libpcre2-dev": "1", "zlib1g-dev": "1"},
	}
}

// ordinary makes facts of a user without privilege.
func ordinary(f lab.Facts) lab.Facts {
	f.Root, f.CanInstall, f.SysctlWritable = false, false, nil
	return f
}

func facts(all ...lab.Facts) map[lab.HostName]lab.Facts {
	m := map[lab.HostName]lab.Facts{}
	for _, f := range all {
		m[f.Host] = f
	}
	return m
}

func make1(t *testing.T, e lab.Experiment, all ...lab.Facts) lab.Plan {
	t.Helper()
	if len(all) == 0 {
		all = []lab.Facts{machine("here")}
	}
	p, err := plan.New(e, facts(all...), 42)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func marshal(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestQuickstartIsPlannedWithoutRefusal(t *testing.T) {
	p := make1(t, quick())
	if len(p.Refused) > 0 || len(p.Warnings) > 0 {
		t.Errorf("refused %v, warned %v", p.Refused, p.Warnings)
	}
	if got := len(p.States); got != 6 {
		t.Errorf("%d states", got)
	}
	if len(p.Servings) != 6 || len(p.Drivings) != 3 || len(p.Cells) != 18 || len(p.Builds) != 1 || p.Packages != nil || p.Part != 1 {
		t.Errorf("%d servings, %d drivings, %d cells, %d builds, packages %v, part %d",
			len(p.Servings), len(p.Drivings), len(p.Cells), len(p.Builds), p.Packages, p.Part)
	}
	if last := p.States[5]; !last.Control || last.Over != "default" {
		t.Errorf("the last state is %+v", last)
	}
}

func TestPlanComesBackFromJSONUnchanged(t *testing.T) {
	for name, p := range map[string]lab.Plan{
		"granted": make1(t, quick()), "refused": make1(t, quick(), ordinary(machine("here"))),
	} {
		text := marshal(t, p)
		var back lab.Plan
		if err := json.Unmarshal(text, &back); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(p, back) {
			t.Errorf("%s: a plan changed through JSON", name)
		}
		if !bytes.Equal(text, marshal(t, back)) {
			t.Errorf("%s: a plan is written differently the second time", name)
		}
	}
}

func TestSameInputsGiveTheSameBytes(t *testing.T) {
	first := marshal(t, make1(t, quick(), ordinary(machine("here"))))
	for range 20 {
		if !bytes.Equal(first, marshal(t, make1(t, quick(), ordinary(machine("here"))))) {
			t.Fatal("two plans of the same inputs differ")
		}
	}
	other, err := plan.New(quick(), facts(ordinary(machine("here"))), 43)
	if err != nil {
		t.Fatal(err)
	}
	if reflect.DeepEqual(other.Rounds, make1(t, quick(), ordinary(machine("here"))).Rounds) {
		t.Error("another seed gives the same order")
	}
}

func TestPlanningLeavesItsInputsAlone(t *testing.T) {
	e, f := quick(), facts(ordinary(machine("here")))
	beforeE, beforeF := marshal(t, e), marshal(t, f)
	if _, err := plan.New(e, f, 1); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(beforeE, marshal(t, e)) || !bytes.Equal(beforeF, marshal(t, f)) {
		t.Error("an input was changed")
	}
}

// blocks checks that cells of one target and state stand together, and returns the states in order.
func blocks(t *testing.T, round []lab.CellID, loads int) []string {
	t.Helper()
	var order []string
	for i := 0; i < len(round); i += loads {
		seen := map[string]bool{}
		for _, c := range round[i : i+loads] {
			if c.State != round[i].State || c.Target != round[i].Target {
				t.Fatalf("cells of %s are not together: %v", round[i].State, round[i:i+loads])
			}
			seen[c.Load] = true
		}
		if len(seen) != loads {
			t.Fatalf("a load point is missing in %v", round[i:i+loads])
		}
		order = append(order, string(round[i].Target)+"/"+round[i].State)
	}
	return order
}

func TestRoundsAreASplitPlotInBalancedOrder(t *testing.T) {
	p := make1(t, quick())
	if len(p.Rounds) != 12 {
		t.Fatalf("%d rounds, want Repeat.Max", len(p.Rounds))
	}
	positions, loadOrders := map[string]int{}, map[string]bool{}
	for _, round := range p.Rounds {
		if len(round) != 18 {
			t.Fatalf("a round has %d cells", len(round))
		}
		for i, state := range blocks(t, round, 3) {
			positions[state+" "+string(rune('0'+i))]++
		}
		loadOrders[round[0].Load+round[1].Load+round[2].Load] = true
	}
	for at, n := range positions {
		if n != 2 {
			t.Errorf("%s: %d times in 12 rounds of 6 states, want 2", at, n)
		}
	}
	if len(loadOrders) < 3 {
		t.Errorf("load points were hardly shuffled: %v", loadOrders)
	}
}

func TestBlockedOrderKeepsTheLadder(t *testing.T) {
	e := quick()
	e.Order = lab.Blocked
	for _, round := range make1(t, e).Rounds {
		want := []string{"here/default", "here/log off", "here/file cache", "here/sockets", "here/kernel", "here/control"}
		if got := blocks(t, round, 3); !slices.Equal(got, want) {
			t.Fatalf("blocked order is %v", got)
		}
	}
}

func TestTwoTargetsTakeTurnsWithinAState(t *testing.T) {
	e := quick()
	e.Hosts = []lab.Host{
		{Name: "small", Address: "10.0.0.1", Roles: []lab.Role{lab.RoleTarget}},
		{Name: "big", Address: "10.0.0.2", Roles: []lab.Role{lab.RoleTarget}},
		{Name: "load", Address: "10.0.0.3", Roles: []lab.Role{lab.RoleLoad}},
	}
	p := make1(t, e, machine("small"), machine("big"), machine("load"))
	if len(p.Servings) != 12 || len(p.Drivings) != 6 || len(p.Cells) != 36 {
		t.Errorf("%d servings, %d drivings, %d cells", len(p.Servings), len(p.Drivings), len(p.Cells))
	}
	for _, round := range p.Rounds {
		order := blocks(t, round, 3)
		for i := 0; i < len(order); i += 2 {
			if !strings.HasSuffix(order[i], strings.SplitN(order[i+1], "/", 2)[1]) {
				t.Fatalf("targets do not take turns: %v", order)
			}
		}
	}
	if p.Servings[0].CPUs != nil {
		t.Errorf("a server that load does not share is pinned to %v", p.Servings[0].CPUs)
	}
	if p.Capacity.SharedKernel {
		t.Error("capacity on two hosts is said to share a kernel")
	}
}

func TestServerAndLoadArePinnedApart(t *testing.T) {
	p := make1(t, quick())
	if got := p.Servings[0].CPUs; !slices.Equal(got, []int{0}) {
		t.Errorf("server on %v", got)
	}
	if got := p.Loads[0].CPUs["here"]; !slices.Equal(got, []int{1}) {
		t.Errorf("load on %v", got)
	}
	single := machine("here")
	single.Cores, single.CPUs = 1, []int{0}
	p = make1(t, quick(), single)
	if p.Servings[0].CPUs != nil || p.Loads[0].CPUs != nil || !warned(p, "share one CPU") || !warned(p, "load is not pinned") {
		t.Errorf("one CPU: server on %v, load on %v, warnings %v", p.Servings[0].CPUs, p.Loads[0].CPUs, p.Warnings)
	}
	e := quick()
	e.Server.CPUs, e.Load[1].Pin, e.Load[1].CPUs = "0-1", false, "1"
	p = make1(t, e)
	if !warned(p, "uses every CPU") || p.Loads[0].CPUs != nil || !slices.Equal(p.Loads[2].CPUs["here"], []int{1}) {
		t.Errorf("listed: loads on %v and %v, warnings %v", p.Loads[0].CPUs, p.Loads[2].CPUs, p.Warnings)
	}
	e.Server.CPUs = "0-7"
	refusal(t, make1(t, e), "CPU 2 is not one that may be used", "server.cpus", true)
}

func warned(p lab.Plan, text string) bool {
	return slices.ContainsFunc(p.Warnings, func(w lab.Warning) bool { return strings.Contains(w.Text, text) })
}

// refusal finds the refusal whose reason has the text, and holds it against path and gravity.
func refusal(t *testing.T, p lab.Plan, text, path string, fatal bool) lab.Refusal {
	t.Helper()
	for _, r := range p.Refused {
		if strings.Contains(r.Reason, text) {
			if r.Path != path || r.Fatal != fatal || r.Cure == "" {
				t.Errorf("%q: path %q, fatal %v, cure %q", text, r.Path, r.Fatal, r.Cure)
			}
			return r
		}
	}
	t.Errorf("nothing is refused for %q: %v", text, p.Refused)
	return lab.Refusal{}
}

func TestEstimateGrowsWithEverythingThatTakesTime(t *testing.T) {
	base := make1(t, quick())
	if base.Estimate.Duration >= base.EstimateMax.Duration {
		t.Errorf("least %v, most %v", base.Estimate, base.EstimateMax)
	}
	for name, change := range map[string]func(*lab.Experiment){
		"duration": func(e *lab.Experiment) { e.Load[0].Duration = seconds(20) }, "warm-up": func(e *lab.Experiment) { e.Load[0].Warmup = seconds(9) },
		"rounds": func(e *lab.Experiment) { e.Repeat.Min = 7 }, "cool-down": func(e *lab.Experiment) { e.Repeat.CoolDown = seconds(5) },
		"ramps": func(e *lab.Experiment) {
			e.Capacity = &lab.CapacitySpec{Connections: []int{0, 1000}, Kinds: []lab.HoldKind{lab.HoldIdle}, Ramps: 9}
		},
		"count": func(e *lab.Experiment) { e.Load[1].Requests, e.Load[1].Duration = 1000000, lab.Duration{} },
	} {
		e := quick()
		e.Load = slices.Clone(e.Load)
		change(&e)
		if got := make1(t, e); got.Estimate.Duration <= base.Estimate.Duration {
			t.Errorf("%s: %v is not above %v", name, got.Estimate, base.Estimate)
		}
	}
	e := quick()
	e.Repeat.Budget = seconds(1)
	if got := make1(t, e); got.EstimateMax != got.Estimate {
		t.Errorf("a budget below the minimum leaves %v to %v", got.Estimate, got.EstimateMax)
	}
	if least := 6 * 6 * 3 * (2*time.Second + 600*time.Millisecond); base.Estimate.Duration < least {
		t.Errorf("%v is less than the runs alone take, %v", base.Estimate, least)
	}
}

func TestQueryAsksForWhatTheExperimentTouches(t *testing.T) {
	q := plan.Query(quick(), quick().Hosts[0])
	for _, want := range []string{"net.core.somaxconn", "net.ipv4.tcp_syncookies", "net.ipv4.ip_local_port_range"} {
		if !slices.Contains(q.Sysctls, want) {
			t.Errorf("%s is not asked for", want)
		}
	}
	for _, want := range []string{"ab", "wrk", "make"} {
		if !slices.Contains(q.Commands, want) {
			t.Errorf("command %s is not asked for", want)
		}
	}
	for _, want := range []string{"apache2-utils", "wrk", "gcc", "libpcre2-dev"} {
		if !slices.Contains(q.Packages, want) {
			t.Errorf("package %s is not asked for", want)
		}
	}
	for _, list := range [][]string{q.Sysctls, q.Commands, q.Packages} {
		if !slices.IsSorted(list) || len(slices.Compact(slices.Clone(list))) != len(list) {
			t.Errorf("%v is not sorted without repeats", list)
		}
	}
}

func TestPlanNeedsFactsTargetsAndSteps(t *testing.T) {
	noTarget, noSteps, noLoads := quick(), quick(), quick()
	noTarget.Hosts = []lab.Host{{Name: "here", Local: true, Roles: []lab.Role{lab.RoleLoad}}}
	noSteps.Steps, noLoads.Load = nil, nil
	badCPUs := quick()
	badCPUs.Server.CPUs = "zero"
	for want, e := range map[string]lab.Experiment{
		`role "target"`: noTarget, "no steps": noSteps, "no load points": noLoads, "server.cpus": badCPUs,
	} {
		if _, err := plan.New(e, facts(machine("here")), 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not say %s", err, want)
		}
	}
	if _, err := plan.New(quick(), nil, 1); err == nil || !strings.Contains(err.Error(), "no facts of host here") {
		t.Errorf("without facts: %v", err)
	}
}
