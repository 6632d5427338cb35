package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"ngxlab/internal/testlab"
	"ngxlab/internal/testlab/dockerlab"
	"ngxlab/lab"
)

// labStudy is the tuned study on one target and three load hosts; NAME is replaced.
const labStudy = `name: NAME
title: Is everything put back?
hosts:
  web: {docker: {memory: 1GiB, nofile: 10000}, roles: [target]}
  gen: {docker: {memory: 256MiB}, roles: [load], count: 3}
builds:
  nginx: {flavor: nginx, modules: [stub_status, echo], source: [{debian: nginx}]}
server: {build: nginx, port: 8081, site: file, body: 1KiB}
steps:
  - {name: default, nginx: {access_log: logs/access.log}}
  - {name: kernel, sysctl: {net.core.somaxconn: 8192}}
load:
  - {tool: wrk, connections: 9, keepalive: true, duration: 1s, warmup: {first: 0s, further: 0s}}
repeat: {min: 1, max: 1, precision: 5%, effect: 5%, cool_down: 10ms, control: false}
`

// labTest runs commands on a Docker lab of its own.
type labTest struct {
	*machineTest
	name string
}

// inLab prepares the study lab.yaml of a lab that is not up; it is taken down with the test.
func inLab(t *testing.T) *labTest {
	t.Helper()
	testlab.Require(t, "docker")
	t.Setenv("DOCKER_HOST", testlab.Docker(t))
	l := &labTest{machineTest: &machineTest{command: newCommand(t)}, name: dockerlab.Name()}
	l.agent = testlab.Agent(t)
	l.attach = l.reach
	t.Setenv("XDG_STATE_HOME", filepath.Join(l.dir, "state")) // of the lab's key
	l.study = strings.Replace(labStudy, "NAME", l.name, 1)
	l.write("lab.yaml", l.study)
	dockerlab.Down(t, dockerlab.Open(t), l.name)
	return l
}

// build brings the lab up and gives its target the build that all tests share.
func (l *labTest) build() {
	l.t.Helper()
	l.must([]int{exitDone}, "hosts", "up", "DIR/lab.yaml")
	here := newCommand(l.t)
	here.onThisMachine()
	x, err := loadExperiment(filepath.Join(l.dir, "lab.yaml"))
	must(l.t, err)
	l.give(here, x.Hosts[0])
}

// give copies a build of this machine's to a host of the lab: containers may have no way out to fetch its source.
func (l *labTest) give(here *command, h lab.Host) {
	l.t.Helper()
	ctx := l.t.Context()
	from, err := here.attach(ctx, "", lab.Host{Name: "local", Local: true})
	must(l.t, err)
	defer func() { must(l.t, from.close()) }()
	to, err := l.attach(ctx, l.name, h)
	must(l.t, err)
	defer func() { must(l.t, to.close()) }()
	must(l.t, from.claim(ctx, "test"))
	must(l.t, to.claim(ctx, "test"))
	b, err := from.Build(ctx, testlab.Recipe(), io.Discard)
	must(l.t, err)
	var stream bytes.Buffer
	must(l.t, from.Export(ctx, b, &stream))
	_, err = to.Import(ctx, b, &stream)
	must(l.t, err)
}

// docker runs the docker command.
func (l *labTest) docker(args ...string) string {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(l.t.Context()), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, "docker", args...).CombinedOutput()
	if err != nil {
		l.t.Fatalf("docker %v: %v: %s", args, err, out)
	}
	return string(out)
}

// container is what the engine calls a host of the lab.
func (l *labTest) container(host string) string { return fmt.Sprintf("ngxlab-%s-%s", l.name, host) }

// somaxconn is the knob that the study changes, as it is on the target.
func (l *labTest) somaxconn() string {
	return strings.TrimSpace(l.docker("exec", l.container("web"), "cat", "/proc/sys/net/core/somaxconn"))
}

