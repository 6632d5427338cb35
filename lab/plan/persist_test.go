package plan_test

import (
	"slices"
	"strings"
	"testing"

	"ngxlab/lab"
	"ngxlab/lab/plan"
)

const (
	sysctlFile = "/etc/sysctl.d/99-ngxlab.conf"
	limitsFile = "/etc/security/limits.d/99-ngxlab.conf"
)

// keeping is the quick study with three steps, two of which persist.
func keeping() lab.Experiment {
	e := quick()
	e.Capacity = nil
	e.Steps = []lab.Step{
		{Name: "default"},
		{Name: "queue", Persist: true, Sysctl: map[string]string{"net.core.somaxconn": "65535", "vm.dirty_bytes": "1048576"}},
		{Name: "files", Persist: true, Nofile: 10000, Nproc: 4000, Sysctl: map[string]string{"net.ipv4.tcp_syncookies": "0"}},
		{Name: "passing", Sysctl: map[string]string{"net.core.somaxconn": "1024"}},
	}
	return e
}

// grants says of each knob asked for that the host can have it and has nothing there; owners are numbers.
func grants(e lab.Experiment) lab.Facts {
	f := machine("here")
	f.SysctlWritable["vm.dirty_bytes"] = true
	for _, s := range plan.Query(e, e.Hosts[0]).Knobs {
		to := strings.ReplaceAll(s.Value, "root:root", "0:0")
		f.Knobs = append(f.Knobs, lab.KnobFact{Asked: s, Knob: s.Knob, Now: lab.Value{Absent: true}, To: lab.Value{Text: to}})
	}
	return f
}

// fileOf is the content of a file in a state, and whether there is one.
func fileOf(t *testing.T, s lab.State, path string) (string, bool) {
	t.Helper()
	for _, setting := range s.Settings["here"] {
		if setting.Knob.Name != path || setting.Absent {
			continue
		}
		v, err := lab.ParseFileValue(setting.Value)
		if err != nil || v.Mode != "0644" || v.Owner != "0:0" {
			t.Fatalf("%s in %s: %+v, %v", path, s.Name, v, err)
		}
		content, err := v.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		return string(content), true
	}
	return "", false
}

func TestPersistedStepsKeepAFencedFileOfTheirState(t *testing.T) {
	e := keeping()
	p := make1(t, e, grants(e))
	if len(p.Refused) > 0 {
		t.Fatalf("refused: %v", p.Refused)
	}
	const begin = "# ngxlab: begin\n# Kept by ngxlab, which runs a tuning study on this host; to remove this file: ngxlab restore\n"
	const end = "# ngxlab: end\n"
	const limits = begin + "* - nofile 10000\nroot - nofile 10000\n* - nproc 4000\nroot - nproc 4000\n" + end
	for _, c := range []struct{ state, path, want string }{
		{"default", sysctlFile, ""}, {"default", limitsFile, ""}, {"queue", limitsFile, ""},
		{"queue", sysctlFile, begin + "net.core.somaxconn = 65535\nvm.dirty_bytes = 1048576\n" + end},
		{"files", sysctlFile, begin + "net.core.somaxconn = 65535\nnet.ipv4.tcp_syncookies = 0\nvm.dirty_bytes = 1048576\n" + end},
		{"files", limitsFile, limits}, {"passing", limitsFile, limits},
		{"passing", sysctlFile, begin + "net.ipv4.tcp_syncookies = 0\nvm.dirty_bytes = 1048576\n" + end},
	} {
		if got, there := fileOf(t, state(t, p, c.state), c.path); got != c.want || there != (c.want != "") {
			t.Errorf("%s in %s:\n%s\nwant\n%s", c.path, c.state, got, c.want)
		}
	}
	if got := valuesOf(p.Original, lab.KnobFile); !slices.Equal(got, []string{limitsFile + "=none", sysctlFile + "=none"}) {
		t.Errorf("originally %v", got)
	}
}

