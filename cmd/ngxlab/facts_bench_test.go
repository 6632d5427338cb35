package main

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"ngxlab/hosts/docker"
	"ngxlab/internal/testlab"
	"ngxlab/internal/testlab/dockerlab"
)

// factsRest makes hosts an experiment.
const factsRest = "steps: [{name: default}]\nload: [{tool: wrk, connections: 10, keepalive: true, duration: 1s}]\n"

// BenchmarkFactsOfFourHosts measures the whole command hosts facts on a Docker lab of one target and three load hosts that
// is up and has the agent: through the engine, and over SSH to the same containers.
func BenchmarkFactsOfFourHosts(b *testing.B) {
	b.Setenv("DOCKER_HOST", testlab.Docker(b))
	h := bench(b, 0)
	b.Setenv("XDG_STATE_HOME", filepath.Join(h.dir, "state-home")) // of the lab's key
	inDocker := h.write(b, "docker.yaml", "name: "+dockerlab.Name()+"\nhosts:\n  web: {docker: {}, roles: [target]}\n  gen: {docker: {}, roles: [load], count: 3}\n"+factsRest)
	x, err := loadExperiment(inDocker)
	must(b, err)
	e, err := docker.Open(b.Context(), docker.Options{})
	must(b, err)
	b.Cleanup(func() { must(b, e.Close()) })
	containers := dockerlab.Up(b, e, newApp(strings.NewReader(""), io.Discard, io.Discard).labOf(x))
	for _, way := range []struct{ name, file string }{{"docker", inDocker}, {"ssh", h.overSSH(b, containers)}} {
		b.Run(way.name, func(b *testing.B) {
			timed(b, h.ngxlab(b, "hosts", "facts", way.file)) // the agent is there
			var all []float64
			for b.Loop() {
				for range 10 {
					all = append(all, timed(b, h.ngxlab(b, "hosts", "facts", way.file)))
				}
			}
			b.ReportMetric(median(b, all), "s")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// overSSH writes an experiment whose hosts are the containers of a lab.
func (h *benched) overSSH(b *testing.B, containers []docker.Container) string {
	b.Helper()
	var text, known strings.Builder
	text.WriteString("name: over-ssh\nhosts:\n")
	for i, c := range containers {
		role := "load"
		if i == 0 {
			role = "target"
		}
		fmt.Fprintf(&text, "  %s: {address: %s, user: %s, key: %s, roles: [%s]}\n", c.Host, c.Address, docker.RootUser, c.Key, role)
		fmt.Fprintf(&known, "%s %s\n", c.Address, c.HostKey)
	}
	h.write(b, ".ssh/known_hosts", known.String())
	return h.write(b, "ssh.yaml", text.String()+factsRest)
}
