package process

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ngxlab/internal/testlab"
	"ngxlab/lab"
)

// substitute is the argument by which the test binary becomes a server that is not nginx: the modes follow it, joined by
// commas.
const substitute = "substitute-server"

// serveSubstitute is such a server, on the port in PORT.
func serveSubstitute(modes string) error {
	has := func(mode string) bool { return strings.Contains(","+modes+",", ","+mode+",") }
	switch {
	case has("crash"):
		return errors.New("nothing to live for")
	case has("daemonise"):
		again := exec.Command(os.Args[0], substitute, strings.Replace(modes, "daemonise", "background", 1))
		again.Stderr, again.SysProcAttr = os.Stderr, &syscall.SysProcAttr{Setsid: has("setsid")}
		if err := again.Start(); err != nil {
			return err
		}
		return syscall.Exec("/bin/true", []string{"true"}, nil) // ends at once, which a test with the race detector does not
	case has("hold"):
		<-time.After(time.Hour)
	}
	if has("deaf") {
		signal.Ignore(syscall.SIGTERM)
	}
	if has("fork") {
		child := exec.Command(os.Args[0], substitute, "hold")
		child.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
		if has("deaf") {
			child.SysProcAttr.Pdeathsig = 0 // stays behind
		}
		runtime.LockOSThread() // whose end would be the parent's
		if err := child.Start(); err != nil {
			return err
		}
	}
	if path := os.Getenv("PIDFILE"); path != "" {
		if err := os.WriteFile(path, []byte(strconv.Itoa(os.Getpid())+"\n"), 0o644); err != nil {
			return err
		}
	}
	fmt.Fprintln(os.Stderr, "stands in")
	return listenSubstitute(has)
}

func listenSubstitute(has func(string) bool) error {
	var served atomic.Int64
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		served.Add(1)
		switch {
		case has("unready"):
			w.WriteHeader(http.StatusServiceUnavailable)
		case r.URL.Path == "/env":
			_, _ = fmt.Fprintf(w, "%s\n%d %d\n", strings.Join(os.Environ(), "\n"), os.Getuid(), os.Getgid())
		case r.URL.Path == "/vars":
			_, _ = fmt.Fprintf(w, "started 1 served %d\n", served.Load())
		default:
			if has("alt-svc") {
				w.Header().Set("Alt-Svc", `h3=":`+os.Getenv("PORT")+`"`)
			}
			_, _ = io.WriteString(w, "stands in\n")
		}
	})
	address := "127.0.0.1:" + os.Getenv("PORT")
	if has("udp") {
		if _, err := net.ListenPacket("udp", address); err != nil {
			return err
		}
	}
	s := &http.Server{Addr: address, Handler: handler, ReadHeaderTimeout: time.Minute}
	if os.Getenv("CERT") == "" {
		return s.ListenAndServe()
	}
	if has("http1") {
		s.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){}
	}
	return s.ListenAndServeTLS(os.Getenv("CERT"), os.Getenv("KEY"))
}

// substituteServing is a serving of the substitute. The test binary is linked to where other users can run it.
func substituteServing(t *testing.T, modes string) lab.Serving {
	t.Helper()
	if err := Subreaper(); err != nil { // as the agent is
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0) })
	return lab.Serving{
		State: "baseline", URLs: []string{"/"}, Port: testlab.FreePort(t), Campaign: "test",
		Build: lab.Build{ID: "abc", Binary: runnable(t)},
		Command: &lab.ServerCommand{
			Start: []string{"{binary}", substitute, modes}, Env: map[string]string{"PORT": "{port}"}, Within: lab.Seconds(10),
		},
	}
}

// runnable is a copy of the test binary that every user may run.
func runnable(t *testing.T) string {
	t.Helper()
	path := testlab.StateDir(t) + "/substitute"
	if err := copyFile("/proc/self/exe", path, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}
