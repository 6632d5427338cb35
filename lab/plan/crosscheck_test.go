package plan_test

import (
	"slices"
	"strings"
	"testing"

	"ngxlab/lab"
)

// warning finds the warning that has the text and holds it against its place.
func warning(t *testing.T, p lab.Plan, text, path string) {
	t.Helper()
	for _, w := range p.Warnings {
		if strings.Contains(w.Text, text) {
			if w.Path != path {
				t.Errorf("%q is warned of at %q, want %q", text, w.Path, path)
			}
			return
		}
	}
	t.Errorf("nothing warns that %q: %v; refused %v", text, p.Warnings, p.Refused)
}

// allowing is the machine with further sysctls that may be written.
func allowing(sysctls map[string]string) lab.Facts {
	f := machine("here")
	for name, value := range sysctls {
		f.Sysctls[name], f.SysctlWritable[name] = value, true
	}
	return f
}

// TestValuesOfAStateAreHeldAgainstEachOther: each pair of a step and facts has one thing that does not go together, and
// next to it what does.
func TestValuesOfAStateAreHeldAgainstEachOther(t *testing.T) {
	both := func(pairs ...string) lab.Step {
		step := lab.Step{Sysctl: map[string]string{}}
		for i := 0; i < len(pairs); i += 2 {
			step.Sysctl[pairs[i]] = pairs[i+1]
		}
		return step
	}
	small := machine("here")
	small.MemoryBytes = 8 << 30
	for _, c := range []struct {
		name       string
		step, fine lab.Step
		f          lab.Facts
		text, path string
	}{
		{"tcp_mem in pages", sysctls("net.ipv4.tcp_mem", "3097431 4129911 6194862"), sysctls("net.ipv4.tcp_mem", "100000 200000 300000"), small,
			"net.ipv4.tcp_mem = 3097431 4129911 6194862 pages lets TCP take 12099, 16132, 24198 MiB, the host has 8192 MiB", "sysctl.net.ipv4.tcp_mem"},
		{"default buffers", sysctls("net.core.rmem_default", "67108864"), both("net.core.rmem_default", "67108864", "net.core.rmem_max", "67108864"),
			allowing(map[string]string{"net.core.rmem_default": "212992", "net.core.rmem_max": "4194304"}),
			"net.core.rmem_default = 67108864 is above net.core.rmem_max = 4194304", "sysctl.net.core.rmem_default"},
		{"largest buffers", sysctls("net.core.wmem_max", "65536"), sysctls("net.core.wmem_max", "212992"),
			allowing(map[string]string{"net.core.wmem_default": "212992", "net.core.wmem_max": "4194304"}),
			"net.core.wmem_default = 212992 is above net.core.wmem_max = 65536", "sysctl.net.core.wmem_max"},
		{"reuse without timestamps", both("net.ipv4.tcp_tw_reuse", "1", "net.ipv4.tcp_timestamps", "0"), both("net.ipv4.tcp_tw_reuse", "1", "net.ipv4.tcp_timestamps", "1"),
			allowing(map[string]string{"net.ipv4.tcp_tw_reuse": "0", "net.ipv4.tcp_timestamps": "1"}),
			"net.ipv4.tcp_tw_reuse = 1 has no effect while net.ipv4.tcp_timestamps = 0", "sysctl.net.ipv4.tcp_tw_reuse"},
		{"reserved ports", both(ephemeral, "10000 10099", reserved, "10000-10009,10020,9000"), both(ephemeral, "10000 10099"),
			allowing(map[string]string{reserved: ""}), "11 of the 100 ports of net.ipv4.ip_local_port_range = 10000 10099 are kept", "sysctl." + ephemeral},
		{"the server's own ports", sysctls(ephemeral, "1024 65535"), both(ephemeral, "1024 65535", reserved, "8081-8082"),
			allowing(map[string]string{reserved: ""}), "port 8081 and 8082 of the server lies in net.ipv4.ip_local_port_range = 1024 65535", "sysctl." + ephemeral},
		{"open files", directives("events.worker_connections", "30000"), directives("events.worker_connections", "20000"), machine("here"),
			"worker_connections 30000 is above the 20000 open files", "nginx.events.worker_connections"},
		{"two limits", lab.Step{Nofile: 1000, Nginx: map[string]string{"worker_rlimit_nofile": "2000"}}, lab.Step{Nofile: 2000, Nginx: map[string]string{"worker_rlimit_nofile": "2000"}},
			machine("here"), "by worker_rlimit_nofile, which wins over nofile 1000", "nginx.worker_rlimit_nofile"},
		{"files of the host", lab.Step{Sysctl: map[string]string{"fs.file-max": "30000"}, Nginx: map[string]string{"worker_processes": "2"}}, sysctls("fs.file-max", "40000"),
			allowing(map[string]string{"fs.file-max": "2466177"}), "2 workers with 16384 connections each are above fs.file-max = 30000", "sysctl.fs.file-max"},
		{"workers", directives("worker_processes", "10"), directives("worker_processes", "1"), machine("here"),
			"10 workers share what the server may use of the CPUs: 1", "nginx.worker_processes"},
		{"processes", lab.Step{Nproc: 1}, lab.Step{Nproc: 100}, ordinary(machine("here")), "nproc 1 does not let 1 workers and their master run", "nproc"},
		{"processes of the kernel", lab.Step{Nproc: 5000}, lab.Step{Nproc: 100}, allowing(map[string]string{"kernel.pid_max": "4096"}),
			"nproc 5000 has no effect above kernel.pid_max = 4096", "nproc"},
		{"tracked connections", sysctls("net.netfilter.nf_conntrack_max", "50"), sysctls("net.netfilter.nf_conntrack_max", "500"),
			allowing(map[string]string{"net.netfilter.nf_conntrack_max": "262144"}), "100 connections are above net.netfilter.nf_conntrack_max = 50", "sysctl.net.netfilter.nf_conntrack_max"},
	} {
		warning(t, make1(t, withStep(c.step), c.f), c.text, "steps[4]."+c.path)
		if p := make1(t, withStep(c.fine), c.f); len(p.Fatal()) > 0 || warned(p, c.text) || warned(p, strings.SplitN(c.text, " ", 2)[1]) {
			t.Errorf("%s: what goes together: fatal %v, warned %v", c.name, p.Fatal(), p.Warnings)
		}
	}
}

