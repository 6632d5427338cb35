package plan_test

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"ngxlab/experiments"
	"ngxlab/lab"
)

// container is a container on a machine of the given CPUs, all of which it may use.
func container(name lab.HostName, address string, cpus ...int) lab.Facts {
	f := machine(name)
	f.Container, f.BootID, f.Network, f.Address = "docker", "boot of the machine", "net:["+string(name)+"]", address
	f.CPUs, f.Cores = cpus, len(cpus)
	f.Sysctls = maps.Clone(f.Sysctls)
	for _, global := range []string{"net.core.rmem_max", "net.ipv4.tcp_mem"} {
		delete(f.Sysctls, global)
		delete(f.SysctlWritable, global)
	}
	return f
}

// labOf is the quick study on one target and load hosts, with the facts of containers of one machine.
func labOf(cpus []int, load ...lab.HostName) (lab.Experiment, []lab.Facts) {
	e := quick()
	e.Hosts = []lab.Host{{Name: "web", Docker: &lab.DockerHost{}, Roles: []lab.Role{lab.RoleTarget}}}
	all := []lab.Facts{container("web", "172.30.0.2", cpus...)}
	for i, name := range load {
		e.Hosts = append(e.Hosts, lab.Host{Name: name, Docker: &lab.DockerHost{}, Roles: []lab.Role{lab.RoleLoad}})
		all = append(all, container(name, fmt.Sprintf("172.30.0.%d", 3+i), cpus...))
	}
	return e, all
}

// url is what the measured processes of a load point ask for.
func url(t *testing.T, p lab.Plan, point int) string {
	t.Helper()
	for _, commands := range p.Drivings[point].Measured {
		argv := commands[0].Argv
		return argv[len(argv)-1]
	}
	t.Fatal("no command")
	return ""
}

func TestLoadGoesWhereTheTargetIsReached(t *testing.T) {
	web := func(h lab.Host) []lab.Host {
		h.Name, h.Roles = "web", []lab.Role{lab.RoleTarget}
		return []lab.Host{h, {Name: "gen", Address: "10.0.0.2", Roles: []lab.Role{lab.RoleLoad}}}
	}
	linked := machine("web")
	linked.Address = "10.0.0.7"
	for name, c := range map[string]struct {
		host         lab.Host
		facts        lab.Facts
		url, listens string
	}{
		"address of the file":     {lab.Host{Address: "10.0.0.1"}, machine("web"), "http://10.0.0.1:8081/file", "listen 8081;"},
		"address found":           {lab.Host{Address: "alias"}, linked, "http://10.0.0.7:8081/file", "listen 8081;"},
		"load_address":            {lab.Host{Address: "alias", LoadAt: "192.168.1.1"}, linked, "http://192.168.1.1:8081/file", "listen 8081;"},
		"IPv6":                    {lab.Host{Address: "fd00::1"}, machine("web"), "http://[fd00::1]:8081/file", "listen [::]:8081 ipv6only=off;"},
		"this machine":            {lab.Host{Local: true, LoadAt: "192.168.1.2"}, machine("web"), "http://192.168.1.2:8081/file", "listen 127.0.0.1:8081;\n        listen 192.168.1.2:8081;"},
		"this machine, with IPv6": {lab.Host{Local: true, LoadAt: "fd00::2"}, machine("web"), "http://[fd00::2]:8081/file", "listen 127.0.0.1:8081;\n        listen [fd00::2]:8081;"},
	} {
		e := quick()
		e.Hosts = web(c.host)
		p := make1(t, e, c.facts, machine("gen"))
		if len(p.Fatal()) > 0 {
			t.Errorf("%s: refused %v", name, p.Fatal())
			continue
		}
		if got := url(t, p, 0); got != c.url || !strings.Contains(p.Servings[0].Config, c.listens) {
			t.Errorf("%s: load goes to %s, want %s; configuration\n%s", name, got, c.url, p.Servings[0].Config)
		}
		if want := strings.Trim(strings.TrimSuffix(strings.TrimPrefix(c.url, "http://"), ":8081/file"), "[]"); p.LoadAddress("web") != want {
			t.Errorf("%s: connections are held to %q, want %q", name, p.LoadAddress("web"), want)
		}
	}
}

