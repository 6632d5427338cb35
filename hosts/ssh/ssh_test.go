package ssh_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"ngxlab/hosts"
	"ngxlab/hosts/ssh"
	"ngxlab/internal/testlab"
)

// The client is a door.
var _ hosts.Door = (*ssh.Client)(nil)

// to is the way to a test's server, with its own key.
func to(s *testlab.SSHServer) ssh.Destination {
	return ssh.Destination{Address: s.Address, Port: s.Port, User: s.User, Key: s.Key}
}

// only are options that know the servers' keys, and nothing of this machine's configuration.
func only(servers ...*testlab.SSHServer) ssh.Options {
	o := ssh.Options{Config: []string{}, KnownHosts: []string{}, ConnectTimeout: 20 * time.Second}
	for _, s := range servers {
		o.KnownHosts = append(o.KnownHosts, s.KnownHosts)
	}
	return o
}

// dial logs in, and out when the test ends.
func dial(t testing.TB, d ssh.Destination, o ssh.Options) *ssh.Client {
	t.Helper()
	c, err := ssh.Dial(t.Context(), d, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// refused dials where that must fail, and returns the error.
func refused(t *testing.T, d ssh.Destination, o ssh.Options) error {
	t.Helper()
	c, err := ssh.Dial(t.Context(), d, o)
	if err == nil {
		_ = c.Close()
		t.Fatal("the login was not refused")
	}
	if !strings.Contains(err.Error(), d.Address) {
		t.Errorf("%q does not name %s", err, d.Address)
	}
	return err
}

func says(t *testing.T, err error, words ...string) {
	t.Helper()
	for _, word := range words {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("error %q does not say %q", err, word)
		}
	}
}

// run runs a script with some input and returns its output.
func run(t testing.TB, c *ssh.Client, script, input string) (string, error) {
	t.Helper()
	p, err := c.Open(t.Context(), script, false)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.WriteString(p, input)
	closed := make(chan error, 1)
	go func() { closed <- p.Close() }()
	out, readErr := io.ReadAll(p)
	return string(out), errors.Join(err, readErr, <-closed)
}

// works holds that scripts run over a client.
func works(t *testing.T, c *ssh.Client) {
	t.Helper()
	if out, err := run(t, c, `read word; echo "$word $((6 * 7))"`, "answer\n"); out != "answer 42\n" || err != nil {
		t.Errorf("the script said %q, %v", out, err)
	}
}

func TestHostKnownByItsEd25519KeyAloneIsAccepted(t *testing.T) {
	s := testlab.SSHD(t, testlab.SSHDOptions{HostKeys: []string{"rsa", "ecdsa", "ed25519"}})
	line := "[" + s.Address + "]:" + fmt.Sprint(s.Port) + " "
	for kind, key := range s.HostKeys {
		o := only(s)
		o.KnownHosts = []string{written(t, "known_hosts", line+authorized(key))}
		c, err := ssh.Dial(t.Context(), to(s), o)
		if err != nil {
			t.Errorf("only %s known: %v", kind, err)
			continue
		}
		works(t, c)
		_ = c.Close()
	}
}

func TestHostThatSaysNothingEndsWithAnError(t *testing.T) {
	d, o := ssh.Destination{Address: "127.0.0.1", Port: listener(t, func(net.Conn) {}), User: "nobody"}, only()
	o.ConnectTimeout = 200 * time.Millisecond
	err := refused(t, d, o)
	says(t, err, "wait for the version", "200ms", "ConnectTimeout")
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v is no context.DeadlineExceeded", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	o.ConnectTimeout = time.Hour
	if _, err := ssh.Dial(ctx, d, o); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("with a context that ends: %v", err)
	}
}

func TestHandshakeThatStallsEndsWithAnError(t *testing.T) {
	port := listener(t, func(c net.Conn) { _, _ = io.WriteString(c, "Welcome\r\nSSH-2.0-Stalls\r\n") })
	o := only()
	o.ConnectTimeout = 200 * time.Millisecond
	says(t, refused(t, ssh.Destination{Address: "127.0.0.1", Port: port}, o), "exchange keys", "200ms")
}

func TestServerOfAnotherKindIsToldApart(t *testing.T) {
	port := listener(t, func(c net.Conn) { _, _ = c.Write(bytes.Repeat([]byte("550 go away "), 50)) })
	says(t, refused(t, ssh.Destination{Address: "127.0.0.1", Port: port}, only()), "no SSH server", "550 go away")
}

