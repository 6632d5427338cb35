package plan_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"ngxlab/experiments"
	"ngxlab/lab"
)

// withStep is the quick study with one step of the given knobs at the end.
func withStep(step lab.Step) lab.Experiment {
	e := quick()
	step.Name = "tried"
	e.Steps = append(e.Steps[:4:4], step)
	e.Capacity = nil
	return e
}

func sysctls(name, value string) lab.Step { return lab.Step{Sysctl: map[string]string{name: value}} }
func directives(name, value string) lab.Step {
	return lab.Step{Nginx: map[string]string{name: value}}
}

func TestKnobsThatAHostCannotHaveAreRefusedWithReasonAndCure(t *testing.T) {
	for _, c := range []struct {
		step         lab.Step
		reason, path string
		cure         string
	}{
		{sysctls("net.core.somaxcon", "1024"), "here has no sysctl net.core.somaxcon (Linux 6.18.44)", "sysctl.net.core.somaxcon", "did you mean net.core.somaxconn?"},
		{sysctls("net.nowhere.near_anything_else", "1"), "has no sysctl", "sysctl.net.nowhere.near_anything_else", "kernel module"},
		{sysctls("net.ipv4.tcp_tw_recycle", "1"), "removed in Linux 4.12", "sysctl.net.ipv4.tcp_tw_recycle", "tcp_tw_reuse"},
		{sysctls("net.ipv4.ip_forward", "1"), "resets every net.ipv4.conf.*.forwarding", "sysctl.net.ipv4.ip_forward", "leave it out"},
		{sysctls("fs.file-max", "9999999"), "does not let fs.file-max be written", "sysctl.fs.file-max", "machine that owns the kernel"},
		{lab.Step{Nofile: 200000}, "nofile 200000 is above the hard limit of 20000 open files on here", "nofile", "at most 20000"},
		{lab.Step{Nofile: 2000000}, "above fs.nr_open = 1048576", "nofile", "at most 1048576"},
		{directives("worker_rlimit_nofile", "65535"), "worker_rlimit_nofile 65535 is above the hard limit", "nginx.worker_rlimit_nofile", "at most 20000"},
		{directives("events.worker_conections", "1"), "worker_connections", "nginx.events.worker_conections", "correct the name"},
	} {
		e := withStep(c.step)
		r := refusal(t, make1(t, e), c.reason, "steps[4]."+c.path, true)
		if !strings.Contains(r.Cure, c.cure) {
			t.Errorf("%s: cure %q does not say %q", c.path, r.Cure, c.cure)
		}
		e.Cannot = lab.CannotSkip
		refusal(t, make1(t, e), c.reason, "steps[4]."+c.path, false)
		e.Cannot, e.Steps[4].Cannot = lab.CannotFail, lab.CannotSkip
		if p := make1(t, e); len(p.Fatal()) > 0 || !warned(p, `step "tried" is left out`) || len(p.States) != 5 {
			t.Errorf("%s skipped by its step: fatal %v, warnings %v, %d states", c.path, p.Fatal(), p.Warnings, len(p.States))
		}
	}
}

func TestMistakesOfTheFileAreFatalWhateverThePolicy(t *testing.T) {
	for _, c := range []struct {
		step         lab.Step
		reason, path string
	}{
		{sysctls("net.core.somaxconn", "-5"), `"-5" is not a number from 0 to`, "sysctl.net.core.somaxconn"},
		{sysctls("net.ipv4.tcp_rmem", "4096"), "3 rising numbers", "sysctl.net.ipv4.tcp_rmem"},
		{sysctls("net.ipv4.ip_local_port_range", "500 65535"), "may not begin below", "sysctl.net.ipv4.ip_local_port_range"},
		{lab.Step{Build: "nginz"}, `no build "nginz"`, "build"},
	} {
		e := withStep(c.step)
		e.Cannot = lab.CannotSkip
		refusal(t, make1(t, e), c.reason, "steps[4]."+c.path, true)
	}
}

