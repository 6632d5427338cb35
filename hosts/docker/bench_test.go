package docker_test

import (
	"testing"
	"time"

	"ngxlab/hosts/docker"
	"ngxlab/internal/testlab/dockerlab"
	"ngxlab/lab"
)

// BenchmarkFourHosts brings four hosts up and takes them down; the image is there.
func BenchmarkFourHosts(b *testing.B) {
	e := dockerlab.Open(b)
	l := docker.Lab{Name: dockerlab.Name()}
	for _, name := range []lab.HostName{"web", "gen1", "gen2", "gen3"} {
		l.Hosts = append(l.Hosts, host(name, lab.DockerHost{CPUs: 1, MemoryBytes: 512 << 20, Nofile: 10000}))
	}
	dockerlab.Up(b, e, l)
	if _, err := e.Down(b.Context(), l.Name); err != nil {
		b.Fatal(err)
	}
	var up, again, down time.Duration
	for b.Loop() {
		begin := time.Now()
		dockerlab.Up(b, e, l)
		up += time.Since(begin)
		begin = time.Now()
		dockerlab.Up(b, e, l)
		again += time.Since(begin)
		begin = time.Now()
		if _, err := e.Down(b.Context(), l.Name); err != nil {
			b.Fatal(err)
		}
		down += time.Since(begin)
	}
	n := float64(b.N)
	b.ReportMetric(up.Seconds()/n, "up-s")
	b.ReportMetric(again.Seconds()/n, "again-s")
	b.ReportMetric(down.Seconds()/n, "down-s")
	b.ReportMetric(0, "ns/op")
}