func TestLabIsBroughtUpRunAndTakenDown(t *testing.T) {
	l := inLab(t)
	plan := l.must([]int{exitDone}, "plan", "DIR/lab.yaml")
	for _, want := range []string{"web (target; a container ", "at most 1 GiB memory", "web, gen1, gen2, gen3 share one kernel", "gen3 → web: wrk"} {
		if !strings.Contains(plan, want) {
			t.Errorf("the plan lacks %q:\n%s", want, plan)
		}
	}
	if !strings.Contains(l.err.String(), "4 containers brought up in ") {
		t.Errorf("plan says %s", l.err)
	}
	l.build()
	before := l.somaxconn()
	l.must(finished, "run", "DIR/lab.yaml", "--out", "DIR/report")
	for _, host := range []string{"web", "gen1", "gen2", "gen3"} {
		if !strings.Contains(l.err.String(), host+": as it was before the campaign") {
			t.Errorf("%s is not told of: %s", host, l.err)
		}
	}
	if got := l.somaxconn(); got != before {
		t.Errorf("net.core.somaxconn of web is %s, was %s", got, before)
	}
	if got := l.runs(); got < 2 {
		t.Errorf("%d runs, want 2", got)
	}
	if said := l.must([]int{exitDone}, "hosts", "list", "DIR/lab.yaml"); strings.Count(said, hostAnswers) != 4 {
		t.Errorf("hosts list says %s", said)
	}
	said := l.must([]int{exitDone}, "hosts", "down", "DIR/lab.yaml")
	for _, host := range []string{"web", "gen1", "gen2", "gen3"} {
		if !strings.Contains(said, l.container(host)) {
			t.Errorf("%s is not told of: %s", host, said)
		}
	}
	if left := l.docker("ps", "-aq", "--filter", "label=ngxlab.lab="+l.name); left != "" {
		t.Errorf("left are %s", left)
	}
	if said := l.must([]int{exitDone}, "restore", "DIR/lab.yaml"); strings.Count(said, "nothing to put back") != 4 {
		t.Errorf("restore says %s", said)
	}
	if said := l.must([]int{exitDone}, "hosts", "list", "DIR/lab.yaml"); strings.Count(said, hostDown) != 4 {
		t.Errorf("hosts list says %s", said)
	}
}

func TestInterruptInALabPutsItsHostsBack(t *testing.T) {
	l := inLab(t)
	l.build()
	before := l.somaxconn()
	p := l.start("run", "DIR/lab.yaml", "--seed", kernelFirst, "--json")
	p.until("change", kind(lab.EventChange))
	p.until("run", kind(lab.EventRun))
	p.signal(syscall.SIGINT)
	p.mustEnd(exitInterrupted, "web: as it was before the campaign", "gen3: as it was before the campaign")
	if got := l.somaxconn(); got != before {
		t.Errorf("net.core.somaxconn of web is %s, was %s", got, before)
	}
	l.docker("rm", "-f", l.container("gen1"))
	l.must(finished, "resume", "--out", "DIR/report")
	if said := l.err.String(); !strings.Contains(said, "1 container brought up in ") || strings.Contains(said, "part 2 begins") {
		t.Errorf("resume says %s", said)
	}
}

func TestMissingEngineIsToldWithTheCure(t *testing.T) {
	c := newCommand(t)
	c.attach = c.reach
	t.Setenv("DOCKER_HOST", "unix://"+filepath.Join(c.dir, "nowhere.sock"))
	c.write("lab.yaml", strings.Replace(labStudy, "NAME", "nowhere", 1))
	for _, line := range [][]string{{"plan", "DIR/lab.yaml"}, {"hosts", "up", "DIR/lab.yaml"}, {"hosts", "down", "nowhere"}, {"hosts", "list", "DIR/lab.yaml"}} {
		if code := c.run(line...); code != exitFailed || !strings.Contains(c.err.String(), "nowhere.sock") || !strings.Contains(c.err.String(), "hint: install Docker") {
			t.Errorf("%v: exit code %d: %s", line, code, c.err)
		}
		if n := strings.Count(c.err.String(), "reach the Docker engine"); n != 1 {
			t.Errorf("%v: the engine is told of %d times: %s", line, n, c.err)
		}
	}
	x, err := loadExperiment(filepath.Join(c.dir, "lab.yaml"))
	must(t, err)
	st := standing{Hosts: c.askAll(t.Context(), x, askPending)}
	if must(t, st.print(c.app, x)); strings.Count(c.out.String(), "reach the Docker engine") != 1 || !strings.Contains(c.out.String(), "web, gen1, gen2, gen3: not known") {
		t.Errorf("status says %s", c.out)
	}
	if c.run("hosts", "list", "DIR/lab.yaml"); strings.Count(c.out.String(), hostNoEngine) != 4 {
		t.Errorf("hosts list says %s", c.out)
	}
}

