package experiments

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"ngxlab/lab"
)

// everyBuild has every key of builds at least once.
const everyBuild = `
builds:
  modern:
    flavor: nginx
    version: 1.26.3
    source: [{debian: nginx, suite: trixie, version: 1.26.3}, {url: "https://x/nginx-1.26.3.tar.gz", sha256: 0123456789012345678901234567890123456789012345678901234567890123}]
    modules: [stub_status, echo, ssl, v2, v3]
    dynamic: [echo]
    echo_version: 0.63
    echo_source: {git: "https://x/echo", commit: 0123456789012345678901234567890123456789}
    add_modules: [{name: headers-more, version: 0.34, source: {path: /src/headers-more.tar.xz}, dynamic: true}]
    configure: ["--with-threads", "--with-pcre-jit"]
    compiler: gcc-12
    cflags: "-O3 -march=native"
    ldflags: "-Wl,-z,now"
    patches: true
    timeout: 30m
    packages: [jq]
  tengine-2.1: {flavor: tengine, version: 2.1.0, source: [{path: /src/tengine-2.1.0.tar.gz}]}
  dist: {package: [nginx, libnginx-mod-http-geoip2], suite: trixie}
  here: {installed: /usr/sbin/nginx}
  apache: {flavor: custom, package: apache2-bin, binary: usr/sbin/apache2, command: {start: ["{binary}", -DFOREGROUND]}}
  go-http:
    flavor: custom
    source: {text: {main.go: "package main\n", go.mod: "module x\n"}}
    packages: golang-go
    make: [[go, build, -o, server, .]]
    binary: server
    keep: [data]
    command: {start: ["{binary}", "{port}"]}
  script: {flavor: custom, source: {text: {serve.sh: "#!/bin/sh\n"}}, binary: serve.sh, command: {start: ["{binary}"]}}
  brpc: {flavor: brpc, source: {path: /src/brpc}}
server: {build: modern}
steps:`

func withBuilds(text string) string { return strings.Replace(small, "steps:", text, 1) }

func TestBuildsOfEveryKindAreReadAndFilled(t *testing.T) {
	e := decode(t, withBuilds(everyBuild))
	m := e.Builds["modern"]
	want := lab.Recipe{
		Name: "modern", Flavor: lab.FlavorNginx, Version: "1.26.3", Modules: []string{"stub_status", "echo", "ssl", "v2", "v3"}, Dynamic: []string{"echo"}, EchoWants: "0.63",
		Sources:   []lab.BuildSource{{Debian: "nginx", Suite: "trixie", Version: "1.26.3"}, {URL: "https://x/nginx-1.26.3.tar.gz", SHA256: "0123456789012345678901234567890123456789012345678901234567890123"}},
		Echo:      []lab.BuildSource{{Git: "https://x/echo", Commit: "0123456789012345678901234567890123456789"}},
		Added:     []lab.Module{{Name: "headers-more", Version: "0.34", Sources: []lab.BuildSource{{Path: "/src/headers-more.tar.xz"}}, Dynamic: true}},
		Configure: []string{"--with-threads", "--with-pcre-jit"}, Compiler: "gcc-12", CFlags: "-O3 -march=native", LDFlags: "-Wl,-z,now", Patches: true,
		Timeout: lab.Duration{Duration: 30 * time.Minute}, Packages: []string{"jq"},
	}
	if !reflect.DeepEqual(m, want) {
		t.Errorf("got  %+v\nwant %+v", m, want)
	}
	for name, modules := range map[string][]string{
		"tengine-2.1": {"stub_status", "echo"}, "dist": {"stub_status"}, "here": nil, "apache": nil, "go-http": nil, "brpc": nil,
	} {
		if got := e.Builds[name].Modules; !slices.Equal(got, modules) {
			t.Errorf("%s has the modules %q, want %q", name, got, modules)
		}
	}
	if r := e.Builds["go-http"]; len(r.Make) != 1 || len(r.Make[0]) != 5 || r.Sources[0].Text["go.mod"] != "module x\n" || r.Command == nil {
		t.Errorf("go-http is %+v", r)
	}
	if r := e.Builds["dist"]; len(r.Sources) > 0 || r.Suite != "trixie" || r.Compiled() {
		t.Errorf("dist is %+v", r)
	}
	if at := e.Where["builds.modern.modules[2]"]; at.Line == 0 {
		t.Error("the place of a module is not known")
	}
}

func TestBuildsOfEveryKindFitTheSchema(t *testing.T) {
	if err := compiled(t).Validate(asJSON(t, withBuilds(everyBuild))); err != nil {
		t.Error(err)
	}
}

