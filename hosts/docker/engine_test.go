package docker_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"ngxlab/hosts/docker"
	"ngxlab/internal/testlab"
	"ngxlab/lab"
)

// problem fails the test unless err holds a *docker.Problem of that kind, with a cure, that names all of the words.
func problem(t *testing.T, err error, kind docker.Kind, words ...string) {
	t.Helper()
	var p *docker.Problem
	if !errors.As(err, &p) || p.Kind != kind || p.Cure == "" {
		t.Fatalf("%v (%+v); want a problem of kind %d with a cure", err, p, kind)
	}
	for _, w := range words {
		if !strings.Contains(err.Error()+p.Cure, w) {
			t.Errorf("%q does not name %q (cure: %s)", err, w, p.Cure)
		}
	}
}

func open(t *testing.T, host string) (*docker.Engine, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	e, err := docker.Open(ctx, docker.Options{Host: host, State: t.TempDir()})
	if err == nil {
		t.Cleanup(func() { _ = e.Close() })
	}
	return e, err
}

func TestNoEngineIsToldWithItsAddress(t *testing.T) {
	t.Parallel()
	absent := filepath.Join(t.TempDir(), "docker.sock")
	_, err := open(t, "unix://"+absent)
	problem(t, err, docker.NoDaemon, absent, "DOCKER_HOST")
	l, err := net.Listen("unix", absent) // a socket whose daemon is gone
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	_ = l.Close()
	_, err = open(t, "unix://"+absent)
	problem(t, err, docker.NoDaemon, absent)
	closed := fmt.Sprintf("tcp://127.0.0.1:%d", testlab.FreePort(t))
	_, err = open(t, closed)
	problem(t, err, docker.NoDaemon, closed)
}

func TestAddressThatIsNoneIsToldWithExamples(t *testing.T) {
	t.Parallel()
	for _, host := range []string{"ftp://x", "docker", "ssh://me@host"} { // the last without an SSH connection
		_, err := open(t, host)
		problem(t, err, docker.BadAddress, host, "unix://")
	}
}

// child is the socket that TestNoPermission's child reaches for.
const child = "NGXLAB_TEST_SOCKET"

func TestNoPermission(t *testing.T) {
	if socket := os.Getenv(child); socket != "" {
		_, err := docker.Open(t.Context(), docker.Options{Host: "unix://" + socket, State: filepath.Dir(socket)})
		problem(t, err, docker.NoPermission, socket, "docker", "root")
		return
	}
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: only root can become another user")
	}
	dir := testlab.StateDir(t)
	serve(t, filepath.Join(dir, "docker.sock"), http.NotFoundHandler())
	if err := os.Chmod(filepath.Join(dir, "docker.sock"), 0o600); err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile("/proc/self/exe") // where the go command put it others cannot go
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(dir, "test")
	if err := os.WriteFile(copied, program, 0o755); err != nil { //nolint:gosec // another user runs it
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), copied, "-test.run=^TestNoPermission$", "-test.v")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), child+"="+filepath.Join(dir, "docker.sock"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: TestNoPermission") {
		t.Errorf("as another user: %v\n%s", err, out)
	}
}

// serve answers on a unix socket for the life of the test.
func serve(t *testing.T, socket string, h http.Handler) {
	t.Helper()
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
}

// engineThatSays is a server that says of itself what an engine would, and that it has no containers and networks.
func engineThatSays(t *testing.T, api, info string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "ngxlab-") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "docker.sock")
	serve(t, socket, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Api-Version", api)
		w.Header().Set("Content-Type", "application/json")
		switch {
		case strings.HasSuffix(r.URL.Path, "/info"):
			_, _ = io.WriteString(w, info)
		case strings.HasSuffix(r.URL.Path, "/containers/json"), strings.HasSuffix(r.URL.Path, "/networks"):
			_, _ = io.WriteString(w, "[]")
		default:
			_, _ = io.WriteString(w, "OK")
		}
	}))
	return "unix://" + socket
}

func TestEngineThatIsTooOldOrRunsNoLinuxIsRefused(t *testing.T) {
	t.Parallel()
	_, err := open(t, engineThatSays(t, "1.24", `{"OSType":"linux"}`))
	problem(t, err, docker.TooOld, "1.24", "1.41", "20.10")
	_, err = open(t, engineThatSays(t, "1.40", `{"OSType":"linux"}`))
	problem(t, err, docker.TooOld, "1.40")
	_, err = open(t, engineThatSays(t, "1.47", `{"OSType":"windows"}`))
	problem(t, err, docker.NotLinux, "windows")
	if _, err = open(t, engineThatSays(t, "1.99", `{"OSType":"linux","ID":"x"}`)); err != nil {
		t.Errorf("an engine newer than this program: %v", err)
	}
}

