package testlab

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// SSHDOptions of SSHD.
type SSHDOptions struct {
	HostKeys []string // ed25519, ecdsa, rsa; nil = ed25519
	Config   []string // lines of sshd_config(5); they come first, and so win
	Address  string   // "" = 127.0.0.1
}

// SSHServer is an OpenSSH server for one test, on loopback, that lets in the user of this process with one key.
type SSHServer struct {
	Address    string
	Port       int
	User       string
	Key        string                   // file of the key that it lets in
	KnownHosts string                   // file that knows all its host keys
	HostKeys   map[string]ssh.PublicKey // by kind
	Dir        string                   // its own, where authorized_keys is
	pid        int
}

// SSHD starts a server and stops it when the test ends; a test that fails shows its log.
func SSHD(t testing.TB, o SSHDOptions) *SSHServer {
	t.Helper()
	program := sshdProgram(t)
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s := &SSHServer{
		Address: o.Address, Port: FreePort(t), User: me.Username, Dir: dir, Key: filepath.Join(dir, "client"),
		KnownHosts: filepath.Join(dir, "known_hosts"), HostKeys: map[string]ssh.PublicKey{},
	}
	if s.Address == "" {
		s.Address = "127.0.0.1"
	}
	if o.HostKeys == nil {
		o.HostKeys = []string{"ed25519"}
	}
	authorized := ssh.MarshalAuthorizedKey(SSHKey(t, s.Key, "ed25519", ""))
	write(t, filepath.Join(dir, "authorized_keys"), authorized)
	var known bytes.Buffer
	for _, kind := range o.HostKeys {
		s.HostKeys[kind] = SSHKey(t, filepath.Join(dir, "host_"+kind), kind, "")
		fmt.Fprintln(&known, knownhosts.Line([]string{net.JoinHostPort(s.Address, strconv.Itoa(s.Port))}, s.HostKeys[kind]))
	}
	write(t, s.KnownHosts, known.Bytes())
	write(t, filepath.Join(dir, "sshd_config"), s.config(o))
	s.start(t, program)
	return s
}

// config is the server's sshd_config, in which the first of two lines counts.
func (s *SSHServer) config(o SSHDOptions) []byte {
	lines := append([]string{}, o.Config...)
	lines = append(lines, "ListenAddress "+s.Address, "Port "+strconv.Itoa(s.Port), "PidFile none", "LogLevel VERBOSE",
		"AuthorizedKeysFile "+filepath.Join(s.Dir, "authorized_keys"), "StrictModes no", "UsePAM no", "UseDNS no",
		"PasswordAuthentication no", "KbdInteractiveAuthentication no", "MaxStartups 200")
	if !strings.Contains(strings.Join(lines, "\n"), "Subsystem") {
		lines = append(lines, "Subsystem sftp internal-sftp")
	}
	for _, kind := range o.HostKeys {
		lines = append(lines, "HostKey "+filepath.Join(s.Dir, "host_"+kind))
	}
	return []byte(strings.Join(lines, "\n") + "\n")
}

func (s *SSHServer) start(t testing.TB, program string) {
	t.Helper()
	path := filepath.Join(s.Dir, "sshd.log")
	output, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(context.Background(), program, "-D", "-e", "-f", filepath.Join(s.Dir, "sshd_config"))
	cmd.Stderr = output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.pid = cmd.Process.Pid
	t.Cleanup(func() {
		s.Cut(t)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = output.Close()
		if text, err := os.ReadFile(path); err == nil && t.Failed() {
			t.Logf("the log of sshd on port %d ends:\n%s", s.Port, text[max(0, len(text)-8<<10):])
		}
	})
	Eventually(t, "sshd listens", func() bool {
		text, err := os.ReadFile(path)
		return err == nil && bytes.Contains(text, []byte("Server listening on "))
	})
}

// Logins are the pids of the server's processes for connections, one for each.
func (s *SSHServer) Logins(t testing.TB) []int {
	t.Helper()
	return processes(t)[s.pid]
}

// Cut kills what the server has for connections, but not what runs in them.
func (s *SSHServer) Cut(t testing.TB) { t.Helper(); s.Signal(t, syscall.SIGKILL) }

// Signal sends a signal to all that the server has for connections: for users other than root, sshd has two processes
// for each.
func (s *SSHServer) Signal(t testing.TB, signal syscall.Signal) {
	t.Helper()
	children := processes(t)
	for next := children[s.pid]; len(next) > 0; next = next[1:] {
		name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", next[0]))
		if err != nil || !bytes.HasPrefix(name, []byte("sshd")) {
			continue
		}
		next = append(next, children[next[0]]...)
		if err := syscall.Kill(next[0], signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			t.Error(err)
		}
	}
}

// processes are the children of all processes that have not ended.
func processes(t testing.TB) map[int][]int {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	children := map[int][]int{}
	for _, path := range paths {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil || len(fields) < 2 || fields[0] == "Z" {
			continue
		}
		if parent, err := strconv.Atoi(fields[1]); err == nil {
			children[parent] = append(children[parent], pid)
		}
	}
	return children
}

// sshdProgram is the server's absolute path, which it needs to start itself again; it is often not in PATH.
func sshdProgram(t testing.TB) string {
	t.Helper()
	program, err := exec.LookPath("sshd")
	if err != nil {
		program = "/usr/sbin/sshd"
	}
	Require(t, program)
	if os.Geteuid() == 0 { // where systemd has not made it: sshd's empty directory for privilege separation
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return program
}

func write(t testing.TB, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// SSHKey writes a new private key (ed25519, ecdsa, rsa) to a file, encrypted unless passphrase is "", and its public
// half beside it.
func SSHKey(t testing.TB, path, kind, passphrase string) ssh.PublicKey {
	t.Helper()
	private, err := newKey(kind)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if passphrase != "" {
		block, err = ssh.MarshalPrivateKeyWithPassphrase(private, "", []byte(passphrase))
	}
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, pem.EncodeToMemory(block))
	write(t, path+".pub", ssh.MarshalAuthorizedKey(signer.PublicKey()))
	return signer.PublicKey()
}

func newKey(kind string) (crypto.Signer, error) {
	switch kind {
	case "ed25519":
		_, key, err := ed25519.GenerateKey(rand.Reader)
		return key, err
	case "ecdsa":
		return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case "rsa":
		return rsa.GenerateKey(rand.Reader, 2048)
	}
	return nil, fmt.Errorf("no kind of key: %q", kind)
}