func TestLoadOfATargetByItselfGoesThroughLoopback(t *testing.T) {
	e := quick()
	e.Hosts = []lab.Host{{Name: "web", Address: "10.0.0.1", Roles: []lab.Role{lab.RoleTarget, lab.RoleLoad}}, {Name: "gen", Address: "10.0.0.2", Roles: []lab.Role{lab.RoleLoad}}}
	e.Load = slices.Clone(e.Load[:1])
	e.Load[0].Hosts, e.Load[0].Connections = []int{1, 2}, []int{10}
	p := make1(t, e, machine("web"), machine("gen"))
	if one, two := url(t, p, 0), url(t, p, 1); one != "http://127.0.0.1:8081/file" || two != "http://10.0.0.1:8081/file" {
		t.Errorf("alone %s, together %s", one, two)
	}
	if c := p.Capacity; c.SharedKernel || !slices.Equal(c.LoadHosts, []lab.HostName{"gen"}) {
		t.Errorf("connections are held by %v, on a shared kernel: %v", c.LoadHosts, c.SharedKernel)
	}
}

func TestTargetThatLoadCannotReachIsRefused(t *testing.T) {
	unknown, alias := machine("web"), machine("web")
	alias.Address = "127.0.0.1"
	for _, c := range []struct {
		host               lab.Host
		facts              lab.Facts
		reason, path, cure string
	}{
		{lab.Host{Local: true}, machine("web"), "load on web comes from gen, and the server of this machine is open to itself only", "hosts.web", "load_address: ADDRESS"},
		{lab.Host{Address: "localhost"}, machine("web"), "web is at localhost, which on gen is that host itself", "hosts.web", "at which gen reaches it"},
		{lab.Host{Address: "127.0.1.1"}, machine("web"), "web is at 127.0.1.1", "hosts.web", "load_address"},
		{lab.Host{Address: "::1"}, machine("web"), "web is at ::1", "hosts.web", "load_address"},
		{lab.Host{Address: "jumped"}, alias, "web is at 127.0.0.1", "hosts.web", "load_address"},
		{lab.Host{Local: true, LoadAt: "127.0.0.1"}, machine("web"), "web is at 127.0.0.1", "hosts.web.load_address", "load_address"},
		{lab.Host{Address: "fe80::1%eth0"}, machine("web"), "no address with a zone", "hosts.web", "load_address"},
		{lab.Host{Docker: &lab.DockerHost{}}, unknown, "where gen reaches web is not known", "hosts.web", "load_address"},
	} {
		e := quick()
		c.host.Name, c.host.Roles = "web", []lab.Role{lab.RoleTarget}
		e.Hosts = []lab.Host{c.host, {Name: "gen", Address: "10.0.0.2", Roles: []lab.Role{lab.RoleLoad}}}
		if r := refusal(t, make1(t, e, c.facts, machine("gen")), c.reason, c.path, true); !strings.Contains(r.Cure, c.cure) {
			t.Errorf("%s: cure %q does not say %q", c.reason, r.Cure, c.cure)
		}
	}
	e := quick()
	e.Hosts[0].Roles = []lab.Role{lab.RoleTarget, lab.RoleLoad}
	e.Hosts = append(e.Hosts, lab.Host{Name: "gen", Address: "10.0.0.2", Roles: []lab.Role{lab.RoleLoad}})
	for i := range e.Load {
		e.Load[i].Hosts = []int{1}
	}
	e.Capacity = nil
	if p := make1(t, e, machine("here"), machine("gen")); len(p.Fatal()) > 0 {
		t.Errorf("a load host that no load point uses: %v", p.Fatal())
	}
}