const (
	ephemeral = "net.ipv4.ip_local_port_range"
	reserved  = "net.ipv4.ip_local_reserved_ports"
)

func TestAWarningIsSaidOnceForAllStatesThatHaveIt(t *testing.T) {
	e := withStep(directives("worker_processes", "10"))
	e.Steps = append(e.Steps, lab.Step{Name: "after", Nginx: map[string]string{"etag": "off"}})
	p := make1(t, e)
	var said []string
	for _, w := range p.Warnings {
		if strings.Contains(w.Text, "10 workers") {
			said = append(said, w.Text)
		}
	}
	if len(said) != 1 || !strings.HasPrefix(said[0], `state "tried": `) {
		t.Errorf("said %q", said)
	}
}

// TestPlacesOfWarningsAreThoseOfTheFile: a step that fell away before does not move them.
func TestPlacesOfWarningsAreThoseOfTheFile(t *testing.T) {
	e := withStep(directives("worker_processes", "10"))
	e.Steps[2] = lab.Step{Name: "gone", Cannot: lab.CannotSkip, Sysctl: map[string]string{"net.ipv4.tcp_tw_recycle": "1"}}
	warning(t, make1(t, e), "10 workers", "steps[4].nginx.worker_processes")
}

func TestOpenFilesAreHeldAgainstTheirBoundInThatState(t *testing.T) {
	f := allowing(map[string]string{"fs.nr_open": "1048576"})
	f.RaiseNofile = true
	e := withStep(lab.Step{Nofile: 2000000})
	refusal(t, make1(t, e, f), "above fs.nr_open = 1048576", "steps[4].nofile", true)
	e.Steps[4].Sysctl = map[string]string{"fs.nr_open": "3000000"}
	if p := make1(t, e, f); len(p.Fatal()) > 0 {
		t.Errorf("raised in the same step: %v", p.Fatal())
	}
	e = withStep(lab.Step{Nofile: 2000000})
	e.Steps[1].Sysctl = map[string]string{"fs.nr_open": "3000000"}
	if p := make1(t, e, f); len(p.Fatal()) > 0 {
		t.Errorf("raised in a step before: %v", p.Fatal())
	}
	e.Ladder.Kind = lab.Isolated
	refusal(t, make1(t, e, f), "above fs.nr_open = 1048576", "steps[4].nofile", true)
	e = withStep(lab.Step{Sysctl: map[string]string{"fs.nr_open": "10000"}})
	refusal(t, make1(t, e, f), "nofile 20000 is above fs.nr_open = 10000", "steps[3].nofile", true)
	e.Steps[3].Nofile, e.Server.Nofile = 0, 20000
	refusal(t, make1(t, e, f), `state "tried": 20000 open files are above fs.nr_open = 10000 in force there`, "server.nofile", true)
}