// TestLabThatACampaignHoldsStays takes down and changes a lab while load runs in it.
func TestLabThatACampaignHoldsStays(t *testing.T) {
	l := inLab(t)
	l.build()
	p := l.start("run", "DIR/lab.yaml", "--seed", kernelFirst, "--json")
	e := p.until("run", kind(lab.EventRun))
	l.with("other.yaml", "memory: 1GiB", "memory: 2GiB")
	for _, line := range [][]string{{"hosts", "down", "DIR/lab.yaml"}, {"hosts", "up", "DIR/other.yaml"}, {"plan", "DIR/other.yaml"}, {"run", "DIR/other.yaml"}, {"hosts", "clean", "DIR/lab.yaml"}} {
		code := l.do(line...)
		for _, want := range []string{"in use by " + l.person, "campaign " + string(e.Campaign), "since 2", "hint: wait until that campaign has ended, or end it"} {
			if code != exitFailed || !strings.Contains(l.err.String(), want) {
				t.Errorf("%v: exit code %d, %q is missing: %s", line, code, want, l.err)
			}
		}
	}
	said := l.must([]int{exitDone}, "hosts", "list")
	if strings.Count(said, "docker, lab "+l.name+" of "+l.person) != 4 || strings.Count(said, "campaign "+string(e.Campaign)) != 4 {
		t.Errorf("hosts list says %s", said)
	}
	p.signal(syscall.SIGINT)
	p.mustEnd(exitInterrupted, "web: as it was before the campaign")
	if said := l.must([]int{exitDone}, "hosts", "list"); strings.Count(said, l.name+" of ") != 4 || strings.Contains(said, string(e.Campaign)) {
		t.Errorf("afterwards hosts list says %s", said)
	}
	l.docker("pause", l.container("gen1"))
	if said := l.must([]int{exitDone}, "hosts", "list"); strings.Count(said, "  "+statePaused+"  ") != 1 {
		t.Errorf("of a paused container hosts list says %s", said)
	}
	l.must([]int{exitDone}, "hosts", "down", "DIR/lab.yaml")
	if said := l.err.String(); !strings.Contains(said, "gen1 cannot be asked whether a campaign holds it: it is paused") {
		t.Errorf("down says %s", said)
	}
}

func TestHeldLabIsTakenDownByForce(t *testing.T) {
	l := inLab(t)
	l.build()
	p := l.start("run", "DIR/lab.yaml", "--seed", kernelFirst, "--json")
	p.until("run", kind(lab.EventRun))
	if code := l.do("hosts", "down", l.name); code != exitFailed || !strings.Contains(l.err.String(), `"ngxlab hosts down --force `+l.name+`" takes the lab down all the same`) || l.out.Len() > 0 {
		t.Errorf("exit code %d: %s", code, l.err)
	}
	l.must([]int{exitDone}, "hosts", "down", "--force", l.name)
	if p.exit() == exitDone {
		t.Error("the campaign is done without its hosts")
	}
	if left := l.docker("ps", "-aq", "--filter", "label=ngxlab.lab="+l.name); left != "" {
		t.Errorf("left are %s", left)
	}
}

func TestLabOfAnotherUserIsNeitherUsedNorChanged(t *testing.T) {
	l := inLab(t)
	l.must([]int{exitDone}, "hosts", "up", "DIR/lab.yaml")
	t.Setenv("XDG_STATE_HOME", filepath.Join(l.dir, "another"))
	first := l.person
	l.person = "ben@laptop"
	for _, line := range [][]string{{"hosts", "up", "DIR/lab.yaml"}, {"run", "DIR/lab.yaml"}, {"hosts", "facts", "DIR/lab.yaml"}, {"hosts", "down", "DIR/lab.yaml"}, {"hosts", "clean", "DIR/lab.yaml"}, {"restore", "DIR/lab.yaml"}} {
		if code := l.do(line...); code != exitFailed || !strings.Contains(l.err.String(), "lab "+l.name+" of "+first+" is there on this engine") || !strings.Contains(l.err.String(), "hint: ") {
			t.Errorf("%v: exit code %d: %s", line, code, l.err)
		}
	}
	if said := l.must([]int{exitDone}, "hosts", "list", "DIR/lab.yaml"); strings.Count(said, "of "+first) != 4 || strings.Count(said, hostAnswers) != 4 {
		t.Errorf("hosts list says %s", said)
	}
	if n := len(strings.Fields(l.docker("ps", "-q", "--filter", "label=ngxlab.lab="+l.name))); n != 4 {
		t.Errorf("%d containers are left, want 4", n)
	}
	l.must([]int{exitDone}, "hosts", "down", "--force", "DIR/lab.yaml")
}
