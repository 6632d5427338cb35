package knob

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ngxlab/lab"
)

// booted is a tree of a host that systemd started, with the systemctl of testdata: there is no systemd where these
// tests run.
type booted struct {
	t     *testing.T
	root  string
	roots Roots
}

func newBooted(t *testing.T) booted {
	t.Helper()
	b := booted{t: t, root: t.TempDir()}
	b.roots = Roots{Root: b.root, Systemctl: filepath.Join(b.root, "bin/systemctl")}
	program, err := os.ReadFile("testdata/systemctl")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"run/systemd/system", "units", "bin", "proc/sys/fs"} {
		err = errors.Join(err, os.MkdirAll(filepath.Join(b.root, dir), 0o755))
	}
	err = errors.Join(err, os.WriteFile(b.roots.Systemctl, program, 0o755), os.WriteFile(filepath.Join(b.root, "proc/sys/fs/nr_open"), []byte("1048576\n"), 0o644))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// unit makes a unit that is not started, with further properties.
func (b booted) unit(name string, properties ...string) {
	b.t.Helper()
	lines := append([]string{"Id=" + name, "LoadState=loaded", "ActiveState=inactive", "MainPID=0", "Type=simple", "RemainAfterExit=no",
		"TriggeredBy=", "CanStart=yes", "CanStop=yes"}, properties...)
	if err := os.WriteFile(filepath.Join(b.root, "units", name), []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		b.t.Fatal(err)
	}
	b.do("daemon-reload")
}

func (b booted) do(args ...string) {
	b.t.Helper()
	if _, err := newSystemctl(b.roots).call(b.t.Context(), jobTimeout, args...); err != nil {
		b.t.Fatal(err)
	}
}

func (b booted) calls() string {
	text, err := os.ReadFile(filepath.Join(b.root, "calls"))
	if err != nil {
		b.t.Fatal(err)
	}
	return string(text)
}

// asRoot is systemctl as root has it, whoever runs the test.
func (b booted) asRoot() systemctl {
	s := newSystemctl(b.roots)
	s.euid = 0
	return s
}

func serviceKnob(name string) lab.KnobID { return lab.KnobID{Kind: lab.KnobService, Name: name} }

func serviceSetting(name, value string) lab.Setting {
	return lab.Setting{Knob: serviceKnob(name), Value: value}
}

func TestServiceIsStartedAndStopped(t *testing.T) {
	b := newBooted(t)
	b.unit("irqbalance.service")
	d := services{newSystemctl(b.roots)}
	for _, want := range []string{"started", "stopped", "started", "started"} {
		mustWrite(t, d, serviceKnob("irqbalance"), lab.Value{Text: want})
	}
	if v := mustRead(t, d, serviceKnob("irqbalance.service")); v.Text != "started" {
		t.Errorf("by its whole name: %+v", v)
	}
	if !strings.Contains(b.calls(), "reset-failed irqbalance.service\nstart irqbalance.service\n") {
		t.Errorf("calls:\n%s", b.calls())
	}
}

func TestStatesOfAServiceAreTwoValues(t *testing.T) {
	for state, want := range map[string]string{"active": "started", "reloading": "started", "activating": "started", "inactive": "stopped", "failed": "stopped", "deactivating": "stopped"} {
		b := newBooted(t)
		b.unit("a.service")
		b.set("a.service", "ActiveState", state)
		if v := mustRead(t, services{newSystemctl(b.roots)}, serviceKnob("a")); v.Text != want {
			t.Errorf("%s reads %+v, want %s", state, v, want)
		}
	}
}

func (b booted) set(unit, property, value string) {
	b.t.Helper()
	path := filepath.Join(b.root, "units", unit)
	text, err := os.ReadFile(path)
	if err != nil {
		b.t.Fatal(err)
	}
	var kept []string
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, property+"=") {
			kept = append(kept, line)
		}
	}
	if err := os.WriteFile(path, []byte(strings.Join(kept, "")+property+"="+value+"\n"), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

func TestServiceThatIsNotThereIsAbsent(t *testing.T) {
	b := newBooted(t)
	if v := mustRead(t, services{newSystemctl(b.roots)}, serviceKnob("none")); !v.Absent {
		t.Errorf("%+v", v)
	}
	bare := services{newSystemctl(Roots{Root: t.TempDir()})}
	if v := mustRead(t, bare, serviceKnob("irqbalance")); !v.Absent {
		t.Errorf("without systemd: %+v", v)
	}
	if err := bare.write(t.Context(), serviceKnob("irqbalance"), lab.Value{Text: "started"}); !errors.Is(err, errNoSystemd) {
		t.Errorf("without systemd: %v", err)
	}
}

func TestJobOfAServiceThatFailsOrDoesNothingIsAnError(t *testing.T) {
	for spoil, want := range map[string]string{"Fails": "control process exited", "Hangs": "killed", "Ignores": "is inactive"} {
		b := newBooted(t)
		b.unit("a.service", spoil+"=start")
		ctx, cancel := contextWithin(t)
		err := services{newSystemctl(b.roots)}.write(ctx, serviceKnob("a"), lab.Value{Text: "started"})
		cancel()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", spoil, err)
		}
	}
	b := newBooted(t)
	for _, to := range []lab.Value{{Text: "restarted"}, {Absent: true}, {Text: "started", Absent: true}} {
		if err := (services{newSystemctl(b.roots)}).write(t.Context(), serviceKnob("a"), to); err == nil {
			t.Errorf("%+v was written", to)
		}
	}
}

