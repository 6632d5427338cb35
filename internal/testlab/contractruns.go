package testlab

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path"
	"strconv"
	"strings"
	"testing"
	"time"

	"ngxlab/agent/wire"
	"ngxlab/lab"
)

func (c contract) start(t *testing.T) {
	h := c.claimed(t)
	commands := []lab.Command{
		{Argv: []string{"sh", "-c", "echo $NGXLAB_CAMPAIGN; echo no >&2; exit 5"}, Campaign: "c1", Deadline: lab.Seconds(20)},
		{Argv: []string{"cat", "{work}/in"}, Files: map[string]string{"in": "text"}, Deadline: lab.Seconds(20)},
	}
	armed, err := h.Arm(t.Context(), commands)
	if err != nil || len(armed.PIDs) != 2 {
		t.Fatalf("armed %+v, %v", armed, err)
	}
	clock, err := h.Clock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	at := clock.Instant(time.Now().Add(100 * time.Millisecond))
	ps, err := h.Fire(t.Context(), armed, at)
	if err != nil || len(ps) != 2 {
		t.Fatalf("%d processes, %v", len(ps), err)
	}
	for i, p := range ps {
		if p.Host != h.Name() || p.PID != armed.PIDs[i] || p.Asked != at || p.Released < at || p.Released.Sub(at) > time.Second || p.Ended < p.Released {
			t.Errorf("process %d of %+v: %+v", i, armed, p)
		}
	}
	if p := ps[0]; p.Exit != 5 || string(p.Stdout) != "c1\n" || string(p.Stderr) != "no\n" {
		t.Errorf("exit %d, stdout %q, stderr %q", p.Exit, p.Stdout, p.Stderr)
	}
	if p := ps[1]; p.Exit != 0 || string(p.Stdout) != "text" {
		t.Errorf("exit %d, stdout %q, stderr %q", p.Exit, p.Stdout, p.Stderr)
	}
}

