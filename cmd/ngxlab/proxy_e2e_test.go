package main

import (
	"bytes"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ngxlab/internal/testlab"
	"ngxlab/lab"
	"ngxlab/lab/server"
)

// proxyStudy is a TLS proxy and its upstream in two containers, both of a build with a dynamic module. NAME is replaced.
const proxyStudy = `name: NAME
title: Does it pass on?
hosts:
  edge: {docker: {memory: 512MiB}, roles: [target]}
  back: {docker: {memory: 512MiB}, roles: [upstream]}
  gen:  {docker: {memory: 256MiB}, roles: [load]}
` + modern + `server:
  build: modern
  port: 8443
  site: proxy
  tls: true
  upstream: {host: back, keepalive: 8, server: {build: modern, port: 8080, site: echo}}
ladder: isolated
steps:
  - {name: as it comes}
  - {name: unbuffered, nginx: {proxy_buffering: "off"}}
load: [{tool: wrk, url: /echo, connections: 4, keepalive: true, duration: 1s, warmup: 0s}]
repeat: {min: 1, max: 1, precision: 5%, effect: 5%, cool_down: 10ms, control: false}
`

// TestProxyPassesToAnUpstreamOnAnotherHost gives the build to one container, from which the campaign copies it to the
// other.
func TestProxyPassesToAnUpstreamOnAnotherHost(t *testing.T) {
	l := inLab(t)
	l.write("proxy.yaml", strings.Replace(proxyStudy, "NAME", l.name, 1))
	l.must([]int{exitDone}, "hosts", "up", "DIR/proxy.yaml")
	x, err := loadExperiment(filepath.Join(l.dir, "proxy.yaml"))
	must(t, err)
	here := newCommand(t)
	here.onThisMachine()
	made := l.giveBuild(here, x.Hosts[0], x.Builds["modern"])
	l.must(finished, "run", "DIR/proxy.yaml", "--out", "DIR/report")
	for _, host := range []string{"edge", "back", "gen"} {
		if !strings.Contains(l.err.String(), host+": as it was before the campaign") {
			t.Errorf("%s is not told of: %s", host, l.err)
		}
	}
	r := l.campaign()
	run := runOf(t, r, "as it comes")
	up := run.Server.Upstream
	switch {
	case up == nil:
		t.Fatal("the upstream is not stored")
	case up.Build != made.ID || run.Server.Build != made.ID:
		t.Errorf("builds are %s and %s, want %s", run.Server.Build, up.Build, made.ID)
	case !slices.Contains(up.Modules, "ngx_http_echo_module"):
		t.Errorf("the upstream has the modules %v", up.Modules)
	case run.Server.TLS == nil || up.TLS != nil:
		t.Errorf("TLS is %+v and %+v", run.Server.TLS, up.TLS)
	case run.Server.Probes["/echo"].BodyBytes != int64(len("hello\n")):
		t.Errorf("probes are %v", run.Server.Probes)
	}
	if left := l.docker("exec", l.container("back"), "sh", "-c", "ls /proc/[0-9]*/exe -l 2>/dev/null | grep -c /nginx || true"); strings.TrimSpace(left) != "0" {
		t.Errorf("%s processes of nginx are left on back", strings.TrimSpace(left))
	}
}

// giveBuild makes a build on this machine and copies it to a host of the lab.
func (l *labTest) giveBuild(here *command, h lab.Host, r lab.Recipe) lab.Build {
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
	testlab.Require(l.t, "cc", "make")
	b, err := from.Build(ctx, server.Recipe(r), io.Discard)
	must(l.t, err)
	var stream bytes.Buffer
	must(l.t, from.Export(ctx, b, &stream))
	_, err = to.Import(ctx, b, &stream)
	must(l.t, err)
	return b
}
