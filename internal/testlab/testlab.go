// Package testlab gives tests the real things: a built nginx, the agent's binary, installed tools, free ports. What
// takes time is made once and shared by all test processes of a user. Only _test files may import it.
package testlab

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"ngxlab/agent/build"
	"ngxlab/lab"
	"ngxlab/lab/server"
)

// Nginx returns the distribution's nginx with stub_status and echo; the first test that asks builds it (about a
// minute), the others wait.
func Nginx(t testing.TB) lab.Build {
	t.Helper()
	Require(t, "cc", "make")
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	b, err := build.Cache{Dir: CacheDir(t)}.Build(ctx, Recipe(), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Recipe is what Nginx builds.
func Recipe() lab.Recipe {
	return server.Recipe(lab.Recipe{
		Name: "nginx", Flavor: "nginx", Modules: []string{"stub_status", "echo"},
		Sources: []lab.BuildSource{{Debian: "nginx"}},
	})
}

// Require skips the test when a command is not installed, and fails it when CI is set.
func Require(t testing.TB, commands ...string) {
	t.Helper()
	for _, c := range commands {
		if _, err := exec.LookPath(c); err == nil {
			continue
		}
		if os.Getenv("CI") != "" {
			t.Fatalf("%s is not installed, and CI is set", c)
		}
		t.Skipf("SKIPPED: %s is not installed", c)
	}
}

// StateDir returns a fresh state directory that the workers of an nginx run by root, who are not root, can enter.
func StateDir(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil { //nolint:gosec // the mode is the point
			t.Fatal(err)
		}
	}
	return dir
}

// The ports that FreePort gives lie below ip_local_port_range: those above may be held by sockets in TIME_WAIT that a
// load test left.
const lowestPort, ports = 10240, 20000

// FreePort returns a TCP port that was free on 127.0.0.1 a moment ago, and so was the port after it (where a server's
// status is asked by default).
func FreePort(t testing.TB) int {
	t.Helper()
	for range 100 {
		port := lowestPort + rand.IntN(ports)
		if free(port) && free(port+1) {
			return port
		}
	}
	t.Fatal("no two free ports beside each other")
	return 0
}

func free(port int) bool {
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
	if err != nil {
		return false
	}
	return l.Close() == nil
}

// CacheDir is $NGXLAB_TEST_CACHE, or ngxlab-test in the user's cache.
func CacheDir(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("NGXLAB_TEST_CACHE")
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			cache = os.TempDir()
		}
		dir = filepath.Join(cache, "ngxlab-test")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}
