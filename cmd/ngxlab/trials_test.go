package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"ngxlab/experiments"
	"ngxlab/lab"
	"ngxlab/lab/plan"
	"ngxlab/store"
)

// hasBuilt answers as a host that has the build, which refuses what is in the configuration.
func hasBuilt(refuses, words string, asked *[]lab.Trial) func(lab.Trial) (lab.Tried, error) {
	return func(t lab.Trial) (lab.Tried, error) {
		*asked = append(*asked, t)
		answer := lab.Tried{Build: &lab.Build{ID: "abc", Recipe: t.Recipe.Name, Version: "nginx/1.22.1", TookS: 41.2, Cached: true}}
		if refuses != "" && strings.Contains(t.Serving.Config, refuses) {
			answer.Refused = words
		}
		return answer, nil
	}
}

func TestPlanTellsWhatABuildRefuses(t *testing.T) {
	c := newCommand(t)
	host, asked := &fakeHost{facts: testFacts()}, []lab.Trial{}
	host.tries = hasBuilt("access_log off", "2026/12/01 05:15:33 [emerg] 959#0: unknown directive \"access_log\" in {prefix}/nginx.conf:12\nnginx: test failed", &asked)
	c.attach = fakeAttach(host)
	c.write("small.yaml", study)
	for _, command := range []string{"plan", "run"} {
		asked = nil
		code := c.run(command, "DIR/small.yaml")
		said := c.out.String() + c.err.String()
		for _, want := range []string{"small.yaml:9:", `build "nginx" refuses the configuration: [emerg] unknown directive "access_log" in {prefix}/nginx.conf:12`} {
			if code != exitFailed || !strings.Contains(said, want) {
				t.Errorf("%s: exit code %d, %q is missing: %s", command, code, want, said)
			}
		}
		if len(asked) != 2 || asked[0].Recipe.Name != "nginx" || len(asked[0].Recipe.Flags) == 0 {
			t.Errorf("%s: %d trials, want one for each of two configurations", command, len(asked))
		}
	}
	if c.run("list"); strings.Contains(c.out.String(), "small-") {
		t.Errorf("a campaign was begun: %s", c.out)
	}
}

func TestPlanWithTheBuildsThatAreThereTakesLessTime(t *testing.T) {
	c := newCommand(t)
	host, asked := &fakeHost{facts: testFacts()}, []lab.Trial{}
	c.attach = fakeAttach(host)
	c.write("small.yaml", study)
	c.run("plan", "DIR/small.yaml", "--json")
	before := c.planJSON()
	host.tries = hasBuilt("", "", &asked)
	c.run("plan", "DIR/small.yaml", "--json")
	after := c.planJSON()
	if spared := before.Estimate.Seconds() - after.Estimate.Seconds(); spared != 45 {
		t.Errorf("the build that is there spares %g s, want 45", spared)
	}
	if after.Built["nginx"]["here"].ID != "abc" || before.Built["nginx"] != nil {
		t.Errorf("built are %v, and before %v", after.Built, before.Built)
	}
	for _, command := range [][]string{{"plan", "DIR/small.yaml"}, {"plan", "DIR/small.yaml", "--no-install"}} {
		if c.run(command...) != exitDone || !strings.Contains(c.out.String(), "here: built before, nginx/1.22.1, in 41.2 s\n") || strings.Contains(c.out.String(), "zlib1g-dev") {
			t.Errorf("%v: said %s%s", command, c.out, c.err)
		}
	}
}

func TestToolsAreSparedOnlyWhereNothingElseNeedsThem(t *testing.T) {
	pl := serversPlan(t)
	pl.Built = map[string]map[lab.HostName]lab.Build{"nginx": {"web2": {ID: "3"}}, "go-http": {"gen": {ID: "4"}}}
	got := withoutTools(pl).Packages
	if len(got["web2"]) > 0 || len(got["web"]) != len(pl.Packages["web"]) || len(got["back"]) != 1 || fmt.Sprint(got["gen"]) != "[wrk]" {
		t.Errorf("packages are %v, were %v", got, pl.Packages)
	}
}

// planJSON is the plan that the last command printed.
func (c *command) planJSON() lab.Plan {
	c.t.Helper()
	var pl lab.Plan
	must(c.t, json.Unmarshal(c.out.Bytes(), &pl))
	return pl
}

