package agent

import (
	"bytes"
	"context"
	"encoding/json"
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
	"testing"
	"time"

	"github.com/hashicorp/yamux"
	"golang.org/x/sys/unix"

	"ngxlab/agent/knob"
	"ngxlab/agent/wire"
	"ngxlab/internal/testlab"
	"ngxlab/lab"
)

var hash = strings.Repeat("ab", 32)

// asker is the other end of a session, by hand.
type asker struct {
	*http.Client
	session *yamux.Session
}

// serve runs Serve over a pipe until the test ends.
func serve(t *testing.T, o Options) asker {
	t.Helper()
	near, far := net.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- Serve(t.Context(), far, o) }()
	if _, _, err := wire.ReadGreeting(near); err != nil {
		t.Fatal(err)
	}
	session, err := yamux.Client(near, wire.Session(io.Discard))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(session.Close(), <-ended); err != nil {
			t.Error(err)
		}
	})
	dial := func(context.Context, string, string) (net.Conn, error) { return session.Open() }
	return asker{Client: &http.Client{Transport: &http.Transport{DialContext: dial}}, session: session}
}

// post sends a request and returns the lines of the answer.
func (a asker) post(t *testing.T, path, body string) []string {
	t.Helper()
	answer, err := a.Post("http://agent"+path, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close() //nolint:errcheck // only read
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

func TestRequestsThatAreNotUnderstoodAreErrorsOfTheirKind(t *testing.T) {
	a := serve(t, Options{Dir: t.TempDir(), Hash: hash})
	for path, body := range map[string]string{wire.PathFacts: "", wire.PathArm: "{}", wire.PathWatch: "[", wire.PathClaim: `"x"`} {
		lines := a.post(t, path, body)
		var answer wire.Reply[wire.None]
		if err := json.Unmarshal([]byte(lines[0]), &answer); err != nil || answer.Error == nil || answer.Error.Kind != wire.KindRequest {
			t.Errorf("%s %q: %v, %v", path, body, lines, err)
		}
	}
	if lines := a.post(t, wire.PathInstall, `{}`); !strings.Contains(lines[0], `"kind":"unclaimed"`) {
		t.Errorf("install without a claim: %v", lines)
	}
}

func TestStreamEndsWithALineThatSaysSo(t *testing.T) {
	a := serve(t, Options{Dir: t.TempDir(), Hash: hash})
	lines := a.post(t, wire.PathWatch, `{"once":true}`)
	if len(lines) != 2 || !strings.HasPrefix(lines[0], `{"item":{`) || lines[1] != `{"end":true}` {
		t.Errorf("lines %.300q", lines)
	}
	lines = a.post(t, wire.PathWatch, `{"interval_s":-1}`)
	if len(lines) != 1 || !strings.HasPrefix(lines[0], `{"error":{"kind":"failed"`) {
		t.Errorf("lines %q", lines)
	}
}

func TestSilentAskerIsGivenUp(t *testing.T) {
	near, far := net.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- Serve(t.Context(), far, Options{Dir: t.TempDir(), Hash: hash}) }()
	if _, _, err := wire.ReadGreeting(near); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, near) }() // takes everything and never answers
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(wire.KeepAlive + wire.GiveUp + 3*time.Second):
		t.Error("still waiting")
	}
	if err := near.Close(); err != nil {
		t.Error(err)
	}
}

func TestServeEndsWithItsContext(t *testing.T) {
	near, far := net.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, far, Options{Dir: t.TempDir(), Hash: hash}) }()
	if _, _, err := wire.ReadGreeting(near); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if n, err := io.Copy(io.Discard, near); err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
}

func TestBrokenConnectionBeforeTheGreetingIsAnError(t *testing.T) {
	near, far := net.Pipe()
	if err := near.Close(); err != nil {
		t.Fatal(err)
	}
	if err := Serve(t.Context(), far, Options{Dir: t.TempDir(), Hash: hash}); err == nil {
		t.Error("served nobody")
	}
}

func lockIn(t *testing.T, dir string) *hostLock {
	t.Helper()
	l, err := openLock(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.close() }) // again, for those a test has closed
	return l
}