func TestOneMachineUnderTwoNamesIsRefused(t *testing.T) {
	e := quick()
	e.Hosts = []lab.Host{{Name: "web", Address: "10.0.0.1", Roles: []lab.Role{lab.RoleTarget}}, {Name: "gen", Address: "web.example.org", Roles: []lab.Role{lab.RoleLoad}}}
	gen := machine("gen")
	gen.BootID = "boot of web"
	if r := refusal(t, make1(t, e, machine("web"), gen), "web and gen are the same machine", "hosts.gen", true); !strings.Contains(r.Cure, "roles: [target, load]") {
		t.Errorf("cure %q", r.Cure)
	}
}

func TestHostsOnOneKernelAreNamed(t *testing.T) {
	e, all := labOf([]int{0, 1}, "gen1", "gen2", "gen3")
	p := make1(t, e, all...)
	if len(p.Fatal()) > 0 {
		t.Fatal(p.Fatal())
	}
	if want := [][]lab.HostName{{"web", "gen1", "gen2", "gen3"}}; !reflect.DeepEqual(p.Kernels, want) {
		t.Errorf("kernels %v", p.Kernels)
	}
	if !warned(p, "web, gen1, gen2 and gen3 are containers of one machine, which serves target and load alike") {
		t.Errorf("warnings %v", p.Warnings)
	}
	if !p.Capacity.SharedKernel || url(t, p, 0) != "http://172.30.0.2:8081/file" {
		t.Errorf("capacity %+v", p.Capacity)
	}
	if p := make1(t, quick()); p.Kernels != nil || !p.Capacity.SharedKernel {
		t.Errorf("one host: kernels %v, capacity on a shared kernel %v", p.Kernels, p.Capacity.SharedKernel)
	}
}

func TestContainersOfOneMachineArePinnedApart(t *testing.T) {
	for _, c := range []struct {
		cpus, server []int
		load         string
	}{
		{[]int{0, 1}, []int{0}, "[1] [1] [1]"},
		{[]int{0, 1, 2, 3, 4, 5, 6, 7}, []int{0, 1, 2, 3}, "[4 7] [5] [6]"},
		{[]int{0, 1, 2, 3}, []int{0, 1}, "[2 3] [2 3] [2 3]"},
	} {
		e, all := labOf(c.cpus, "gen1", "gen2", "gen3")
		p := make1(t, e, all...)
		got := fmt.Sprint(p.Loads[0].CPUs["gen1"], p.Loads[0].CPUs["gen2"], p.Loads[0].CPUs["gen3"])
		if !slices.Equal(p.Servings[0].CPUs, c.server) || got != c.load {
			t.Errorf("of %v: server %v, load %s, want %v and %s", c.cpus, p.Servings[0].CPUs, got, c.server, c.load)
		}
	}
	e, all := labOf([]int{0}, "gen")
	if p := make1(t, e, all...); p.Servings[0].CPUs != nil || !warned(p, "share one CPU") || !warned(p, "the server of web, on the same machine, may use every CPU") {
		t.Errorf("one CPU: server %v, warnings %v", p.Servings[0].CPUs, p.Warnings)
	}
}

func TestBoundsOfContainersDecidePinningAndWorkers(t *testing.T) {
	eight := []int{0, 1, 2, 3, 4, 5, 6, 7}
	e, all := labOf(eight, "gen1", "gen2")
	e.Server.Nginx = map[string]string{"worker_processes": "auto"}
	for i := range all {
		all[i].CgroupCPUs = 1.5
	}
	p := make1(t, e, all...)
	if got := fmt.Sprint(p.Servings[0].CPUs, p.Loads[0].CPUs["gen1"], p.Loads[0].CPUs["gen2"]); got != "[0 1] [2 4] [3 5]" {
		t.Errorf("quota: %s", got)
	}
	if !strings.Contains(p.Servings[0].Config, "worker_processes 2;") {
		t.Errorf("workers of 1.5 CPUs:\n%s", p.Servings[0].Config)
	}
	all[0].CPUs, all[0].CgroupCPUs = []int{0, 1, 2}, 0
	all[1].CPUs, all[2].CPUs = []int{4, 5}, []int{6, 7}
	p = make1(t, e, all...)
	if p.Servings[0].CPUs != nil || !strings.Contains(p.Servings[0].Config, "worker_processes 3;") || fmt.Sprint(p.Loads[0].CPUs) != "map[gen1:[4 5] gen2:[6 7]]" {
		t.Errorf("CPU sets apart: server %v, load %v", p.Servings[0].CPUs, p.Loads[0].CPUs)
	}
	all[1].CPUs = []int{2, 3}
	p = make1(t, e, all...)
	if got := fmt.Sprint(p.Servings[0].CPUs, p.Loads[0].CPUs["gen1"]); got != "[0 1] [2 3]" {
		t.Errorf("CPU sets that overlap: %s", got)
	}
}

