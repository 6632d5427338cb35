package experiments

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"ngxlab/lab"
)

// small is the least valid file; tests add to it.
const small = `name: small
hosts:
  here: {local: true, roles: [target, load]}
steps:
  - name: baseline
load:
  - {tool: wrk, connections: 10}
`

func decode(t *testing.T, text string) lab.Experiment {
	t.Helper()
	e, err := Decode("x.yaml", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func problems(t *testing.T, text string) *Error {
	t.Helper()
	e, err := Decode("x.yaml", strings.NewReader(text))
	var bad *Error
	if !errors.As(err, &bad) {
		t.Fatalf("error %v, want problems", err)
	}
	if e.Name != "" || e.Hosts != nil {
		t.Error("an experiment came with the error")
	}
	return bad
}

func TestSmallestFileHasEveryDefault(t *testing.T) {
	e := decode(t, small)
	load := e.Load[0]
	if load.Duration.Seconds() != 10 || load.WarmupFirst.Seconds() != 3 || load.Warmup.Seconds() != 1 ||
		len(load.KeepAlive) != 1 || !load.KeepAlive[0] || load.Processes != 1 || load.URL != "/empty.gif" {
		t.Errorf("load %+v", load)
	}
	if r := e.Repeat; r.Min != 6 || r.Max != 20 || r.Precision != 0.02 || r.Effect != 0.02 || !r.Control || r.CoolDown.Duration != 500*time.Millisecond {
		t.Errorf("repeat %+v", r)
	}
	if s := e.Server; s.Build != "nginx" || s.Port != 8081 || s.StatusPort != 8082 || s.Site != "empty-gif" {
		t.Errorf("server %+v", s)
	}
	if b := e.Builds["nginx"]; b.Name != "nginx" || b.Flavor != "nginx" || len(b.Sources) != 1 || b.Sources[0].Debian != "nginx" {
		t.Errorf("build %+v", b)
	}
	if e.Ladder.Kind != lab.Cumulative || e.Order != lab.Interleaved || e.Cannot != lab.CannotFail || e.Capacity != nil {
		t.Errorf("ladder %v, order %v, unsupported %v, capacity %v", e.Ladder, e.Order, e.Cannot, e.Capacity)
	}
	if e.Text != small || len(e.Hash) != 64 || e.File != "x.yaml" {
		t.Errorf("text, hash %q or file %q", e.Hash, e.File)
	}
}

func TestWhereHoldsThePlaceOfKeysAndElements(t *testing.T) {
	text := strings.Replace(small, "  - name: baseline\n", `  - name: baseline
  - name: kernel
    sysctl: {net.core.somaxconn: 4096}
    nginx:
      events.worker_connections: 16384
`, 1)
	text = strings.Replace(text, "connections: 10}", "connections: [10, 20]}", 1)
	e := decode(t, text)
	for path, want := range map[string]lab.Position{
		"name":                               {Line: 1, Column: 1},
		"hosts.here":                         {Line: 3, Column: 3},
		"hosts.here.roles[1]":                {Line: 3, Column: 39},
		"steps[1].name":                      {Line: 6, Column: 5},
		"steps[1].sysctl.net.core.somaxconn": {Line: 7, Column: 14},
		"steps[1].nginx.events.worker_connections": {Line: 9, Column: 7},
		"load[0].connections":                      {Line: 11, Column: 17},
		"load[0].connections[1]":                   {Line: 11, Column: 35},
	} {
		if got, ok := e.Where[path]; !ok || got != want {
			t.Errorf("%s is at %v, want %v", path, got, want)
		}
	}
}

func TestValuesOfEveryKind(t *testing.T) {
	e := decode(t, `name: all
hosts:
  web: {address: 10.0.0.10, user: root, port: 2222, key: ~/.ssh/lab, jump: gate, roles: target}
  gen: {address: gen, sudo: true, roles: [load]}
builds:
  old: {version: 1.20.1, echo_version: 0.60, modules: [stub_status, echo], configure: [--with-threads], source: [{url: "https://nginx.org/n.tgz", sha256: `+strings.Repeat("a", 64)+`}, {path: /src}]}
  new: {patches: true, source: {debian: nginx, suite: trixie}}
server:
  {build: new, port: 80, status_port: 90, site: sleep, sleep: 250ms, cpus: 0-3, nofile: 65535, nginx: {sendfile: true, listen.reuseport: true, listen.deferred: false, worker_cpu_affinity: ["0001", "0010"], tcp_nodelay: on, keepalive_requests: 0100}}
ladder: [[a], [a, b]]
order: blocked
unsupported: skip
steps:
  - name: base
  - {name: a, build: old, nofile: 100000, unsupported: fail, best_effort: true}
  - {name: b, "on": [target, load], sysctl: {net.ipv4.tcp_mem: "1 2 3", net.ipv4.tcp_rmem: [4096, 87380, 6291456], net.ipv4.conf.eth0/1.rp_filter: 0}}
load:
  - {tool: ab, url: "/x?y=1", keepalive: [true, false], connections: {from: 100, to: 300, step: 100}, requests: 20000, processes: 2, cpus: "4,5", expect_errors: true, headline: true}
  - {tool: wrk, connections: {from: 10, to: 100, factor: 2}, duration: 1m30s, warmup: 1.5s, threads: 5, hosts: 1}
repeat: {min: 8, precision: 1.5%, effect: 0.01, budget: 3h, cool_down: 0s, control: false, why: because}
claims:
  - {name: c, state: a, over: base, at_least: 1.2, published: 3}
published: {conditions: {kernel: 3.17.2}, figures: {rps: 1554.84}}
capacity: {connections: [0, 10, 20], kinds: [idle, active], sizes: 8GiB, reserve: 512MiB, nginx: {worker_processes: 2}}
`)
	if h := e.Hosts[0]; h.Name != "web" || h.Port != 2222 || h.Jump != "gate" || !h.Has(lab.RoleTarget) || e.Hosts[1].Name != "gen" {
		t.Errorf("hosts %+v", e.Hosts)
	}
	if b := e.Builds["old"]; b.Version != "1.20.1" || b.EchoWants != "0.60" || len(b.Sources) != 2 || b.Sources[1].Path != "/src" {
		t.Errorf("build %+v", b)
	}
	wantNginx := map[string]string{"sendfile": "on", "listen.reuseport": "true", "listen.deferred": "false",
		"worker_cpu_affinity": "0001 0010", "tcp_nodelay": "on", "keepalive_requests": "0100"}
	if got := fmt.Sprint(e.Server.Nginx); got != fmt.Sprint(wantNginx) {
		t.Errorf("nginx %s, want %v", got, wantNginx)
	}
	if s := e.Server; s.SleepS != 0.25 || s.CPUs != "0-3" || s.Nofile != 65535 || s.StatusPort != 90 {
		t.Errorf("server %+v", s)
	}
	if s := e.Steps[2].Sysctl; s["net.ipv4.tcp_rmem"] != "4096 87380 6291456" || s["net.ipv4.tcp_mem"] != "1 2 3" {
		t.Errorf("sysctl %v", s)
	}
	if e.Ladder.Kind != lab.Listed || len(e.Ladder.Lists) != 2 {
		t.Errorf("ladder %v", e.Ladder)
	}
	ab, wrk := e.Load[0], e.Load[1]
	if fmt.Sprint(ab.Connections, wrk.Connections, wrk.Hosts) != "[100 200 300] [10 20 40 80] [1]" {
		t.Errorf("axes %v %v %v", ab.Connections, wrk.Connections, wrk.Hosts)
	}
	if ab.Requests != 20000 || ab.Duration.Duration != 0 || wrk.Duration.Seconds() != 90 || wrk.Warmup.Seconds() != 1.5 || wrk.WarmupFirst.Seconds() != 1.5 {
		t.Errorf("load %+v %+v", ab, wrk)
	}
	if r := e.Repeat; r.Min != 8 || r.Max != 20 || r.Precision != 0.015 || r.Effect != 0.01 || r.Budget.Hours() != 3 || r.Control || r.CoolDown.Duration != 0 {
		t.Errorf("repeat %+v", r)
	}
	if c := e.Claims[0]; c.Of != lab.Goodput || *c.AtLeast != 1.2 || c.AtMost != nil || *c.Published != 3 {
		t.Errorf("claim %+v", c)
	}
	if c := e.Capacity; c == nil || c.Ramps != 3 || c.SizesBytes[0] != 8<<30 || c.ReserveBytes != 512<<20 || len(c.ConnectionsPerUser) != 3 {
		t.Errorf("capacity %+v", c)
	}
}

// bad inputs: text put in for a line of small, and what the error must say.
var bad = []struct{ name, old, new, want, hint string }{
	{"unknown key", "tool: wrk,", "tool: wrk, connectoins: 5,", `x.yaml:7:17: unknown key "connectoins"`, `did you mean "connections"?`},
	{"unknown top key", "load:", "laod:\n  x: y\nload:", `x.yaml:6:1: unknown key "laod"`, `did you mean "load"?`},
	{"key unlike any", "tool: wrk,", "tool: wrk, qqqqqqqqqqq: 5,", `unknown key "qqqqqqqqqqq"`, "known are: connections, cpus,"},
	{"duplicate key", "name: small", "name: small\nname: large", `x.yaml:2:1: the key "name" stands here a second time`, "line 1"},
	{"duplicate host", "  here: {local", "  here: {local: true, roles: [load]}\n  here: {local", `x.yaml:4:3: the key "here" stands here a second time`, "line 3"},
	{"missing key", "tool: wrk, ", "", `x.yaml:7:5: the key "tool" is missing`, "wrk or ab"},
	{"no value", "name: small", "name:", `x.yaml:1:1: the key "name" has no value`, "default"},
	{"unknown tool", "tool: wrk", "tool: wkr", `x.yaml:7:12: expected one of wrk, ab, found "wkr"`, `did you mean "wrk"?`},
	{"wrong type", "connections: 10", "connections: many", `x.yaml:7:30: expected a whole number from 1 to`, ""},
	{"fraction", "connections: 10", "connections: 10.5", `found 10.5`, ""},
	{"zero", "connections: 10", "connections: 0", `found 0`, ""},
	{"too long a span", "connections: 10", "connections: {from: 1, to: 100000, step: 1}", `at most 1000 values`, ""},
	{"factor 1", "connections: 10", "connections: {from: 1, to: 10, factor: 1}", `a factor above 1`, ""},
	{"no unit of time", "connections: 10", "connections: 10, duration: 30", "a duration with its unit, found 30", "write 30s for seconds"},
	{"wrong unit of time", "connections: 10", "connections: 10, duration: 30sec", "a duration such as", ""},
	{"negative time", "connections: 10", "connections: 10, duration: -3s", "a duration such as", ""},
	{"no unit of size", "steps:", "server: {site: file, body: 1024}\nsteps:", "a size with its unit", "KiB"},
	{"wrong unit of size", "steps:", "server: {site: file, body: 1KB}\nsteps:", "a size with its unit", "by 1024"},
	{"percent without sign", "steps:", "repeat: {precision: 2}\nsteps:", "a percentage", "write 2%"},
	{"percent of text", "steps:", "repeat: {precision: two%}\nsteps:", "a percentage", ""},
	{"yes is no boolean", "local: true", "local: yes", `expected true or false, found "yes"`, ""},
	{"list for text", "name: small", "name: [small]", "expected text, found a list", ""},
	{"mapping for list", "  - name: baseline", "  name: baseline", "expected a list, found a mapping", ""},
	{"alias", "name: small", "name: &n small\ntitle: *n", "anchor", ""},
	{"merge", "{local: true", "{<<: {local: true}", "merging", ""},
	{"broken YAML", "roles: [target, load]}", "roles: [target, load}", "x.yaml:3:", ""},
	{"tab", "  here:", "\there:", "x.yaml:", ""},
	{"second document", "load:", "---\nload:", "a second YAML document", ""},

	{"neither local nor address", "local: true, ", "", `x.yaml:3:3: host "here" needs exactly one of local, address and docker`, ""},
	{"both local and address", "local: true, ", "local: true, address: x, ", "exactly one of local, address and docker", ""},
	{"SSH on this machine", "local: true, ", "local: true, user: x, ", "nothing of SSH applies", ""},
	{"sudo on this machine", "local: true, ", "local: true, sudo: true, ", "nothing of SSH applies", "start ngxlab with sudo"},
	{"local and docker", "local: true, ", "local: true, docker: {}, ", "exactly one of local, address and docker", "docker: {} is a container"},
	{"docker without a mapping", "local: true, ", "docker: true, ", "x.yaml:3:18: expected a mapping of bounds, found true", "docker: {cpus: 2, memory: 2GiB}"},
	{"SSH in a container", "local: true, ", "docker: {}, user: root, sudo: true, ", `x.yaml:3:22: host "here" is a container of the lab: nothing of SSH applies`, "leave out user, sudo; the lab is root"},
	{"load_address of a container", "local: true, ", "docker: {}, load_address: 10.0.0.1, ", "the lab knows its address", "leave it out"},
	{"load_address without a target", "  here:", "  gen: {address: g, load_address: 10.0.0.1, roles: [load]}\n  here:", `host "gen" is none`, "leave it out"},
	{"count of a machine", "local: true, ", "address: a, count: 2, ", "x.yaml:3:22: count belongs to docker hosts", "a name of its own"},
	{"count of none", "local: true, ", "docker: {}, count: 0, ", "expected a whole number from 1 to 100, found 0", ""},
	{"counted name taken", "  here: {local: true, roles", "  gen2: {docker: {}, roles: [load]}\n  gen: {docker: {}, count: 3, roles: [load]}\n  here: {local: true, roles", `x.yaml:4:3: host "gen2" of "gen" is there already: the entry on line 3`, "another name"},
	{"counted name too long", "  here: {local: true, roles", "  " + strings.Repeat("g", 63) + ": {docker: {}, count: 1, roles: [load]}\n  here: {local: true, roles", "too long for the name of a host", "shorter"},
	{"CPUs of a container", "local: true, ", "docker: {cpus: 0}, ", "expected a number from 0.1 to 1024, found 0", ""},
	{"CPUs of a container as text", "local: true, ", "docker: {cpus: two}, ", "expected a number from 0.1 to 1024", ""},
	{"cpuset", "local: true, ", "docker: {cpuset: 3-1}, ", `CPU numbers such as "0-3,8", found "3-1"`, ""},
	{"more CPUs than cpuset", "local: true, ", "docker: {cpus: 2, cpuset: 3}, ", "x.yaml:3:19: cpus 2 is more than the 1 of cpuset 3", "lower cpus"},
	{"memory of a container", "local: true, ", "docker: {memory: 63MiB}, ", "expected a size of at least 64MiB, found", ""},
	{"memory without unit", "local: true, ", "docker: {memory: 2G}, ", "a size with its unit", "GiB"},
	{"unknown bound", "local: true, ", "docker: {memroy: 2GiB}, ", `unknown key "memroy"`, `"memory"`},
	{"files of a container", "local: true, ", "docker: {nofile: 10}, ", "from 64 to", ""},
	{"port in an address", "local: true, ", "address: 10.0.0.1:2222, ", `expected a host name or an IP address, found "10.0.0.1:2222"`, "address: 10.0.0.1, port: 2222"},
	{"port in an IPv6 address", "local: true, ", `address: "[fd00::1]:22", `, "expected a host name or an IP address", `address: "fd00::1", port: 22`},
	{"brackets without quotes", "local: true, ", "address: [fd00::1], ", "expected a host name or an IP address, found a list", "needs quotes"},
	{"user in an address", "local: true, ", "address: root@web, ", "expected a host name or an IP address", "user: root, address: web"},
	{"URL for an address", "local: true, ", `address: "ssh://root@web:22", `, "expected a host name or an IP address", "user: root, address: web, port: 22"},
	{"blank in an address", "local: true, ", `address: "a b", `, `expected a host name or an IP address, found "a b"`, ""},
	{"one machine twice", "  here: {local", "  a: {address: x, roles: [load]}\n  b: {address: x, roles: [load]}\n  here: {local", `x.yaml:4:7: hosts "a" and "b" are the same machine`, "both roles"},
	{"no target", "roles: [target, load]", "roles: [load]", "no host has the role target", ""},
	{"no load", "roles: [target, load]", "roles: [target]", "no host has the role load", ""},
	{"two locals", "  here:", "  there: {local: true, roles: [load]}\n  here:", "2 hosts are this machine", ""},
	{"unknown build in step", "  - name: baseline", "  - name: baseline\n  - {name: a, build: ngins}", `x.yaml:6:15: there is no build "ngins"`, `did you mean "nginx"?`},
	{"unknown build of server", "steps:", "builds: {nginx: {}}\nserver: {build: apache}\nsteps:", `there is no build "apache"`, "known are: nginx"},
	{"which build", "steps:", "builds: {a: {}, b: {}}\nsteps:", "there are 2 builds", "server: {build: NAME}"},
	{"url without checksum", "steps:", `builds: {a: {source: [{url: "http://x/y"}]}}` + "\nsteps:", "url and sha256 belong together", "sha256sum"},
	{"short checksum", "steps:", `builds: {a: {source: [{url: "http://x/y", sha256: abc}]}}` + "\nsteps:", "64 hex digits", ""},
	{"source of two kinds", "steps:", `builds: {a: {source: [{path: /x, debian: nginx}]}}` + "\nsteps:", "exactly one of url, path, git, debian and text", ""},
	{"git without commit", "steps:", `builds: {a: {source: [{git: "https://x/y"}]}}` + "\nsteps:", "git and commit belong together", ""},
	{"suite alone", "steps:", `builds: {a: {source: [{path: /x, suite: sid}]}}` + "\nsteps:", "suite belongs to debian", ""},
	{"flavor", "steps:", `builds: {a: {flavor: tengin}}` + "\nsteps:", `expected one of nginx, tengine, brpc, custom, found "tengin"`, `did you mean "tengine"?`},
	{"echo without module", "steps:", "builds: {a: {modules: [stub_status]}}\nserver: {site: echo}\nsteps:", "needs the module echo", "add echo"},
	{"same ports", "steps:", "server: {port: 90, status_port: 90}\nsteps:", "port 90 leaves status_port 90", ""},
	{"last port", "steps:", "server: {port: 65535}\nsteps:", "status_port 65536", ""},
	{"no such port", "steps:", "server: {port: 65536}\nsteps:", "from 1 to 65535", ""},
	{"body of another site", "steps:", "server: {site: hello, body: 1KiB}\nsteps:", "body belongs to the site file", ""},
	{"sleep of another site", "steps:", "server: {site: hello, sleep: 1s}\nsteps:", "sleep belongs to the site sleep", ""},
	{"CPU list", "steps:", "server: {cpus: 3-1}\nsteps:", "CPU numbers", ""},
	{"step twice", "  - name: baseline", "  - name: baseline\n  - {name: baseline, nofile: 100}", `x.yaml:6:6: step "baseline" is there already, on line 5`, ""},
	{"control", "  - name: baseline", "  - name: control", "the lab's own name", ""},
	{"step that changes nothing", "  - name: baseline", "  - name: baseline\n  - name: a", `step "a" changes nothing`, ""},
	{"on without sysctl", "  - name: baseline", "  - name: baseline\n  - {name: a, nofile: 100, on: load}", "on says where knobs of a host are set", ""},
	{"sysctl name", "  - name: baseline", "  - {name: baseline, sysctl: {somaxconn: 1}}", `"somaxconn" cannot be the name of a sysctl`, ""},
	{"directive name", "  - name: baseline", "  - {name: baseline, nginx: {Worker: 1}}", "cannot be an nginx directive", ""},
	{"directive value", "  - name: baseline", "  - {name: baseline, nginx: {worker_processes: {a: b}}}", "expected text, found a mapping", ""},
	{"ladder word", "steps:", "ladder: cumulativ\nsteps:", "expected one of cumulative, isolated, leave-one-out", `did you mean "cumulative"?`},
	{"ladder of unknown step", "steps:", "ladder: [[baselin]]\nsteps:", `there is no step "baselin"`, `did you mean "baseline"?`},
	{"requests below connections", "connections: 10", "connections: 10, requests: 9", "9 requests are fewer than 10 connections", "at least 20"},
	{"requests and duration", "connections: 10", "connections: 10, requests: 900, duration: 2s", "exclude each other", ""},
	{"connections below processes", "connections: 10", "connections: 10, processes: 11", "fewer than 11 processes", ""},
	{"connections on threads", "connections: 10", "connections: 10, threads: 3", "10 connections per process are no multiple of 3 threads", ""},
	{"threads of ab", "tool: wrk, connections: 10", "tool: ab, connections: 10, threads: 2", "threads belong to wrk", ""},
	{"too short", "connections: 10", "connections: 10, duration: 50ms", "too short", ""},
	{"pinned twice", "connections: 10", "connections: 10, pin: true, cpus: 1", "pin and cpus exclude each other", ""},
	{"auto for load", "connections: 10", "connections: 10, cpus: auto", "auto is for the server", ""},
	{"more load hosts", "connections: 10", "connections: 10, hosts: 2", "2 load hosts asked for, there are 1", ""},
	{"same load point twice", "connections: 10}", "connections: [10, 10]}", "repeats", ""},
	{"url without slash", "connections: 10", "connections: 10, url: x", `a path that begins with "/"`, ""},
	{"min above max", "steps:", "repeat: {min: 5, max: 4}\nsteps:", "min 5 is above max 4", ""},
	{"claim about no state", "steps:", "claims: [{name: c, state: fast, over: baseline, at_least: 1}]\nsteps:", `there is no state "fast"`, "baseline"},
	{"claim of nothing", "steps:", "claims: [{name: c, state: control, over: baseline}]\nsteps:", "says nothing", ""},
	{"claim of itself", "steps:", "claims: [{name: c, state: baseline, over: baseline, at_least: 1}]\nsteps:", "with itself", ""},
	{"claim upside down", "steps:", "claims: [{name: c, state: control, over: baseline, at_least: 2, at_most: 1}]\nsteps:", "at_least 2 is above at_most 1", ""},
	{"claim's figure", "steps:", "claims: [{name: c, of: speed, state: control, over: baseline, at_least: 2}]\nsteps:", "expected one of rps", ""},
	{"capacity not from 0", "steps:", "capacity: {connections: [1, 2, 3]}\nsteps:", "the first level must be 0", ""},
	{"capacity not rising", "steps:", "capacity: {connections: [0, 20, 10]}\nsteps:", "x.yaml:4:33: 10 does not rise above 20", ""},
	{"capacity too few", "steps:", "capacity: {connections: [0, 20]}\nsteps:", "2 levels are too few", ""},
	{"capacity without room", "steps:", "capacity: {sizes: [1GiB]}\nsteps:", "nothing is left", ""},
	{"capacity of no state", "steps:", "capacity: {state: tuned}\nsteps:", `there is no state "tuned"`, ""},
}

func TestBadInputNamesPlaceAndCure(t *testing.T) {
	for _, c := range bad {
		t.Run(c.name, func(t *testing.T) {
			text := strings.Replace(small, c.old, c.new, 1)
			if text == small {
				t.Fatal("the test changes nothing")
			}
			got := problems(t, text).Error()
			if !strings.Contains(got, c.want) {
				t.Errorf("got:\n%s\nwant: %s", got, c.want)
			}
			if _, hint, _ := strings.Cut(got, "hint: "); c.hint != "" && !strings.Contains(hint, c.hint) {
				t.Errorf("hint %q, want %q", hint, c.hint)
			}
		})
	}
}

func TestEveryProblemIsListedInTheOrderOfTheFile(t *testing.T) {
	text := strings.Replace(small, "tool: wrk, connections: 10", "tool: wrk, conections: 10, duration: 30", 1)
	text = strings.Replace(text, "name: small", "name: small\ntitel: x", 1)
	got := problems(t, text)
	if len(got.Problems) != 4 {
		t.Fatalf("%d problems:\n%s", len(got.Problems), got)
	}
	for i, line := range []int{2, 8, 8, 8} {
		if got.Problems[i].Position.Line != line {
			t.Errorf("problem %d on line %d, want %d", i, got.Problems[i].Position.Line, line)
		}
	}
}

func TestErrorShowsLineCaretAndHint(t *testing.T) {
	got := problems(t, strings.Replace(small, "tool: wrk", "tool: wkr", 1)).Error()
	want := `x.yaml:7:12: expected one of wrk, ab, found "wkr"
      - {tool: wkr, connections: 10}
               ^
hint: did you mean "wrk"?`
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestEmptyFileIsAnError(t *testing.T) {
	for _, text := range []string{"", "\n", "# nothing\n", "---\n"} {
		if got := problems(t, text).Error(); !strings.Contains(got, "empty") {
			t.Errorf("%q: %s", text, got)
		}
	}
}

func TestUnreadableFileIsAnError(t *testing.T) {
	f, err := os.Open(t.TempDir()) // a directory cannot be read
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if _, err := Decode("dir", f); err == nil || !strings.Contains(err.Error(), "read experiment dir") {
		t.Errorf("error %v", err)
	}
	if _, err := Decode("big", bytes.NewReader(make([]byte, maxBytes+1))); err == nil || !strings.Contains(err.Error(), "larger") {
		t.Errorf("error %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(small)
	f.Add(scaffold)
	f.Add(every)
	for _, entry := range Library() {
		text, err := Open(entry.Name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	for _, c := range bad {
		f.Add(strings.Replace(small, c.old, c.new, 1))
	}
	f.Fuzz(func(t *testing.T, text string) {
		e, err := Decode("f", strings.NewReader(text))
		if err == nil && (e.Name == "" || len(e.Steps) == 0 || len(e.Load) == 0) {
			t.Errorf("decoded without name, steps or load: %+v", e)
		}
		var bad *Error
		if errors.As(err, &bad) {
			if len(bad.Problems) == 0 || bad.Error() == "" {
				t.Error("an error without problems")
			}
			for _, p := range bad.Problems {
				if p.Position.Line < 1 || p.Position.Column < 1 {
					t.Errorf("problem without place: %+v", p)
				}
			}
		}
	})
}
