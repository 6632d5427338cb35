package server

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"ngxlab/lab"
)

func TestDirectivesAreHeldAgainstTheVersionOfTheBuild(t *testing.T) {
	nginx := func(v string) lab.Recipe { return lab.Recipe{Name: "b", Flavor: lab.FlavorNginx, Version: v} }
	tengine := func(v string) lab.Recipe { return lab.Recipe{Name: "b", Flavor: lab.FlavorTengine, Version: v} }
	bullseye := lab.Recipe{Name: "b", Flavor: lab.FlavorNginx, Sources: []lab.BuildSource{{Debian: "nginx", Suite: "bullseye"}}}
	for _, c := range []struct {
		recipe           lab.Recipe
		directive, value string
		want             string // in the reason; "" = known
	}{
		{nginx("1.8.1"), "listen.reuseport", "true", `invalid parameter "reuseport" in build "b", nginx 1.8.1: nginx has it since 1.9.1`},
		{nginx("1.8.1"), "listen.reuseport", "false", ""}, {nginx("1.9.1"), "listen.reuseport", "true", ""},
		{nginx("1.24.0"), "server.http2", "on", `unknown directive "http2" in build "b", nginx 1.24.0: nginx has it since 1.25.1`},
		{bullseye, "http2", "on", "nginx 1.18.0"}, {nginx("1.26.3"), "http2", "on", ""}, {nginx(""), "http2", "on", ""},
		{nginx("1.26.3"), "ssl", "on", "no more since 1.25.1"}, {nginx("1.26.3"), "http.http2_recv_timeout", "3s", ""}, {nginx("1.18.0"), "ssl_ocsp", "on", "1.19.0"},
		{nginx("1.7.10"), "aio", "threads", `invalid value "threads" in "aio" directive`}, {nginx("1.7.10"), "aio", "threads=pool", "1.7.11"}, {nginx("1.7.10"), "aio", "on", ""},
		{nginx("1.6.2"), "worker_cpu_affinity", "auto", "1.9.10"}, {tengine("2.1.0"), "worker_cpu_affinity", "auto", ""}, {nginx("1.6.2"), "worker_cpu_affinity", "01 10", ""},
		{nginx("1.13.0"), "ssl_protocols", "TLSv1.2 TLSv1.3", ""}, {nginx("1.12.2"), "ssl_protocols", "TLSv1.2 TLSv1.3", "1.13.0"},
		{nginx("1.6.2"), "events.reuse_port", "on", `unknown directive "reuse_port"`}, {nginx(""), "reuse_port", "on", "Tengine had it"},
		{tengine("2.1.0"), "events.reuse_port", "on", ""}, {tengine("2.2.3"), "reuse_port", "on", ""}, {tengine(""), "reuse_port", "on", ""}, {tengine("2.3.0"), "reuse_port", "on", "Tengine 2.3.0"},
		{tengine("2.1.0"), "listen.reuseport", "true", "Tengine has it since 2.2.0"}, {tengine("3.1.0"), "listen.reuseport", "true", ""},
		{tengine("3.1.0"), "http2", "on", ""}, {tengine("3.1.0"), "http3", "on", "Tengine does not have it"}, {tengine("2.1.0"), "proxy_request_buffering", "off", ""},
		{lab.Recipe{Flavor: lab.FlavorCustom}, "http2", "on", ""}, {nginx("1.6.2"), "sendfile", "on", ""},
	} {
		reason, cure := Unsupported(c.recipe, c.directive, c.value)
		if !strings.Contains(reason, c.want) || (reason == "") != (c.want == "") || (cure == "") != (reason == "") {
			t.Errorf("%s %s, %s %s: %q, %q", c.recipe.Flavor, c.recipe.Version, c.directive, c.value, reason, cure)
		}
	}
}

// TestVersionsInTablesAreVersions also holds that every directive in the table of versions is known.
func TestVersionsInTablesAreVersions(t *testing.T) {
	var versions []string
	for _, s := range spans() {
		versions = append(versions, s.since, s.until)
		if s.since == "" && s.until == "" {
			t.Errorf("%s has no bound", s.name)
		}
		if p := locate(s.name); p.problem != nil && !slices.Contains(reserved, s.name) || !strings.HasPrefix(s.name, "listen.") && row(s.name) == nil {
			t.Errorf("%s: %v", s.name, p.problem)
		}
	}
	for _, m := range modules {
		versions = append(versions, m.since, m.until)
	}
	for _, r := range remedies {
		versions = append(versions, r.Below)
	}
	for _, r := range tengines {
		versions = append(versions, r.tengine, r.nginx)
	}
	for name := range inTengine {
		if !slices.ContainsFunc(spans(), func(s span) bool { return s.name == name }) {
			t.Errorf("%s is judged for Tengine alone", name)
		}
	}
	for _, v := range versions {
		parts := strings.Split(v, ".")
		number := func(part string) bool { _, err := strconv.Atoi(part); return err == nil }
		if v != "" && (len(parts) != 3 || slices.ContainsFunc(parts, func(p string) bool { return !number(p) })) {
			t.Errorf("%q is no version", v)
		}
	}
}
