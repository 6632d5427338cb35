// Package dockerlab brings up labs of throwaway hosts for tests. Only _test files may import it.
package dockerlab

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"ngxlab/hosts/docker"
	"ngxlab/internal/testlab"
	"ngxlab/lab"
)

// Open returns the Docker engine for tests, or skips as testlab.Docker does. Keys of labs are in a directory of the test.
func Open(t testing.TB) *docker.Engine {
	t.Helper()
	e, err := docker.Open(t.Context(), docker.Options{Host: testlab.Docker(t), State: t.TempDir(), Say: func(text string) { t.Log(text) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

var count atomic.Int64

// Name returns a name for a lab that no other test has.
func Name() string { return fmt.Sprintf("test-%d-%d", os.Getpid(), count.Add(1)) }

// Up brings up a lab and takes it down with the test. The first one on an engine makes the image, which takes some
// minutes.
func Up(t testing.TB, e *docker.Engine, l docker.Lab) []docker.Container {
	t.Helper()
	Down(t, e, l.Name)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	containers, err := e.Up(ctx, l)
	if err != nil {
		t.Fatal(err)
	}
	return containers
}

// Down takes a lab down at the end of the test.
func Down(t testing.TB, e *docker.Engine, name string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		if _, err := e.ForceDown(ctx, name); err != nil {
			t.Error(err)
		}
	})
}

// Lab brings up a lab of hosts with these names and no bounds.
func Lab(t testing.TB, names ...lab.HostName) (*docker.Engine, docker.Lab, []docker.Container) {
	t.Helper()
	l := docker.Lab{Name: Name()}
	for _, n := range names {
		l.Hosts = append(l.Hosts, lab.Host{Name: n, Docker: &lab.DockerHost{}, Roles: []lab.Role{lab.RoleTarget, lab.RoleLoad}})
	}
	e := Open(t)
	return e, l, Up(t, e, l)
}
