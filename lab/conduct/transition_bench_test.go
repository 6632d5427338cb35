package conduct

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"ngxlab/experiments"
	"ngxlab/hosts"
	"ngxlab/internal/testlab"
	"ngxlab/lab"
	"ngxlab/lab/plan"
)

// ownNetwork gives the test, and the processes that it starts from its own goroutine, a network namespace with a
// loopback interface: sysctls changed there are nobody else's.
func ownNetwork(tb testing.TB) {
	tb.Helper()
	runtime.LockOSThread() // never unlocked: the thread ends with the test's goroutine
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		tb.Skipf("SKIPPED: no network namespace can be made here: %v", err)
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		tb.Fatal(err)
	}
	defer unix.Close(fd) //nolint:errcheck // of no file
	request, err := unix.NewIfreq("lo")
	if err != nil {
		tb.Fatal(err)
	}
	request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCSIFFLAGS, uintptr(unsafe.Pointer(request))); errno != 0 {
		tb.Fatalf("raise lo: %v", errno)
	}
}

// ownHost is an agent in the network namespace of the test, and the plan of a study for it.
func ownHost(tb testing.TB, study string) (*hosts.Host, lab.Plan) {
	tb.Helper()
	e, err := experiments.Decode("own.yaml", strings.NewReader(study))
	if err != nil {
		tb.Fatal(err)
	}
	host, err := hosts.Local(tb.Context(), hosts.Options{Name: "here", Dir: testlab.StateDir(tb), Agent: testlab.Agent(tb)})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = host.Close() })
	if err := host.Claim(tb.Context(), "own", "a test"); err != nil {
		tb.Fatal(err)
	}
	facts, err := host.Facts(tb.Context(), plan.Query(e, e.Hosts[0]))
	if err != nil {
		tb.Fatal(err)
	}
	p, err := plan.New(e, map[lab.HostName]lab.Facts{"here": facts}, 1)
	if err != nil {
		tb.Fatal(err)
	}
	return host, p
}

const transitionStudy = `name: transition
hosts: {here: {local: true, roles: [target, load]}}
builds: {nginx: {flavor: nginx, modules: [stub_status, echo], source: [{debian: nginx}]}}
server: {build: nginx, port: %d, site: file, body: 1KiB}
steps:
  - {name: default, nginx: {access_log: logs/access.log}}
  - name: tuned
    nginx: {access_log: "off"}
    sysctl: {net.core.somaxconn: 16384, net.ipv4.tcp_fin_timeout: 15, net.ipv4.tcp_max_syn_backlog: 8192, net.ipv4.tcp_tw_reuse: 1,
      net.ipv4.tcp_keepalive_time: 600, net.ipv4.tcp_keepalive_intvl: 30, net.ipv4.tcp_keepalive_probes: 5,
      net.ipv4.tcp_slow_start_after_idle: 0, net.ipv4.ip_local_port_range: 1024 65000, net.ipv4.tcp_syn_retries: 3}
load: [{tool: wrk, connections: 10, keepalive: true, duration: 1s}]
`

// transitions is how often the benchmark goes to the tuned state and back.
const transitions = 20

// BenchmarkTransition moves a host from one state to another and back: ten sysctls, each journaled, written and read back,
// and a fresh server with another configuration, checked and probed. It reports medians in ms.
func BenchmarkTransition(b *testing.B) {
	testlab.Require(b, "wrk")
	ownNetwork(b)
	host, p := ownHost(b, fmt.Sprintf(transitionStudy, testlab.FreePort(b)))
	if changes := p.Changes["here"]; len(p.Fatal()) > 0 || len(p.Original.Settings["here"]) != 10 {
		b.Fatalf("refused %+v, changes %+v", p.Fatal(), changes)
	}
	machines := map[lab.HostName]Machine{"here": {Tuner: host, Builder: host, Runner: host, Watcher: host}}
	c, err := begin(b.Context(), &campaign{id: "own", plan: p, hosts: bound(p, machines), rec: &fakeStore{}, emit: ignore})
	if err != nil {
		b.Fatal(err)
	}
	c.builds["nginx"] = map[lab.HostName]lab.Build{"here": testlab.Nginx(b)}
	times := map[string][]float64{}
	for b.Loop() {
		for i := range 2*transitions + 1 { // the first starts the first server only
			moveAndServe(b, c, p.States[i%2], i > 0, times)
		}
	}
	c.dropAll()
	if _, _, err := c.restore(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(0, "ns/op")
	for name, all := range times {
		slices.Sort(all)
		b.ReportMetric(all[len(all)/2], name+"-median-ms")
	}
}

// moveAndServe is one transition: what turn does before its first run.
func moveAndServe(b *testing.B, c *campaign, to lab.State, counts bool, times map[string][]float64) {
	serving, err := c.serving("here", to.Name)
	if err != nil {
		b.Fatal(err)
	}
	began := time.Now()
	last := began
	for _, part := range []struct {
		name string
		do   func() error
	}{
		{"stop", func() error { return c.retire(b.Context(), to) }},
		{"apply10", func() error { return c.move(b.Context(), to) }},
		{"start", func() error { _, err := c.running(b.Context(), 1, serving); return err }},
	} {
		if err := part.do(); err != nil {
			b.Fatal(err)
		}
		if counts {
			times[part.name] = append(times[part.name], milliseconds(time.Since(last)))
		}
		last = time.Now()
	}
	if counts {
		times["total"] = append(times["total"], milliseconds(last.Sub(began)))
	}
}
