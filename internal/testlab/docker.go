package testlab

import (
	"net"
	"os"
	"testing"
)

// Docker returns the address of the Docker engine that tests use, as in DOCKER_HOST: that one, or the local socket
// (scripts/with-docker starts an engine where none runs). Where there is none the test is skipped, saying so, and fails
// when CI is set.
func Docker(t testing.TB) string {
	t.Helper()
	if host := os.Getenv("DOCKER_HOST"); host != "" {
		return host
	}
	const socket = "/var/run/docker.sock"
	c, err := new(net.Dialer).DialContext(t.Context(), "unix", socket)
	if err == nil {
		_ = c.Close()
		return "unix://" + socket
	}
	if os.Getenv("CI") != "" {
		t.Fatalf("there is no Docker engine (%v), and CI is set", err)
	}
	t.Skipf("SKIPPED: there is no Docker engine (%v); run the tests with scripts/with-docker", err)
	return ""
}