func TestPrivilegedStepsAreNamedForAUserWithout(t *testing.T) {
	p := make1(t, quick(), ordinary(machine("here")))
	r := refusal(t, p, `step "kernel" needs root on here`, "steps[4].sysctl.net.core.somaxconn", false)
	if r.Step != "kernel" || r.Host != "here" || r.Cure != "run as root" {
		t.Errorf("refusal is of step %q on %q, cure %q", r.Step, r.Host, r.Cure)
	}
	if len(p.Fatal()) > 0 || !warned(p, `step "kernel" is left out`) {
		t.Errorf("fatal %v, warnings %v", p.Fatal(), p.Warnings)
	}
	if _, left := p.State("kernel"); left || len(p.States) != 5 || p.Capacity.State != "sockets" {
		t.Errorf("kernel still planned: %v, %d states, capacity in %q", left, len(p.States), p.Capacity.State)
	}
	if len(p.Original.Settings["here"]) != 0 {
		t.Errorf("knobs left on the host: %v", p.Original.Settings)
	}
	already := withStep(sysctls("net.ipv4.tcp_rmem", "4096 131072 6291456"))
	if p := make1(t, already, ordinary(machine("here"))); len(p.Refused) > 0 {
		t.Errorf("a value that is there already is refused: %v", p.Refused)
	}
}

func TestLadderStaysConsistentWhenStepsFallAway(t *testing.T) {
	e := quick()
	e.Steps[2] = lab.Step{Name: "gone", Cannot: lab.CannotSkip, Sysctl: map[string]string{"net.ipv4.tcp_tw_recycle": "1"}}
	e.Claims = []lab.Claim{{Name: "gone helps", State: "gone", Over: "default"}}
	p := make1(t, e)
	if sockets, _ := p.State("sockets"); sockets.Over != "log off" || slices.Contains(sockets.Steps, "gone") {
		t.Errorf("sockets has steps %v over %q", sockets.Steps, sockets.Over)
	}
	if !warned(p, `claim "gone helps" cannot be tested`) {
		t.Errorf("warnings %v", p.Warnings)
	}
	e.Ladder = lab.Ladder{Kind: lab.Listed, Lists: [][]string{{"gone"}, {"log off"}, {"log off", "gone"}, {"gone", "kernel"}}}
	p = make1(t, e)
	var names []string
	for _, s := range p.States {
		names = append(names, s.Name)
	}
	if want := []string{"default", "log off", "kernel", "control"}; !slices.Equal(names, want) {
		t.Errorf("listed states %v, want %v", names, want)
	}
}

func TestOneKnobOfSeveralMayFallAway(t *testing.T) {
	e := withStep(lab.Step{Cannot: lab.CannotSkip, Sysctl: map[string]string{"net.ipv4.tcp_tw_recycle": "1", "net.core.somaxconn": "1024"}})
	p := make1(t, e)
	tried, found := p.State("tried")
	if !found || len(p.Fatal()) > 0 {
		t.Fatalf("the step was dropped: %v", p.Refused)
	}
	for _, s := range tried.Settings["here"] {
		if s.Knob.Name == "net.ipv4.tcp_tw_recycle" {
			t.Error("the refused knob is still set")
		}
	}
}

func TestServerSectionIsCheckedLikeASteps(t *testing.T) {
	e := quick()
	e.Server.Nginx, e.Server.Nofile = map[string]string{"events.worker_conections": "1"}, 30000
	e.Cannot = lab.CannotSkip
	p := make1(t, e)
	refusal(t, p, "worker_connections", "server.nginx.events.worker_conections", true)
	refusal(t, p, "above the hard limit", "server.nofile", true)
	noBuild := quick()
	noBuild.Server.Build = "nginz"
	refusal(t, make1(t, noBuild), `no build "nginz"`, "server.build", true)
	url := quick()
	url.Server.Site = "hello"
	refusal(t, make1(t, url), "/hello", "server", true)
}

