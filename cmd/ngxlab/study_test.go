package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"ngxlab/internal/testlab"
	"ngxlab/lab"
)

// realStudy is run on this machine, with real nginx and wrk. %d is the port.
const realStudy = `name: real
title: Does switching the access log off help?
hosts:
  here: {local: true, roles: [target, load]}
builds:
  nginx: {flavor: nginx, modules: [stub_status, echo], source: [{debian: nginx}]}
server: {build: nginx, port: %d, site: file, body: 1KiB}
steps:
  - {name: default, nginx: {access_log: logs/access.log}}
  - {name: log off, nginx: {access_log: "off"}}
load:
  - {tool: wrk, connections: 10, keepalive: true, duration: 1s, warmup: {first: 0s, further: 0s}}
repeat: {min: 2, max: 2, precision: 5%%, effect: 5%%, cool_down: 10ms}
`

// onThisMachine makes the command use a real agent, with the builds that all tests share.
func (c *command) onThisMachine() {
	c.t.Helper()
	testlab.Require(c.t, "wrk")
	cache := buildsOf(testlab.Nginx(c.t))
	c.agent, c.stateDir = testlab.Agent(c.t), filepath.Join(c.dir, "state")
	must(c.t, os.Mkdir(c.stateDir, 0o755))
	for _, dir := range []string{c.dir, filepath.Dir(c.dir)} { // nginx's workers, which are not root, must come through
		must(c.t, os.Chmod(dir, 0o755))
	}
	must(c.t, os.Symlink(cache, filepath.Join(c.stateDir, "builds")))
	c.attach = c.reach
	c.write("real.yaml", fmt.Sprintf(realStudy, testlab.FreePort(c.t)))
}

// buildsOf is the folder of builds that one is in.
func buildsOf(b lab.Build) string {
	dir := b.Binary
	for filepath.Base(dir) != "builds" {
		dir = filepath.Dir(dir)
	}
	return dir
}

// trigger is a writer that calls do once, when what was written has the word n times.
type trigger struct {
	mu   sync.Mutex
	text bytes.Buffer
	word string
	n    int
	once sync.Once
	do   func()
}

func (w *trigger) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text.Write(p)
	if strings.Count(w.text.String(), w.word) >= w.n {
		w.once.Do(w.do)
	}
	return len(p), nil
}

func TestInterruptedStudyIsResumedVerifiedAndReported(t *testing.T) {
	c := newCommand(t)
	c.onThisMachine()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	seen := &trigger{word: " wrk 10 keep-alive: ", n: 2, do: cancel}
	c.app.err = seen
	db := []string{"--db", filepath.Join(c.dir, "lab.db"), "--state-dir", c.stateDir, "--agent", c.agent}
	out := filepath.Join(c.dir, "report")
	code := c.execute(ctx, append(db, "run", filepath.Join(c.dir, "real.yaml"), "--out", out))
	text := seen.text.String()
	for _, want := range []string{"was interrupted after ", "hint: \"ngxlab resume real-", "here: as it was before the campaign"} {
		if code != exitInterrupted || !strings.Contains(text, want) {
			t.Fatalf("exit code %d, %q is missing in:\n%s", code, want, text)
		}
	}

	c.app.err = c.err
	run := func(want []int, line ...string) string {
		t.Helper()
		c.out.Reset()
		c.err.Reset()
		if code := c.execute(t.Context(), append(append([]string{}, db...), line...)); !slices.Contains(want, code) {
			t.Fatalf("%v: exit code %d, want %v:\n%s%s", line, code, want, c.out, c.err)
		}
		return c.out.String()
	}
	done := []int{exitDone}
	onBusyMachine := []int{exitDone, exitDoubtful} // every run is invalid when other programs take the CPU
	events := strings.Split(strings.TrimSpace(run(onBusyMachine, "resume", "--out", out, "--json")), "\n")
	for _, line := range events {
		if !json.Valid([]byte(line)) {
			t.Errorf("resume --json printed %q", line)
		}
	}
	if last := events[len(events)-1]; !strings.Contains(last, `"kind":"result"`) || !strings.Contains(last, "report.html") {
		t.Errorf("resume --json ended with %q", last)
	}
	if strings.Contains(c.err.String(), "begins: its runs are not compared") {
		t.Errorf("nothing changed, but a new part began:\n%s", c.err)
	}
	if text := run(done, "show", "--json"); strings.Count(text, `"attempt"`) < 6 || !strings.Contains(text, `"status": "done"`) {
		t.Errorf("show printed\n%s", text)
	}
	if text := run(done, "verify", "real"); !strings.Contains(text, "all as stored") {
		t.Errorf("verify printed\n%s", text)
	}
	for _, name := range []string{"report.html", "report.md"} {
		if info, err := os.Stat(filepath.Join(out, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	run(done, "restore", "--check")
}
