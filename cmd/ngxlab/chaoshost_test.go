package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"ngxlab/hosts/docker"
	"ngxlab/internal/testlab"
	"ngxlab/internal/testlab/dockerlab"
	"ngxlab/internal/testlab/fingerprint"
	"ngxlab/lab"
)

// chaosPort is that of the SSH server which chaos kills. The container's own, its first process, is not touched.
const chaosPort = 2222

// chaosSSHD is the configuration of that server; it lets in whom the container's own does.
const chaosSSHD = `Port 2222
HostKey /etc/ngxlab/host_key
AuthorizedKeysFile /etc/ngxlab/authorized_keys
PidFile none
PermitRootLogin prohibit-password
PasswordAuthentication no
UsePAM no
UseDNS no
MaxStartups 200
Subsystem sftp internal-sftp
`

// chaosFiles is what studies find on a host: files of some kinds, and a systemctl that stands in for the real one.
const chaosFiles = `set -e
mkdir -p /etc/chaos
printf 'first\n' >/etc/chaos/changed.conf
printf 'not\377text\n' >/etc/chaos/binary.conf
printf 'to go\n' >/etc/chaos/removed.conf
chmod 0640 /etc/chaos/removed.conf
chown bench:bench /etc/chaos/removed.conf /etc/chaos/binary.conf
ln /etc/chaos/changed.conf /etc/chaos/second-name.conf
touch -d 2001-02-03 /etc/chaos/*
ln -s ../sbin/chaos-inside /usr/local/bin/systemctl
cat >/etc/ngxlab/chaos_sshd_config
`

// chaosHost is a container with a real OpenSSH server, and a program inside that looks and kills for the test.
type chaosHost struct {
	container docker.Container
	home      string // another machine's; campaigns are run in the one that all share
	agent     string
	inside    *inside
	before    fingerprint.Fingerprint
	unit      time.Duration // what a run of a state takes, with its share of all else
}

// chaosHosts brings up hosts that have an agent and a build.
func chaosHosts(t *testing.T, n int) []*chaosHost {
	t.Helper()
	testlab.Require(t, "docker", "wrk", "ab")
	testlab.Docker(t)
	eye := buildInside(t)
	sharedHome(t)
	here := newCommand(t)
	here.onThisMachine()
	all := docker.Lab{Name: dockerlab.Name()}
	for i := range n {
		all.Hosts = append(all.Hosts, lab.Host{Name: lab.HostName(fmt.Sprint("chaos", i+1)), Docker: &lab.DockerHost{}})
	}
	l := &labTest{machineTest: &machineTest{command: newCommand(t)}, name: all.Name}
	l.agent, l.attach = testlab.Agent(t), l.reach
	var hosts []*chaosHost
	for _, c := range dockerlab.Up(t, dockerlab.Open(t), all) {
		h := &chaosHost{container: c, home: t.TempDir(), agent: l.agent}
		h.furnish(t, eye)
		l.give(here, lab.Host{Name: "web", Address: c.Address, Port: chaosPort, User: "root", Key: c.Key})
		hosts = append(hosts, h)
	}
	return hosts
}

// buildInside builds the program that looks and kills, static as the agent.
func buildInside(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "chaos-inside")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", path, "ngxlab/internal/testlab/fingerprint/inside")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the program inside: %v: %s", err, out)
	}
	return path
}

// furnish puts into the container what chaos needs, and lets both homes know its key.
func (h *chaosHost) furnish(t *testing.T, eye string) {
	t.Helper()
	docker := func(in string, args ...string) {
		cmd := exec.CommandContext(t.Context(), "docker", args...)
		cmd.Stdin = strings.NewReader(in)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("docker %v: %v: %s", args, err, out)
		}
	}
	docker("", "cp", eye, h.container.Name+":/usr/local/sbin/chaos-inside")
	docker(chaosSSHD, "exec", "-i", h.container.Name, "/bin/sh", "-c", chaosFiles)
	docker("", "exec", "-d", h.container.Name, "/usr/local/sbin/chaos-inside", "systemd")
	for _, home := range []string{os.Getenv("HOME"), h.home} {
		h.know(t, filepath.Join(home, ".ssh"))
	}
	h.inside = startInside(t, h.container.Name)
	h.listen(t)
	testlab.Eventually(t, "the fake systemd answers", func() bool {
		a, err := h.inside.ask(fingerprint.Request{Run: []string{"systemctl", "show", "chaosd.service"}})
		return err == nil && strings.Contains(a.Output, "ActiveState=active")
	})
}