func TestConnectionsAreHeldAgainstWorkerConnections(t *testing.T) {
	e := quick()
	e.Load[0].Connections = []int{2000}
	r := refusal(t, make1(t, e), "2000 connections are more than 1 workers with 1024 worker_connections", "load[0].connections", true)
	if !strings.Contains(r.Reason, `"default", "log off", "file cache"`) || strings.Contains(r.Reason, "sockets") {
		t.Errorf("states are not told: %s", r.Reason)
	}
	e.Load[0].ExpectErrors = true
	if p := make1(t, e); len(p.Fatal()) > 0 || !warned(p, "2000 connections per worker") {
		t.Errorf("expected errors: fatal %v, warnings %v", p.Fatal(), p.Warnings)
	}
	e = quick()
	e.Load[0].Connections = []int{956, 957}
	p := make1(t, e)
	if len(p.Fatal()) > 0 || !warned(p, "957 connections per worker; nginx closes connections by itself above 956 of 1024") || warned(p, "956 connections per worker;") {
		t.Errorf("fatal %v, warnings %v", p.Fatal(), p.Warnings)
	}
	e = quick()
	e.Load[0].Connections, e.Server.CPUs, e.Load[0].Pin, e.Load[1].Pin = []int{1500}, "", false, false
	e.Server.Nginx = map[string]string{"worker_processes": "auto"}
	if p := make1(t, e); len(p.Fatal()) > 0 {
		t.Errorf("two workers of 1024 cannot hold 1500: %v", p.Fatal())
	}
	e.Server.CPUs = "0"
	refusal(t, make1(t, e), "more than 1 workers", "load[0].connections", true)
	e = quick()
	e.Server.Nofile, e.Load[0].Connections = 64, []int{100}
	refusal(t, make1(t, e), "100 connections per worker are more than the 64 open files", "load[0].connections", true)
}

func TestLimitsOfToolsAreRefused(t *testing.T) {
	e := quick()
	e.Load[1].Connections, e.Load[1].ExpectErrors = []int{20001}, true
	refusal(t, make1(t, e), "20001 connections in one process", "load[1].connections", true)
	e = quick()
	e.Load[1].Requests, e.Load[1].Duration = 50, lab.Duration{}
	refusal(t, make1(t, e), "50 requests are fewer than 100 connections", "load[1].requests", true)
}

// TestWidenedPortRangeCounts follows the cure of a refusal: the range of the first step holds in every state, that of a
// later one where capacity is measured in it.
func TestWidenedPortRangeCounts(t *testing.T) {
	wide := map[string]string{"net.ipv4.ip_local_port_range": "1024 65535"}
	e := quick()
	e.Load = e.Load[:1]
	e.Load[0].Connections, e.Load[0].Processes, e.Load[0].ExpectErrors = []int{30000}, 4, true
	r := refusal(t, make1(t, e), "30000 connections from one address of here", "load[0].connections", true)
	if !strings.Contains(r.Cure, "in the first step") {
		t.Errorf("cure %q", r.Cure)
	}
	e.Steps[0].Sysctl = wide
	if p := make1(t, e); len(p.Fatal()) > 0 {
		t.Errorf("with the range of the first step: %v", p.Fatal())
	}
	e = quick()
	e.Capacity.Connections, e.Capacity.Nginx = []int{0, 29000}, map[string]string{"worker_processes": "2"}
	refusal(t, make1(t, e), "29000 connections are above ports = 28232", "capacity.connections", true)
	e.Steps[4].Sysctl = wide
	if p := make1(t, e); len(p.Fatal()) > 0 {
		t.Errorf("with the range of the state: %v", p.Fatal())
	}
}

func TestPortInUseIsRefused(t *testing.T) {
	busy := machine("here")
	busy.PortsInUse = []int{22, 8081, 8082}
	p := make1(t, quick(), busy)
	refusal(t, p, "port 8081 on here is in use", "server.port", true)
	refusal(t, p, "port 8082 on here is in use", "server.status_port", true)
}