func TestRangeAndFirstPortAreHeldTogether(t *testing.T) {
	f := allowing(map[string]string{"net.ipv4.ip_unprivileged_port_start": "1024"})
	refusal(t, make1(t, withStep(sysctls("net.ipv4.ip_unprivileged_port_start", "40000")), f), "begins below", "steps[4].sysctl.net.ipv4.ip_unprivileged_port_start", true)
	lower := lab.Step{Sysctl: map[string]string{"net.ipv4.ip_unprivileged_port_start": "500", ephemeral: "600 65535"}}
	if p := make1(t, withStep(lower), f); len(p.Fatal()) > 0 {
		t.Errorf("both lowered: %v", p.Fatal())
	}
}

func TestCongestionControlIsOneOfThoseThereAre(t *testing.T) {
	f := allowing(map[string]string{"net.ipv4.tcp_congestion_control": "cubic", "net.ipv4.tcp_available_congestion_control": "reno cubic"})
	r := refusal(t, make1(t, withStep(sysctls("net.ipv4.tcp_congestion_control", "bbr")), f), "has no congestion control bbr, only reno, cubic", "steps[4].sysctl.net.ipv4.tcp_congestion_control", true)
	if !strings.Contains(r.Cure, "modprobe tcp_bbr") {
		t.Errorf("cure %q", r.Cure)
	}
	if p := make1(t, withStep(sysctls("net.ipv4.tcp_congestion_control", "reno")), f); len(p.Refused) > 0 {
		t.Errorf("refused: %v", p.Refused)
	}
}

func TestDirectivesOfAModuleNeedItInTheBuild(t *testing.T) {
	e := withStep(directives("gzip_static", "on"))
	r := refusal(t, make1(t, e), `build "nginx" lacks the module gzip_static`, "steps[4].nginx.gzip_static", true)
	if !strings.Contains(r.Cure, "add gzip_static to the modules") {
		t.Errorf("cure %q", r.Cure)
	}
	for name, change := range map[string]func(*lab.Recipe){
		"module": func(r *lab.Recipe) { r.Modules = append(slices.Clone(r.Modules), "gzip_static") },
		"flag":   func(r *lab.Recipe) { r.Configure = []string{"--with-http_gzip_static_module"} },
	} {
		e := withStep(directives("gzip_static", "on"))
		recipe := e.Builds["nginx"]
		change(&recipe)
		e.Builds = map[string]lab.Recipe{"nginx": recipe}
		if p := make1(t, e); len(p.Refused) > 0 {
			t.Errorf("with the %s: %v", name, p.Refused)
		}
	}
}

func TestNotesTellWhatAKnobDoesNotDo(t *testing.T) {
	e := quick()
	e.Capacity = nil
	e.Hosts = []lab.Host{
		{Name: "web", Address: "10.0.0.1", Roles: []lab.Role{lab.RoleTarget}},
		{Name: "load", Address: "10.0.0.2", Roles: []lab.Role{lab.RoleLoad}},
	}
	e.Steps = []lab.Step{{Name: "default"}, {Name: "both", On: []lab.Role{lab.RoleTarget, lab.RoleLoad}, Sysctl: map[string]string{ephemeral: "2048 65535", "net.core.somaxconn": "1024"}}}
	web, loader := allowing(nil), allowing(nil)
	web.Host, web.BootID, loader.Host, loader.BootID = "web", "a", "load", "b"
	p := make1(t, e, web, loader)
	for _, c := range []struct {
		host lab.HostName
		knob string
		want bool
	}{{"web", ephemeral, true}, {"load", ephemeral, false}, {"web", "net.core.somaxconn", false}, {"load", "net.core.somaxconn", true}} {
		for _, change := range p.Changes[c.host] {
			if change.Knob.Name == c.knob && strings.Contains(change.Note, "no effect on a") != c.want {
				t.Errorf("%s on %s: note %q", c.knob, c.host, change.Note)
			}
		}
	}
}

