package plan_test

import (
	"slices"
	"strings"
	"testing"

	"ngxlab/lab"
	"ngxlab/lab/plan"
	"ngxlab/lab/tune"
)

func hostKnob(kind, name, value string) lab.Setting {
	return lab.Setting{Knob: lab.KnobID{Kind: kind, Name: name}, Value: value}
}

// fact is what a host says of a setting that it can have.
func fact(asked lab.Setting, name, now string) lab.KnobFact {
	return lab.KnobFact{Asked: asked, Knob: lab.KnobID{Kind: asked.Knob.Kind, Name: name}, Now: lab.Value{Text: now}, To: lab.Value{Text: asked.Value}}
}

// saying is the machine with facts of knobs.
func saying(facts ...lab.KnobFact) lab.Facts {
	f := machine("here")
	f.Knobs = facts
	return f
}

func knobStep(settings ...lab.Setting) lab.Step { return lab.Step{Knobs: settings} }

var (
	rps      = hostKnob(lab.KnobSysfs, "/sys/class/net/eth0/queues/rx-*/rps_cpus", "3")
	rpsFirst = hostKnob(lab.KnobSysfs, "/sys/class/net/eth0/queues/rx-0/rps_cpus", "1")
)

func rpsFacts() []lab.KnobFact {
	return []lab.KnobFact{
		fact(rps, "/sys/class/net/eth0/queues/rx-0/rps_cpus", "0"), fact(rps, "/sys/class/net/eth0/queues/rx-1/rps_cpus", "0"),
		fact(rpsFirst, "/sys/class/net/eth0/queues/rx-0/rps_cpus", "0"),
	}
}

// valuesOf are the host's values of one kind in a state, "name=value".
func valuesOf(s lab.State, kind string) []string {
	var all []string
	for _, setting := range s.Settings["here"] {
		if setting.Knob.Kind == kind {
			value := setting.Value
			if setting.Absent {
				value = "none"
			}
			all = append(all, setting.Knob.Name+"="+value)
		}
	}
	return all
}

func TestQueryAsksForKnobsOncePersistedFilesAndOtherHalves(t *testing.T) {
	e := withStep(knobStep(rps, rpsFirst))
	e.Steps = append(e.Steps, lab.Step{Name: "again", Knobs: []lab.Setting{{Knob: rps.Knob, Value: rps.Value, BestEffort: true, Step: "again"}}},
		lab.Step{Name: "kept", Persist: true, Nofile: 1000, Sysctl: map[string]string{"vm.dirty_bytes": "1048576"}})
	q := plan.Query(e, e.Hosts[0])
	var names []string
	for _, s := range q.Knobs {
		if s.Step != "" || s.BestEffort {
			t.Errorf("asked with more than knob and value: %+v", s)
		}
		names = append(names, s.Knob.Name)
	}
	want := []string{"/etc/security/limits.d/99-ngxlab.conf", "/etc/sysctl.d/99-ngxlab.conf", rps.Knob.Name, rpsFirst.Knob.Name}
	if !slices.Equal(names, want) {
		t.Errorf("asked for %v, want %v", names, want)
	}
	for _, name := range []string{"vm.dirty_ratio", "fs.nr_open", "net.ipv4.tcp_available_congestion_control"} {
		if !slices.Contains(q.Sysctls, name) {
			t.Errorf("%s is not asked for", name)
		}
	}
}

func TestPatternsBecomeTheKnobsThatTheyMatch(t *testing.T) {
	e := withStep(knobStep(rps))
	e.Steps = append(e.Steps, lab.Step{Name: "one queue", Knobs: []lab.Setting{rpsFirst}})
	p := make1(t, e, saying(rpsFacts()...))
	if len(p.Refused) > 0 {
		t.Fatalf("refused: %v", p.Refused)
	}
	all, one, base := state(t, p, "tried"), state(t, p, "one queue"), state(t, p, "default")
	for _, c := range []struct {
		s    lab.State
		want string
	}{{all, "rx-0=3 rx-1=3"}, {one, "rx-0=1 rx-1=3"}, {base, "rx-0=0 rx-1=0"}, {p.Original, "rx-0=0 rx-1=0"}} {
		got := strings.NewReplacer("/sys/class/net/eth0/queues/", "", "/rps_cpus", "").Replace(strings.Join(valuesOf(c.s, lab.KnobSysfs), " "))
		if got != c.want {
			t.Errorf("%s has %s, want %s", c.s.Name, got, c.want)
		}
	}
	changes, err := tune.Transition(all, one, "here")
	if err != nil || len(changes) != 1 || changes[0].Knob != rpsFirst.Knob {
		t.Errorf("from the pattern to one queue: %v, %v", changes, err)
	}
}

