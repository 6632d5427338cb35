package main

import (
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"ngxlab/internal/testlab"
)

// TestEveryHostIsReportedWithItsOwnFaultAndCure asks six hosts at once, of which one is well.
func TestEveryHostIsReportedWithItsOwnFaultAndCure(t *testing.T) {
	m := overSSH(t)
	stranger := filepath.Join(m.dir, "stranger")
	testlab.SSHKey(t, stranger, "ed25519", "")
	silent, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	defer silent.Close() //nolint:errcheck // it accepts, in its queue, and says nothing
	wrongKey, wrongUser, changed := testlab.SSHD(t, testlab.SSHDOptions{}), testlab.SSHD(t, testlab.SSHDOptions{}), testlab.SSHD(t, testlab.SSHDOptions{})
	known := m.read(m.server.KnownHosts)
	moved := strings.Replace(string(known), strconv.Itoa(m.server.Port), strconv.Itoa(changed.Port), 1) // another key than it shows
	m.know(strings.Join([]string{string(known), string(m.read(wrongKey.KnownHosts)), string(m.read(wrongUser.KnownHosts)), moved}, "\n"))
	m.write("home/.ssh/config", "ConnectTimeout 3\n")
	at := func(port int, user, key string) string {
		return "{address: 127.0.0.1, port: " + strconv.Itoa(port) + ", user: " + user + ", key: " + key + ", roles: [load]}\n"
	}
	user := m.server.User
	_, port, err := net.SplitHostPort(silent.Addr().String())
	must(t, err)
	quiet, err := strconv.Atoi(port)
	must(t, err)
	hosts := "web: {" + m.access() + ", roles: [target, load]}\n" +
		"  badkey: " + at(wrongKey.Port, user, stranger) +
		"  baduser: " + at(wrongUser.Port, "nosuchuser", wrongUser.Key) +
		"  closed: " + at(testlab.FreePort(t), user, m.server.Key) +
		"  silent: " + at(quiet, user, m.server.Key) +
		"  changed: " + at(changed.Port, user, changed.Key)
	m.with("faults.yaml", "web: {"+m.access()+", roles: [target, load]}\n", hosts)
	began := time.Now()
	code := m.do("hosts", "list", "DIR/faults.yaml")
	if took := time.Since(began); code != exitFailed || took > 10*time.Second {
		t.Errorf("exit code %d after %v", code, took)
	}
	said := m.err.String()
	for host, want := range map[string][]string{
		"badkey":  {"faults.yaml:5:3: badkey: ", "log in to 127.0.0.1 as " + user + ": refused with " + stranger, "hint: name the key that 127.0.0.1 takes"},
		"baduser": {"faults.yaml:6:3: baduser: ", "as nosuchuser: refused with ", "and the user (user: NAME"},
		"closed":  {"faults.yaml:7:3: closed: ", "connection refused"},
		"silent":  {"faults.yaml:8:3: silent: ", "wait for the version of the SSH server", "not done within 3s (ConnectTimeout)"},
		"changed": {"faults.yaml:9:3: changed: ", "has changed: it shows ssh-ed25519 SHA256:", "known is ssh-ed25519 SHA256:", "ssh-keygen -R "},
	} {
		for _, text := range want {
			if !strings.Contains(said, text) {
				t.Errorf("%s: %q is missing in:\n%s", host, text, said)
			}
		}
	}
	table := m.out.String()
	for state, n := range map[string]int{hostAnswers: 1, hostRefused: 2, hostNoAnswer: 2, hostKeyChanged: 1} {
		if strings.Count(table, "  "+state+"  ") != n {
			t.Errorf("want %q %d times in\n%s", state, n, table)
		}
	}
	if strings.Contains(said, "web: ") || !strings.Contains(table, m.destination()+" ") {
		t.Errorf("the table is\n%s%s", table, said)
	}
}