func TestDefaultBacklogAboveTheQueueIsSaid(t *testing.T) {
	e := withStep(lab.Step{})
	e.Steps = []lab.Step{{Name: "default"}, {Name: "short queue", Sysctl: map[string]string{"net.core.somaxconn": "128"}}}
	warning(t, make1(t, e), `state "short queue": nginx's own listen backlog 511 is cut to net.core.somaxconn = 128`, "steps[1].sysctl.net.core.somaxconn")
}

// TestADirectiveThatIsTakenOutBoundsNoMore: what an earlier step gave it is not in force.
func TestADirectiveThatIsTakenOutBoundsNoMore(t *testing.T) {
	e := withStep(lab.Step{Remove: []string{"worker_connections"}})
	e.Steps = []lab.Step{{Name: "default"}, {Name: "many", Nginx: map[string]string{"events.worker_connections": "65535"}},
		{Name: "few", Remove: []string{"worker_connections"}}}
	e.Load[0].Connections = []int{1500}
	p := make1(t, e)
	refusal(t, p, `1500 connections are more than 1 workers with 1024 worker_connections can hold (state "default", "few")`, "load[0].connections", true)
	warning(t, p, "worker_connections 65535 is above the 20000 open files", "steps[1].nginx.events.worker_connections")
	if warned(p, `state "few": worker_connections`) {
		t.Errorf("warnings %v", p.Warnings)
	}
	e.Steps[1].Nginx = map[string]string{"listen.backlog": "1024"}
	e.Steps[2] = lab.Step{Name: "few", Sysctl: map[string]string{"net.core.somaxconn": "128"}, Remove: []string{"listen.backlog"}}
	warning(t, make1(t, e), "nginx's own listen backlog 511 is cut to net.core.somaxconn = 128", "steps[2].sysctl.net.core.somaxconn")
}

func TestQuotedNumbersAreNumbers(t *testing.T) {
	e := withStep(directives("worker_rlimit_nofile", "'65535'"))
	refusal(t, make1(t, e), "worker_rlimit_nofile 65535 is above the hard limit", "steps[4].nginx.worker_rlimit_nofile", true)
	e = withStep(directives("worker_rlimit_nofile", `"100"`))
	warning(t, make1(t, e), "worker_connections 16384 is above the 100 open files", "steps[3].nginx.events.worker_connections")
}

func TestProcessLimitsAreHeldAgainstTheHardOne(t *testing.T) {
	f := machine("here")
	f.Limits = map[string]lab.Rlimit{"nproc": {Soft: 100, Hard: 200}}
	r := refusal(t, make1(t, withStep(lab.Step{Nproc: 201}), f), "nproc 201 is above the hard limit of 200 processes", "steps[4].nproc", true)
	if !strings.Contains(r.Cure, "at most 200") {
		t.Errorf("cure %q", r.Cure)
	}
	e := withStep(lab.Step{})
	e.Server.Nproc, e.Cannot = 201, lab.CannotSkip
	refusal(t, make1(t, e, f), "nproc 201", "server.nproc", true)
	if p := make1(t, withStep(lab.Step{Nproc: 200}), f); len(p.Refused) > 0 {
		t.Errorf("refused: %v", p.Refused)
	}
	f.RaiseNofile = true
	if p := make1(t, withStep(lab.Step{Nproc: 201}), f); len(p.Refused) > 0 {
		t.Errorf("refused although it may be raised: %v", p.Refused)
	}
}

// TestProcessLimitOfRootIsSaidToBindNoWorkers: a limit that nobody is held to must not look like one that was measured.
func TestProcessLimitOfRootIsSaidToBindNoWorkers(t *testing.T) {
	e := withStep(lab.Step{Nproc: 100})
	warning(t, make1(t, e), "nproc 100 does not bound how many workers run: the agent is root on here, which starts them, and the kernel does not hold root to it; it bounds the threads (thread_pool) that workers start as nginx's own user", "steps[4].nproc")
	e.Steps[4].Nginx = map[string]string{"user": "root root"}
	warning(t, make1(t, e), "with `user root` it has no effect at all", "steps[4].nproc")
	if p := make1(t, e, ordinary(machine("here"))); warned(p, "nproc 100") {
		t.Errorf("warnings %v", p.Warnings)
	}
}