func TestMissingPackagesAreInstalledOrRefusedByName(t *testing.T) {
	bare := machine("here")
	bare.Compiler, bare.Commands, bare.Packages = "", nil, nil
	p := make1(t, quick(), bare)
	for _, want := range []string{"apache2-utils", "gcc", "libpcre2-dev", "make", "wrk", "zlib1g-dev"} {
		if !slices.Contains(p.Packages["here"], want) {
			t.Errorf("%s is not to be installed: %v", want, p.Packages)
		}
	}
	if len(p.Fatal()) > 0 {
		t.Errorf("refused: %v", p.Fatal())
	}
	bare.CanInstall = false
	p = make1(t, quick(), bare) // root, but no apt-get
	if r := refusal(t, p, "nothing can be installed: no apt-get, dnf or yum", "builds.nginx", true); !strings.Contains(r.Cure, "by hand") {
		t.Errorf("cure %q", r.Cure)
	}
	bare = ordinary(bare)
	p = make1(t, quick(), bare)
	if r := refusal(t, p, "(to build nginx)", "builds.nginx", true); !strings.Contains(r.Cure, "apt-get install gcc libc6-dev make libpcre2-dev zlib1g-dev") {
		t.Errorf("cure %q", r.Cure)
	}
	refusal(t, p, "wrk is not installed on here", "load[0].tool", true)
	refusal(t, p, "ab is not installed on here", "load[1].tool", true)
	if p.Packages != nil {
		t.Errorf("still to be installed: %v", p.Packages)
	}
}

func TestValuesThatOthersCutAreWarnedOf(t *testing.T) {
	e := withStep(lab.Step{Nginx: map[string]string{"listen.backlog": "65535", "worker_connections": "30000"},
		Sysctl: map[string]string{"net.ipv4.tcp_mem": "10 20 99999999"}})
	refusal(t, make1(t, e), "backlog 65535 is cut to net.core.somaxconn = 4096", "steps[4].nginx.listen.backlog", true)
	e.Steps[4].BestEffort = true
	p := make1(t, e)
	for _, want := range []string{"backlog 65535 is cut to net.core.somaxconn = 4096", "worker_connections 30000 is above the 20000 open files", "the host has 24576 MiB"} {
		if !warned(p, want) {
			t.Errorf("no warning that %s: %v", want, p.Warnings)
		}
	}
	e.Steps[4].Sysctl["net.core.somaxconn"] = "65535"
	e.Steps[4].BestEffort = false
	if p := make1(t, e); warned(p, "is cut to") || len(p.Fatal()) > 0 {
		t.Error("warned or refused although somaxconn is raised with the backlog")
	}
}

