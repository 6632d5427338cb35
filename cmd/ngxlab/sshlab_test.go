package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"ngxlab/hosts/docker"
	"ngxlab/internal/testlab"
	"ngxlab/internal/testlab/dockerlab"
	"ngxlab/lab"
	"ngxlab/store"
)

// farStudy is the tuned study on hosts over SSH, of which the load hosts are entered as an ordinary user. The hosts are
// put in for HOSTS; what is in braces of BUILD is the source of the build.
const farStudy = `name: NAME
title: Is everything put back?
hosts:
HOSTS
builds:
  nginx: {flavor: nginx, modules: [stub_status, echo], source: [{debian: nginx}]}
server: {build: nginx, port: 8081, site: file, body: 1KiB}
steps:
  - {name: default, nginx: {access_log: logs/access.log}}
  - {name: kernel, on: [target, load], sysctl: {net.core.somaxconn: 8192, net.ipv4.tcp_fin_timeout: 33}}
load:
  - {tool: wrk, connections: 9, keepalive: true, duration: 2s, warmup: {first: 1s, further: 0s}}
repeat: {min: 1, max: 1, precision: 5%, effect: 5%, cool_down: 500ms, control: false}
capacity: {connections: [0, 60, 120], ramps: 1}
`

// farLab is the containers of a Docker lab as hosts over SSH.
type farLab struct {
	*labTest
	hosts []docker.Container
}

// farHosts are the names of the lab's hosts: one target and three load hosts.
var farHosts = []lab.HostName{"web", "gen1", "gen2", "gen3"}

// overSSHInLab brings up a lab and prepares far.yaml, on its hosts over SSH, and lab.yaml, on the same containers through the
// Docker engine. It changes nothing that tests at the same time share; sharedHome has to be called before.
func overSSHInLab(t *testing.T) *farLab {
	t.Helper()
	testlab.Require(t, "docker")
	l := &farLab{labTest: &labTest{machineTest: &machineTest{command: newCommand(t)}, name: dockerlab.Name()}}
	l.agent = testlab.Agent(t)
	l.attach = l.reach
	here := newCommand(t)
	here.onThisMachine() // has the build that all tests share
	all := docker.Lab{Name: l.name}
	for _, name := range farHosts {
		all.Hosts = append(all.Hosts, lab.Host{Name: name, Docker: &lab.DockerHost{}})
	}
	e, err := docker.Open(t.Context(), docker.Options{Host: testlab.Docker(t), State: t.TempDir(), Owner: l.person}) // who runs the program, too
	must(t, err)
	t.Cleanup(func() { must(t, e.Close()) })
	l.hosts = dockerlab.Up(t, e, all)
	for _, h := range l.hosts {
		l.know(h)
	}
	l.study = strings.NewReplacer("NAME", l.name, "HOSTS\n", l.asSSH()).Replace(farStudy)
	l.write("far.yaml", l.study)
	x, err := loadExperiment(filepath.Join(l.dir, "far.yaml"))
	must(t, err)
	l.give(here, x.Hosts[0])
	return l
}

// sharedHome gives the test and its subtests a home without SSH configuration whose known hosts each lab adds to, and a
// directory for the keys of labs.
func sharedHome(t *testing.T) {
	t.Helper()
	t.Setenv("DOCKER_HOST", testlab.Docker(t))
	testlab.Agent(t) // what go needs for it is below the home
	if cache, err := os.UserCacheDir(); err == nil && os.Getenv("NGXLAB_TEST_CACHE") == "" {
		t.Setenv("NGXLAB_TEST_CACHE", filepath.Join(cache, "ngxlab-test"))
	}
	home := t.TempDir()
	must(t, os.Mkdir(filepath.Join(home, ".ssh"), 0o700))
	t.Setenv("HOME", home)
	t.Setenv("SSH_AUTH_SOCK", "")
	t.Setenv("XDG_STATE_HOME", filepath.Join(home, "state"))
}

