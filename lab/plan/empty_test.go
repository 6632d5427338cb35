package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"ngxlab/lab"
)

func TestAStepWhoseValuesAreThereAlreadyIsSaidToBeEmpty(t *testing.T) {
	for name, step := range map[string]lab.Step{
		"a sysctl as it is":        sysctls("net.core.somaxconn", "4096"),
		"a limit as it is":         {Nofile: 20000},
		"a directive as it is":     directives("http.access_log", "off"),
		"nginx's own default":      {Nginx: map[string]string{"events.accept_mutex": "off", "tcp_nodelay": "on"}},
		"nginx's own, taken out":   {Remove: []string{"gzip"}},
		"nothing":                  {},
		"several, all as they are": {Sysctl: map[string]string{"net.core.somaxconn": "4096", "net.ipv4.tcp_syncookies": "1"}, Nofile: 20000},
	} {
		p := make1(t, withStep(step))
		if len(p.Refused) > 0 {
			t.Fatalf("%s: refused %v", name, p.Refused)
		}
		warning(t, p, `step "tried" is empty: it changes nothing on here`, "steps[4]")
		if !warned(p, `States "tried" and "sockets" are the same, and the verdict on the step is to be read as that of an A/A comparison`) {
			t.Errorf("%s: %v", name, p.Warnings)
		}
		if s := state(t, p, "tried"); s.Over != "sockets" {
			t.Errorf("%s: the state is compared with %q", name, s.Over)
		}
	}
	for name, step := range map[string]lab.Step{
		"one of two":                 {Sysctl: map[string]string{"net.core.somaxconn": "4096", "net.ipv4.tcp_syncookies": "0"}},
		"a directive":                directives("http.access_log", "logs/access.log"),
		"a limit":                    {Nofile: 19999},
		"a default of some versions": directives("keepalive_requests", "1000"),
		"a default below a block":    directives("location.gzip", "off"),
	} {
		if p := make1(t, withStep(step)); warned(p, "is empty") {
			t.Errorf("%s is said to be empty: %v", name, p.Warnings)
		}
	}
}

// TestNginxsOwnDefaultIsNamed: also of a step that takes back the one before by naming it, which is not empty.
func TestNginxsOwnDefaultIsNamed(t *testing.T) {
	e := withStep(directives("tcp_nopush", "off"))
	e.Steps = append(e.Steps, lab.Step{Name: "on", Nginx: map[string]string{"tcp_nopush": "on"}}, lab.Step{Name: "off", Nginx: map[string]string{"tcp_nopush": "off"}})
	notes := map[string]string{}
	for _, c := range make1(t, e).Changes["here"] {
		notes[c.State] += fmt.Sprintf("%v %s", c.Same, c.Note)
	}
	for state, want := range map[string]string{"tried": "true nginx's own default", "on": "false ", "off": "false "} {
		if notes[state] != want {
			t.Errorf("%s: %q, want %q", state, notes[state], want)
		}
	}
}

// TestAStepThatTakesBackTheOneBeforeIsNotEmpty: its values were there before the campaign, and are not before the step.
func TestAStepThatTakesBackTheOneBeforeIsNotEmpty(t *testing.T) {
	e := withStep(sysctls("net.core.somaxconn", "1024"))
	e.Steps = append(e.Steps, lab.Step{Name: "back", Sysctl: map[string]string{"net.core.somaxconn": "4096"}})
	p := make1(t, e)
	if warned(p, "is empty") {
		t.Errorf("warned: %v", p.Warnings)
	}
	for _, c := range p.Changes["here"] {
		if c.Step == "back" && c.Same {
			t.Errorf("the change is told to be none: %+v", c)
		}
	}
}

func TestAStepMayBeEmptyOnOneTargetOnly(t *testing.T) {
	e := withStep(sysctls("net.core.somaxconn", "1024"))
	e.Hosts = []lab.Host{
		{Name: "old", Address: "10.0.0.1", Roles: []lab.Role{lab.RoleTarget}},
		{Name: "new", Address: "10.0.0.2", Roles: []lab.Role{lab.RoleTarget}},
		{Name: "load", Address: "10.0.0.3", Roles: []lab.Role{lab.RoleLoad}},
	}
	tuned := machine("old")
	tuned.Sysctls["net.core.somaxconn"] = "1024"
	var empty []string
	for _, w := range make1(t, e, tuned, machine("new"), machine("load")).Warnings {
		if strings.Contains(w.Text, "is empty") {
			empty = append(empty, string(w.Host))
		}
	}
	if len(empty) != 1 || empty[0] != "old" {
		t.Errorf("empty on %v", empty)
	}
}

// TestAStepOfLoadHostsIsNotEmptyForTheTarget: what changes on a load host may change what is measured.
func TestAStepOfLoadHostsIsNotEmptyForTheTarget(t *testing.T) {
	e := withStep(lab.Step{On: []lab.Role{lab.RoleLoad}, Sysctl: map[string]string{"net.core.somaxconn": "1024"}})
	e.Hosts = []lab.Host{
		{Name: "web", Address: "10.0.0.1", Roles: []lab.Role{lab.RoleTarget}},
		{Name: "load", Address: "10.0.0.2", Roles: []lab.Role{lab.RoleLoad}},
	}
	if p := make1(t, e, machine("web"), machine("load")); warned(p, "is empty") {
		t.Errorf("warned: %v", p.Warnings)
	}
}