// deadline ends a whole process group on the host, not here.
func (c contract) deadline(t *testing.T) {
	h := c.claimed(t)
	armed, err := h.Arm(t.Context(), []lab.Command{{Argv: []string{"sh", "-c", "sleep 1000 & echo $!; wait"}, Deadline: lab.Seconds(0.3)}})
	if err != nil {
		t.Fatal(err)
	}
	ps, err := h.Fire(t.Context(), armed, 0)
	if err != nil || len(ps) != 1 || !ps[0].TimedOut {
		t.Fatalf("processes %+v, %v", ps, err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(string(ps[0].Stdout)))
	if err != nil {
		t.Fatalf("stdout %q: %v", ps[0].Stdout, err)
	}
	Eventually(t, "process and child are gone", func() bool { return !alive(t, h, ps[0].PID) && !alive(t, h, child) })
}

func (c contract) cancelled(t *testing.T) {
	h := c.claimed(t)
	armed, err := h.Arm(t.Context(), []lab.Command{{Argv: []string{"sleep", "1000"}}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := h.Fire(ctx, armed, 0); !errors.Is(err, context.DeadlineExceeded) || !strings.HasPrefix(err.Error(), string(h.Name())+": fire: ") {
		t.Errorf("error %v", err)
	}
	Eventually(t, "the process is gone", func() bool { return !alive(t, h, armed.PIDs[0]) })
}

func (c contract) watch(t *testing.T) {
	h := c.session(t)
	clock, err := h.Clock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w := lab.Watch{Start: clock.Instant(time.Now().Add(100 * time.Millisecond)), Interval: lab.Seconds(0.05), Count: 4}
	var samples []lab.Sample
	if err := h.Watch(t.Context(), w, func(s lab.Sample) { samples = append(samples, s) }); err != nil {
		t.Fatal(err)
	}
	if len(samples) == 0 || samples[0].At < w.Start {
		t.Errorf("%d samples from %d on", len(samples), w.Start)
	}
	for i, s := range samples {
		if s.Host != h.Name() || len(s.CPUs) == 0 || i > 0 && s.At <= samples[i-1].At {
			t.Errorf("sample %d: host %q, %d CPUs, at %d", i, s.Host, len(s.CPUs), s.At)
		}
	}
}

func (c contract) lock(t *testing.T) {
	first, second := c.session(t), c.session(t)
	ctx := t.Context()
	if free, err := second.Holder(ctx); err != nil || free != (lab.Holder{}) {
		t.Errorf("holder of a free host %+v, %v", free, err)
	}
	if err := first.Claim(ctx, "c1", "ana@desk"); err != nil {
		t.Fatal(err)
	}
	for name, h := range map[string]Host{"its own session": first, "another": second} {
		holder, err := h.Holder(ctx)
		if err != nil || holder.Owner != "ana@desk" || holder.Campaign != "c1" || holder.Since.IsZero() {
			t.Errorf("holder in %s %+v, %v", name, holder, err)
		}
	}
	claim := second.Claim(ctx, "c2", "ben@desk")
	_, restore := second.Restore(ctx)
	_, clean := second.Clean(ctx)
	for call, err := range map[string]error{"claim": claim, "restore": restore, "clean": clean} {
		var sent *wire.Error
		if !errors.As(err, &sent) || sent.Kind != wire.KindLocked || !strings.Contains(err.Error(), "in use by ana@desk, campaign c1, since 2") {
			t.Errorf("%s: %v", call, err)
		}
	}
	if err := first.Release(ctx); err != nil {
		t.Error(err)
	}
	if err := second.Claim(ctx, "c2", "ben@desk"); err != nil {
		t.Errorf("after the release: %v", err)
	}
}

func (c contract) close(t *testing.T) {
	first := c.open(t)
	if err := first.Claim(t.Context(), "c1", "ana@desk"); err != nil {
		t.Fatal(err)
	}
	armed, err := first.Arm(t.Context(), []lab.Command{{Argv: []string{"sh", "-c", "trap '' INT TERM HUP; setsid sleep 1000 & sleep 1000"}}, {Argv: []string{"sleep", "1000"}}})
	if err != nil {
		t.Fatal(err)
	}
	fired := make(chan error, 1)
	go func() {
		_, err := first.Fire(t.Context(), armed, 0)
		fired <- err
	}()
	if _, err := first.Arm(t.Context(), []lab.Command{{Argv: []string{"sleep", "1000"}}}); err != nil { // stays waiting
		t.Fatal(err)
	}
	began := time.Now()
	closed := first.Close()
	second := c.session(t)
	Eventually(t, "the host is free", func() bool { return second.Claim(t.Context(), "c2", "ben@desk") == nil })
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("free only after %v", took)
	}
	if err := <-fired; err == nil || closed != nil {
		t.Errorf("closed: %v; what was under way: %v", closed, err)
	}
	for _, pid := range armed.PIDs {
		if alive(t, second, pid) || alive(t, second, -pid) {
			t.Errorf("process %d or its group lives after its session", pid)
		}
	}
}

// broken is a reader that fails after some bytes.
type broken struct{ left int }

var errBroken = errors.New("the source broke")

func (b *broken) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, errBroken
	}
	n := min(b.left, len(p))
	b.left -= n
	return n, nil
}

func (c contract) put(t *testing.T) {
	h := c.claimed(t)
	dir := strings.TrimSpace(string(run(t, h, "mktemp", "-d").Stdout))
	if !path.IsAbs(dir) {
		t.Fatalf("directory %q", dir)
	}
	defer run(t, h, "rm", "-r", dir)
	file, content := dir+"/a file's name", bytes.Repeat([]byte("0123456789abcdef\n"), 1<<14)
	for _, r := range []io.Reader{strings.NewReader("first"), bytes.NewReader(content)} {
		if err := h.Put(t.Context(), file, 0o750, r); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.Put(t.Context(), file, 0o600, &broken{left: 100000}); !errors.Is(err, errBroken) || !strings.HasPrefix(err.Error(), string(h.Name())+": put ") {
		t.Errorf("put of a source that breaks: %v", err)
	}
	if err := h.Put(t.Context(), dir+"/none/file", 0o600, strings.NewReader("")); err == nil {
		t.Error("put into a directory that does not exist")
	}
	if got := run(t, h, "sh", "-c", `ls -A "$1" && stat -c "%a %s" "$1"/* && tail -c 17 "$1"/*`, "sh", dir); string(got.Stdout) != "a file's name\n750 278528\n0123456789abcdef\n" {
		t.Errorf("there is %s%s", got.Stdout, got.Stderr)
	}
}
