package knob

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ngxlab/lab"
)

func contextWithin(t *testing.T) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), 2*time.Second)
}

func unitKnob(name string) lab.KnobID { return lab.KnobID{Kind: lab.KnobUnit, Name: name} }

const nofile = "nginx.service.LimitNOFILE"

func (b booted) dropIns() []string {
	b.t.Helper()
	found, err := filepath.Glob(filepath.Join(b.root, "run/systemd/system/*"))
	if err != nil {
		b.t.Fatal(err)
	}
	return found
}

func TestLimitOfARunningUnitIsThatOfItsProcess(t *testing.T) {
	b := newBooted(t)
	b.unit("nginx.service", "Default_LimitNPROC=infinity")
	b.do("start", "nginx.service")
	d := units{newSystemctl(b.roots)}
	b.set("nginx.service", "LimitNOFILE", "5") // what systemd would give it is not what it has
	if v := mustRead(t, d, unitKnob(nofile)); v.Text != "1024:524288" {
		t.Errorf("%+v", v)
	}
	if v := mustRead(t, d, unitKnob("nginx.service.LimitNPROC")); v.Text != "infinity" {
		t.Errorf("%+v", v)
	}
	b.do("stop", "nginx.service")
	if v := mustRead(t, d, unitKnob(nofile)); v.Text != "1024:5" {
		t.Errorf("stopped: %+v", v)
	}
	b.set("nginx.service", "LimitNPROC", "18446744073709551615")
	b.set("nginx.service", "LimitNPROCSoft", "18446744073709551615")
	if v := mustRead(t, d, unitKnob("nginx.service.LimitNPROC")); v.Text != "infinity" {
		t.Errorf("infinity of an old systemd: %+v", v)
	}
}

func TestLimitIsSetByADropInThatGoesAgain(t *testing.T) {
	for _, active := range []bool{true, false} {
		b := newBooted(t)
		b.unit("nginx.service")
		if active {
			b.do("start", "nginx.service")
		}
		d := units{newSystemctl(b.roots)}
		for _, to := range []string{"65535", "100:200", "infinity", "1024:524288", "65535", "1024:524288"} {
			mustWrite(t, d, unitKnob(nofile), lab.Value{Text: to})
			if there := b.dropIns() != nil; there != (to != "1024:524288") {
				t.Errorf("active %v, at %s: files %v", active, to, b.dropIns())
			}
		}
		if restarts := strings.Count(b.calls(), "\nrestart nginx.service"); active && restarts != 6 || !active && restarts != 0 {
			t.Errorf("active %v: %d restarts", active, restarts)
		}
	}
}

func TestTwoLimitsOfAUnitStandBesideEachOtherAndWhatOthersMade(t *testing.T) {
	b := newBooted(t)
	b.unit("nginx.service")
	d := units{newSystemctl(b.roots)}
	dir := filepath.Join(b.root, "run/systemd/system/nginx.service.d")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "10-theirs.conf"), []byte("[Service]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, d, unitKnob(nofile), lab.Value{Text: "65535"})
	mustWrite(t, d, unitKnob("nginx.service.LimitNPROC"), lab.Value{Text: "100"})
	mustWrite(t, d, unitKnob(nofile), lab.Value{Text: "1024:524288"})
	if v := mustRead(t, d, unitKnob("nginx.service.LimitNPROC")); v.Text != "100" {
		t.Errorf("%+v", v)
	}
	mustWrite(t, d, unitKnob("nginx.service.LimitNPROC"), lab.Value{Text: "1024:524288"})
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 || left[0].Name() != "10-theirs.conf" {
		t.Errorf("left %v, %v", left, err)
	}
}

