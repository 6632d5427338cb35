package hosts

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"ngxlab/agent/wire"
	"ngxlab/internal/testlab"
	"ngxlab/lab"
)

func TestErrorsKeepTheirKind(t *testing.T) {
	h := claimed(t, served(t, t.TempDir(), ""))
	change := lab.Change{
		Knob: lab.KnobID{Kind: lab.KnobSysctl, Name: "net.core.somaxconn"},
		From: lab.Value{Text: "1"}, To: lab.Value{Text: "1"}, // even if it were written, nothing could break
	}
	_, err := h.Apply(t.Context(), "c1", []lab.Change{change})
	var sent *wire.Error
	if !errors.As(err, &sent) || sent.Kind != wire.KindForeign || !strings.HasPrefix(err.Error(), "web: apply: ") {
		t.Errorf("changed by someone else: %v", err)
	}
	_, err = h.Read(t.Context(), lab.Naming(lab.KnobID{Kind: lab.KnobBuild}))
	if !errors.As(err, &sent) || sent.Kind != wire.KindNotSupport {
		t.Errorf("not a knob of a host: %v", err)
	}
	_, err = h.open(t.Context(), "/nothing", wire.None{})
	if err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("unknown request: %v", err)
	}
	_, err = call[lab.Facts](t.Context(), h, wire.PathFacts, "text")
	if !errors.As(err, &sent) || sent.Kind != wire.KindRequest {
		t.Errorf("wrong request: %v", err)
	}
}

func TestCommandsRunThroughTheAgent(t *testing.T) {
	h := claimed(t, served(t, t.TempDir(), ""))
	ctx := t.Context()
	c := lab.Command{Tool: "wrk", Argv: []string{"sh", "-c", "echo $NGXLAB_CAMPAIGN; exit 5"}, Campaign: "c1", Deadline: lab.Seconds(5)}
	armed, err := h.Arm(ctx, []lab.Command{c, c})
	if err != nil {
		t.Fatal(err)
	}
	clock, err := h.Clock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	at := clock.Instant(time.Now().Add(50 * time.Millisecond))
	ps, err := h.Fire(ctx, armed, at)
	if err != nil || len(ps) != 2 {
		t.Fatalf("%d processes, %v", len(ps), err)
	}
	for i, p := range ps {
		if p.Host != "web" || p.PID != armed.PIDs[i] || p.Exit != 5 || string(p.Stdout) != "c1\n" || p.Released < at || p.Command.Tool != "wrk" {
			t.Errorf("process %+v", p)
		}
	}
	if _, err := h.Fire(ctx, armed, at); err == nil {
		t.Error("fired twice")
	}
}

func TestCancelledFireKillsOnTheHost(t *testing.T) {
	h := claimed(t, served(t, t.TempDir(), ""))
	file := filepath.Join(t.TempDir(), "pid")
	armed, err := h.Arm(t.Context(), []lab.Command{{Argv: []string{"sh", "-c", "trap '' INT TERM; echo $$ >" + file + "; sleep 1000"}}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	fired := make(chan error, 1)
	go func() {
		_, err := h.Fire(ctx, armed, 0)
		fired <- err
	}()
	pid := testlab.PIDIn(t, file)
	cancel()
	if err := <-fired; !errors.Is(err, context.Canceled) || !strings.HasPrefix(err.Error(), "web: fire: ") {
		t.Errorf("error %v", err)
	}
	testlab.Eventually(t, "the process is gone", func() bool { return !testlab.Alive(pid) })
}

func TestSecondSessionIsToldWhoHasTheHost(t *testing.T) {
	dir := t.TempDir()
	first := claimed(t, served(t, dir, ""))
	second := served(t, dir, "")
	before := time.Now()
	err := second.Claim(t.Context(), "c2", "ben@desk")
	var sent *wire.Error
	if !errors.As(err, &sent) || sent.Kind != wire.KindLocked || sent.Lock == nil {
		t.Fatalf("error %v", err)
	}
	if l := *sent.Lock; l.Owner != "ana@desk" || l.Campaign != "c1" || before.Sub(l.Since) > time.Minute {
		t.Errorf("lock %+v", l)
	}
	if want := regexp.MustCompile(`^web: claim: in use by ana@desk, campaign c1, since 2\d{3}-\S+Z$`); !want.MatchString(err.Error()) {
		t.Errorf("message %q", err)
	}
	if _, err := second.Restore(t.Context()); !errors.As(err, &sent) || sent.Kind != wire.KindLocked {
		t.Errorf("restore under a campaign: %v", err)
	}
	if err := first.Claim(t.Context(), "c3", "ana@desk"); err != nil {
		t.Errorf("the next campaign of the same session: %v", err)
	}
	if err := first.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if err := second.Claim(t.Context(), "c2", "ben@desk"); err != nil {
		t.Errorf("after the release: %v", err)
	}
}

func TestBuildLogAndErrorComeBack(t *testing.T) {
	h := claimed(t, served(t, t.TempDir(), ""))
	var said bytes.Buffer
	_, err := h.Build(t.Context(), lab.Recipe{Name: "none", Flavor: "nginx", Sources: []lab.BuildSource{{Path: "/no/such/source"}}, Flags: []string{"--x"}}, &said)
	var sent *wire.Error
	if !errors.As(err, &sent) || sent.Kind != wire.KindFailed || !strings.Contains(err.Error(), "/no/such/source") {
		t.Errorf("error %v, log %q", err, said.String())
	}
}

func TestSessionLeavesNoGoroutine(t *testing.T) {
	testlab.Agent(t)
	before := runtime.NumGoroutine()
	for range 3 {
		t.Run("session", func(t *testing.T) {
			h := claimed(t, served(t, t.TempDir(), ""))
			armed, err := h.Arm(t.Context(), []lab.Command{{Argv: []string{"true"}}})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := h.Fire(t.Context(), armed, 0); err != nil {
				t.Fatal(err)
			}
			if _, err := h.Arm(t.Context(), []lab.Command{{Argv: []string{"true"}}}); err != nil { // never fired
				t.Fatal(err)
			}
		})
	}
	defer func() {
		if t.Failed() {
			stacks := make([]byte, 64<<10)
			t.Logf("%s", stacks[:runtime.Stack(stacks, true)])
		}
	}()
	testlab.Eventually(t, "no goroutine is left", func() bool { return runtime.NumGoroutine() <= before })
}

func TestPutIsOfTheDoor(t *testing.T) {
	h := served(t, t.TempDir(), "")
	if err := h.Put(t.Context(), "/x", 0o644, strings.NewReader("")); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("error %v", err)
	}
	path := filepath.Join(t.TempDir(), "file")
	if err := (localDoor{}).Put(t.Context(), path, 0o640, strings.NewReader("content")); err != nil {
		t.Fatal(err)
	}
	if content, err := os.ReadFile(path); err != nil || string(content) != "content" {
		t.Errorf("content %q, %v", content, err)
	}
}