func TestServerThatAnswersAndClosesIsNoBusySSHServer(t *testing.T) {
	tries := make(chan struct{}, 100)
	port := listener(t, func(c net.Conn) {
		tries <- struct{}{}
		_, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
		_ = c.Close()
	})
	says(t, refused(t, ssh.Destination{Address: "127.0.0.1", Port: port}, only()), "no SSH server", "HTTP/1.1 400")
	if len(tries) != 1 {
		t.Errorf("%d tries", len(tries))
	}
	o := only()
	o.ConnectTimeout = 200 * time.Millisecond
	port = listener(t, func(c net.Conn) { _, _ = io.WriteString(c, "220 mail ESMTP\r\n") })
	says(t, refused(t, ssh.Destination{Address: "127.0.0.1", Port: port}, o), "wait for the version", "220 mail ESMTP")
}

func TestClosedPortIsAnErrorAtOnce(t *testing.T) {
	o := only()
	o.ConnectTimeout = time.Hour
	says(t, refused(t, ssh.Destination{Address: "127.0.0.1", Port: testlab.FreePort(t)}, o), "connect to", "refused")
}

func TestIPv6AddressesAreReached(t *testing.T) {
	if l, err := net.Listen("tcp", "[::1]:0"); err != nil {
		t.Skipf("SKIPPED: this machine has no IPv6 loopback: %v", err)
	} else if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	s := testlab.SSHD(t, testlab.SSHDOptions{Address: "::1"})
	d, err := ssh.Parse(fmt.Sprintf("%s@[::1]:%d", s.User, s.Port))
	if err != nil {
		t.Fatal(err)
	}
	d.Key = s.Key
	c := dial(t, d, only(s))
	works(t, c)
	if c.Address() != "::1" {
		t.Errorf("its address is %q", c.Address())
	}
}

func TestLoginsDroppedByMaxStartupsAreTriedAgain(t *testing.T) {
	t.Parallel()
	s := testlab.SSHD(t, testlab.SSHDOptions{Config: []string{"MaxStartups 2:100:2"}})
	errs := make(chan error)
	const many = 30
	for range many {
		go func() {
			c, err := ssh.Dial(t.Context(), to(s), only(s))
			if err == nil {
				err = c.Close()
			}
			errs <- err
		}()
	}
	for range many {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	log, err := os.ReadFile(filepath.Join(s.Dir, "sshd.log"))
	if err != nil || !bytes.Contains(log, []byte("MaxStartups")) {
		t.Errorf("sshd dropped none, %v: the test tests nothing", err)
	}
}

func TestDroppedLoginsAreNotTriedForEver(t *testing.T) {
	port := listener(t, func(c net.Conn) {
		_, _ = io.WriteString(c, "Exceeded MaxStartups\r\n")
		_ = c.Close()
	})
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	_, err := ssh.Dial(ctx, ssh.Destination{Address: "127.0.0.1", Port: port}, only())
	says(t, err, "closed the connection before it said its version", "Exceeded MaxStartups")
}

func TestConfigurationOfTheHostIsUsed(t *testing.T) {
	s := testlab.SSHD(t, testlab.SSHDOptions{})
	included := written(t, "web.conf", fmt.Sprintf("Host web?\n\tHostName %s\n\tPort %d\n\tIdentityFile %s\n\tUserKnownHostsFile %s\n",
		s.Address, s.Port, s.Key, s.KnownHosts))
	config := written(t, "config", "Include "+included+"\nHost web1\n  User nobody\nHost *\n  User "+s.User+"\n")
	o := ssh.Options{Config: []string{config}}
	c := dial(t, ssh.Destination{Address: "web2"}, o)
	works(t, c)
	if c.Address() != s.Address {
		t.Errorf("its address is %q, want %q", c.Address(), s.Address)
	}
	says(t, refused(t, ssh.Destination{Address: "web1"}, o), "log in to web1 as nobody")
	works(t, dial(t, ssh.Destination{Address: "web1", User: s.User}, o))
}

// listener accepts connections, does something with each, and holds them open until the test ends.
func listener(t *testing.T, each func(net.Conn)) (port int) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	held := make(chan net.Conn, 100)
	t.Cleanup(func() {
		_ = l.Close()
		for range len(held) {
			_ = (<-held).Close()
		}
	})
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			each(c)
			held <- c
		}
	}()
	return l.Addr().(*net.TCPAddr).Port
}

func written(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// settled waits until no more goroutines run than before.
func settled(t *testing.T, before int) {
	t.Helper()
	defer func() {
		if t.Failed() {
			stacks := make([]byte, 64<<10)
			t.Logf("%s", stacks[:runtime.Stack(stacks, true)])
		}
	}()
	testlab.Eventually(t, "as few goroutines as before", func() bool { return runtime.NumGoroutine() <= before })
}

// tool runs a program of OpenSSH.
func tool(t *testing.T, name string, args ...string) string {
	t.Helper()
	testlab.Require(t, name)
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}
