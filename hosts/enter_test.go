package hosts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"ngxlab/agent/wire"
	"ngxlab/internal/testlab"
)

// testDoor is the way into this machine as a user whose home is another, through a login shell; it counts.
type testDoor struct {
	localDoor
	login []string // before the command line that the login shell is given; nil = none
	put   func(path string, content []byte) ([]byte, error)

	mu     sync.Mutex
	opened []string // scripts
	ttys   int
	puts   []string
}

// home is a door to a home directory below a fresh one, with variables added to the environment.
func home(t testing.TB, env ...string) *testDoor {
	t.Helper()
	dir := testlab.StateDir(t)
	return &testDoor{localDoor: localDoor{env: append(os.Environ(), append([]string{"HOME=" + filepath.Join(dir, "home")}, env...)...)}}
}

func (d *testDoor) Open(ctx context.Context, script string, tty bool) (Pipe, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.opened = append(d.opened, script)
	env := d.env
	if tty {
		d.ttys++
		env = append(slices.Clone(env), "HAS_TTY=1")
	}
	if d.login == nil {
		return localDoor{env: env}.Open(ctx, script, tty)
	}
	argv := append(slices.Clone(d.login), "exec /bin/sh -c '"+script+"'")
	return startProcess(argv, env)
}

// Answers makes it a door to a host that answers.
func (d *testDoor) Answers(context.Context) error { return nil }

func (d *testDoor) Put(ctx context.Context, path string, mode fs.FileMode, r io.Reader) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.puts = append(d.puts, path)
	if d.put != nil {
		content, err := io.ReadAll(r)
		if err == nil {
			content, err = d.put(path, content)
		}
		if err != nil {
			return err
		}
		r = bytes.NewReader(content)
	}
	return d.localDoor.Put(ctx, path, mode, r)
}

// count returns how many sessions and uploads there were since the last count.
func (d *testDoor) count() (sessions, puts int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	sessions, puts = len(d.opened), len(d.puts)
	d.opened, d.puts = nil, nil
	return sessions, puts
}

// works enters, makes a call, and closes.
func works(t *testing.T, d Door, change ...func(*entrance)) {
	t.Helper()
	h, err := tryEnter(t, d, change...)
	if err != nil {
		t.Error(err)
		return
	}
	_, err = h.Pending(t.Context())
	if err := errors.Join(err, h.Close()); err != nil {
		t.Error(err)
	}
}

func tryEnter(t *testing.T, d Door, change ...func(*entrance)) (*Host, error) {
	t.Helper()
	o := options(t)
	o.Dir = testlab.StateDir(t)
	e, err := newEntrance(d, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range change {
		c(e)
	}
	return e.host(t.Context(), "web")
}

// mustFail enters, and wants an error with all of these words.
func mustFail(t *testing.T, d Door, words []string, change ...func(*entrance)) {
	t.Helper()
	h, err := tryEnter(t, d, change...)
	if err == nil {
		t.Errorf("entered, although %v", words)
		_ = h.Close()
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error without %q: %v", w, err)
		}
	}
}

func at(places ...string) func(*entrance) {
	return func(e *entrance) {
		e.shell.places = nil
		for _, p := range places {
			e.shell.places = append(e.shell.places, `"`+p+`"`)
		}
	}
}

func TestScriptPassesThroughAnyShellUnchanged(t *testing.T) {
	s := shell{names: map[string]string{"amd64": "a", "arm64": "b"}, places: places, dir: "/state dir/ü", sudo: true}
	for _, script := range []string{s.start(places, true), s.look(1)} {
		if strings.ContainsAny(script, "'!\\\n\r") {
			t.Errorf("script with a quote, !, backslash or newline: %s", script)
		}
	}
	for path, want := range map[string]bool{"": true, "/var/lib/a b": true, "/it's": false, "/$HOME": false, "/a\nb": false, "/a!": false} {
		if quotable(path) != want {
			t.Errorf("quotable(%q) = %v", path, !want)
		}
	}
	if _, err := Local(t.Context(), Options{Agent: testlab.Agent(t), Dir: "/it's"}); err == nil || !strings.Contains(err.Error(), "state directory") {
		t.Errorf("error %v", err)
	}
}