func TestLockTellsItsHolderToEveryClaimant(t *testing.T) {
	dir := t.TempDir()
	first := lockIn(t, dir)
	if err := first.claim(wire.Claim{Owner: "ana", Campaign: "c1"}); err != nil {
		t.Fatal(err)
	}
	var claimants sync.WaitGroup
	for range 20 {
		other := lockIn(t, dir)
		claimants.Go(func() {
			var locked *wire.Error
			if err := other.claim(wire.Claim{Owner: "ben"}); !errors.As(err, &locked) || locked.Lock.Owner != "ana" || locked.Lock.Campaign != "c1" {
				t.Errorf("error %v", err)
			}
			if other.isHeld() {
				t.Error("held by two")
			}
		})
	}
	claimants.Wait()
	if err := first.close(); err != nil {
		t.Fatal(err)
	}
	second := lockIn(t, dir)
	if err := second.claim(wire.Claim{Owner: "ben"}); err != nil || !second.isHeld() {
		t.Errorf("free lock: %v", err)
	}
}

func TestHolderThatHasNotSaidWhoItIsIsStillAHolder(t *testing.T) {
	dir := t.TempDir()
	first := lockIn(t, dir)
	if err := errors.Join(first.claim(wire.Claim{Owner: "ana"}), first.write(nil)); err != nil {
		t.Fatal(err)
	}
	var locked *wire.Error
	if err := lockIn(t, dir).claim(wire.Claim{}); !errors.As(err, &locked) || locked.Lock.Owner == "" {
		t.Errorf("error %v", err)
	}
}

func TestLockIsHeldDuringAndFreeAfterwards(t *testing.T) {
	dir := t.TempDir()
	first, second := lockIn(t, dir), lockIn(t, dir)
	fails := errors.New("what was done meanwhile failed")
	err := first.during(wire.Claim{Owner: "a restore"}, func() error {
		if err := second.claim(wire.Claim{}); err == nil {
			t.Error("claimed by another meanwhile")
		}
		return fails
	})
	if !errors.Is(err, fails) {
		t.Errorf("error %v", err)
	}
	if err := second.claim(wire.Claim{Owner: "ben"}); err != nil {
		t.Fatal(err)
	}
	if err := second.during(wire.Claim{}, func() error { return nil }); err != nil || !second.isHeld() {
		t.Errorf("held %v, %v: a lock held before is kept", second.isHeld(), err)
	}
}

func TestErrorsOfThePartsGetTheirKind(t *testing.T) {
	for want, err := range map[wire.Kind]error{
		wire.KindForeign:    &knob.ChangedError{},
		wire.KindReadBack:   errors.Join(errors.New("x"), &knob.ReadBackError{}),
		wire.KindNotSupport: errors.ErrUnsupported,
		wire.KindFailed:     io.EOF,
	} {
		if got := kindOf(err); got != want {
			t.Errorf("%v is %s, not %s", err, got, want)
		}
	}
}

func TestCommandLine(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args           []string
		code           int
		stdout, stderr string
	}{
		{nil, exitUse, "", "usage: "},
		{[]string{"dance"}, exitUse, "", "usage: "},
		{[]string{"pending", "--no-such-flag"}, exitUse, "", "no-such-flag"},
		{[]string{"pending", "more"}, exitUse, "", ""},
		{[]string{"version"}, exitDone, fmt.Sprintf("protocol %d, ", wire.Protocol), ""},
		{[]string{"pending", "--dir", dir}, exitDone, "", ""},
		{[]string{"pending", "--dir", file}, exitFailed, "", "not a directory"},
		{[]string{"restore", "--dir", dir}, exitDone, "", ""},
		{[]string{"restore", "--dir", file}, exitUnrestored, "", "not a directory"},
		{[]string{"hold", "--kind", "nothing"}, exitFailed, "", "hold"},
	} {
		var stdout, stderr bytes.Buffer
		if code := Main(test.args, &stdout, &stderr); code != test.code {
			t.Errorf("%v: exit %d, want %d", test.args, code, test.code)
		}
		if !strings.Contains(stdout.String(), test.stdout) || !strings.Contains(stderr.String(), test.stderr) {
			t.Errorf("%v: printed %q and %q", test.args, stdout.String(), stderr.String())
		}
	}
}