func TestNamesThatAreDirectoriesOfOthersRemoveNothing(t *testing.T) {
	t.Parallel()
	state := filepath.Join(t.TempDir(), "labs")
	e, err := docker.Open(t.Context(), docker.Options{Host: engineThatSays(t, "1.47", `{"OSType":"linux","ID":"x"}`), State: state})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Down(t.Context(), "other"); err != nil { // makes the engine's directory
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(state, "kept"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".", "..", "../..", ""} {
		if removed, err := e.Down(t.Context(), name); err != nil || len(removed.Keys) > 0 {
			t.Errorf("lab %q: removed %v, %v", name, removed, err)
		}
	}
	if _, err := os.Stat(filepath.Join(state, "kept")); err != nil {
		t.Error(err)
	}
}

func TestLabMayBeNamedAsAnythingThatIsLocked(t *testing.T) {
	t.Parallel()
	e, err := open(t, engineThatSays(t, "1.47", `{"OSType":"linux","ID":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	_, err = e.Up(ctx, docker.Lab{Name: "images", Hosts: []lab.Host{host("web", lab.DockerHost{Image: "none"})}})
	if err == nil || ctx.Err() != nil {
		t.Errorf("%v, want that there is no such image", err)
	}
}

func TestEngineThatAcceptsAndSaysNothingIsGivenUp(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // the test is over
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	begin := time.Now()
	_, err = docker.Open(ctx, docker.Options{Host: "tcp://" + l.Addr().String(), State: t.TempDir()})
	problem(t, err, docker.NoDaemon, l.Addr().String())
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}

// proxy forwards TCP connections to the engine of the tests until it is cut.
type proxy struct {
	net.Listener
	mu    sync.Mutex
	conns []net.Conn
}

func newProxy(t *testing.T) *proxy {
	t.Helper()
	socket, local := strings.CutPrefix(testlab.Docker(t), "unix://")
	if !local {
		t.Skip("SKIPPED: the Docker engine of the tests has no socket here")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{Listener: l}
	t.Cleanup(p.cut)
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("unix", socket)
			if err != nil {
				_ = near.Close()
				continue
			}
			p.join(near.(*net.TCPConn), far.(*net.UnixConn))
		}
	}()
	return p
}

func (p *proxy) join(near *net.TCPConn, far *net.UnixConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns = append(p.conns, near, far)
	go func() { _, _ = io.Copy(far, near); _ = far.CloseWrite() }()
	go func() { _, _ = io.Copy(near, far); _ = near.CloseWrite() }()
}

// cut closes the proxy and all that goes through it.
func (p *proxy) cut() {
	_ = p.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		_ = c.Close()
	}
}

func TestEngineIsReachedOverTCP(t *testing.T) {
	t.Parallel()
	e, err := open(t, "tcp://"+newProxy(t).Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Labs(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestEngineIsReachedThroughSSHsDialer(t *testing.T) {
	t.Parallel()
	socket, local := strings.CutPrefix(testlab.Docker(t), "unix://")
	if !local {
		t.Skip("SKIPPED: the Docker engine of the tests has no socket here")
	}
	for address, want := range map[string]string{"ssh://me@host": "/var/run/docker.sock", "ssh://me@host:2222/run/user/1000/docker.sock": "/run/user/1000/docker.sock"} {
		var mu sync.Mutex
		var asked []string
		e, err := docker.Open(t.Context(), docker.Options{Host: address, State: t.TempDir(), Dial: func(ctx context.Context, network, at string) (net.Conn, error) {
			mu.Lock()
			defer mu.Unlock()
			asked = append(asked, network+" "+at)
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Labs(t.Context()); err != nil {
			t.Error(err)
		}
		if _, err := e.Enter(t.Context(), "none", "none"); err == nil {
			t.Error("a host that is not there was entered")
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		mu.Lock()
		for _, a := range asked {
			if a != "unix "+want {
				t.Errorf("%s: dialled %s, want %s", address, a, want)
			}
		}
		if len(asked) == 0 {
			t.Errorf("%s: the dialer was not used", address)
		}
		mu.Unlock()
	}
}
