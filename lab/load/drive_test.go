package load

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"ngxlab/lab"
)

var web = Target{Host: "web", Address: "10.0.0.10", Port: 8081}

func point(tool string, connections int) lab.LoadPoint {
	return lab.LoadPoint{Name: "p", Tool: tool, URL: "/x", Connections: connections, KeepAlive: true, Duration: lab.Seconds(10),
		WarmupFirst: lab.Seconds(3), Warmup: lab.Seconds(1), Hosts: []lab.HostName{"a"}, Processes: 1}
}

// able are facts of hosts on which everything is possible.
func able(hosts ...lab.HostName) map[lab.HostName]lab.Facts {
	facts := map[lab.HostName]lab.Facts{}
	for _, h := range hosts {
		facts[h] = lab.Facts{Host: h, CPUs: []int{0, 1, 2, 3}, NofileSoft: 1024, NofileHard: 20000,
			Commands: map[string]string{"wrk": "/usr/bin/wrk", "ab": "/usr/bin/ab"},
			Sysctls:  map[string]string{"net.ipv4.ip_local_port_range": "32768\t60999", "net.ipv4.ip_local_reserved_ports": ""}}
	}
	return facts
}

func driven(t *testing.T, p lab.LoadPoint, facts map[lab.HostName]lab.Facts) lab.Driving {
	t.Helper()
	d, err := Drive(p, web, facts)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func line(c lab.Command) string { return strings.Join(c.Argv, " ") }

func TestCommandLines(t *testing.T) {
	wrk := driven(t, point("wrk", 100), able("a"))
	ab := driven(t, point("ab", 100), able("a"))
	closing, counted := point("wrk", 100), point("ab", 100)
	closing.KeepAlive, counted.KeepAlive = false, false
	counted.Requests, counted.Duration = 5000, lab.Duration{}
	for _, c := range []struct{ got, want string }{
		{line(wrk.Measured["a"][0]), "wrk -t4 -c100 -d10s --timeout 10s --latency -s {work}/hook.lua http://10.0.0.10:8081/x"},
		{line(wrk.First["a"][0]), "wrk -t4 -c100 -d3s --timeout 10s http://10.0.0.10:8081/x"},
		{line(wrk.Warmup["a"][0]), "wrk -t4 -c100 -d1s --timeout 10s http://10.0.0.10:8081/x"},
		{line(ab.Measured["a"][0]), "ab -q -r -s 30 -t 10 -n 3000000 -c 100 -e {work}/e.csv -g {work}/g.tsv -k http://10.0.0.10:8081/x"},
		{line(ab.Warmup["a"][0]), "ab -q -r -s 30 -t 1 -n 300000 -c 100 -k http://10.0.0.10:8081/x"},
		{line(driven(t, closing, able("a")).Measured["a"][0]), "wrk -t4 -c100 -d10s --timeout 10s --latency -s {work}/hook.lua -H Connection: close http://10.0.0.10:8081/x"},
		{line(driven(t, counted, able("a")).Measured["a"][0]), "ab -q -r -s 30 -n 5000 -c 100 -e {work}/e.csv -g {work}/g.tsv http://10.0.0.10:8081/x"},
	} {
		if c.got != c.want {
			t.Errorf("got  %s\nwant %s", c.got, c.want)
		}
	}
	if c := wrk.Measured["a"][0]; c.Files["hook.lua"] == "" || c.Deadline.Seconds() != 2*(10+3)+30 || c.Share.Duration.Seconds() != 10 {
		t.Errorf("files %v, deadline %v, share %+v", len(c.Files), c.Deadline, c.Share)
	}
	if c := ab.Measured["a"][0]; c.Collect["e.csv"] != "ab-quantiles" || c.Collect["g.tsv"] != "ab-requests" || c.Tool != "ab" {
		t.Errorf("collects %v", c.Collect)
	}
	if d := driven(t, counted, able("a")).Measured["a"][0].Deadline; d.Seconds() != 2*(50+3)+30 {
		t.Errorf("deadline of a fixed count %v", d)
	}
}

func TestIPv6AddressIsBracketed(t *testing.T) {
	d, err := Drive(point("ab", 1), Target{Host: "web", Address: "fd00::1", Port: 80}, able("a"))
	if err != nil || !strings.HasSuffix(line(d.Measured["a"][0]), " http://[fd00::1]:80/x") {
		t.Errorf("%v, %v", d.Measured, err)
	}
}

func TestLoadIsSplitExactlyOverHostsAndProcesses(t *testing.T) {
	p := point("ab", 1000)
	p.Hosts, p.Processes, p.Requests, p.Duration = []lab.HostName{"a", "b", "c"}, 2, 100001, lab.Duration{}
	d := driven(t, p, able("a", "b", "c"))
	connections, requests, all := 0, 0, []int{}
	for _, h := range p.Hosts {
		if len(d.Measured[h]) != 2 {
			t.Fatalf("%d processes on %s", len(d.Measured[h]), h)
		}
		for _, c := range d.Measured[h] {
			connections += c.Share.Connections
			requests += c.Share.Requests
			all = append(all, c.Share.Connections)
		}
	}
	if connections != 1000 || requests != 100001 || slices.Max(all)-slices.Min(all) > 1 {
		t.Errorf("%d connections as %v, %d requests", connections, all, requests)
	}
}

func TestProcessesWithoutConnectionsAreLeftOut(t *testing.T) {
	p := point("wrk", 3)
	p.Hosts, p.Processes, p.Requests = []lab.HostName{"a", "b"}, 4, 0
	d := driven(t, p, able("a", "b"))
	if len(d.Measured["a"]) != 2 || len(d.Measured["b"]) != 1 {
		t.Errorf("%d and %d processes for 3 connections", len(d.Measured["a"]), len(d.Measured["b"]))
	}
}

func TestThreadsDivideConnections(t *testing.T) {
	for _, c := range []struct{ connections, processes, want int }{
		{100, 1, 4}, {10, 1, 2}, {3, 1, 3}, {1, 1, 1}, {7, 1, 1}, {200, 2, 2}, {800, 8, 1},
	} {
		p := point("wrk", c.connections)
		p.Processes = c.processes
		if got := driven(t, p, able("a")).Measured["a"][0].Share.Threads; got != c.want {
			t.Errorf("%d connections in %d processes on 4 CPUs: %d threads, want %d", c.connections, c.processes, got, c.want)
		}
	}
}

func TestPinnedProcessesShareTheCPUs(t *testing.T) {
	for _, c := range []struct {
		processes int
		want      string
	}{{1, "[[2 3 5]]"}, {2, "[[2 3] [5]]"}, {3, "[[2] [3] [5]]"}, {5, "[[2] [3] [5] [2] [3]]"}} {
		p := point("wrk", 30)
		p.Processes, p.CPUs = c.processes, map[lab.HostName][]int{"a": {2, 3, 5}}
		var got [][]int
		for _, command := range driven(t, p, able("a")).Measured["a"] {
			got = append(got, command.CPUs)
			if command.Share.Threads > len(command.CPUs) {
				t.Errorf("%d threads on CPUs %v", command.Share.Threads, command.CPUs)
			}
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("%d processes on %v, want %s", c.processes, got, c.want)
		}
	}
}

func TestThreadsStayWithinTheQuotaOfAContainer(t *testing.T) {
	facts := able("a")
	bounded := facts["a"]
	bounded.CgroupCPUs = 1.5
	facts["a"] = bounded
	p := point("wrk", 12)
	if got := driven(t, p, facts).Measured["a"][0].Share.Threads; got != 2 {
		t.Errorf("1.5 of 4 CPUs: %d threads, want 2", got)
	}
	p.CPUs = map[lab.HostName][]int{"a": {1, 2, 3}}
	if got := driven(t, p, facts).Measured["a"][0].Share.Threads; got != 2 {
		t.Errorf("pinned to 3 CPUs with 1.5 of them: %d threads, want 2", got)
	}
}

func TestWarmUpOfAFractionEndsAtItsDeadline(t *testing.T) {
	p := point("wrk", 10)
	p.WarmupFirst, p.Warmup = lab.Seconds(0.5), lab.Duration{}
	d := driven(t, p, able("a"))
	if c := d.First["a"][0]; c.Deadline.Duration != 500*time.Millisecond || !strings.Contains(line(c), "-d1s") {
		t.Errorf("%s with deadline %v", line(c), c.Deadline)
	}
	if d.Warmup != nil {
		t.Errorf("a warm-up of no length: %v", d.Warmup)
	}
}

func TestOpenFilesAreRaisedOnlyWhenNeeded(t *testing.T) {
	for _, c := range []struct{ connections, want int }{{100, 0}, {1004, 0}, {1005, 1025}, {5000, 5020}} {
		if got := driven(t, point("ab", c.connections), able("a")).Measured["a"][0].Nofile; got != c.want {
			t.Errorf("%d connections: nofile %d, want %d", c.connections, got, c.want)
		}
	}
}

func TestLongTimedRunOfABStaysWithinMemory(t *testing.T) {
	p := point("ab", 10)
	p.Duration = lab.Seconds(3600)
	if got := line(driven(t, p, able("a")).Measured["a"][0]); !strings.Contains(got, "-t 3600 -n 100000000 ") {
		t.Error(got)
	}
}

func TestUnknownToolIsAnError(t *testing.T) {
	if _, err := Drive(point("siege", 1), web, able("a")); err == nil || !strings.Contains(err.Error(), `unknown tool "siege"`) {
		t.Errorf("error %v", err)
	}
}

func TestToolsAreDescribed(t *testing.T) {
	for _, tool := range Tools() {
		if tool.Package == "" || tool.Command == "" || tool.Latency == "" || tool.Loop == "" {
			t.Errorf("%+v", tool)
		}
		if got, ok := Named(tool.Name); !ok || got.Name != tool.Name {
			t.Errorf("%q is not found by its name", tool.Name)
		}
	}
}