func TestAgentIsSentOnceAndThenStartedInOneSession(t *testing.T) {
	d := home(t)
	works(t, d)
	if sessions, puts := d.count(); sessions != 2 || puts != 1 {
		t.Errorf("first time: %d sessions, %d uploads", sessions, puts)
	}
	works(t, d)
	if sessions, puts := d.count(); sessions != 1 || puts != 0 {
		t.Errorf("second time: %d sessions, %d uploads", sessions, puts)
	}
}

func TestAnyLoginShellWillDo(t *testing.T) {
	for _, name := range []string{"sh", "bash", "dash", "zsh", "fish", "tcsh", "csh"} {
		t.Run(name, func(t *testing.T) {
			testlab.Require(t, name)
			d := home(t)
			d.login = []string{name, "-c"}
			works(t, d)
			d.login = []string{"sh", "-c", `echo "Last login: today from ngxlab-host/1"; printf "You have mail. "; exec "$0" -c "$1"`, name}
			works(t, d)
			if sessions, puts := d.count(); sessions != 3 || puts != 1 {
				t.Errorf("%d sessions, %d uploads", sessions, puts)
			}
		})
	}
}

func TestNoiseBeforeTheScriptsAnswerIsSkipped(t *testing.T) {
	d := home(t)
	d.login = []string{"sh", "-c", `yes "Welcome to web!" | head -c 40000; exec sh -c "$0"`}
	works(t, d)
}

// unusable makes directories in which no agent must be kept, with the reason for each.
func unusable(t *testing.T) (dirs []string, reasons []string) {
	t.Helper()
	base := testlab.StateDir(t)
	open, file, link, real := filepath.Join(base, "open"), filepath.Join(base, "file"), filepath.Join(base, "link"), filepath.Join(base, "real")
	err := errors.Join(os.Mkdir(open, 0o700), os.Chmod(open, 0o777), //nolint:gosec // the mode is the point
		os.WriteFile(file, nil, 0o600), os.Mkdir(real, 0o700), os.Symlink(real, link))
	if err != nil {
		t.Fatal(err)
	}
	only := "not a directory that only this user may write to"
	return []string{"/proc/ngxlab", open, file, link, "/.cache/ngxlab"},
		[]string{"/proc/ngxlab: ", open + ": " + only, file + ": ", link + ": " + only, "/.cache/ngxlab: HOME is not set"}
}

func TestDirectoriesThatCannotBeUsedArePassedOver(t *testing.T) {
	dirs, reasons := unusable(t)
	good := filepath.Join(testlab.StateDir(t), "new", "good")
	d := home(t)
	works(t, d, at(append(dirs, good)...))
	if len(d.puts) != 1 || filepath.Dir(d.puts[0]) != good {
		t.Errorf("put at %v", d.puts)
	}
	if info, err := os.Stat(good); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("directory %v, %v", info, err)
	}
	if info, err := os.Stat(d.puts[0]); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("agent %v, %v", info, err)
	}
	mustFail(t, home(t), append(reasons, "no directory for the agent"), at(dirs...))
}