func TestFilesThatPersistAreRefusedWhereTheyCannotBe(t *testing.T) {
	foreign := lab.Value{Text: lab.FileValue{Mode: "0644", Owner: "0:0"}.WithContent([]byte("net.core.somaxconn = 1\n")).String()}
	own := lab.Value{Text: lab.FileValue{Mode: "0644", Owner: "0:0"}.WithContent([]byte("# ngxlab: begin\n# ngxlab: end\n")).String()}
	for _, c := range []struct {
		name   string
		change func(*lab.KnobFact)
		reason string
	}{
		{"somebody else's", func(k *lab.KnobFact) { k.Now = foreign }, "is not the lab's"},
		{"no directory", func(k *lab.KnobFact) { k.To, k.Reason = lab.Value{}, "/etc/sysctl.d is not there" }, "/etc/sysctl.d is not there"},
		{"left by the lab", func(k *lab.KnobFact) { k.Now = own }, ""},
	} {
		e := keeping()
		f := grants(e)
		for i := range f.Knobs {
			if f.Knobs[i].Knob.Name == sysctlFile {
				c.change(&f.Knobs[i])
			}
		}
		p := make1(t, e, f)
		if c.reason == "" {
			if len(p.Refused) > 0 {
				t.Errorf("%s: refused %v", c.name, p.Refused)
			}
			continue
		}
		refusal(t, p, c.reason, "steps[1].persist", true)
		e.Cannot = lab.CannotSkip
		p = make1(t, e, f)
		if _, there := fileOf(t, state(t, p, "files"), sysctlFile); there || len(p.Fatal()) > 0 || len(p.States) != 5 {
			t.Errorf("%s, skipped: the file is kept: %v; fatal %v, %d states", c.name, there, p.Fatal(), len(p.States))
		}
	}
	twice := keeping()
	twice.Steps[1].Knobs = []lab.Setting{hostKnob(lab.KnobFile, sysctlFile, foreign.Text)}
	refusal(t, make1(t, twice, grants(twice)), "/etc/sysctl.d/99-ngxlab.conf is written twice: by `persist` of step \"queue\" and by `files` of step \"queue\"", "steps[1].persist", true)
}

// TestAFileUnderTwoNamesIsKnownByWhatTheHostCallsIt: /etc/linked leads to /etc/sysctl.d there.
func TestAFileUnderTwoNamesIsKnownByWhatTheHostCallsIt(t *testing.T) {
	const linked = "/etc/linked/99-ngxlab.conf"
	content := lab.FileValue{Mode: "0644"}.WithContent([]byte("x")).String()
	resolved := func(e lab.Experiment) lab.Facts {
		f := grants(e)
		for i := range f.Knobs {
			f.Knobs[i].Knob.Name = strings.Replace(f.Knobs[i].Knob.Name, "/etc/linked/", "/etc/sysctl.d/", 1)
		}
		return f
	}
	e := keeping()
	e.Steps[3].Knobs = []lab.Setting{hostKnob(lab.KnobFile, linked, content)}
	refusal(t, make1(t, e, resolved(e)), "by `files` of step \"passing\", which calls it "+linked, "steps[1].persist", true)
	e = keeping()
	e.Steps[1].Persist, e.Steps[2].Persist = false, false
	e.Steps[2].Knobs = []lab.Setting{hostKnob(lab.KnobFile, "/etc/sysctl.d/10.conf", content)}
	e.Steps[3].Knobs = []lab.Setting{hostKnob(lab.KnobFile, "/etc/linked/10.conf", content)}
	refusal(t, make1(t, e, resolved(e)), "/etc/linked/10.conf of step \"passing\" and /etc/sysctl.d/10.conf of step \"files\" are one file on here", "steps[2].file./etc/sysctl.d/10.conf", true)
	if p := make1(t, e, grants(e)); len(p.Refused) > 0 {
		t.Errorf("two files are refused: %v", p.Refused)
	}
}

// TestAFileThatPersistsElsewhereThanItsNameSaysMakesNoStepEffective: /etc/sysctl.d is a link.
func TestAFileThatPersistsElsewhereThanItsNameSaysMakesNoStepEffective(t *testing.T) {
	e := keeping()
	e.Steps = []lab.Step{{Name: "default"}, {Name: "kept", Persist: true, Sysctl: map[string]string{"net.core.somaxconn": "4096"}}}
	f := grants(e)
	for i := range f.Knobs {
		f.Knobs[i].Knob.Name = "/real" + f.Knobs[i].Knob.Name
	}
	if p := make1(t, e, f); !warned(p, `step "kept" is empty`) {
		t.Errorf("warnings %v", p.Warnings)
	}
}
