package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ngxlab/internal/testlab"
	"ngxlab/lab"
)

// ansibleConfig has Ansible's own advice for speed in force: pipelining, connections that stay, as many processes as
// hosts, and no search for an interpreter. The arguments are the inventory, the folder of the connections and the known hosts.
const ansibleConfig = `[defaults]
inventory = %s
forks = 10
interpreter_python = /usr/bin/python3
retry_files_enabled = False
[ssh_connection]
pipelining = True
control_path_dir = %s
ssh_args = -C -o ControlMaster=auto -o ControlPersist=60s -o IdentitiesOnly=yes -o UserKnownHostsFile=%s
`

// ansible prepares Ansible for the hosts and returns how its commands are started.
func (h *benched) ansible(b *testing.B) func(line ...string) *exec.Cmd {
	b.Helper()
	testlab.Require(b, "ansible", "ansible-playbook", "/usr/bin/python3")
	var err error
	h.sockets, err = os.MkdirTemp("", "cp") // their paths must be short
	must(b, err)
	b.Cleanup(func() { must(b, os.RemoveAll(h.sockets)) })
	inventory := ""
	for i, s := range h.servers {
		inventory += fmt.Sprintf("h%d ansible_host=%s ansible_port=%d ansible_user=%s ansible_ssh_private_key_file=%s\n",
			i, s.Address, s.Port, s.User, s.Key)
	}
	config := fmt.Sprintf(ansibleConfig, h.write(b, "inventory", inventory), h.sockets, filepath.Join(h.dir, ".ssh/known_hosts"))
	config = h.write(b, "ansible.cfg", config)
	return func(line ...string) *exec.Cmd {
		cmd := exec.CommandContext(b.Context(), line[0], line[1:]...)
		cmd.Env = append(os.Environ(), "HOME="+h.dir, "ANSIBLE_CONFIG="+config, "LC_ALL=C.UTF-8", "SSH_AUTH_SOCK=")
		return cmd
	}
}

// cut ends every connection to the hosts.
func (h *benched) cut(b *testing.B) {
	b.Helper()
	for _, s := range h.servers {
		s.Cut(b)
	}
	testlab.Eventually(b, "no connection is open", func() bool {
		left, err := os.ReadDir(h.sockets)
		must(b, err)
		return len(left) == 0
	})
}

// forget makes strangers of the hosts: no agent is there, and no connection.
func (h *benched) forget(b *testing.B) {
	b.Helper()
	for _, home := range h.homes {
		must(b, os.RemoveAll(filepath.Join(home, ".cache")))
	}
	h.cut(b)
}

// ansiblePairs is how often ngxlab and Ansible are measured, by turns.
const ansiblePairs = 5

// BenchmarkTenHostsAgainstAnsible asks ten OpenSSH hosts the same by ngxlab and by Ansible: all facts (hosts facts; the
// module setup), or one small answer (hosts list; the command true). First, no agent is there and no connection is open;
// later, the agent is there, and both log in; kept, both use the connections that they have, as Ansible does for a minute
// and ngxlab within a command. ratio is Ansible's time ÷ ngxlab's.
func BenchmarkTenHostsAgainstAnsible(b *testing.B) {
	h := bench(b, 10)
	ansible := h.ansible(b)
	study := h.study(b, "steps: [{name: default}]\nload: [{tool: wrk, connections: 10, keepalive: true, duration: 1s}]\n")
	for _, ask := range []struct {
		name, command string
		query         lab.FactsQuery
		ansible       []string
	}{
		{"facts", "facts", lab.FactsQuery{Commands: factsTools}, []string{"ansible", "all", "-m", "setup"}},
		{"answer", "list", lab.FactsQuery{Brief: true}, []string{"ansible", "all", "-m", "command", "-a", "true"}},
	} {
		ours := func() float64 { return timed(b, h.ngxlab(b, "hosts", ask.command, study)) }
		theirs := func() float64 { return timed(b, ansible(ask.ansible...)) }
		b.Run(ask.name+"-first", func(b *testing.B) { againstAnsible(b, after(h.forget, b, ours), after(h.forget, b, theirs)) })
		b.Run(ask.name+"-later", func(b *testing.B) { againstAnsible(b, after(h.cut, b, ours), after(h.cut, b, theirs)) })
		b.Run(ask.name+"-kept", func(b *testing.B) { againstAnsible(b, h.attached(b, study, ask.query), theirs) })
	}
}

// attached asks hosts for facts over sessions that stay until the benchmark ends.
func (h *benched) attached(b *testing.B, study string, q lab.FactsQuery) func() float64 {
	b.Helper()
	b.Setenv("HOME", h.dir) // of the known hosts
	x, err := loadExperiment(study)
	must(b, err)
	a := newApp(strings.NewReader(""), io.Discard, io.Discard)
	a.stateDir = filepath.Join(h.dir, "state")
	if len(h.agent) > 0 {
		a.agent = h.agent[1]
	}
	f, errs := a.attachAll(b.Context(), x)
	must(b, errors.Join(errs...))
	b.Cleanup(func() { must(b, f.close()) })
	return func() float64 {
		began := time.Now()
		must(b, f.every(b.Context(), answerTimeout, func(ctx context.Context, i int) error {
			_, err := f.machines[i].facts(ctx, q)
			return err
		}))
		return time.Since(began).Seconds()
	}
}

// after is a measurement with something done before it.
func after(before func(*testing.B), b *testing.B, measure func() float64) func() float64 {
	return func() float64 { before(b); return measure() }
}

// againstAnsible reports the medians of both and their ratio.
func againstAnsible(b *testing.B, ours, theirs func() float64) {
	ours() // what is made once is made
	theirs()
	for b.Loop() {
		o, t := alternated(b, ansiblePairs, ours, theirs)
		b.ReportMetric(o, "ngxlab-s")
		b.ReportMetric(t, "ansible-s")
		b.ReportMetric(t/o, "ratio")
	}
	b.ReportMetric(0, "ns/op")
}
