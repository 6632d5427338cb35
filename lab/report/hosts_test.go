package report

import (
	"strings"
	"testing"

	"ngxlab/lab"
)

func TestContainersOfOneMachineAreSaidToBeSo(t *testing.T) {
	r := fakeResults(t)
	web, gen := r.Plan.Facts["here"], r.Plan.Facts["here"]
	web.BootID, web.Container, web.CgroupCPUs, web.CgroupBytes, web.Address = "boot", "docker", 1.5, 2<<30, "172.30.0.2"
	gen.BootID, gen.Container, gen.Address = "boot", "docker", "172.30.0.3"
	r.Plan.Facts = map[lab.HostName]lab.Facts{"here": web, "gen": gen}
	r.Plan.Experiment.Hosts = []lab.Host{
		{Name: "here", Docker: &lab.DockerHost{CPUs: 1.5, CPUSet: "0-1", MemoryBytes: 2 << 30}, Roles: []lab.Role{lab.RoleTarget}},
		{Name: "gen", Docker: &lab.DockerHost{}, Roles: []lab.Role{lab.RoleLoad}},
	}
	for i := range r.Plan.Loads {
		r.Plan.Loads[i].Hosts = []lab.HostName{"gen"}
	}
	r.Plan.Kernels = [][]lab.HostName{{"here", "gen"}}
	r.Plan.Capacity = nil
	text := strings.Join(strings.Fields(markdown(t, r)), " ")
	wants(t, text, "here, gen are containers of one machine. They share its kernel", "| container | docker | docker |",
		"| bounds | 1.5 CPUs of time, CPUs 0-1, 2 GiB memory | none |", "| reached by | the Docker engine; load at 172.30.0.2 | the Docker engine; load at 172.30.0.3 |",
		"| memory | 24 GiB of the machine |", "load and target share one kernel: CPU and memory of both ends mix, the network inside the machine bills")
}

func TestHostsThatAreMachinesHaveNoRowsOfContainers(t *testing.T) {
	text := strings.Join(strings.Fields(markdown(t, fakeResults(t))), " ")
	for _, row := range []string{"| container |", "| bounds |", "| NUMA nodes |"} {
		if strings.Contains(text, row) {
			t.Errorf("the host table has %s", row)
		}
	}
}

func TestLoadAddressIsToldBesideTheAddress(t *testing.T) {
	for want, c := range map[string]struct {
		host  lab.Host
		facts lab.Facts
	}{
		"this machine, loopback":            {lab.Host{Local: true}, lab.Facts{}},
		"this machine; load at 192.168.1.2": {lab.Host{Local: true, LoadAt: "192.168.1.2"}, lab.Facts{}},
		"web; load at 10.0.0.7":             {lab.Host{Address: "web"}, lab.Facts{Address: "10.0.0.7"}},
		"web; load at 192.168.1.7":          {lab.Host{Address: "web", LoadAt: "192.168.1.7"}, lab.Facts{Address: "10.0.0.7"}},
		"10.0.0.7":                          {lab.Host{Address: "10.0.0.7"}, lab.Facts{Address: "10.0.0.7"}},
	} {
		if got := reachedBy(c.host, c.facts); got != want {
			t.Errorf("%+v: %q, want %q", c.host, got, want)
		}
	}
}
