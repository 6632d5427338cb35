package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"ngxlab/internal/testlab"
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

// forget makes the hosts strangers: no agent is there, no connection is open.
func (h *benched) forget(b *testing.B) {
	b.Helper()
	for i, s := range h.servers {
		must(b, os.RemoveAll(filepath.Join(h.homes[i], ".cache")))
		s.Cut(b)
	}
	testlab.Eventually(b, "no connection is open", func() bool {
		left, err := os.ReadDir(h.sockets)
		must(b, err)
		return len(left) == 0
	})
}

// ansiblePairs is how often ngxlab and Ansible are measured, by turns.
const ansiblePairs = 7

// BenchmarkTenHostsAgainstAnsible asks ten OpenSSH hosts the same by ngxlab and by Ansible, whole commands from start to
// end: all facts (hosts facts; the module setup), or one small answer (hosts list; the command true). Warm, the agent is
// there, and Ansible's connections are open (ngxlab logs in each time); cold, neither. ratio is Ansible's time ÷ ours.
func BenchmarkTenHostsAgainstAnsible(b *testing.B) {
	h := bench(b, 10)
	ansible := h.ansible(b)
	study := h.study(b, "steps: [{name: default}]\nload: [{tool: wrk, connections: 10, keepalive: true, duration: 1s}]\n")
	for _, one := range []struct {
		name   string
		ours   []string
		theirs []string
	}{
		{"facts", []string{"hosts", "facts", study}, []string{"ansible", "all", "-m", "setup"}},
		{"answer", []string{"hosts", "list", study}, []string{"ansible", "all", "-m", "command", "-a", "true"}},
	} {
		for _, cold := range []bool{false, true} {
			temperature, before := "warm", func() {}
			if cold {
				temperature, before = "cold", func() { h.forget(b) }
			}
			ours := func() float64 { before(); return timed(b, h.ngxlab(b, one.ours...)) }
			theirs := func() float64 { before(); return timed(b, ansible(one.theirs...)) }
			b.Run(one.name+"-"+temperature, func(b *testing.B) { againstAnsible(b, ours, theirs) })
		}
	}
}

// againstAnsible reports the medians of two commands and their ratio.
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
