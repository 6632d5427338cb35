package main

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"ngxlab/lab"
)

// TestBadExperimentIsToldByFileLineAndCure runs, on this machine, files that cannot be carried out. Nothing may be
// changed, written or left.
func TestBadExperimentIsToldByFileLineAndCure(t *testing.T) {
	m := onMachine(t)
	busy, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	defer func() { must(t, busy.Close()) }()
	_, taken, err := net.SplitHostPort(busy.Addr().String())
	must(t, err)
	port := strconv.Itoa(m.port)
	for _, tc := range []struct {
		name   string
		change []string // old, new, …
		line   int
		said   string
		cure   string
	}{
		{"unknown key", []string{"title:", "titel:"}, 2, `unknown key "titel"`, `did you mean "title"?`},
		{"duplicate key", []string{"hosts:", "title: Twice?\nhosts:"}, 3, `the key "title" stands here a second time`, "on line 2 already"},
		{"unknown build", []string{"name: kernel,", "name: kernel, build: ngins,"}, 10, `no build "ngins"`, `did you mean "nginx"?`},
		{"unknown sysctl", []string{"keepalive_intvl", "keepalive_intvll"}, 10, "has no sysctl net.ipv4.tcp_keepalive_intvll", "did you mean net.ipv4.tcp_keepalive_intvl?"},
		{"unknown directive", []string{"access_log:", "acces_log:"}, 9, `unknown directive "acces_log"`, "correct the name"},
		{"above ab's limit", []string{"tool: wrk, connections: 10,", "tool: ab, connections: 20001, expect_errors: true,"}, 12, "more than its limit of 20000", "processes: 2"},
		{"above worker_connections", []string{"connections: 10,", "connections: 2000,"}, 12, "2000 connections are more than 1 workers with 1024 worker_connections", "expect_errors: true"},
		{"above the port range", []string{"connections: 10,", "connections: 60000, processes: 10, expect_errors: true,"}, 12, "ephemeral ports", "widen net.ipv4.ip_local_port_range in the first step"},
		{"above the open-file limit", []string{"name: kernel,", "name: kernel, nofile: 1073741824,"}, 10, "nofile 1073741824 is above", "ask for at most"},
		{"load above the open-file limit", []string{"connections: 10,", "connections: 16000000, expect_errors: true,"}, 12, "open files, the hard limit", "raise the hard limit"},
		{"fewer requests than connections", []string{"tool: wrk, connections: 10, keepalive: true, duration: 1s,", "tool: ab, connections: 10, keepalive: true, requests: 5,"}, 12, "5 requests are fewer than 10 connections", "at least 20 per connection"},
		{"requests of a tool without", []string{"duration: 1s,", "requests: 500,"}, 12, "cannot send a fixed number", "use ab"},
		{"port in use", []string{"port: " + port, "port: " + taken}, 7, "port " + taken + " on here is in use", "choose another port"},
		{"refused by nginx -t", []string{"name: kernel,", "name: kernel, nginx: {http.client_header_timeout: never},"}, 10, `build "nginx" refuses the configuration: [emerg] "client_header_timeout" directive invalid value`, "correct or leave out what it names"},
		{"server section refused by nginx -t", []string{"body: 1KiB}", "body: 1KiB, nginx: {aio: maybe}}"}, 7, `[emerg] "aio" directive invalid value`, "correct or leave out what it names"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m.t = t
			m.with("bad.yaml", tc.change...)
			code := m.do("run", "DIR/bad.yaml", "--out", "DIR/report", "--db", "DIR/bad.db")
			m.mustBeTold(code, tc.line, tc.said, tc.cure)
			m.mustHaveMeasuredNothing()
		})
	}
	m.t = t
	m.mustBeAsBefore()
}

// mustBeTold holds that a command failed on bad.yaml and named line, reason and cure.
func (m *machineTest) mustBeTold(code, line int, said, cure string) {
	m.t.Helper()
	text := m.err.String()
	_, cures, _ := strings.Cut(text, "\nhint: ")
	if code != exitFailed || !strings.Contains(text, fmt.Sprintf("bad.yaml:%d:", line)) || !strings.Contains(text, said) || !strings.Contains(cures, cure) {
		m.t.Errorf("exit code %d, want %d with line %d, %q and the hint %q:\n%s", code, exitFailed, line, said, cure, text)
	}
}