func state(t *testing.T, p lab.Plan, name string) lab.State {
	t.Helper()
	s, found := p.State(name)
	if !found {
		t.Fatalf("no state %q", name)
	}
	return s
}

func TestWhatAHostSaysOfAKnobRefusesIt(t *testing.T) {
	thp := hostKnob(lab.KnobSysfs, "/sys/kernel/mm/transparent_hugepage/enabled", "never")
	refusedFact := func(reason, cure string, privilege bool) lab.KnobFact {
		return lab.KnobFact{Asked: thp, Knob: thp.Knob, Reason: reason, Cure: cure, Privilege: privilege}
	}
	there := fact(thp, thp.Knob.Name, "never")
	there.Reason, there.Privilege = "may be written by root only", true
	for _, c := range []struct {
		name         string
		f            lab.Facts
		reason, cure string
	}{
		{"missing", saying(refusedFact("this kernel has no transparent huge pages", "build it with them", false)), "this kernel has no transparent", "build it with them"},
		{"without a cure", saying(refusedFact("it is gone", "", false)), thp.Knob.String() + " on here: it is gone", "leave it out"},
		{"root only", saying(refusedFact("may be written by root only", "", true)), "may be written by root only", "run as root"},
		{"not asked", saying(), "here has not said what it has of " + thp.Knob.String(), "plan anew"},
		{"there already", saying(there), "", ""},
	} {
		p := make1(t, withStep(knobStep(thp)), c.f)
		if c.reason == "" {
			if len(p.Refused) > 0 {
				t.Errorf("%s: refused %v", c.name, p.Refused)
			}
			continue
		}
		if r := refusal(t, p, c.reason, "steps[4].sysfs."+thp.Knob.Name, true); !strings.Contains(r.Cure, c.cure) {
			t.Errorf("%s: cure %q", c.name, r.Cure)
		}
		e := withStep(knobStep(thp))
		e.Cannot = lab.CannotSkip
		if p := make1(t, e, c.f); len(p.Fatal()) > 0 || len(p.States) != 5 {
			t.Errorf("%s, skipped: fatal %v, %d states", c.name, p.Fatal(), len(p.States))
		}
	}
}

func TestContainersAreRefusedWhatTheyShareWithTheMachine(t *testing.T) {
	inside := func(asked lab.Setting) lab.Facts {
		f := saying(fact(asked, asked.Knob.Name, "something else"))
		f.Container, f.NICs = "docker", []lab.NIC{{Name: "eth0"}}
		return f
	}
	for _, c := range []struct {
		asked  lab.Setting
		refuse bool
	}{
		{hostKnob(lab.KnobSysfs, "/sys/kernel/mm/transparent_hugepage/enabled", "never"), true},
		{hostKnob(lab.KnobSysfs, "/proc/irq/30/smp_affinity", "1"), true},
		{rpsFirst, false},
		{hostKnob(lab.KnobService, "irqbalance", "stopped"), true},
		{hostKnob(lab.KnobEthtool, "ens3.rings.rx", "4096"), true},
		{hostKnob(lab.KnobEthtool, "eth0.features.gro", "off"), false},
	} {
		p := make1(t, withStep(knobStep(c.asked)), inside(c.asked))
		if !c.refuse {
			if len(p.Refused) > 0 {
				t.Errorf("%s is refused: %v", c.asked.Knob, p.Refused)
			}
			continue
		}
		r := refusal(t, p, c.asked.Knob.String()+": here is a container (docker) and shares its kernel with the machine", "steps[4]."+c.asked.Knob.Kind+"."+c.asked.Knob.Name, true)
		if !strings.Contains(r.Cure, "on the machine itself") {
			t.Errorf("%s: cure %q", c.asked.Knob, r.Cure)
		}
	}
}