func TestProbeSaysWhyAServiceCannotBe(t *testing.T) {
	b := newBooted(t)
	b.unit("a.service", "CanStop=no")
	b.set("a.service", "CanStop", "no")
	b.unit("started.service")
	b.do("start", "started.service")
	b.set("started.service", "CanStop", "no")
	b.unit("never.service")
	b.set("never.service", "CanStart", "no")
	b.unit("once.service")
	b.set("once.service", "Type", "oneshot")
	b.unit("masked.service")
	b.set("masked.service", "LoadState", "masked")
	b.unit("broken.service")
	b.set("broken.service", "LoadState", "bad-setting")
	b.unit("irqbalance.service")
	b.unit("way-in.service")
	b.set("way-in.service", "Id", "sshd.service")
	b.unit("systemd-logind.service")
	for _, c := range []struct{ name, value, reason, cure string }{
		{"a", "started", "RefuseManualStop", "leave it out"},
		{"started", "stopped", "RefuseManualStop", "leave it out"},
		{"never", "started", "RefuseManualStart", "leave it out"},
		{"once", "started", "runs once", "command"},
		{"masked", "stopped", "masked", "unmask"},
		{"broken", "started", "bad-setting", "systemctl status"},
		{"irqbalanced", "stopped", "no unit irqbalanced.service", "there is irqbalance.service"},
		{"zzz", "stopped", "no unit", "install"},
		{"way-in", "stopped", "never touched", "leave it out"},
		{"sshd", "stopped", "never touched", "leave it out"},
		{"systemd-logind", "stopped", "never touched", "leave it out"},
		{"irqbalance", "paused", "started or stopped", "one of these"},
	} {
		fact := probed(t, services{b.asRoot()}, serviceSetting(c.name, c.value))
		if !strings.Contains(fact.Reason, c.reason) || !strings.Contains(fact.Cure, c.cure) || fact.Privilege {
			t.Errorf("%s %s: reason %q, cure %q", c.name, c.value, fact.Reason, fact.Cure)
		}
	}
	bare := services{newSystemctl(Roots{Root: t.TempDir()})}
	if fact := probed(t, bare, serviceSetting("irqbalance", "stopped")); !strings.Contains(fact.Reason, "systemd") || !strings.Contains(fact.Cure, "command") {
		t.Errorf("without systemd: %+v", fact)
	}
	user := services{b.asRoot()}
	user.systemd.euid = 1000
	if fact := probed(t, user, serviceSetting("irqbalance", "started")); !fact.Privilege || !strings.Contains(fact.Reason, "root") {
		t.Errorf("without privilege: %+v", fact)
	}
}

func TestProbeOfAServiceSaysWhatItBrings(t *testing.T) {
	b := newBooted(t)
	b.unit("ufw.service")
	b.set("ufw.service", "TriggeredBy", "ufw.socket")
	b.unit("alias.service")
	b.set("alias.service", "Id", "irqbalance.service")
	b.do("start", "ufw.service")
	fact := probed(t, services{b.asRoot()}, serviceSetting("ufw", "stopped"))
	if fact.Reason != "" || fact.Now.Text != "started" || fact.To.Text != "stopped" || !strings.Contains(fact.Note, "weakens security") || !strings.Contains(fact.Note, "ufw.socket") {
		t.Errorf("%+v", fact)
	}
	if fact := probed(t, services{b.asRoot()}, serviceSetting("alias", "started")); fact.Knob.Name != "irqbalance" || fact.Now.Text != "stopped" {
		t.Errorf("%+v", fact)
	}
}

func TestFailedServiceIsSaidToComeBackWithoutItsFailure(t *testing.T) {
	b := newBooted(t)
	b.unit("a.service")
	d := services{b.asRoot()}
	if note := d.probe(t.Context(), serviceSetting("a", "started"))[0].Note; note != "" {
		t.Errorf("of a service that is only stopped: %q", note)
	}
	b.set("a.service", "ActiveState", "failed")
	fact := d.probe(t.Context(), serviceSetting("a", "started"))[0]
	if !strings.Contains(fact.Note, "failed at present") || fact.Now.Text != "stopped" || fact.Reason != "" {
		t.Errorf("fact %+v", fact)
	}
}
