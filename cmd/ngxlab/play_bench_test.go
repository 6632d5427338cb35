package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"ngxlab/internal/testlab"
	"ngxlab/lab"
	"ngxlab/store"
)

// playSysctls are ten values of the network namespace for which one more makes no difference that anyone notices.
var playSysctls = []string{
	"net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_keepalive_probes", "net.ipv4.tcp_retries2", "net.ipv4.tcp_orphan_retries",
	"net.ipv4.tcp_reordering", "net.ipv4.tcp_syn_retries", "net.ipv4.tcp_max_syn_backlog", "net.ipv4.igmp_max_memberships",
	"net.ipv4.igmp_max_msf", "net.ipv4.tcp_synack_retries",
}

// playRest is the study's cool-down: the default.
const playRest = 500 * time.Millisecond

// playStudy changes ten sysctls and nginx's configuration from run to run.
const playStudy = `builds: {nginx: {flavor: nginx, modules: [stub_status, echo], source: [{debian: nginx}]}}
server: {build: nginx, port: %d, site: file, body: 1KiB}
steps:
  - {name: default, nginx: {access_log: logs/access.log}}
  - {name: tuned, nginx: {access_log: "off"}, sysctl: {%s}}
load: [{tool: wrk, connections: 10, keepalive: true, duration: 1s, warmup: {first: 0s, further: 0s}}]
repeat: {min: 8, max: 8, precision: 5%%, effect: 5%%, cool_down: %v, control: false}
`

// playTasks writes nginx's configuration and restarts it; the arguments are its binary and folder.
const playTasks = `    - ansible.builtin.template: {src: nginx.conf.j2, dest: %[2]s/nginx.conf}
    - ansible.builtin.shell: |
        if [ -e nginx.pid ]; then %[1]s -p %[2]s -c nginx.conf -s stop; fi
        while [ -e nginx.pid ]; do sleep 0.01; done
        %[1]s -p %[2]s -c nginx.conf
      args: {chdir: %[2]s}
`

const playConfig = `worker_processes 2; pid nginx.pid; error_log error.log; events { worker_connections 1000; }
http { access_log {{ tuned | ternary('off', 'access.log') }}; server { listen 127.0.0.1:%d; location / { return 200 "hello"; } } }
`

// sysctlFile is where a sysctl is read and written.
func sysctlFile(name string) string {
	return filepath.Join("/proc/sys", strings.ReplaceAll(name, ".", "/"))
}

// playValues are the original values of playSysctls; they are in force again when the benchmark has ended.
func playValues(b *testing.B) []int {
	b.Helper()
	values := make([]int, len(playSysctls))
	for i, name := range playSysctls {
		testlab.RequireWritable(b, sysctlFile(name))
		text, err := os.ReadFile(sysctlFile(name))
		must(b, err)
		values[i], err = strconv.Atoi(strings.TrimSpace(string(text)))
		must(b, err)
		b.Cleanup(func() { must(b, os.WriteFile(sysctlFile(name), text, 0o644)) })
	}
	return values
}

// play writes the playbook that makes the study's changes, and returns how it is run to one of the two states.
func (h *benched) play(b *testing.B, values []int) func(tuned bool) float64 {
	b.Helper()
	ansible, nginx, site := h.ansible(b), testlab.Nginx(b).Binary, b.TempDir()
	h.write(b, "nginx.conf.j2", fmt.Sprintf(playConfig, testlab.FreePort(b)))
	book := "- hosts: all\n  gather_facts: false\n  tasks:\n"
	for i, name := range playSysctls {
		book += fmt.Sprintf("    - ansible.posix.sysctl: {name: %s, value: \"{{ tuned | ternary('%d', '%d') }}\", sysctl_file: %s/sysctl.conf, sysctl_set: true, reload: false}\n",
			name, values[i]+1, values[i], site)
	}
	path := h.write(b, "play.yaml", book+fmt.Sprintf(playTasks, nginx, site))
	stop := exec.CommandContext(context.WithoutCancel(b.Context()), nginx, "-p", site, "-c", "nginx.conf", "-s", "stop")
	b.Cleanup(func() { must(b, stop.Run()) })
	return func(tuned bool) float64 {
		return timed(b, ansible("ansible-playbook", path, "-e", fmt.Sprintf(`{"tuned": %v}`, tuned)))
	}
}

