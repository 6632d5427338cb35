package plan_test

import (
	"strings"
	"testing"

	"ngxlab/lab"
)

// TestStatesInWhichTheKernelChangesAnotherKnobAreRefused: eth0 follows its default until its own value is written.
func TestStatesInWhichTheKernelChangesAnotherKnobAreRefused(t *testing.T) {
	const all, own = "net.ipv4.conf.default.rp_filter", "net.ipv4.conf.eth0.rp_filter"
	f := allowing(map[string]string{all: "2", own: "2", "net.ipv4.conf.eth0.accept_redirects": "1", "vm.min_free_kbytes": "67584", "vm.dirty_ratio": "20", "vm.dirty_bytes": "0"})
	for _, c := range []struct {
		name    string
		ladder  lab.LadderKind
		steps   []lab.Step
		refused bool
	}{
		{"default before its interface", lab.Cumulative, []lab.Step{sysctls(all, "1"), sysctls(own, "0")}, true},
		{"interface before its default", lab.Cumulative, []lab.Step{sysctls(own, "0"), sysctls(all, "1")}, false},
		{"each alone", lab.Isolated, []lab.Step{sysctls(own, "0"), sysctls(all, "1")}, true},
		{"both in one step", lab.Cumulative, []lab.Step{{Sysctl: map[string]string{all: "1", own: "0"}}}, false},
		{"another of the interface", lab.Cumulative, []lab.Step{sysctls(all, "1"), sysctls("net.ipv4.conf.eth0.accept_redirects", "0")}, false},
		{"default as it is", lab.Cumulative, []lab.Step{sysctls(all, "2"), sysctls(own, "0")}, false},
		{"halves", lab.Cumulative, []lab.Step{sysctls("vm.dirty_ratio", "30"), sysctls("vm.dirty_bytes", "1048576")}, false},
	} {
		e := withStep(lab.Step{})
		e.Ladder.Kind, e.Steps = c.ladder, []lab.Step{{Name: "none"}}
		for i, step := range c.steps {
			step.Name = []string{"first", "second"}[i]
			e.Steps = append(e.Steps, step)
		}
		p := make1(t, e, f)
		if got := len(p.Fatal()) > 0; got != c.refused {
			t.Errorf("%s: refused %v", c.name, p.Refused)
		}
		if c.refused && (!strings.Contains(p.Refused[0].Reason, all+": writing it may change "+own) || !strings.Contains(p.Refused[0].Cure, "one of the two")) {
			t.Errorf("%s: %+v", c.name, p.Refused[0])
		}
	}
}