func TestBadBuildsNamePlaceAndCure(t *testing.T) {
	const run = `command: {start: ["{binary}"]}`
	for build, want := range map[string]string{
		`{package: nginx, source: [{debian: nginx}]}`:        `exactly one of source, package and installed|package is unpacked`,
		`{package: nginx, installed: /usr/sbin/nginx}`:       `exactly one of source, package and installed|`,
		`{flavor: tengine}`:                                  `exactly one of source, package and installed|`,
		`{version: 1.26}`:                                    `"1.26" is no version of nginx|1.26.3`,
		`{version: mainline}`:                                `expected a version such as 1.26.3|`,
		`{installed: nginx}`:                                 `expected an absolute path, found "nginx"|`,
		`{installed: /usr/sbin/nginx, cflags: -O3}`:          `cflags belongs to builds from a source|leave it out`,
		`{package: nginx, dynamic: [echo], modules: [echo]}`: `dynamic belongs to builds from a source|`,
		`{package: Nginx}`:                                   `expected a package by its Debian name|`,
		`{suite: sid}`:                                       `suite belongs to package|source: [{debian: nginx, suite: sid}]`,
		`{modules: [ssl, stub_status, ssl]}`:                 `x.yaml:4:42: ssl stands here a second time|`,
		`{dynamic: [xslt]}`:                                  `x.yaml:4:24: xslt is to be dynamic and is not among the modules|add it to modules`,
		`{modules: [SSL]}`:                                   `expected the name of a module|`,
		`{add_modules: [{name: a, source: {path: /a}}, {name: a, source: {path: /b}}]}`: `a stands here a second time|`,
		`{add_modules: [{name: a}]}`:                                          `the key "source" is missing|`,
		`{add_modules: [{name: a, source: {path: /a, debian: a}}]}`:           `exactly one of url, path|`,
		`{modules: [ssl], echo_version: 0.63}`:                                `echo_version is of the module echo|add echo to modules`,
		`{timeout: 5s}`:                                                       `a duration from 10s to 24h|`,
		`{timeout: 30}`:                                                       `a duration with its unit|`,
		`{configure: "with-threads"}`:                                         `"with-threads" is no flag|each in an element of its own`,
		`{configure: ["--builddir=x"]}`:                                       `is no flag that the build could have|`,
		`{make: [[make]]}`:                                                    `make belongs to builds of flavor custom|`,
		`{binary: objs/nginx}`:                                                `binary belongs to builds of flavor custom|`,
		`{source: [{text: {a.c: x}}]}`:                                        `text is the source of a custom build|flavor: custom`,
		`{source: [{path: /a, version: 1.2.3}]}`:                              `version belongs to debian|`,
		`{source: [{url: "http://x/y"}]}`:                                     `url and sha256 belong together|sha256sum`,
		`{flavor: brpc}`:                                                      `exactly one of source, package and installed|`,
		`{flavor: brpc, installed: /a}`:                                       `flavor brpc needs a source|/src/brpc`,
		`{flavor: brpc, source: [{path: /a}], modules: [ssl]}`:                `modules belongs to builds of nginx and Tengine|`,
		`{flavor: custom, source: [{path: /a}], binary: s, ` + run + `}`:      `needs make|make: [[make, -j2]]`,
		`{flavor: custom, source: [{path: /a}], make: [[make]], ` + run + `}`: `needs binary|relative to the folder`,
		`{flavor: custom, source: [{path: /a}], make: [make], binary: s, ` + run + `}`:     `expected a list of arguments|`,
		`{flavor: custom, source: [{path: /a}], make: [[make]], binary: /s, ` + run + `}`:  `lies outside|`,
		`{flavor: custom, source: [{text: {a: b}}], binary: s, keep: [../x], ` + run + `}`: `lies outside|`,
		`{flavor: custom, source: [{text: {../a: b}}], binary: s, ` + run + `}`:            `lies outside|`,
		`{flavor: custom, installed: /a, configure: ["--x"], ` + run + `}`:                 `configure belongs to builds of nginx and Tengine|`,
		`{flavor: custom, installed: /a, binary: b, ` + run + `}`:                          `binary says nothing|`,
		`{flavor: custom, installed: /a}`:                                                  `nothing says how its server is started|command:`,
		`{flavor: custom, package: [a-b], binary: usr/bin/x, timeout: 1m, ` + run + `}`:    `timeout belongs to builds from a source|`,
		`{compiler: "gcc 12"}`: `a command or an absolute path|`,
		`{modles: [ssl]}`:      `unknown key "modles"|did you mean "modules"?`,
	} {
		text := withBuilds("builds: {a: " + build + "}\nsteps:")
		message, hint, _ := strings.Cut(want, "|")
		if got := problems(t, text).Error(); !strings.Contains(got, message) || !strings.Contains(got, hint) {
			t.Errorf("%s: got\n%s\nwant %s", build, got, want)
		}
	}
}