// gaps are the times between two runs with a change of the host's state from the one to the other, in s.
type gaps struct {
	all      []float64 // from the end of the load to the next load, without the cool-down
	overhead []float64 // … and without the server's stop and start, as the lab accounts it
}

// between runs the study through ngxlab and reads its times from the store.
func (h *benched) between(b *testing.B, values []int) (all gaps) {
	b.Helper()
	var tuned []string
	for i, name := range playSysctls {
		tuned = append(tuned, fmt.Sprintf("%s: %d", name, values[i]+1))
	}
	study := h.study(b, fmt.Sprintf(playStudy, testlab.FreePort(b), strings.Join(tuned, ", "), playRest))
	said, err := h.ngxlab(b, "run", study, "--out", filepath.Join(h.dir, "report")).CombinedOutput()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != exitDoubtful) { // invalid runs are timed all the same
		b.Fatalf("%v: %s", err, said)
	}
	r := h.results(b)
	for i, run := range r.Runs[1:] {
		if before := r.Runs[i]; before.Cell != run.Cell {
			all.all = append(all.all, run.Began.Sub(endOf(before)).Seconds()-playRest.Seconds())
			all.overhead = append(all.overhead, run.OverheadS)
		}
	}
	return all
}

// endOf is when the last process of a run ended.
func endOf(r lab.Run) time.Time {
	var longest time.Duration
	for _, p := range r.Processes {
		longest = max(longest, p.Ended.Sub(p.Released))
	}
	return r.Began.Add(longest)
}

// results are those of the only campaign.
func (h *benched) results(b *testing.B) lab.Results {
	b.Helper()
	s, err := store.OpenReadOnly(b.Context(), filepath.Join(h.dir, "lab.db"))
	must(b, err)
	defer s.Close() //nolint:errcheck // only read
	campaigns, err := s.Campaigns(b.Context())
	must(b, err)
	r, err := s.Results(b.Context(), campaigns[0].ID, store.Options{})
	must(b, err)
	return r
}

// BenchmarkBetweenRunsAgainstAnsible moves an OpenSSH host from one state to another and back: ten sysctls, the
// configuration of nginx, a new start of it. ngxlab does it between the runs of a study, with everything journaled, read
// back and measured; Ansible by a play, over a connection that it keeps. between-s is all the time between the load of
// two runs but the cool-down, overhead-s what of it is not the server's stop and start either; the ratios are the play's
// time ÷ these.
func BenchmarkBetweenRunsAgainstAnsible(b *testing.B) {
	testlab.Require(b, "wrk")
	values := playValues(b)
	h := bench(b, 1)
	state := filepath.Join(h.dir, "state")
	must(b, os.Mkdir(state, 0o755))
	must(b, os.Symlink(buildsOf(testlab.Nginx(b)), filepath.Join(state, "builds")))
	play := h.play(b, values)
	play(true) // what is made once is made
	play(false)
	for b.Loop() {
		var plays []float64
		for range 3 {
			plays = append(plays, play(true), play(false))
		}
		all := h.between(b, values)
		for range 2 {
			plays = append(plays, play(true), play(false))
		}
		played, between, overhead := median(b, plays), median(b, all.all), median(b, all.overhead)
		b.ReportMetric(played, "play-s")
		b.ReportMetric(between, "between-s")
		b.ReportMetric(overhead, "overhead-s")
		b.ReportMetric(played/between, "ratio-between")
		b.ReportMetric(played/overhead, "ratio-overhead")
	}
	b.ReportMetric(0, "ns/op")
}
