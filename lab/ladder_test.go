package lab_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"ngxlab/lab"
)

func study(kind lab.LadderKind) lab.Experiment {
	return lab.Experiment{
		Name: "study",
		Hosts: []lab.Host{
			{Name: "web", Local: true, Roles: []lab.Role{lab.RoleTarget}},
			{Name: "load1", Address: "10.0.0.2", Roles: []lab.Role{lab.RoleLoad}},
			{Name: "load2", Address: "10.0.0.3", Roles: []lab.Role{lab.RoleLoad}},
		},
		Server: lab.ServerSpec{Build: "nginx", Nginx: map[string]string{"worker_processes": "1", "sendfile": "on"}},
		Ladder: lab.Ladder{Kind: kind},
		Steps: []lab.Step{
			{Name: "default", Nginx: map[string]string{"access_log": "on"}},
			{Name: "log off", Nginx: map[string]string{"access_log": "off"}},
			{Name: "kernel", On: []lab.Role{lab.RoleTarget, lab.RoleLoad}, Nofile: 20000, BestEffort: true,
				Sysctl: map[string]string{"net.core.somaxconn": "65535"}},
			{Name: "workers", Nginx: map[string]string{"worker_processes": "2"}},
		},
	}
}

func mustStates(t *testing.T, e lab.Experiment) []lab.State {
	t.Helper()
	states, err := lab.States(e)
	if err != nil {
		t.Fatal(err)
	}
	return states
}

func outline(states []lab.State) []string {
	var lines []string
	for _, s := range states {
		line := s.Name + ": " + strings.Join(s.Steps, ",") + " over " + s.Over + " shows " + s.Step
		if s.Without {
			line += " inverted"
		}
		lines = append(lines, line)
	}
	return lines
}

func value(s lab.State, host lab.HostName, kind, name string) string {
	for _, setting := range s.Settings[host] {
		if setting.Knob == (lab.KnobID{Kind: kind, Name: name}) {
			return setting.Value
		}
	}
	return ""
}