func TestOneStepMayNotGiveOneThingTwoValues(t *testing.T) {
	same := rpsFirst
	same.Value = rps.Value
	for _, c := range []struct {
		name  string
		step  lab.Step
		names []string // of the refusal; none when it is no contradiction
	}{
		{"two patterns", knobStep(rps, rpsFirst), []string{"rx-*", "rx-0", "of the same step"}},
		{"two patterns that agree", knobStep(rps, same), nil},
		{"two names of a directive", lab.Step{Nginx: map[string]string{"etag": "on", "http.etag": "off"}}, []string{"nginx etag", "nginx http.etag"}},
		{"a directive set and taken out", lab.Step{Nginx: map[string]string{"etag": "on"}, Remove: []string{"http.etag"}}, []string{"nginx etag", "nginx http.etag"}},
		{"two names that agree", lab.Step{Nginx: map[string]string{"etag": "on", "http.etag": "true"}}, nil},
		{"two contexts", lab.Step{Nginx: map[string]string{"server.etag": "on", "http.etag": "off"}}, nil},
		{"both halves", lab.Step{Sysctl: map[string]string{"vm.dirty_bytes": "1048576", "vm.dirty_ratio": "10"}}, []string{"vm.dirty_bytes", "vm.dirty_ratio", "at 0"}},
	} {
		f := saying(append(rpsFacts(), fact(same, rpsFirst.Knob.Name, "0"))...)
		e := withStep(c.step)
		e.Cannot = lab.CannotSkip
		fatal := make1(t, e, f).Fatal()
		if len(c.names) == 0 {
			if len(fatal) > 0 {
				t.Errorf("%s: refused %v", c.name, fatal)
			}
			continue
		}
		if len(fatal) != 1 {
			t.Errorf("%s: %d refusals, want one: %v", c.name, len(fatal), fatal)
			continue
		}
		for _, name := range c.names {
			if !strings.Contains(fatal[0].Reason, name) {
				t.Errorf("%s: %q does not name %s", c.name, fatal[0].Reason, name)
			}
		}
	}
}

// TestTheOtherHalfOfACoupledSysctlIsZero: the kernel keeps one of two at 0, and both come back.
func TestTheOtherHalfOfACoupledSysctlIsZero(t *testing.T) {
	f := machine("here")
	f.SysctlWritable["vm.dirty_bytes"] = true
	e := withStep(sysctls("vm.dirty_bytes", "1048576"))
	e.Steps = append(e.Steps, lab.Step{Name: "share", Sysctl: map[string]string{"vm.dirty_ratio": "5"}})
	p := make1(t, e, f)
	if len(p.Refused) > 0 {
		t.Fatalf("refused: %v", p.Refused)
	}
	for name, want := range map[string][]string{
		"default": {"vm.dirty_bytes=0", "vm.dirty_ratio=20"}, "tried": {"vm.dirty_bytes=1048576", "vm.dirty_ratio=0"}, "share": {"vm.dirty_bytes=0", "vm.dirty_ratio=5"},
	} {
		if got := valuesOf(state(t, p, name), lab.KnobSysctl); !slices.Equal(got, want) {
			t.Errorf("%s has %v, want %v", name, got, want)
		}
	}
}

func TestFilesThatAreNotThereComeAndGo(t *testing.T) {
	file := hostKnob(lab.KnobFile, "/etc/x.conf", lab.FileValue{Mode: "0644"}.WithContent([]byte("x")).String())
	gone := lab.Setting{Knob: lab.KnobID{Kind: lab.KnobFile, Name: "/etc/y.conf"}, Absent: true}
	whole := lab.FileValue{Mode: "0644", Owner: "0:0"}.WithContent([]byte("x")).String()
	p := make1(t, withStep(knobStep(file, gone)), saying(
		lab.KnobFact{Asked: file, Knob: file.Knob, Now: lab.Value{Absent: true}, To: lab.Value{Text: whole}, Note: "on a disk"},
		lab.KnobFact{Asked: gone, Knob: gone.Knob, Now: lab.Value{Text: whole}, To: lab.Value{Absent: true}}))
	if len(p.Refused) > 0 {
		t.Fatalf("refused: %v", p.Refused)
	}
	if got := valuesOf(state(t, p, "tried"), lab.KnobFile); !slices.Equal(got, []string{"/etc/x.conf=" + whole, "/etc/y.conf=none"}) {
		t.Errorf("tried has %v", got)
	}
	if got := valuesOf(p.Original, lab.KnobFile); !slices.Equal(got, []string{"/etc/x.conf=none", "/etc/y.conf=" + whole}) {
		t.Errorf("originally %v", got)
	}
	for _, c := range p.Changes["here"] {
		if c.Knob == file.Knob && (!c.Now.Absent || c.To.Text != whole || !strings.Contains(c.Note, "on a disk")) {
			t.Errorf("the change is told as %+v", c)
		}
	}
}