// know adds the key of a host at its present address to the known hosts.
func (l *farLab) know(h docker.Container) {
	l.t.Helper()
	file, err := os.OpenFile(filepath.Join(os.Getenv("HOME"), ".ssh", "known_hosts"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	must(l.t, err)
	_, err = fmt.Fprintf(file, "%s %s\n", h.Address, h.HostKey)
	must(l.t, err)
	must(l.t, file.Close())
}

// asSSH are the lines of the experiment file for the hosts.
func (l *farLab) asSSH() string {
	var b strings.Builder
	for _, h := range l.hosts {
		access := "user: bench, sudo: true, roles: [load]"
		if h.Host == "web" {
			access = "user: root, roles: [target]"
		}
		fmt.Fprintf(&b, "  %s: {address: %s, key: %s, %s}\n", h.Host, h.Address, h.Key, access)
	}
	return b.String()
}

// host is a host of the lab.
func (l *farLab) host(name string) docker.Container {
	for _, h := range l.hosts {
		if string(h.Host) == name {
			return h
		}
	}
	l.t.Fatalf("the lab has no host %s", name)
	return docker.Container{}
}

// inside runs a script as root in the container of a host.
func (l *labTest) inside(host, script string) string {
	l.t.Helper()
	return l.docker("exec", l.container(host), "/bin/sh", "-c", script)
}

// sysctls is what every host says of itself in sysctl -a, but for what changes by itself, and the interfaces, which may be made anew.
func (l *labTest) sysctls() map[string]string {
	l.t.Helper()
	all := map[string]string{}
	for _, h := range farHosts {
		all[string(h)] = l.inside(string(h), "sysctl -a 2>/dev/null | grep ^net | grep -v -e nf_conntrack_count -e [.]eth[0-9]")
	}
	return all
}

// mustBeAs holds that sysctls are as they were, and names those that are not.
func (l *labTest) mustBeAs(before map[string]string) {
	l.t.Helper()
	for host, now := range l.sysctls() {
		was := strings.Split(before[host], "\n")
		sort.Strings(was)
		for line := range strings.SplitSeq(now, "\n") {
			if i := sort.SearchStrings(was, line); i == len(was) || was[i] != line {
				l.t.Errorf("%s has %s", host, line)
			}
		}
	}
}

// running are the processes in a container that neither made nor look into it, by pid there.
func (l *labTest) running(host string) map[string]string {
	l.t.Helper()
	found := map[string]string{}
	for line := range strings.SplitSeq(strings.TrimSpace(l.inside(host, "ps -eo pid=,stat=,args=")), "\n") {
		fields := strings.Fields(line)
		if len(fields) < 3 || fields[0] == "1" || strings.HasPrefix(fields[1], "Z") {
			continue
		}
		what := strings.Join(fields[2:], " ")
		if !strings.HasPrefix(what, "sshd:") && !strings.Contains(what, "ps -eo pid=") {
			found[fields[0]] = what
		}
	}
	return found
}

// mustBeIdle holds that nothing runs on any host; another "hosts list" on the same engine may ask them for a moment.
func (l *farLab) mustBeIdle() {
	l.t.Helper()
	for _, h := range farHosts {
		testlab.Eventually(l.t, "nothing runs on "+string(h), func() bool { return len(l.running(string(h))) == 0 })
	}
}

// TestMainJobOverSSH runs the whole study on a target and three load hosts over SSH, two tools and the capacity part.
func TestMainJobOverSSH(t *testing.T) {
	sharedHome(t)
	l := overSSHInLab(t)
	l.with("main.yaml", "repeat:", "  - {tool: ab, connections: 9, keepalive: false, duration: 1s, warmup: {first: 0s, further: 0s}}\nrepeat:")
	before := l.sysctls()
	plan := l.must([]int{exitDone}, "plan", "DIR/main.yaml")
	for _, want := range []string{"web (target; root@" + l.host("web").Address, "gen3 (load; bench@" + l.host("gen3").Address, "gen3 → web: wrk", "http://" + l.host("web").Address + ":8081"} {
		if !strings.Contains(plan, want) {
			t.Errorf("the plan lacks %q:\n%s", want, plan)
		}
	}
	l.must(finished, "run", "DIR/main.yaml", "--out", "DIR/report")
	said := l.err.String()
	for _, h := range farHosts {
		if !strings.Contains(said, string(h)+": as it was before the campaign") {
			t.Errorf("%s is not told of: %s", h, said)
		}
	}
	l.mustBeIdle()
	l.mustBeAs(before)
	if said := l.must([]int{exitDone}, "restore", "--check", "DIR/main.yaml"); strings.Count(said, "nothing to put back") != 4 {
		t.Errorf("restore --check says %s", said)
	}
	if got := l.runs(); got < 4 {
		t.Errorf("%d runs, want 4", got)
	}
	l.mustHaveMeasured()
	if report, err := os.ReadFile(filepath.Join(l.dir, "report", "report.html")); err != nil || len(report) < 10_000 {
		t.Errorf("the report has %d bytes, %v", len(report), err)
	}
}

// mustHaveMeasured holds that every run has processes, samples and a release of every host.
func (l *farLab) mustHaveMeasured() {
	l.t.Helper()
	ctx := context.WithoutCancel(l.t.Context())
	s, err := store.OpenReadOnly(ctx, filepath.Join(l.dir, "lab.db"))
	must(l.t, err)
	defer func() { must(l.t, s.Close()) }()
	c, err := s.Latest(ctx)
	must(l.t, err)
	r, err := s.Results(ctx, c.ID, store.Options{Samples: true, Raw: true})
	must(l.t, err)
	for _, run := range r.Runs {
		loads, samples := map[lab.HostName]int{}, map[lab.HostName]int{}
		for _, p := range run.Processes {
			loads[p.Host]++
		}
		for _, x := range run.Samples {
			samples[x.Host]++
		}
		for _, h := range farHosts {
			if samples[h] < 2 || (loads[h] > 0) != (h != "web") {
				l.t.Errorf("%s, %s: %d samples and %d load processes of %s", run.Cell.State, run.Cell.Load, samples[h], loads[h], h)
			}
		}
		if run.Figures[lab.Requests] <= 0 {
			l.t.Errorf("%s, %s: figures %v, findings %v", run.Cell.State, run.Cell.Load, run.Figures, run.Findings)
		}
		for _, f := range run.Findings {
			if f.Outcome == lab.Fired {
				l.t.Logf("%s, %s: %s (%s): %s", run.Cell.State, run.Cell.Load, f.Code, f.Consequence, f.Evidence)
			}
		}
	}
	if len(r.Levels) != 3 {
		l.t.Errorf("%d capacity levels, want 3", len(r.Levels))
	}
}