// mustHaveMeasuredNothing holds that neither a report nor a run was written, no knob changed, and nothing is left.
func (m *machineTest) mustHaveMeasuredNothing() {
	m.t.Helper()
	if _, err := os.Stat(filepath.Join(m.dir, "report")); err == nil {
		m.t.Error("a report was written")
	}
	if _, err := os.Stat(filepath.Join(m.dir, "bad.db")); err == nil {
		if said := m.must([]int{exitDone}, "list", "--json", "--db", "DIR/bad.db"); !strings.Contains(said, `"runs": 0`) {
			m.t.Errorf("in the database: %s", said)
		}
		must(m.t, os.Remove(filepath.Join(m.dir, "bad.db")))
	}
	if _, err := os.Stat(filepath.Join(m.stateDir, "journal")); err == nil {
		m.t.Error("a knob was changed")
	}
	if left := m.left(); left != "" {
		m.t.Errorf("left on the machine: %s", left)
	}
}

// TestBadBuildIsToldByFileLineAndCure runs files whose server cannot be built here.
func TestBadBuildIsToldByFileLineAndCure(t *testing.T) {
	m := onMachine(t)
	m.ownBuilds()
	must(t, os.Mkdir(filepath.Join(m.dir, "broken"), 0o755))
	m.write("broken/configure", "echo no such feature\nexit 7\n")
	mirror := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/nginx.tgz" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte("another archive"))
	}))
	defer mirror.Close()
	sum := strings.Repeat("a", 64)
	for _, tc := range []struct{ name, source, said, cure string }{
		{"checksum that differs", fmt.Sprintf("{url: %s/nginx.tgz, sha256: %s}", mirror.URL, sum), "asked for sha256 " + sum, "compare url and sha256 with what the publisher says"},
		{"archive that is gone", fmt.Sprintf("{url: %s/gone.tgz, sha256: %s}", mirror.URL, sum), "status 404", "compare url and sha256 with what the publisher says"},
		{"path that is not there", "{path: DIR/nowhere}", "no such file or directory", "correct the build there"},
		{"configure that fails", "{path: DIR/broken}", "no such feature", "correct the build there"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m.t = t
			m.with("bad.yaml", "[stub_status, echo]", "[stub_status]", "{debian: nginx}", strings.ReplaceAll(tc.source, "DIR", m.dir))
			code := m.do("run", "DIR/bad.yaml", "--out", "DIR/report", "--db", "DIR/bad.db")
			m.mustBeTold(code, 6, tc.said, tc.cure)
			if strings.Contains(m.err.String(), "ngxlab resume") {
				t.Errorf("resume would do the same again: %s", m.err)
			}
			m.mustHaveMeasuredNothing()
		})
	}
	m.t = t
	m.mustBeAsBefore()
}

// TestMissingSoftwareIsToldByFileLineAndCure has a host on which nothing can be installed.
func TestMissingSoftwareIsToldByFileLineAndCure(t *testing.T) {
	for name, tc := range map[string]struct {
		lack func(*lab.Facts)
		line int
		said string
		cure string
	}{
		"compiler": {func(f *lab.Facts) { f.Compiler = ""; delete(f.Commands, "cc") }, 6, "here lacks gcc", "apt-get install gcc"},
		"tool":     {func(f *lab.Facts) { delete(f.Commands, "wrk") }, 15, "wrk is not installed on here", "install the package wrk"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCommand(t)
			facts := testFacts()
			facts.CanInstall = false
			for _, p := range []string{"gcc", "libc6-dev", "make", "libpcre2-dev", "zlib1g-dev"} {
				facts.Packages[p] = "1"
			}
			delete(facts.Packages, "gcc")
			tc.lack(&facts)
			c.attach = fakeAttach(&fakeHost{facts: facts})
			c.write("bad.yaml", study)
			code := c.run("run", "DIR/bad.yaml")
			(&machineTest{command: c}).mustBeTold(code, tc.line, tc.said, tc.cure)
			if _, err := os.Stat(filepath.Join(c.dir, "lab.db")); err == nil {
				t.Error("a database was made")
			}
		})
	}
}