func TestRestoreOnTheHostTellsWhatIsLeft(t *testing.T) {
	dir, sys := t.TempDir(), t.TempDir()
	for path, text := range map[string]string{"kernel/random/boot_id": "b", "net/ngxlab_test": "1"} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(sys, path)), 0o755), os.WriteFile(filepath.Join(sys, path), []byte(text+"\n"), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	keeper, err := knob.OpenRoots(dir, knob.Roots{ProcSys: sys})
	if err != nil {
		t.Fatal(err)
	}
	change := lab.Change{Knob: lab.KnobID{Kind: lab.KnobSysctl, Name: "net.ngxlab_test"}, From: lab.Value{Text: "1"}, To: lab.Value{Text: "2"}}
	if _, err := keeper.Apply(t.Context(), "c1", []lab.Change{change}); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	if code := Main([]string{"pending", "--dir", dir}, &stdout, &stderr); code != exitDone || !strings.Contains(stdout.String(), `sysctl net.ngxlab_test: originally "1", changed by campaign c1 at 2`) {
		t.Errorf("exit %d, %q, %q", code, stdout.String(), stderr.String())
	}
	stdout.Reset()
	code := Main([]string{"restore", "--dir", dir}, &stdout, &stderr) // of another boot, by the true boot id
	if code != exitDone || !strings.Contains(stdout.String(), `sysctl net.ngxlab_test: rebooted (`) {
		t.Errorf("exit %d, %q, %q", code, stdout.String(), stderr.String())
	}
	claimed := lockIn(t, dir)
	if err := claimed.claim(wire.Claim{Owner: "ana", Campaign: "c1"}); err != nil {
		t.Fatal(err)
	}
	stderr.Reset()
	if code := Main([]string{"restore", "--dir", dir}, &stdout, &stderr); code != exitUnrestored || !strings.Contains(stderr.String(), "in use by ana, campaign c1") {
		t.Errorf("under a campaign: exit %d, %q", code, stderr.String())
	}
}

func TestWaitingProcessThatWasNotStartedByARunnerFails(t *testing.T) {
	out, err := exec.Command(testlab.Agent(t), "wait", "0").CombinedOutput() // not in process: Wait owns descriptors 3 and 4
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != exitFailed || !strings.Contains(string(out), "a command are needed") {
		t.Errorf("%v: %s", err, out)
	}
}

func TestAgentIsRaisedAndItsCommandsAreNot(t *testing.T) {
	testlab.RequireCapability(t, unix.CAP_SYS_NICE, "CAP_SYS_NICE to raise a priority")
	dir := t.TempDir()
	cmd := exec.Command(testlab.Agent(t), "serve", "--dir", dir)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, noise, err := wire.ReadGreeting(out); err != nil || len(noise) > 0 {
		t.Fatalf("noise %q, %v", noise, err)
	}
	session, err := yamux.Client(struct {
		io.Reader
		io.WriteCloser
	}{out, in}, wire.Session(io.Discard))
	if err != nil {
		t.Fatal(err)
	}
	dial := func(context.Context, string, string) (net.Conn, error) { return session.Open() }
	a := asker{Client: &http.Client{Transport: &http.Transport{DialContext: dial}}}
	a.post(t, wire.PathClaim, `{"campaign":"c1","owner":"ana"}`)
	a.post(t, wire.PathArm, `[{"argv":["sh","-c","cut -d' ' -f19 /proc/$PPID/stat /proc/self/stat"]}]`)
	answer := a.post(t, wire.PathFire, `{"armed":{"id":"1"},"at_ns":0}`)
	var processes wire.Reply[[]lab.Process]
	if err := json.Unmarshal([]byte(answer[0]), &processes); err != nil || len(processes.Result) != 1 {
		t.Fatalf("%v, %v", answer, err)
	}
	if got := strings.Fields(string(processes.Result[0].Stdout)); len(got) != 2 || got[0] != "-5" || got[1] == "-5" {
		t.Errorf("nice values of worker and command: %v", got)
	}
	if err := errors.Join(session.Close(), cmd.Wait()); err != nil {
		t.Error(err)
	}
}