func TestLaddersTurnStepsIntoStates(t *testing.T) {
	for _, c := range []struct {
		kind  lab.LadderKind
		lists [][]string
		want  []string
	}{
		{lab.Cumulative, nil, []string{
			"default: default over  shows ",
			"log off: default,log off over default shows log off",
			"kernel: default,log off,kernel over log off shows kernel",
			"workers: default,log off,kernel,workers over kernel shows workers"}},
		{lab.Isolated, nil, []string{
			"default: default over  shows ",
			"log off: default,log off over default shows log off",
			"kernel: default,kernel over default shows kernel",
			"workers: default,workers over default shows workers"}},
		{lab.LeaveOneOut, nil, []string{
			"default: default over  shows ",
			"all steps: default,log off,kernel,workers over default shows ",
			"without log off: default,kernel,workers over all steps shows log off inverted",
			"without kernel: default,log off,workers over all steps shows kernel inverted",
			"without workers: default,log off,kernel over all steps shows workers inverted"}},
		{lab.Listed, [][]string{{"default"}, {"kernel"}, {"default", "workers", "log off"}}, []string{
			"default: default over  shows ",
			"kernel: default,kernel over default shows kernel",
			"workers + log off: default,workers,log off over default shows "}},
	} {
		e := study(c.kind)
		e.Ladder.Lists = c.lists
		if got := outline(mustStates(t, e)); !slices.Equal(got, c.want) {
			t.Errorf("%s:\n%s\nwant\n%s", c.kind, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
}

func TestLeaveOneOutOfOneStepIsThatStepOverTheBaseline(t *testing.T) {
	e := study(lab.LeaveOneOut)
	e.Steps = e.Steps[:2]
	want := []string{"default: default over  shows ", "all steps: default,log off over default shows log off"}
	if got := outline(mustStates(t, e)); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestSettingsHoldEverywhereUntilALaterStepOverrides(t *testing.T) {
	states := mustStates(t, study(lab.Cumulative))
	last := states[3]
	for _, c := range []struct{ kind, name, want string }{
		{lab.KnobNginx, "access_log", "off"}, {lab.KnobNginx, "worker_processes", "2"},
		{lab.KnobNginx, "sendfile", "on"}, {lab.KnobBuild, "", "nginx"},
		{lab.KnobNofile, "", "20000"}, {lab.KnobSysctl, "net.core.somaxconn", "65535"},
	} {
		if got := value(last, "web", c.kind, c.name); got != c.want {
			t.Errorf("%s %s = %q, want %q", c.kind, c.name, got, c.want)
		}
	}
	if got := value(states[0], "web", lab.KnobNginx, "access_log"); got != "on" {
		t.Errorf("baseline access_log = %q", got)
	}
	if !slices.IsSortedFunc(last.Settings["web"], func(a, b lab.Setting) int {
		return strings.Compare(a.Knob.String(), b.Knob.String())
	}) {
		t.Errorf("settings are not sorted: %v", last.Settings["web"])
	}
	for _, s := range last.Settings["web"] {
		if s.Knob.Kind == lab.KnobSysctl && (s.Step != "kernel" || !s.BestEffort) {
			t.Errorf("setting lost its step or best effort: %+v", s)
		}
	}
}

func TestSysctlsGoWhereTheStepSaysAndTheRestToTargets(t *testing.T) {
	kernel := mustStates(t, study(lab.Isolated))[2]
	for _, host := range []lab.HostName{"web", "load1", "load2"} {
		if got := value(kernel, host, lab.KnobSysctl, "net.core.somaxconn"); got != "65535" {
			t.Errorf("%s: somaxconn = %q", host, got)
		}
	}
	if n := len(kernel.Settings["load1"]); n != 1 {
		t.Errorf("load1 has %d settings, want the sysctl alone", n)
	}
	e := study(lab.Isolated)
	e.Steps[2].On = nil
	if got := value(mustStates(t, e)[2], "load1", lab.KnobSysctl, "net.core.somaxconn"); got != "" {
		t.Errorf("without `on`, the load host got somaxconn = %q", got)
	}
}

func TestControlIsTheBaselineUnderAnotherName(t *testing.T) {
	e := study(lab.Cumulative)
	e.Repeat.Control = true
	states := mustStates(t, e)
	base, control := states[0], states[len(states)-1]
	if control.Name != "control" || !control.Control || control.Over != base.Name {
		t.Fatalf("control is %+v", control)
	}
	if !reflect.DeepEqual(control.Settings, base.Settings) || !slices.Equal(control.Steps, base.Steps) {
		t.Error("control differs from the baseline")
	}
	control.Settings["web"][0].Value = "changed"
	if base.Settings["web"][0].Value == "changed" {
		t.Error("control shares its settings with the baseline")
	}
}

func TestLadderRefusesWhatHasNoMeaning(t *testing.T) {
	noSteps := study(lab.Cumulative)
	noSteps.Steps = nil
	unknown := study(lab.Listed)
	unknown.Ladder.Lists = [][]string{{"kernel", "kernal"}}
	twice := study(lab.Listed)
	twice.Ladder.Lists = [][]string{{"kernel"}, {"default", "kernel"}}
	named := study(lab.Cumulative)
	named.Steps[1].Name, named.Repeat.Control = lab.ControlName, true
	for name, c := range map[string]struct {
		e    lab.Experiment
		want string
	}{
		"no steps": {noSteps, "no steps"}, "unknown step": {unknown, `unknown step "kernal"`},
		"same state twice": {twice, `named "kernel"`}, "step named control": {named, `named "control"`},
		"unknown kind": {study("sideways"), `unknown kind "sideways"`},
	} {
		if _, err := lab.States(c.e); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v does not say %s", name, err, c.want)
		}
	}
}

func TestStepsCarryEveryKindAndTheLaterOverrides(t *testing.T) {
	gzip, file := lab.KnobID{Kind: lab.KnobNginx, Name: "http.gzip"}, lab.KnobID{Kind: lab.KnobFile, Name: "/etc/x"}
	service := lab.KnobID{Kind: lab.KnobService, Name: "irqbalance"}
	set := lab.Step{Name: "set", Nginx: map[string]string{"http.gzip": "on"}, Nproc: 40960, BestEffort: true,
		Knobs: []lab.Setting{{Knob: file, Value: "{}"}, {Knob: service, Value: "stopped"}}}
	unset := lab.Step{Name: "unset", Remove: []string{"http.gzip"}, Knobs: []lab.Setting{{Knob: file, Absent: true}}}
	for _, c := range []struct {
		steps  []lab.Step
		absent bool
		text   string
		by     string
	}{{[]lab.Step{set, unset}, true, "", "unset"}, {[]lab.Step{unset, set}, false, "on", "set"}} {
		e := study(lab.Cumulative)
		e.Steps = append([]lab.Step{{Name: "default"}}, c.steps...)
		states := mustStates(t, e)
		last := map[lab.KnobID]lab.Setting{}
		for _, s := range states[2].Settings["web"] {
			if _, twice := last[s.Knob]; twice {
				t.Errorf("%s is set twice", s.Knob)
			}
			last[s.Knob] = s
		}
		if g := last[gzip]; g.Absent != c.absent || g.Value != c.text || g.Step != c.by {
			t.Errorf("after %s, gzip is %+v", c.by, g)
		}
		if f := last[file]; f.Absent != c.absent || f.Step != c.by || f.BestEffort != (c.by == "set") {
			t.Errorf("after %s, the file is %+v", c.by, f)
		}
		if s := last[service]; s.Value != "stopped" || s.Step != "set" || !s.BestEffort {
			t.Errorf("the service is %+v", s)
		}
		if got := value(states[2], "web", lab.KnobNproc, ""); got != "40960" {
			t.Errorf("nproc is %q", got)
		}
		if len(states[2].Settings["load1"]) > 0 {
			t.Errorf("a load host got %+v", states[2].Settings["load1"])
		}
	}
}

func TestKnobsOfAHostGoWhereTheStepSays(t *testing.T) {
	e := study(lab.Isolated)
	irq := lab.KnobID{Kind: lab.KnobSysfs, Name: "/proc/irq/1/smp_affinity"}
	e.Steps[1] = lab.Step{Name: "irq", On: []lab.Role{lab.RoleLoad}, Nproc: 5, Knobs: []lab.Setting{{Knob: irq, Value: "1"}}}
	s := mustStates(t, e)[1]
	if value(s, "load1", irq.Kind, irq.Name) != "1" || value(s, "web", irq.Kind, irq.Name) != "" {
		t.Errorf("settings are %+v", s.Settings)
	}
	if value(s, "load1", lab.KnobNproc, "") != "" || value(s, "web", lab.KnobNproc, "") != "5" {
		t.Errorf("nproc is not the target's alone: %+v", s.Settings)
	}
}

func TestLeavingAStepOutBringsBackWhatItOverrode(t *testing.T) {
	e := study(lab.LeaveOneOut)
	e.Steps[1].Nginx = map[string]string{"http.gzip": "on"}
	e.Steps[3] = lab.Step{Name: "workers", Remove: []string{"http.gzip"}}
	without := mustStates(t, e)[4]
	if got := value(without, "web", lab.KnobNginx, "http.gzip"); without.Step != "workers" || got != "on" {
		t.Errorf("%s: gzip is %q", without.Name, got)
	}
}
