package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"ngxlab/hosts/agents"
	"ngxlab/internal/testlab"
	"ngxlab/lab/stats"
)

// benched are OpenSSH servers on loopback, each with a home of its own for those who log in, and what a person needs to
// reach them as the hosts h0, h1 … by ngxlab and by Ansible. On one machine they share its state directory.
type benched struct {
	dir     string // the person's home
	servers []*testlab.SSHServer
	homes   []string // of those who log in, by server
	sockets string   // folder of Ansible's open connections
	agent   []string // flags
}

// bench starts n servers.
func bench(b *testing.B, n int) *benched {
	h := &benched{dir: testlab.StateDir(b)}
	if _, err := agents.For(runtime.GOARCH); errors.Is(err, agents.ErrMissing) { // `make bench` has made them
		h.agent = []string{"--agent", testlab.Agent(b)}
	}
	var known []byte
	for range n {
		home := b.TempDir()
		s := testlab.SSHD(b, testlab.SSHDOptions{Config: []string{"SetEnv HOME=" + home}})
		line, err := os.ReadFile(s.KnownHosts)
		must(b, err)
		known = append(known, line...)
		h.servers, h.homes = append(h.servers, s), append(h.homes, home)
	}
	must(b, os.Mkdir(filepath.Join(h.dir, ".ssh"), 0o700))
	h.write(b, ".ssh/known_hosts", string(known))
	return h
}

// write writes a file in the person's home and returns its path.
func (h *benched) write(b *testing.B, name, text string) string {
	b.Helper()
	path := filepath.Join(h.dir, name)
	must(b, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// study writes an experiment on the hosts; the first is its target, all are load hosts.
func (h *benched) study(b *testing.B, rest string) string {
	b.Helper()
	text := "name: bench\nhosts:\n"
	for i, s := range h.servers {
		roles := "load"
		if i == 0 {
			roles = "target, load"
		}
		text += fmt.Sprintf("  h%d: {address: %s, port: %d, user: %s, key: %s, roles: [%s]}\n", i, s.Address, s.Port, s.User, s.Key, roles)
	}
	return h.write(b, "study.yaml", text+rest)
}

// ngxlab is the program with a command line, as a process of its own.
func (h *benched) ngxlab(b *testing.B, line ...string) *exec.Cmd {
	b.Helper()
	self, err := os.Executable()
	must(b, err)
	flags := append([]string{"--state-dir", filepath.Join(h.dir, "state"), "--db", filepath.Join(h.dir, "lab.db")}, h.agent...)
	cmd := exec.CommandContext(b.Context(), self, append(flags, line...)...)
	cmd.Env = append(os.Environ(), asProgram+"=1", "HOME="+h.dir, "SSH_AUTH_SOCK=")
	return cmd
}

// timed runs a command, which must succeed, and returns the seconds that it took.
func timed(b *testing.B, cmd *exec.Cmd) float64 {
	b.Helper()
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	began := time.Now()
	err := cmd.Run()
	took := time.Since(began)
	if err != nil {
		b.Fatalf("%s: %v\n%s", strings.Join(cmd.Args, " "), err, out.Bytes()[max(0, out.Len()-4000):])
	}
	return took.Seconds()
}

// alternated measures two things n times each, the one first and then the other, and returns their medians.
func alternated(b *testing.B, n int, one, other func() float64) (float64, float64) {
	b.Helper()
	var ones, others []float64
	for i := range n {
		if i%2 == 0 {
			ones = append(ones, one())
		}
		others = append(others, other())
		if i%2 == 1 {
			ones = append(ones, one())
		}
	}
	return median(b, ones), median(b, others)
}

func median(b *testing.B, all []float64) float64 {
	b.Helper()
	if len(all) == 0 {
		b.Fatal("nothing was measured")
	}
	m, _, _ := stats.Median(all) // its interval is not asked for
	return m
}
