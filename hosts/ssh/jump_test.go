package ssh_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"ngxlab/hosts/ssh"
	"ngxlab/internal/testlab"
)

// hop is a jump to a server, as it stands in a chain.
func hop(s *testlab.SSHServer) string { return fmt.Sprintf("%s@%s:%d", s.User, s.Address, s.Port) }

// keyed are options that know some servers, and let the configuration name the key of each.
func keyed(t *testing.T, servers ...*testlab.SSHServer) ssh.Options {
	t.Helper()
	o, config := only(servers...), "IdentityAgent none\n"
	for _, s := range servers {
		config += "IdentityFile " + s.Key + "\n"
	}
	o.Config = []string{written(t, "config", config)}
	return o
}

func TestHostsAreReachedThroughJumps(t *testing.T) {
	a, b, c := testlab.SSHD(t, testlab.SSHDOptions{}), testlab.SSHD(t, testlab.SSHDOptions{}), testlab.SSHD(t, testlab.SSHDOptions{})
	before := runtime.NumGoroutine()
	for _, jump := range []string{hop(a), hop(a) + "," + hop(b)} {
		d := to(c)
		d.Jump = jump
		client, err := ssh.Dial(t.Context(), d, keyed(t, a, b, c))
		if err != nil {
			t.Fatalf("through %s: %v", jump, err)
		}
		works(t, client)
		if logins, want := len(a.Logins(t)), 1; logins != want {
			t.Errorf("through %s: %d logins at the first jump, want %d", jump, logins, want)
		}
		if logins, want := len(b.Logins(t)), strings.Count(jump, ","); logins != want {
			t.Errorf("through %s: %d logins at the second jump, want %d", jump, logins, want)
		}
		if err := client.Close(); err != nil {
			t.Error(err)
		}
		testlab.Eventually(t, "no logins any more", func() bool {
			return len(a.Logins(t))+len(b.Logins(t))+len(c.Logins(t)) == 0
		})
	}
	settled(t, before)
}

func TestJumpsOfTheConfigurationHaveTheirOwnConfiguration(t *testing.T) {
	a, b := testlab.SSHD(t, testlab.SSHDOptions{}), testlab.SSHD(t, testlab.SSHDOptions{})
	o := only(a, b)
	block := "Host %s\nHostName %s\nPort %d\nUser %s\nIdentityFile %s\n"
	o.Config = []string{written(t, "config", fmt.Sprintf(block+"ProxyJump bastion\n"+block,
		"web", b.Address, b.Port, b.User, b.Key, "bastion", a.Address, a.Port, a.User, a.Key))}
	works(t, dial(t, ssh.Destination{Address: "web"}, o))
	if n := len(a.Logins(t)); n != 1 {
		t.Errorf("%d logins at the jump, want 1", n)
	}
	works(t, dial(t, ssh.Destination{Address: "web", Jump: "none"}, o))
	if n := len(a.Logins(t)); n != 1 {
		t.Errorf("jump none: %d logins at the jump, want 1 as before", n)
	}
}

func TestKeysOfJumpsAreChecked(t *testing.T) {
	a, b := testlab.SSHD(t, testlab.SSHDOptions{}), testlab.SSHD(t, testlab.SSHDOptions{})
	d := to(b)
	d.Jump = hop(a)
	err := refused(t, d, only(b))
	var unknown *ssh.UnknownKeyError
	if !errors.As(err, &unknown) || !strings.Contains(err.Error(), "its jump") {
		t.Errorf("the error is %v", err)
	}
	if keys, err := ssh.HostKeys(t.Context(), d, keyed(t, a)); err != nil || len(keys) != 1 || keys[0].Known {
		t.Errorf("its keys through the jump: %v, %v", keys, err)
	}
}

func TestJumpThatLetsNobodyThroughIsToldApart(t *testing.T) {
	a := testlab.SSHD(t, testlab.SSHDOptions{Config: []string{"AllowTcpForwarding no"}})
	b := testlab.SSHD(t, testlab.SSHDOptions{})
	d := to(b)
	d.Jump = hop(a)
	says(t, refused(t, d, keyed(t, a, b)), "from its jump 127.0.0.1", "prohibited")
}

func TestHostThatIsItsOwnJumpIsAnError(t *testing.T) {
	o := only()
	o.Config = []string{written(t, "config", "ProxyJump loop\n")}
	says(t, refused(t, ssh.Destination{Address: "web"}, o), "web", "jumps")
}

func TestSilentHostBehindAJumpEndsWithAnError(t *testing.T) {
	a := testlab.SSHD(t, testlab.SSHDOptions{})
	before := runtime.NumGoroutine()
	l, err := net.Listen("tcp", "127.0.0.1:0") // accepted by the kernel, and then nothing
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // the test ends
	d := ssh.Destination{Address: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port, Jump: hop(a)}
	o := keyed(t, a)
	o.ConnectTimeout = time.Second
	says(t, refused(t, d, o), "wait for the version", "1s")
	settled(t, before)
}

func TestConnectionsStartFromTheHost(t *testing.T) {
	s := testlab.SSHD(t, testlab.SSHDOptions{})
	c := dial(t, to(s), only(s))
	for network, address := range map[string]string{"tcp": "127.0.0.1:0", "unix": t.TempDir() + "/socket"} {
		l, err := net.Listen(network, address)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			if conn, err := l.Accept(); err == nil {
				_, _ = io.Copy(conn, conn)
				_ = conn.Close()
			}
		}()
		conn, err := c.DialContext(t.Context(), network, l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		answer := make([]byte, 4)
		_, err = conn.Write([]byte("echo"))
		if _, readErr := io.ReadFull(conn, answer); string(answer) != "echo" {
			t.Errorf("%s: %q, %v", network, answer, errors.Join(err, readErr))
		}
		if err := errors.Join(conn.Close(), l.Close()); err != nil {
			t.Error(err)
		}
	}
	_, err := c.DialContext(t.Context(), "unix", "/nowhere")
	says(t, err, s.Address, "/nowhere")
}
