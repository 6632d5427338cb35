package server

import (
	"testing"

	"ngxlab/lab"
)

func TestWhatNginxDoesAnywayIsKnownByVersionAndPlace(t *testing.T) {
	for _, c := range []struct {
		version, directive, value string
		want                      bool
	}{
		{"", "gzip", "off", true}, {"", "http.gzip", "'off'", true}, {"", "gzip", "on", false},
		{"", "location.gzip", "off", false}, // the value of http may be another
		{"", "events.accept_mutex", "off", true}, {"1.11.3", "accept_mutex", "off", true}, {"1.11.2", "accept_mutex", "off", false},
		{"1.11.2", "accept_mutex", "on", true}, {"", "accept_mutex", "on", false},
		{"", "keepalive_requests", "1000", false}, {"", "keepalive_requests", "100", false}, // either, by version
		{"1.22.1", "keepalive_requests", "1000", true}, {"1.16.1", "keepalive_requests", "100", true}, {"1.16.1", "keepalive_requests", "1000", false},
		{"", "client_header_timeout", "1m", true}, {"", "client_header_timeout", "60", true}, {"", "client_header_timeout", "60ms", false},
		{"", "large_client_header_buffers", "4  8k", true}, {"", "listen.backlog", "511", true}, {"", "listen.backlog", "512", false},
		{"", "listen.reuseport", "false", true}, {"", "listen.reuseport", "true", false}, {"", "listen.ipv6only", "off", false},
		{"", "no_such_directive", "off", false}, {"", "access_log", "off", false},
	} {
		if got := DoesAnyway(lab.Recipe{Version: c.version}, c.directive, c.value); got != c.want {
			t.Errorf("nginx %q, %s %s: %v", c.version, c.directive, c.value, got)
		}
	}
}

// TestDefaultsAreOfKnownDirectives also holds that each version has one default at most.
func TestDefaultsAreOfKnownDirectives(t *testing.T) {
	for i, d := range ownDefaults {
		if p := locate(d.name); p.problem != nil || p.form == block {
			t.Errorf("%s: %v", d.name, p.problem)
		}
		for _, other := range ownDefaults[:i] {
			for _, version := range []string{"", "1.8.0", "1.16.1", "1.22.1"} {
				if d.name == other.name && d.holds(version) && other.holds(version) {
					t.Errorf("%s has two defaults in %q", d.name, version)
				}
			}
		}
	}
}
