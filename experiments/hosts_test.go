package experiments

import (
	"fmt"
	"strings"
	"testing"

	"ngxlab/lab"
)

func withHosts(text string) string {
	return strings.Replace(small, "  here: {local: true, roles: [target, load]}\n", text, 1)
}

func TestCountMakesHostsAlikeFoundAtTheirEntry(t *testing.T) {
	e := decode(t, withHosts(`  web: {docker: {cpus: 1.5, cpuset: 0-1, memory: 2GiB, nofile: 10000, image: "debian:12"}, roles: [target]}
  gen: {docker: {memory: 64MiB}, roles: [load], count: 3}
  one: {docker: {}, roles: [load], count: 1}
`))
	var names []string
	for _, h := range e.Hosts {
		names = append(names, string(h.Name))
		if h.Local || h.Address != "" || h.Docker == nil || len(h.Roles) != 1 {
			t.Errorf("%s is %+v", h.Name, h)
		}
	}
	if got := strings.Join(names, " "); got != "web gen1 gen2 gen3 one1" {
		t.Fatalf("hosts %s", got)
	}
	if want := (lab.DockerHost{CPUs: 1.5, CPUSet: "0-1", MemoryBytes: 2 << 30, Nofile: 10000, Image: "debian:12"}); *e.Hosts[0].Docker != want {
		t.Errorf("bounds %+v", *e.Hosts[0].Docker)
	}
	if *e.Hosts[3].Docker != (lab.DockerHost{MemoryBytes: 64 << 20}) || *e.Hosts[4].Docker != (lab.DockerHost{}) {
		t.Errorf("bounds %+v and %+v", *e.Hosts[3].Docker, *e.Hosts[4].Docker)
	}
	for _, path := range []string{"hosts.gen1", "hosts.gen3"} {
		if at := e.Where[path]; at != (lab.Position{Line: 4, Column: 3}) {
			t.Errorf("%s is at %v", path, at)
		}
	}
	if e.Hosts[1].Docker == e.Hosts[2].Docker {
		t.Error("two hosts have one set of bounds")
	}
}

func TestAxisOfLoadHostsCountsContainers(t *testing.T) {
	text := withHosts("  web: {docker: {}, roles: [target]}\n  gen: {docker: {}, roles: [load], count: 3}\n")
	e := decode(t, strings.Replace(text, "connections: 10}", "connections: 30, hosts: [1, 3]}", 1))
	points, err := lab.LoadPoints(e)
	if err != nil {
		t.Fatal(err)
	}
	if len(points) != 2 || fmt.Sprint(points[0].Hosts, points[1].Hosts) != "[gen1] [gen1 gen2 gen3]" || points[1].Name != "wrk 30 keep-alive 3 hosts" {
		t.Errorf("load points %+v", points)
	}
	got := problems(t, strings.Replace(text, "connections: 10}", "connections: 30, hosts: 4}", 1)).Error()
	if !strings.Contains(got, "4 load hosts asked for, there are 3") {
		t.Errorf("got %s", got)
	}
}

func TestAddressesOfEveryShapeAreKeptWithoutBrackets(t *testing.T) {
	for written, want := range map[string]string{
		"10.0.0.10": "10.0.0.10", "web": "web", "web.example.org": "web.example.org", "lab_web-1": "lab_web-1",
		"fd00::1": "fd00::1", `"[fd00::1]"`: "fd00::1", "::1": "::1", `"fe80::1%eth0"`: "fe80::1%eth0", "2001:db8::8:800:200c:417a": "2001:db8::8:800:200c:417a",
	} {
		e := decode(t, withHosts("  web: {address: "+written+", load_address: "+written+", roles: [target, load]}\n"))
		if h := e.Hosts[0]; h.Address != want || h.LoadAt != want || h.LoadAddress() != want {
			t.Errorf("%s became %q, load address %q", written, h.Address, h.LoadAt)
		}
	}
}

func TestHostsOfOneAddressMayDifferInTheirPort(t *testing.T) {
	e := decode(t, withHosts("  a: {address: x, port: 2201, roles: [target]}\n  b: {address: x, port: 2202, roles: [load]}\n"))
	if len(e.Hosts) != 2 {
		t.Errorf("hosts %+v", e.Hosts)
	}
}

func TestNamesThatNoLoginHasAreRefusedWithTheCure(t *testing.T) {
	web := func(keys string) string {
		return withHosts("  here: {local: true, roles: [load]}\n  web: {address: w, roles: [target], " + keys + "}\n")
	}
	for text, want := range map[string]string{
		web(`jump: "a,,b"`):    "hint: there is a comma too many",
		web(`jump: "a,"`):      "hint: there is a comma too many",
		web(`jump: "a b"`):     `hint: "a b" is no host's name or address`,
		web(`jump: "ro ot@a"`): `hint: "ro ot" is no user's name`,
		web(`jump: "-x@a"`):    `hint: "-x" is no user's name`,
		web(`jump: "@a"`):      `hint: "" is no user's name`,
		web(`jump: "root@"`):   `hint: "" is no host's name or address`,
		web(`jump: "a:99999"`): `hint: "a:99999" is no host's name or address`,
		web(`jump: "a:0"`):     `hint: "a:0" is no host's name or address`,
		web(`user: "ro ot"`):   `expected the name of a user, found "ro ot"`,
		web(`user: "-x"`):      "hint: write it as on the host",
		web(`user: ""`):        "the text is empty",
		withHosts("  here: {local: true, roles: []}\n"):                                                 "the list is empty",
		withHosts("  local: {local: true, roles: [target, load]}\n"):                                    `"local" is this machine in every command`,
		withHosts("  here: {local: true, roles: [load]}\n  localhost: {address: a, roles: [target]}\n"): "hint: choose another name, such as here",
	} {
		if got := problems(t, text).Error(); !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
	for _, keys := range []string{`jump: "a,b"`, `jump: none`, `jump: "root@a:2222, [::1]:22,ssh://b"`, `jump: "fe80::1"`, `user: _apt`, `user: "DOMAIN\\ana"`, `user: ana@corp`, "user: 1000"} {
		decode(t, web(keys))
	}
	local := decode(t, withHosts("  web: {docker: {}, roles: [target]}\n  local: {docker: {}, roles: [load], count: 2}\n"))
	if local.Hosts[1].Name != "local1" {
		t.Errorf("hosts %+v", local.Hosts)
	}
}