func TestWhatCannotBeTriedIsSaidAndTriedLater(t *testing.T) {
	c := newCommand(t)
	host := &fakeHost{facts: testFacts(), tries: func(lab.Trial) (lab.Tried, error) {
		return lab.Tried{}, errors.New("here: try: no space left on device")
	}}
	c.attach = fakeAttach(host)
	c.write("small.yaml", study)
	code := c.run("plan", "DIR/small.yaml")
	if code != exitDone || !strings.Contains(c.err.String(), "here: not every configuration could be tried, and is before the first run: here: try: no space left") {
		t.Errorf("exit code %d: %s", code, c.err)
	}
	host.tries = func(lab.Trial) (lab.Tried, error) { return lab.Tried{}, fmt.Errorf("here: try: %w", lab.ErrLost) }
	if code := c.run("plan", "DIR/small.yaml"); code != exitFailed {
		t.Errorf("exit code %d of a host that is lost: %s", code, c.err)
	}
}

func TestNoInstallRefusesWhatWouldBeInstalled(t *testing.T) {
	c := newCommand(t)
	c.write("small.yaml", study)
	for _, command := range []string{"plan", "run"} {
		code := c.run(command, "DIR/small.yaml", "--no-install")
		said := c.out.String() + c.err.String()
		for _, want := range []string{"libc6-dev libpcre2-dev zlib1g-dev (to build nginx)", "--no-install forbids it", "leave --no-install out"} {
			if code != exitFailed || !strings.Contains(said, want) {
				t.Errorf("%s: exit code %d, %q is missing: %s", command, code, want, said)
			}
		}
	}
	facts := testFacts()
	for _, name := range []string{"libc6-dev", "libpcre2-dev", "zlib1g-dev"} {
		facts.Packages[name] = "1"
	}
	c.attach = fakeAttach(&fakeHost{facts: facts})
	if code := c.run("plan", "DIR/small.yaml", "--no-install"); code != exitDone || !strings.Contains(c.out.String(), "here: no package is installed (--no-install)") {
		t.Errorf("exit code %d where nothing lacks: %s%s", code, c.out, c.err)
	}
}

// TestResumeRefusesWhatTheHostsRefuseNow has a campaign of one run whose packages are still missing.
func TestResumeRefusesWhatTheHostsRefuseNow(t *testing.T) {
	c := newCommand(t)
	ctx := context.Background()
	s, err := store.Open(ctx, filepath.Join(c.dir, "lab.db"))
	must(t, err)
	pl := planned(t, study)
	_, err = s.Begin(ctx, "small-1", pl)
	must(t, err)
	r := measured(t, pl.Rounds[0][0], 1, 1)
	must(t, s.Commit(ctx, "small-1", lab.Record{Run: &r}))
	must(t, s.Commit(ctx, "small-1", lab.Record{Outcome: &lab.Outcome{Campaign: "small-1", Status: lab.StatusInterrupted}}))
	must(t, s.Close())
	if code := c.run("resume", "--no-install"); code != exitFailed || !strings.Contains(c.err.String(), "--no-install forbids it") {
		t.Errorf("exit code %d: %s", code, c.err)
	}
	host, asked := &fakeHost{facts: testFacts()}, []lab.Trial{}
	host.tries = hasBuilt("access_log off", `invalid value "off"`, &asked)
	c.attach = fakeAttach(host)
	if code := c.run("resume"); code != exitFailed || !strings.Contains(c.err.String(), `refuses the configuration: invalid value "off"`) || len(asked) != 2 {
		t.Errorf("exit code %d, %d trials: %s", code, len(asked), c.err)
	}
}