func TestChangesTellFromWhatToWhat(t *testing.T) {
	e := quick()
	e.Steps[4].Sysctl["net.ipv4.tcp_rmem"] = "4096 131072 6291456"
	var got []string
	for _, c := range make1(t, e).Changes["here"] {
		now := c.Now.Text
		if c.Now.Absent {
			now = "-"
		}
		line := c.State + ": " + c.Knob.String() + " " + now + " → " + c.To.Text + " [" + c.Step + "] " + c.Note
		if c.Same {
			line += "same"
		}
		got = append(got, strings.TrimSpace(line))
	}
	want := []string{
		"log off: nginx access_log logs/access.log → off [log off]",
		"file cache: nginx open_file_cache - → max=100 [file cache]",
		"sockets: nofile 20000 → 20000 [sockets] same",
		"sockets: nginx events.worker_connections 1024 → 16384 [sockets]",
		"sockets: nginx listen.backlog - → 4096 [sockets]",
		"sockets: nginx listen.reuseport - → true [sockets]",
		"kernel: sysctl net.core.somaxconn 4096 → 65535 [kernel] needs root",
		"kernel: sysctl net.ipv4.tcp_syncookies 1 → 0 [kernel] needs root; weakens security: no defence against SYN floods",
		"kernel: sysctl net.ipv4.tcp_rmem 4096\t131072\t6291456 → 4096 131072 6291456 [kernel] same",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestCapacityKnowsItsLimits(t *testing.T) {
	c := make1(t, quick()).Capacity
	if c.Holders != 2 || !c.SharedKernel || c.State != "kernel" || c.Ramps != 3 || c.Servings[lab.HoldIdle].Config == "" {
		t.Errorf("capacity is %+v", c)
	}
	if !slices.IsSortedFunc(c.Limits, func(a, b lab.CapacityLimit) int { return int(a.Connections - b.Connections) }) {
		t.Errorf("limits are not sorted: %v", c.Limits)
	}
	at := map[string]int64{}
	for _, l := range c.Limits {
		at[l.Name] = l.Connections
	}
	for name, want := range map[string]int64{
		"worker_connections": 2 * (16384*15/16 - 4), "hard nofile": 2 * (20000 - 64), "holders' nofile": 2 * (20000 - 64),
		"ports": 28232, "conntrack_max": 131072, "fs.file-max": 1233088, "tcp_mem": 283689,
	} {
		if at[name] != want {
			t.Errorf("%s is %d, want %d", name, at[name], want)
		}
	}
}

func TestCapacityBeyondALimitIsRefused(t *testing.T) {
	e := quick()
	e.Capacity.Nginx = nil
	p := make1(t, e)
	refusal(t, p, "20000 connections are above worker_connections = 15356", "capacity.connections", true)
	refusal(t, p, "20000 connections are above hard nofile = 19936", "capacity.connections", true)
	e = quick()
	e.Capacity.Connections = []int{0, 30000}
	refusal(t, make1(t, e), "above ports = 28232", "capacity.connections", true)
	tight := machine("here")
	tight.Sysctls["net.netfilter.nf_conntrack_max"] = "16384"
	if p := make1(t, quick(), tight); len(p.Fatal()) > 0 || !warned(p, "above conntrack_max = 8192") {
		t.Errorf("conntrack that tracks nothing: fatal %v, warnings %v", p.Fatal(), p.Warnings)
	}
	tight.Sysctls["net.netfilter.nf_conntrack_count"] = "12"
	refusal(t, make1(t, quick(), tight), "above conntrack_max = 8192", "capacity.connections", true)
}

// TestQuickstartOfTheLibraryIsPlanned holds that the shipped study is possible here, with and without privilege, and that
// everything said about it leads to a line of its file.
func TestQuickstartOfTheLibraryIsPlanned(t *testing.T) {
	text, err := experiments.Open("quickstart")
	if err != nil {
		t.Fatal(err)
	}
	e, err := experiments.Decode("quickstart.yaml", bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	f := machine("here")
	for _, name := range []string{"net.ipv4.tcp_max_syn_backlog", "net.ipv4.tcp_fin_timeout"} {
		f.Sysctls[name], f.SysctlWritable[name] = "60", true
	}
	p := make1(t, e, f)
	if len(p.Refused) > 0 || len(p.Warnings) > 0 || len(p.States) != 6 {
		t.Errorf("as root: %d states, refused %v, warned %v", len(p.States), p.Refused, p.Warnings)
	}
	if p.Estimate.Minutes() > 7 {
		t.Errorf("the quickstart would take %v", p.Estimate)
	}
	p = make1(t, e, ordinary(f))
	if len(p.Fatal()) > 0 || len(p.Refused) != 3 || len(p.States) != 5 {
		t.Errorf("as a user: %d states, refused %v", len(p.States), p.Refused)
	}
	for _, r := range p.Refused {
		if at, exact := e.Where[r.Path]; !exact || at.Line == 0 {
			t.Errorf("%q is not in the file", r.Path)
		}
	}
}