// TestLimitsNowAreTheAgents: a server inherits them.
func TestLimitsNowAreTheAgents(t *testing.T) {
	f := machine("here")
	f.Limits = map[string]lab.Rlimit{"nproc": {Soft: -1, Hard: -1}, "nofile": {Soft: 1024, Hard: 20000}}
	e := withStep(lab.Step{Nproc: 100})
	now := map[string]string{}
	for _, c := range make1(t, e, f).Changes["here"] {
		now[c.Step+" "+c.Knob.Kind] = c.Now.Text
	}
	if now["tried nproc"] != "unlimited" || now["sockets nofile"] != "1024" {
		t.Errorf("now %v", now)
	}
}

// TestWhatDoesNothingIsSaid: one published file has backlog= on server_name.
func TestWhatDoesNothingIsSaid(t *testing.T) {
	e := withStep(directives("server.server_name", "localhost backlog=204800"))
	e.Steps[3].Nginx = nil
	warning(t, make1(t, e), "backlog= on server_name is a name, not a backlog: the listening socket keeps its own; write listen.backlog: 204800; in force is 511", "steps[4].nginx.server.server_name")
	warning(t, make1(t, withStep(lab.Step{Nginx: map[string]string{"worker_processes": "3", "worker_cpu_affinity": "1"}})), "1 masks for 3 workers", "steps[4].nginx.worker_cpu_affinity")
	refusal(t, make1(t, withStep(directives("worker_cpu_affinity", "100"))), "has CPU 2, the server may use [0]", "steps[4].nginx.worker_cpu_affinity", true)
}

func TestValuesThatTheKernelRoundsAreRefusedOrSaid(t *testing.T) {
	f := allowing(map[string]string{"net.core.rps_sock_flow_entries": "0"})
	e := withStep(sysctls("net.core.rps_sock_flow_entries", "1000"))
	refusal(t, make1(t, e, f), "becomes 1024", "steps[4].sysctl.net.core.rps_sock_flow_entries", true)
	e.Steps[4].BestEffort = true
	p := make1(t, e, f)
	if len(p.Refused) > 0 {
		t.Fatalf("refused %v", p.Refused)
	}
	last := p.Changes["here"][len(p.Changes["here"])-1]
	if !strings.Contains(last.Note, "becomes 1024") {
		t.Errorf("note %q", last.Note)
	}
}

// TestWorkersAreExpectedTheLimitThatWins: nofile is not looked for on workers that set another limit themselves.
func TestWorkersAreExpectedTheLimitThatWins(t *testing.T) {
	e := withStep(lab.Step{Nofile: 1000, Nginx: map[string]string{"worker_rlimit_nofile": "2000"}})
	for _, s := range make1(t, e).Servings {
		expects := slices.ContainsFunc(s.Expect, func(e lab.Setting) bool { return e.Knob.Kind == lab.KnobNofile })
		if want := s.State == "sockets"; expects != want {
			t.Errorf("state %q expects nofile: %v", s.State, expects)
		}
	}
}

func TestStatesThatShareAServerAreNamed(t *testing.T) {
	e := withStep(sysctls("net.ipv4.tcp_fin_timeout", "15"))
	e.Server.Restart = lab.RestartNeeded
	f := allowing(map[string]string{"net.ipv4.tcp_fin_timeout": "60"})
	p := make1(t, e, f)
	warning(t, p, `How much servers differ among themselves is not sampled there`, "server.restart")
	warning(t, p, `among the states "default", "control"; and among "sockets", "tried"; every other`, "server.restart")
	e.Server.Restart = lab.RestartAlways
	if p := make1(t, e, f); warned(p, "one server can go on") {
		t.Error("said of fresh servers")
	}
	e = quick()
	e.Repeat.Control, e.Server.Restart = false, lab.RestartNeeded
	warning(t, make1(t, e), "no two states can share a server here", "server.restart")
}