func TestAgentInADirectoryThatOthersMayWriteToIsNotStarted(t *testing.T) {
	dirs, _ := unusable(t)
	d := home(t)
	open := dirs[1]
	name := "ngxlab-agent-" + agentHash(t)[:16]
	if err := os.WriteFile(filepath.Join(open, name), []byte("#!/bin/sh\necho started >&2; exit 9\n"), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	works(t, d, at(open, filepath.Join(testlab.StateDir(t), "good")))
	mustFail(t, d, []string{"no directory"}, at(open))
}

func TestDirectoryMountedNoexecIsPassedOver(t *testing.T) {
	mounted, good := testlab.StateDir(t), filepath.Join(testlab.StateDir(t), "good")
	mount := []string{"unshare", "-rm", "sh", "-c", "mount -t tmpfs -o noexec,mode=700 none " + mounted + `; exec sh -c "$0"`}
	if out, err := exec.CommandContext(t.Context(), mount[0], append(slices.Clone(mount[1:]), "true")...).CombinedOutput(); err != nil || len(out) > 0 {
		t.Skipf("SKIPPED: no mount of one's own: %v: %s", err, out)
	}
	d := home(t)
	d.login = mount
	works(t, d, at(mounted, good))
	if len(d.puts) != 1 || filepath.Dir(d.puts[0]) != good {
		t.Errorf("put at %v", d.puts)
	}
}

func TestDamagedAgentIsSentAgainOnce(t *testing.T) {
	content, err := os.ReadFile(testlab.Agent(t))
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(content)
	for i := len(flipped) / 8; i < len(flipped)/2; i++ {
		flipped[i] ^= 0xff
	}
	other := append(bytes.Clone(content), "more"...) // works, but is another
	for name, damaged := range map[string][]byte{
		"empty": {}, "cut off": content[:len(content)/3], "flipped": flipped, "another": other,
		"not a program": []byte("\x00\x01\x02\x03"), "of another machine": append([]byte("\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xf3\x00"), content[20:]...),
		"crashing": []byte("#!/bin/sh\nexit 3\n"),
	} {
		t.Run(name, func(t *testing.T) {
			d := home(t)
			works(t, d)
			path := d.puts[0]
			if err := put(t.Context(), path, 0o755, bytes.NewReader(damaged)); err != nil {
				t.Fatal(err)
			}
			d.count()
			works(t, d)
			if sessions, puts := d.count(); sessions != 3 || puts != 1 {
				t.Errorf("%d sessions, %d uploads", sessions, puts)
			}
			if there, err := os.ReadFile(path); err != nil || !bytes.Equal(there, content) {
				t.Errorf("%d bytes are there, %v", len(there), err)
			}
			d = home(t)
			d.put = func(string, []byte) ([]byte, error) { return damaged, nil }
			mustFail(t, d, []string{"home/.cache/ngxlab/ngxlab-agent-", "does not work there"})
			if sessions, puts := d.count(); sessions != 3 || puts != 1 {
				t.Errorf("%d sessions, %d uploads of an agent that never works", sessions, puts)
			}
		})
	}
}

func TestFailedUploadNamesPathAndSize(t *testing.T) {
	d := home(t)
	d.put = func(string, []byte) ([]byte, error) { return nil, syscall.ENOSPC }
	info, err := os.Stat(testlab.Agent(t))
	if err != nil {
		t.Fatal(err)
	}
	mustFail(t, d, []string{"home/.cache/ngxlab/ngxlab-agent-", fmt.Sprintf("(%d bytes)", info.Size()), "no space left on device"}, at("$HOME/.cache/ngxlab"))
	if _, puts := d.count(); puts != 1 {
		t.Errorf("%d uploads", puts)
	}
}

func TestDirectoryOnAFullDiskIsPassedOver(t *testing.T) {
	base := testlab.StateDir(t)
	full, over, good := filepath.Join(base, "full"), filepath.Join(base, "over"), filepath.Join(base, "good")
	limits := map[string]error{full: syscall.ENOSPC, over: syscall.EDQUOT}
	d := home(t)
	d.put = func(path string, content []byte) ([]byte, error) { return content, limits[filepath.Dir(path)] }
	works(t, d, at(full, "/proc/ngxlab", over, good))
	if sessions, puts := d.count(); sessions != 4 || puts != 3 {
		t.Errorf("%d sessions, %d uploads", sessions, puts)
	}
	works(t, d, at(full, "/proc/ngxlab", over, good))
	if sessions, puts := d.count(); sessions != 1 || puts != 0 {
		t.Errorf("the second time: %d sessions, %d uploads", sessions, puts)
	}
	limits[good] = syscall.ENOSPC
	if err := os.RemoveAll(good); err != nil {
		t.Fatal(err)
	}
	mustFail(t, d, []string{"no directory for the agent", full + "/ngxlab-agent-", "/proc/ngxlab: ", "disk quota exceeded", good + "/ngxlab-agent-"},
		at(full, "/proc/ngxlab", over, good))
}

func TestDirectoryWhereAnAgentShouldBeIsPassedOver(t *testing.T) {
	d, good := home(t), filepath.Join(testlab.StateDir(t), "good")
	works(t, d)
	first := filepath.Dir(d.puts[0])
	if err := errors.Join(os.Remove(d.puts[0]), os.MkdirAll(filepath.Join(d.puts[0], "inside"), 0o755)); err != nil {
		t.Fatal(err)
	}
	works(t, d, at(first, good))
	d.count()
	works(t, d, at(first, good))
	if sessions, puts := d.count(); sessions != 1 || puts != 0 {
		t.Errorf("%d sessions, %d uploads", sessions, puts)
	}
}

func TestLoginShellThatRunsNoScriptIsToldOnceWithWhatIsNeeded(t *testing.T) {
	for name, test := range map[string]struct{ login, want string }{
		"nologin": {`echo "This account is currently not available."; exit 1`, "currently not available"},
		"false":   {`exit 1`, "exit status 1"},
		"leaves":  {`echo "bye \033[2J" >&2; exit 7`, "exit status 7: bye"},
		"chatter": {`exec yes "Welcome to this machine"`, "more lines)"},
		"sleeps":  {`exec sleep 1000`, "no answer within"},
		"asks":    {`echo "Your name?"; read x; sleep 1000`, "Your name?"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := home(t)
			d.login = []string{"sh", "-c", test.login}
			_, err := tryEnter(t, d, func(e *entrance) { e.limit = 2 * time.Second })
			var shell *ShellError
			if !errors.As(err, &shell) || !strings.Contains(err.Error(), test.want) || !strings.Contains(shell.Cure(), "login shell") {
				t.Fatalf("error %v", err)
			}
			if text := err.Error(); strings.Contains(text, "look for") || len(text) > 700 || strings.Count(text, test.want) != 1 {
				t.Errorf("told at length, or twice: %s", text)
			}
		})
	}
}

