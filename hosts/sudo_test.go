package hosts

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ngxlab/internal/testlab"
	"ngxlab/lab"
)

func TestAgentThatCannotServeIsNotSentAgain(t *testing.T) {
	d := home(t)
	works(t, d)
	d.count()
	mustFail(t, d, []string{"not a directory"}, func(e *entrance) { e.shell.dir = "/dev/null/state" })
	if _, puts := d.count(); puts != 0 {
		t.Errorf("%d uploads", puts)
	}
}

// nobody is a door as an ordinary user.
func nobody(t *testing.T) *testDoor {
	t.Helper()
	d := home(t)
	if os.Geteuid() != 0 {
		return d
	}
	testlab.Require(t, "setpriv")
	dir := testlab.StateDir(t)
	if err := os.Chown(dir, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	d.env = append(d.env, "HOME="+dir)
	d.login = []string{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "sh", "-c"}
	return d
}

func TestHomeThatCannotBeWrittenToGivesAnAgentAndItsStateAnotherPlace(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: needs root, for a user whose directories can be removed again")
	}
	const uid, fallback = "65533", "/var/tmp/ngxlab-65533"
	t.Cleanup(func() { _ = os.RemoveAll(fallback) })
	for name, home := range map[string]string{"missing": "/proc/none", "another's": testlab.StateDir(t)} {
		t.Run(name, func(t *testing.T) {
			d := nobody(t)
			d.env = append(d.env, "HOME="+home, "XDG_STATE_HOME=")
			d.login = []string{"setpriv", "--reuid=" + uid, "--regid=" + uid, "--clear-groups", "sh", "-c"}
			h, err := tryEnter(t, d, func(e *entrance) { e.shell.dir = "" })
			if err != nil {
				t.Fatal(err)
			}
			f, err := h.Facts(t.Context(), lab.FactsQuery{Brief: true})
			if err := errors.Join(err, h.Close()); err != nil || f.StateDir != fallback {
				t.Errorf("state in %s, %v", f.StateDir, err)
			}
		})
	}
}

func sudo(e *entrance) { e.shell.sudo = true }

// writable makes the state directory one that every user may write to.
func writable(t *testing.T) func(*entrance) {
	t.Helper()
	dir := testlab.StateDir(t)
	if err := os.Chmod(dir, 0o777); err != nil { //nolint:gosec // the mode is the point
		t.Fatal(err)
	}
	return func(e *entrance) { e.shell.dir = dir }
}

const sudoStub = `[ "$1 $2" = "-n --" ] || exit 7; shift 2; `

func TestOrdinaryUserGoesThroughSudo(t *testing.T) {
	d := nobody(t)
	called := filepath.Join(testlab.StateDir(t), "called")
	if err := os.WriteFile(called, nil, 0o600); err != nil || os.Chmod(called, 0o666) != nil { //nolint:gosec // by another user
		t.Fatal(err)
	}
	stub(t, d, "sudo", sudoStub+`echo "$LC_ALL" >>`+called+`; exec "$@"`)
	works(t, d, sudo, writable(t))
	if text, err := os.ReadFile(called); err != nil || string(text) != "C\n" {
		t.Errorf("sudo was called with LC_ALL %q, %v", text, err)
	}
	if _, puts := d.count(); puts != 1 || d.ttys != 0 {
		t.Errorf("%d uploads, %d terminals", puts, d.ttys)
	}
}

func TestSudoThatRequiresATerminalGetsOne(t *testing.T) {
	d := nobody(t)
	stub(t, d, "sudo", sudoStub+`[ -n "$HAS_TTY" ] || { echo "sudo: sorry, you must have a tty to run sudo" >&2; exit 1; }; exec "$@"`)
	works(t, d, sudo, writable(t))
	if _, puts := d.count(); puts != 1 || d.ttys != 1 {
		t.Errorf("%d uploads, %d terminals", puts, d.ttys)
	}
}

func TestSudoThatAsksForAPasswordIsToldApart(t *testing.T) {
	d := nobody(t)
	stub(t, d, "sudo", `echo "sudo: a password is required" >&2; exit 1`)
	_, err := tryEnter(t, d, sudo, writable(t))
	var refused *SudoError
	if !errors.As(err, &refused) || !strings.HasPrefix(refused.Cure(), `give sudo the rule "`+refused.User+` ALL=(root) NOPASSWD: ALL"`) ||
		!strings.Contains(refused.Cure(), "/.cache/ngxlab/ngxlab-agent-*") || !strings.Contains(err.Error(), "sudo: a password is required") {
		t.Errorf("error %v", err)
	}
	if _, puts := d.count(); puts != 1 || d.ttys != 1 {
		t.Errorf("%d uploads, %d terminals", puts, d.ttys)
	}
	d = nobody(t)
	stub(t, d, "sudo", `echo "sudo: /etc/sudo.conf is owned by uid 7" >&2; exit 1`)
	mustFail(t, d, []string{"sudo -n does not start the agent for user ", "owned by uid 7"}, sudo, writable(t))
}

func TestRootNeedsNoSudo(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: needs root")
	}
	d := home(t)
	stub(t, d, "sudo", "exit 7")
	works(t, d, sudo)
}
