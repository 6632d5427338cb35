package server

import "testing"

func TestFlagIsOnOrOffAndNothingElse(t *testing.T) {
	for _, c := range []struct {
		directive, value string
		fits             bool
	}{
		{"gzip", "yes", false}, {"http.gzip", "on", true}, {"location.gzip", "off", true}, {"sendfile", "1", false}, {"sendfile", "'on'", true},
		{"sendfile", "ON", true}, {"listen.reuseport", "1", false}, {"listen.reuseport", "true", true}, {"listen.reuseport", "off", true},
		{"listen.backlog", "1", true}, {"aio", "threads", true}, {"keepalive_timeout", "10", true}, {"no_such", "yes", true},
		{"events.reuse_port", "1", false}, {"reuse_port", "on", true}, {"server.http2", "yes", false}, {"http2", "on", true},
	} {
		if got := Unfit(c.directive, c.value); (got == "") != c.fits {
			t.Errorf("%s %s: %q", c.directive, c.value, got)
		}
	}
}

func TestNameHasOneContext(t *testing.T) {
	for name, good := range map[string]bool{"http.location.server.gzip": false, "server.location.gzip": false, "location.gzip": true} {
		if err := Known(name); (err == nil) != good {
			t.Errorf("%s: %v", name, err)
		}
	}
}