func TestDropInOfAKilledWriteIsForgottenWithoutARestart(t *testing.T) {
	b := newBooted(t)
	b.unit("nginx.service")
	b.do("start", "nginx.service")
	d := units{newSystemctl(b.roots)}
	l := unitLimit{"nginx.service", "LimitNOFILE"}
	if err := makeDropIn(d.dropIn(l), l.content("65535", "1024:524288")); err != nil {
		t.Fatal(err)
	}
	b.do("daemon-reload")
	if v := mustRead(t, d, unitKnob(nofile)); v.Text != "1024:524288" {
		t.Fatalf("%+v", v)
	}
	if err := d.forget(t.Context(), unitKnob(nofile)); err != nil {
		t.Fatal(err)
	}
	b.do("restart", "nginx.service")
	if v := mustRead(t, d, unitKnob(nofile)); v.Text != "1024:524288" || b.dropIns() != nil {
		t.Errorf("%+v, files %v", v, b.dropIns())
	}
	if err := d.forget(t.Context(), unitKnob(nofile)); err != nil {
		t.Errorf("nothing to forget: %v", err)
	}
}

func TestLimitThatAUnitCannotHaveIsAnError(t *testing.T) {
	b := newBooted(t)
	b.unit("nginx.service", "Fails=restart")
	b.do("start", "nginx.service")
	d := units{newSystemctl(b.roots)}
	if err := d.write(t.Context(), unitKnob(nofile), lab.Value{Text: "65535"}); err == nil || !strings.Contains(err.Error(), "control process exited") {
		t.Errorf("%v", err)
	}
	for _, c := range []struct {
		name string
		to   lab.Value
	}{{nofile, lab.Value{Absent: true}}, {nofile, lab.Value{Text: "1\nExecStart=/bin/false"}}, {"nginx.service.ExecStart", lab.Value{Text: "1"}}, {"../x.service.LimitNOFILE", lab.Value{Text: "1"}}, {"none.service.LimitNOFILE", lab.Value{Text: "1"}}} {
		if err := d.write(t.Context(), unitKnob(c.name), c.to); err == nil {
			t.Errorf("%s = %+v was written", c.name, c.to)
		}
	}
}

func TestProbeSaysWhyALimitCannotBe(t *testing.T) {
	b := newBooted(t)
	b.unit("nginx.service")
	b.unit("stuck.service")
	b.do("start", "stuck.service")
	b.set("stuck.service", "CanStop", "no")
	b.unit("sshd.service")
	for _, c := range []struct{ name, value, reason, cure string }{
		{nofile, "1048577", "above fs.nr_open, 1048576", "at most 1048576"},
		{nofile, "infinity", "above fs.nr_open, 1048576", "at most 1048576"},
		{nofile, "many", "no limit", "number or infinity"},
		{"nginx.service.Nice", "5", "not a limit", "LimitNOFILE"},
		{"none.service.LimitNOFILE", "5", "no unit none.service", "install"},
		{"stuck.service.LimitNOFILE", "5", "cannot be restarted", "leave it out"},
		{"sshd.service.LimitNOFILE", "5", "never touched", "leave it out"},
	} {
		fact := probed(t, units{b.asRoot()}, lab.Setting{Knob: unitKnob(c.name), Value: c.value})
		if !strings.Contains(fact.Reason, c.reason) || !strings.Contains(fact.Cure, c.cure) || fact.Privilege {
			t.Errorf("%s = %s: reason %q, cure %q", c.name, c.value, fact.Reason, fact.Cure)
		}
	}
	user := units{b.asRoot()}
	user.systemd.euid = 1000
	if fact := probed(t, user, lab.Setting{Knob: unitKnob(nofile), Value: "65535"}); !fact.Privilege {
		t.Errorf("without privilege: %+v", fact)
	}
	b.do("start", "nginx.service")
	fact := probed(t, units{b.asRoot()}, lab.Setting{Knob: unitKnob(nofile), Value: "65535"})
	if fact.Reason != "" || fact.Now.Text != "1024:524288" || fact.To.Text != "65535" || !strings.Contains(fact.Note, "restarted") {
		t.Errorf("%+v", fact)
	}
}