// know adds the host to those that are known in a home.
func (h *chaosHost) know(t *testing.T, dir string) {
	t.Helper()
	must(t, os.MkdirAll(dir, 0o700))
	file, err := os.OpenFile(filepath.Join(dir, "known_hosts"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	must(t, err)
	_, err = fmt.Fprintf(file, "[%s]:%d %s\n", h.container.Address, chaosPort, h.container.HostKey)
	must(t, errors.Join(err, file.Close()))
}

// listen starts the SSH server, and waits until it greets. The port may be taken for another moment, which sshd finds only
// after its start was called a success: then it is started anew. One that was killed may take a connection, but never greets.
func (h *chaosHost) listen(t *testing.T) {
	t.Helper()
	at := net.JoinHostPort(h.container.Address, strconv.Itoa(chaosPort))
	testlab.Eventually(t, "sshd greets", func() bool {
		if greets(at) {
			return true
		}
		_, _ = h.inside.ask(fingerprint.Request{Run: []string{"/usr/sbin/sshd", "-f", "/etc/ngxlab/chaos_sshd_config"}}) // greets tells
		return greets(at)
	})
}

// greets reports whether an SSH server says who it is.
func greets(address string) bool {
	conn, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return false
	}
	defer conn.Close() //nolint:errcheck // only read
	banner := make([]byte, 4)
	_ = conn.SetDeadline(time.Now().Add(time.Second)) // then the reading fails
	_, err = io.ReadFull(conn, banner)
	return err == nil && string(banner) == "SSH-"
}

// destination is the host as restore is told of it.
func (h *chaosHost) destination() string {
	return fmt.Sprintf("root@%s:%d", h.container.Address, chaosPort)
}

// elsewhere runs a command line of the program on another machine: with another home and database, and no file of the
// campaign's. It returns the exit code and what was printed.
func (h *chaosHost) elsewhere(t *testing.T, line ...string) (int, string) {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	args := append([]string{"--db", filepath.Join(h.home, "lab.db"), "--agent", h.agent}, line...)
	cmd := exec.CommandContext(t.Context(), self, append(args, "--key", h.container.Key)...)
	cmd.Env = append(os.Environ(), asProgram+"=1", "HOME="+h.home)
	out, err := cmd.CombinedOutput()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// mustRun runs a command in the container and returns what it printed.
func (h *chaosHost) mustRun(t *testing.T, script string) string {
	t.Helper()
	a, err := h.inside.ask(fingerprint.Request{Run: []string{"/bin/sh", "-c", script}})
	if err != nil {
		t.Fatalf("%s: %v: %s", script, err, a.Output)
	}
	return a.Output
}

// fingerprint is how the host is now.
func (h *chaosHost) fingerprint(t *testing.T) fingerprint.Fingerprint {
	t.Helper()
	a, err := h.inside.ask(fingerprint.Request{})
	must(t, err)
	return a.Fingerprint
}

// settleMost bounds how long what is ending on a host may take to be gone.
const settleMost = 8 * time.Second

// differences are those from how the host was, once they are gone or do not go.
func (h *chaosHost) differences(t *testing.T, before fingerprint.Fingerprint) []string {
	t.Helper()
	for late := time.Now().Add(settleMost); ; <-time.After(50 * time.Millisecond) {
		lines := fingerprint.Diff(before, h.fingerprint(t))
		if len(lines) == 0 || time.Now().After(late) {
			return lines
		}
	}
}

// prime has one campaign undisturbed, which tells how long one takes; what the lab keeps is on the host then.
func (h *chaosHost) prime(t *testing.T) {
	t.Helper()
	h.before = h.fingerprint(t)
	random := rand.New(rand.NewPCG(1, 1)) //nolint:gosec // always the same
	x := randomStudy(random)
	for x.states > 2 {
		x = randomStudy(random)
	}
	m := &machineTest{command: newCommand(t)}
	m.agent = h.agent
	m.write("chaos.yaml", x.yaml(h))
	began := time.Now()
	p := m.start("run", "DIR/chaos.yaml", "--out", "DIR/report", "--seed", "1")
	if code := p.exit(); code != exitDone && code != exitDoubtful {
		t.Fatalf("an undisturbed campaign ends with exit code %d: %s", code, p.stderr)
	}
	h.unit = time.Duration(float64(time.Since(began)) / x.units())
	look := time.Now()
	lines := h.differences(t, h.before)
	t.Logf("a campaign of %.0f units took %.1f s, a fingerprint of %d facts %.2f s", x.units(), look.Sub(began).Seconds(), len(h.before), time.Since(look).Seconds())
	if len(lines) > 0 {
		t.Fatalf("after an undisturbed campaign the host is not as it was:\n%s", strings.Join(lines, "\n"))
	}
}

// inside is the program in a container that answers one request after the other.
type inside struct {
	mu     sync.Mutex
	cmd    *exec.Cmd
	stderr bytes.Buffer
	to     *json.Encoder
	from   *json.Decoder
}

func startInside(t *testing.T, container string) *inside {
	t.Helper()
	i := &inside{cmd: exec.CommandContext(t.Context(), "docker", "exec", "-i", container, "/usr/local/sbin/chaos-inside")}
	i.cmd.Stderr = &i.stderr
	in, err := i.cmd.StdinPipe()
	must(t, err)
	out, err := i.cmd.StdoutPipe()
	must(t, err)
	must(t, i.cmd.Start())
	i.to, i.from = json.NewEncoder(in), json.NewDecoder(out)
	t.Cleanup(func() {
		_ = in.Close()
		_, _ = io.Copy(io.Discard, out)
		_ = i.cmd.Wait() // ended by the test's context
	})
	return i
}

// askMost bounds one request: a fingerprint takes a quarter of a second on an idle machine.
const askMost = time.Minute

func (i *inside) ask(q fingerprint.Request) (a fingerprint.Answer, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	late := time.AfterFunc(askMost, func() { _ = i.cmd.Process.Kill() })
	defer late.Stop()
	if err := errors.Join(i.to.Encode(q), i.from.Decode(&a)); err != nil {
		return a, fmt.Errorf("ask the program inside: %w: %s", err, i.stderr.String())
	}
	if a.Error != "" {
		return a, errors.New(a.Error)
	}
	return a, nil
}