// stub puts a command into a directory of its own that comes first in the search path.
func stub(t *testing.T, d *testDoor, name, script string) {
	t.Helper()
	dir := testlab.StateDir(t)
	if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	d.env = append(d.env, "PATH="+dir+":"+os.Getenv("PATH"))
}

func TestMachineWithoutAnAgentIsNamed(t *testing.T) {
	d := home(t)
	stub(t, d, "uname", "echo riscv64")
	mustFail(t, d, []string{"riscv64", "x86_64 and aarch64"})
	d = home(t)
	stub(t, d, "uname", "echo aarch64")
	works(t, d) // the agent of the options, whatever the machine
}

func TestUnfinishedUploadsAreRemovedInTime(t *testing.T) {
	d := home(t)
	works(t, d)
	dir := filepath.Dir(d.puts[0])
	old, young := filepath.Join(dir, wire.TemporaryPrefix+"old"), filepath.Join(dir, wire.TemporaryPrefix+"young")
	then := time.Now().Add(-2 * time.Hour)
	if err := errors.Join(os.WriteFile(old, nil, 0o600), os.WriteFile(young, nil, 0o600), os.Chtimes(old, then, then), os.Remove(d.puts[0])); err != nil {
		t.Fatal(err)
	}
	works(t, d)
	if _, err := os.Stat(old); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the old one: %v", err)
	}
	if _, err := os.Stat(young); err != nil {
		t.Errorf("the young one: %v", err)
	}
}
