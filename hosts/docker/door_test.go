package docker_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"ngxlab/hosts"
	"ngxlab/hosts/docker"
	"ngxlab/internal/testlab"
	"ngxlab/internal/testlab/dockerlab"
)

func contains(err error, word string) bool { return err != nil && strings.Contains(err.Error(), word) }

// enter is a door to the only host of a lab of its own.
func enter(t *testing.T) (*docker.Door, docker.Lab) {
	t.Helper()
	e, l, _ := dockerlab.Lab(t, "web")
	d, err := e.Enter(t.Context(), l.Name, "web")
	if err != nil {
		t.Fatal(err)
	}
	return d, l
}

// output runs a script to its end.
func output(t *testing.T, d hosts.Door, script string) (string, error) {
	t.Helper()
	p, err := d.Open(t.Context(), script, false)
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(p)
	return string(out), errors.Join(err, p.Close())
}

// lines are what a script in a host of a lab prints.
func lines(t *testing.T, e *docker.Engine, lab, host, script string) []string {
	t.Helper()
	d, err := e.Enter(t.Context(), lab, host)
	if err != nil {
		t.Fatal(err)
	}
	out, err := output(t, d, script)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(out), "\n")
}

func TestPipeCarriesBytesUnchanged(t *testing.T) {
	t.Parallel()
	d, _ := enter(t)
	sent := make([]byte, 3<<20)
	random := rand.NewChaCha8([32]byte{1})
	_, _ = random.Read(sent)
	p, err := d.Open(t.Context(), "cat; echo some words >&2", false)
	if err != nil {
		t.Fatal(err)
	}
	if words := p.Explain(); words != "" {
		t.Errorf("while it runs: %q", words)
	}
	go func() { _, _ = p.Write(sent) }()
	got := make([]byte, len(sent))
	if _, err := io.ReadFull(p, got); err != nil || !bytes.Equal(got, sent) {
		t.Errorf("the bytes came back changed: %v", err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if words := p.Explain(); !strings.Contains(words, "exit code 0") || !strings.Contains(words, "some words") {
		t.Errorf("after its end: %q", words)
	}
	if err := p.Close(); err != nil {
		t.Errorf("closed again: %v", err)
	}
}

func TestEndOfAProcessIsTold(t *testing.T) {
	t.Parallel()
	d, _ := enter(t)
	out, err := output(t, d, "echo a; echo b >&2; exit 7")
	if out != "a\n" || !contains(err, "exit code 7") || !contains(err, "b") {
		t.Errorf("%q, %v", out, err)
	}
	out, err = output(t, d, "id -u; echo $HOME; hostname")
	if err != nil || out != "0\n/root\nweb\n" {
		t.Errorf("%q, %v", out, err)
	}
}

func TestTerminalIsRaw(t *testing.T) {
	t.Parallel()
	d, _ := enter(t)
	p, err := d.Open(t.Context(), "tty >/dev/null && echo ready && head -n 1", true)
	if err != nil {
		t.Fatal(err)
	}
	ready := make([]byte, len("ready\n"))
	if _, err := io.ReadFull(p, ready); err != nil || string(ready) != "ready\n" {
		t.Fatalf("%q %v", ready, err)
	}
	if _, err := p.Write([]byte("once\n")); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(p); err != nil || string(rest) != "once\n" {
		t.Errorf("%q, %v; want no echo and no carriage return", rest, err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

// TestClosedPipeEndsItsProcess has a process that never stops writing and one that reads on.
func TestClosedPipeEndsItsProcess(t *testing.T) {
	t.Parallel()
	d, _ := enter(t)
	for _, script := range []string{"cat >/dev/null", "yes & cat >/dev/null; kill $!"} {
		p, err := d.Open(t.Context(), script, false)
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		if err := p.Close(); err != nil {
			t.Errorf("%s: %v", script, err)
		}
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("%s: it took %v", script, took)
		}
		if _, err := p.Read(make([]byte, 1)); err == nil {
			t.Errorf("%s: a closed pipe was read", script)
		}
	}
}

func TestPutWritesWholeFilesOrNone(t *testing.T) {
	t.Parallel()
	d, _ := enter(t)
	content := bytes.Repeat([]byte("ngxlab\x00\r\n"), 1<<17)
	for _, path := range []string{"/root/agent", "/dev/shm/with space and 'quote"} {
		if err := d.Put(t.Context(), path, 0o751, bytes.NewReader(content)); err != nil {
			t.Fatal(err)
		}
		quoted := "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
		if out, err := output(t, d, "stat -c %a "+quoted+"; cksum <"+quoted); err != nil || !strings.HasPrefix(out, "751\n") || !strings.Contains(out, fmt.Sprint(len(content))) {
			t.Errorf("%s: %q, %v", path, out, err)
		}
	}
	broken := io.MultiReader(bytes.NewReader(content), iotest.ErrReader(errors.New("the disk here fails")))
	if err := d.Put(t.Context(), "/root/agent", 0o644, broken); !contains(err, "the disk here fails") {
		t.Errorf("a reader that fails: %v", err)
	}
	if err := d.Put(t.Context(), "/nowhere/agent", 0o644, strings.NewReader("x")); !contains(err, "/nowhere/agent") {
		t.Errorf("a directory that is not there: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	slow, in := io.Pipe()
	go func() {
		_, _ = in.Write(content)
		cancel()
	}()
	if err := d.Put(ctx, "/root/agent", 0o644, slow); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled half-way: %v", err)
	}
	_ = in.Close()
	if out, err := output(t, d, "stat -c %a /root/agent; ls -A /root | grep -c ngxlab-put; true"); err != nil || out != "751\n0\n" {
		t.Errorf("mode of the file of before and leftovers: %q, %v", out, err)
	}
}

func TestFullDiskIsTold(t *testing.T) {
	t.Parallel()
	d, _ := enter(t)
	err := d.Put(t.Context(), "/dev/shm/big", 0o644, io.LimitReader(zeros{}, 100<<20)) // it has 64 MiB
	if !contains(err, "No space left on device") {
		t.Errorf("%v", err)
	}
	if out, err := output(t, d, "ls -A /dev/shm"); err != nil || out != "" {
		t.Errorf("left: %q, %v", out, err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func TestCutConnectionEndsTheProcess(t *testing.T) {
	t.Parallel()
	e, l, _ := dockerlab.Lab(t, "web")
	proxy := newProxy(t)
	far, err := open(t, "tcp://"+proxy.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	d, err := far.Enter(t.Context(), l.Name, "web")
	if err != nil {
		t.Fatal(err)
	}
	p, err := d.Open(t.Context(), "echo begun; cat; echo over >/root/over", false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(p, make([]byte, len("begun\n"))); err != nil {
		t.Fatal(err)
	}
	proxy.cut()
	if _, err := io.ReadAll(p); err != nil {
		t.Errorf("after the cut: %v; want the end of the output", err)
	}
	if words := p.Explain(); !strings.Contains(words, "the connection to the Docker engine is lost") {
		t.Errorf("it is explained as %q", words)
	}
	if err := p.Close(); err == nil {
		t.Error("it was closed well")
	}
	testlab.Eventually(t, "the process sees the end of its input", func() bool {
		return lines(t, e, l.Name, "web", "cat /root/over 2>/dev/null; true")[0] == "over"
	})
}

func TestContainerThatDoesNotRunIsToldAsSuch(t *testing.T) {
	t.Parallel()
	d, l := enter(t)
	p, err := d.Open(t.Context(), "echo begun; cat", false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(p, make([]byte, len("begun\n"))); err != nil { // an engine paused while it starts a process is stuck
		t.Fatal(err)
	}
	r, name := newRaw(t), "ngxlab-"+l.Name+"-web"
	if err := r.ContainerPause(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	_, err = d.Open(ctx, "true", false)
	problem(t, err, docker.NotRunning, "paused", "host web", l.Name)
	problem(t, d.Put(ctx, "/root/x", 0o644, strings.NewReader("x")), docker.NotRunning, "paused")
	if err := p.Close(); !contains(err, "had not ended") {
		t.Errorf("close a pipe to a paused host: %v", err)
	}
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
	if err := r.ContainerUnpause(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	if _, err := output(t, d, "true"); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	if err := r.ContainerKill(t.Context(), name, "KILL"); err != nil {
		t.Fatal(err)
	}
	_, err = d.Open(t.Context(), "true", false)
	problem(t, err, docker.NotRunning, "exited")
	e := dockerlab.Open(t)
	if _, err := e.Down(t.Context(), l.Name); err != nil {
		t.Fatal(err)
	}
	_, err = d.Open(t.Context(), "true", false)
	problem(t, err, docker.NotRunning, "was removed")
	_, err = e.Enter(t.Context(), l.Name, "web")
	problem(t, err, docker.NotRunning, "is not there")
}

// TestManyEntriesLeaveNothing must not run beside other tests.
func TestManyEntriesLeaveNothing(t *testing.T) {
	d, _ := enter(t)
	if _, err := output(t, d, "true"); err != nil {
		t.Fatal(err)
	}
	before := runtime.NumGoroutine()
	for range 20 {
		p, err := d.Open(t.Context(), "cat", false)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
	}
	testlab.Eventually(t, "as many goroutines as before", func() bool { return runtime.NumGoroutine() <= before+2 })
}