// TestToolThatMeasuresNothingIsNotBelieved puts a wrk before the real one that exits 0 and prints nothing.
func TestToolThatMeasuresNothingIsNotBelieved(t *testing.T) {
	m := onMachine(t)
	m.write("wrk", "#!/bin/sh\nexit 0\n")
	must(t, os.Chmod(filepath.Join(m.dir, "wrk"), 0o755))
	t.Setenv("PATH", m.dir+":"+os.Getenv("PATH"))
	code := m.do("run", "DIR/tuned.yaml", "--out", "DIR/report")
	for _, want := range []string{"no figures; invalid (tool-failed", "every run is invalid: tool-failed (2)", `hint: "ngxlab show RUN"`} {
		if code != exitDoubtful || !strings.Contains(m.err.String(), want) {
			t.Errorf("exit code %d, want %d, and %q:\n%s", code, exitDoubtful, want, m.err)
		}
	}
	if said := m.must([]int{exitDone}, "show", "1"); !strings.Contains(said, "tool-failed") {
		t.Errorf("show says %s", said)
	}
	m.mustBeAsBefore()
}

// TestUnusableDatabaseIsToldBeforeAnythingIsDone runs the study on databases that are none, or of a newer ngxlab.
func TestUnusableDatabaseIsToldBeforeAnythingIsDone(t *testing.T) {
	m := onMachine(t)
	m.write("text.db", "this is a text and not a database")
	m.filled("small-20261130-171502", 1.3)
	must(t, os.Rename(filepath.Join(m.dir, "lab.db"), filepath.Join(m.dir, "newer.db")))
	newer(t, filepath.Join(m.dir, "newer.db"))
	must(t, os.Mkdir(filepath.Join(m.dir, "folder.db"), 0o755))
	for name, want := range map[string]string{
		"text.db": "not an ngxlab database", "newer.db": "newer than this program", "folder.db": "it is a directory", "nowhere/lab.db": "no such file or directory",
	} {
		path := filepath.Join(m.dir, name)
		before, _ := os.ReadFile(path)
		code := m.do("run", "DIR/tuned.yaml", "--out", "DIR/report", "--db", path)
		if code != exitFailed || !strings.Contains(m.err.String(), want) || !strings.Contains(m.err.String(), "hint: ") || !strings.Contains(m.err.String(), path) {
			t.Errorf("%s: exit code %d: %s", name, code, m.err)
		}
		if after, _ := os.ReadFile(path); string(after) != string(before) {
			t.Errorf("%s was written to", name)
		}
		m.mustHaveMeasuredNothing()
	}
	m.mustBeAsBefore()
}

// TestFullDiskAtTheDatabaseStopsTheCampaignAndResumeGoesOn lets the disk of the database fill up after the first run.
func TestFullDiskAtTheDatabaseStopsTheCampaignAndResumeGoesOn(t *testing.T) {
	m := onMachine(t)
	disk := filepath.Join(m.dir, "disk")
	must(t, os.Mkdir(disk, 0o755))
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=4m"); err != nil {
		t.Skipf("SKIPPED: a small disk cannot be mounted: %v", err)
	}
	t.Cleanup(func() { must(t, syscall.Unmount(disk, syscall.MNT_DETACH)) })
	filler := filepath.Join(disk, "filler")
	fill := func() {
		f, err := os.Create(filler)
		must(t, err)
		for err == nil { // until there is no space
			_, err = f.Write(make([]byte, 4096))
		}
		must(t, f.Close())
	}
	m.app.err = &trigger{word: "[1/2]", n: 1, do: fill}
	code := m.execute(t.Context(), m.flags("run", "DIR/tuned.yaml", "--seed", kernelFirst, "--out", "DIR/report", "--db", "DIR/disk/lab.db"))
	text := m.app.err.(*trigger).text.String()
	m.app.err = m.err
	for _, want := range []string{"full", "hint: make space for the database", `"ngxlab resume tuned-`, "here: as it was before the campaign"} {
		if code != exitFailed || !strings.Contains(text, want) {
			t.Errorf("exit code %d, want %d, and %q:\n%s", code, exitFailed, want, text)
		}
	}
	if _, err := os.Stat(filepath.Join(m.dir, "report")); err == nil {
		t.Error("a report was written")
	}
	m.mustBeAsBefore()
	if said := m.must([]int{exitDone}, "list", "--db", "DIR/disk/lab.db"); !strings.Contains(said, "tuned-") {
		t.Errorf("list says %s", said)
	}
	must(t, os.Remove(filler))
	m.must(finished, "resume", "--out", "DIR/report", "--db", "DIR/disk/lab.db")
	m.must([]int{exitDone}, "verify", "tuned", "--db", "DIR/disk/lab.db")
	m.mustBeAsBefore()
}
