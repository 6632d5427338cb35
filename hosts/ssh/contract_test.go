package ssh_test

import (
	"strings"
	"testing"
	"time"

	"ngxlab/hosts"
	"ngxlab/hosts/ssh"
	"ngxlab/internal/testlab"
)

// attached logs in and starts an agent.
func attached(t testing.TB, s *testlab.SSHServer, dir string) *hosts.Host {
	t.Helper()
	c, err := ssh.Dial(t.Context(), to(s), only(s))
	if err != nil {
		t.Fatal(err)
	}
	h, err := hosts.Enter(t.Context(), c, hosts.Options{Name: "web", Dir: dir, Agent: testlab.Agent(t)})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestHostOverSSHKeepsTheContract(t *testing.T) {
	t.Parallel()
	s, dir := testlab.SSHD(t, testlab.SSHDOptions{}), testlab.StateDir(t)
	testlab.HostContract(t, func(t testing.TB) testlab.Host { return attached(t, s, dir) })
}

func TestAgentStartsBehindEveryShellAndStartUpFile(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"bash", "zsh", "fish", "tcsh"} {
		t.Run(shell, func(t *testing.T) {
			testlab.Require(t, shell)
			s := testlab.SSHD(t, testlab.SSHDOptions{Config: forced(t,
				"echo Welcome; echo to this machine >&2; printf \"no end of line\"; exec "+shell+" -c \"$SSH_ORIGINAL_COMMAND\"")})
			h := attached(t, s, testlab.StateDir(t))
			if _, err := h.Clock(t.Context()); err != nil {
				t.Error(err)
			}
			if h.Address() != s.Address {
				t.Errorf("its address is %q, want %q", h.Address(), s.Address)
			}
			if err := h.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestHostIsFreeSoonAfterItsConnectionIsCut(t *testing.T) {
	t.Parallel()
	s, dir := testlab.SSHD(t, testlab.SSHDOptions{}), testlab.StateDir(t)
	h := attached(t, s, dir)
	if err := h.Claim(t.Context(), "c1", "ana@desk"); err != nil {
		t.Fatal(err)
	}
	s.Cut(t)
	began := time.Now()
	_, err := h.Clock(t.Context())
	if took := time.Since(began); err == nil || took > 5*time.Second || !strings.Contains(err.Error(), "web") {
		t.Errorf("after %v: %v", took, err)
	}
	_ = h.Close() // it says that the connection is gone
	next := attached(t, s, dir)
	testlab.Eventually(t, "the host is free", func() bool { return next.Claim(t.Context(), "c2", "bob@desk") == nil })
	if took := time.Since(began); took > 8*time.Second { // 5 s, and what the login took
		t.Errorf("it was free after %v", took)
	}
	if err := next.Close(); err != nil {
		t.Error(err)
	}
}