func TestContainersHaveSysctlsOfTheirNetworkOnly(t *testing.T) {
	e, all := labOf([]int{0, 1}, "gen")
	e.Steps = append(e.Steps[:4:4], lab.Step{Name: "tried", Sysctl: map[string]string{
		"vm.dirty_ratio": "30", "fs.file-max": "3000000", "net.core.rmem_max": "4194304", "net.ipv4.tcp_mem": "1 2 3", "net.core.somaxcon": "9", "net.core.somaxconn": "8192"}})
	p := make1(t, e, all...)
	for _, name := range []string{"vm.dirty_ratio", "fs.file-max", "net.core.rmem_max", "net.ipv4.tcp_mem"} {
		want := "web is a container (docker) and shares its kernel with the machine: only net.* of its own network namespace can be set there, and " + name
		refusal(t, p, want, "steps[4].sysctl."+name, true)
	}
	if r := refusal(t, p, "web has no sysctl net.core.somaxcon: the network namespace", "steps[4].sysctl.net.core.somaxcon", true); r.Cure != "did you mean net.core.somaxconn?" {
		t.Errorf("cure %q", r.Cure)
	}
	if len(p.Refused) != 5 {
		t.Errorf("refused %v", p.Refused)
	}
	e.Steps[4].Sysctl = map[string]string{"vm.dirty_ratio": "20"} // as the machine has it
	if p := make1(t, e, all...); len(p.Refused) > 0 {
		t.Errorf("a value that is there already: %v", p.Refused)
	}
	e.Steps[4] = lab.Step{Name: "tried", Nofile: 30000}
	if r := refusal(t, make1(t, e, all...), "above the hard limit of 20000 open files on web", "steps[4].nofile", true); !strings.Contains(r.Cure, "docker") {
		t.Errorf("cure %q", r.Cure)
	}
}

func TestCapacityBeyondAContainersMemoryIsToldBeforehand(t *testing.T) {
	e, all := labOf([]int{0, 1}, "gen1", "gen2")
	all[0].CgroupBytes = 64 << 20
	if p := make1(t, e, all...); !warned(p, "20000 connections take about 156 MiB, and processes of web may have 64 MiB") {
		t.Errorf("warnings %v", p.Warnings)
	}
	all[0].CgroupBytes = 1 << 30
	if p := make1(t, e, all...); warned(p, "connections take about") {
		t.Errorf("warnings %v", p.Warnings)
	}
}

func TestDockerLabOfTheLibraryIsPlanned(t *testing.T) {
	text, err := experiments.Open("docker-lab")
	if err != nil {
		t.Fatal(err)
	}
	e, err := experiments.Decode("docker-lab.yaml", bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	_, all := labOf([]int{0, 1}, "gen1", "gen2", "gen3")
	for i := range all {
		for _, name := range []string{"net.ipv4.tcp_max_syn_backlog", "net.ipv4.tcp_fin_timeout"} {
			all[i].Sysctls[name], all[i].SysctlWritable[name] = "60", true
		}
	}
	p := make1(t, e, all...)
	if len(p.Refused) > 0 || len(p.States) != 6 || len(p.Drivings) != 3 || len(p.Drivings[0].Measured) != 3 {
		t.Errorf("refused %v, %d states, drivings %v", p.Refused, len(p.States), p.Drivings)
	}
	if len(p.Warnings) != 1 || p.Estimate.Minutes() > 7 {
		t.Errorf("warnings %v, estimate %v", p.Warnings, p.Estimate)
	}
}