// servers is a proxy over TLS with an upstream on another host, and states with servers of every origin.
const servers = `name: servers
title: What answers?
hosts:
  web:  {address: 10.0.0.1, roles: [target]}
  web2: {address: 10.0.0.2, roles: [target]}
  back: {address: 10.0.0.3, roles: [upstream]}
  gen:  {address: 10.0.0.4, roles: [load]}
builds:
  nginx:
    flavor: nginx
    version: 1.26.3
    modules: [stub_status, ssl, v2, echo]
    dynamic: [echo]
    echo_version: "0.63"
    source: [{debian: nginx, suite: trixie}, {path: /src/nginx-1.26.3.tar.gz}]
    add_modules: [{name: headers-more, version: "0.34", source: [{path: /src/headers-more}], dynamic: true}]
    compiler: gcc-12
    cflags: -O3
  dist: {package: nginx}
  here: {installed: /usr/sbin/nginx}
  go-http:
    flavor: custom
    source: [{text: {main.go: "package main", go.mod: "module server"}}]
    packages: [golang-go]
    make: [[go, build, -o, server, .]]
    binary: server
server:
  build: nginx
  port: 8443
  site: proxy
  user: www-data
  tls: {key: rsa, http2: true}
  upstream:
    host: back
    keepalive: 32
    server:
      build: go-http
      port: 8080
      command: {start: ["{binary}", "-listen", ":{port}"], env: {GOGC: "off"}, signal: INT, count: {url: /count}, delay: 1s, at_once: 8}
ladder: isolated
steps:
  - {name: as it comes}
  - {name: distribution, build: dist}
  - {name: installed, build: here}
load: [{tool: wrk, url: /, connections: 10, keepalive: true, duration: 2s, warmup: 0s}]
repeat: {min: 2, max: 2, precision: 5%, effect: 5%, control: false}
`

// serversPlan is the plan of these servers, of hosts of two distributions.
func serversPlan(t *testing.T) lab.Plan {
	t.Helper()
	x, err := experiments.Decode("servers.yaml", strings.NewReader(servers))
	must(t, err)
	facts := map[lab.HostName]lab.Facts{}
	for i, h := range x.Hosts {
		f := testFacts()
		f.Host, f.BootID, f.Root, f.Users = h.Name, fmt.Sprint("b", i), true, map[string]int{"www-data": 33}
		f.Commands["apt-get"], f.Commands["dpkg-deb"] = "/usr/bin/apt-get", "/usr/bin/dpkg-deb"
		facts[h.Name] = f
	}
	delete(facts["gen"].Commands, "wrk")
	delete(facts["gen"].Packages, "wrk")
	pl, err := plan.New(x, facts, 7)
	must(t, err)
	return pl
}

func TestPlanSaysHowServersAreHadAndWhatTheyDo(t *testing.T) {
	c, pl := newCommand(t), serversPlan(t)
	pl.Built = map[string]map[lab.HostName]lab.Build{
		"here":  {"web": {ID: "1", Version: "nginx/1.22.1", Binary: "/usr/sbin/nginx"}, "web2": {ID: "2", Version: "nginx/1.24.0", Binary: "/usr/sbin/nginx"}},
		"nginx": {"web2": {ID: "3", Version: "nginx/1.26.3", From: "web"}}, "dist": {"web": {ID: "4", Version: "nginx/1.22.1"}},
	}
	pl.Warnings = append(pl.Warnings, differing(pl)...)
	must(t, writePlan(c.out, pl))
	c.golden("plan-servers", 0)
}

func TestServersOfAProxyAreTriedEachOnItsHost(t *testing.T) {
	pl := serversPlan(t)
	var asked []lab.Trial
	m := &machine{try: func(_ context.Context, t lab.Trial) (lab.Tried, error) { return hasBuilt("", "", &asked)(t) }}
	trials, err := trialsOf(t.Context(), m, pl, "back")
	must(t, err)
	if len(asked) != 1 || len(trials) != 2*len(pl.States) || asked[0].Recipe.Name != "go-http" || asked[0].Serving.Command == nil {
		t.Errorf("%d trials with %d answers on the upstream's host: %+v", len(asked), len(trials), asked)
	}
	built := builtAlready(pl, trials)
	if len(built) != 1 || len(built["go-http"]) != 1 || built["go-http"]["back"].ID != "abc" {
		t.Errorf("built are %v", built)
	}
	asked = nil
	trials, err = trialsOf(t.Context(), m, pl, "web")
	must(t, err)
	if len(asked) != 3 || len(trials) != 3 || asked[0].Serving.Upstream != nil {
		t.Errorf("%d trials with %d answers on the target", len(asked), len(trials))
	}
}

func TestBuildsAreToldToBeMadeOnTargetsFirst(t *testing.T) {
	pl := serversPlan(t)
	pl.Servings[0].Upstream.Recipe = "nginx"
	if got := fmt.Sprint(buildFamilies(pl, "nginx")); got != "[[web web2 back]]" {
		t.Errorf("families are %s", got)
	}
}
