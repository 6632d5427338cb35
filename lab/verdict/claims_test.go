package verdict

import (
	"slices"
	"testing"

	"ngxlab/lab"
)

func TestClaims(t *testing.T) {
	f := func(v float64) *float64 { return &v }
	p := planOf(1, []string{"a"}, repeat20)
	rs := figures(p, lab.Goodput, func(state, _ string) float64 { return map[string]float64{"base": 1, "step1": 1.6, "control": 1}[state] })
	for _, c := range []struct {
		name  string
		claim lab.Claim
		want  lab.Word
	}{
		{"holds", lab.Claim{AtLeast: f(1.5)}, lab.Holds},
		{"bound inside the interval", lab.Claim{AtLeast: f(1.6)}, lab.Undecided},
		{"contradicted", lab.Claim{AtLeast: f(1.8)}, lab.Contradicted},
		{"at most holds", lab.Claim{AtMost: f(1.7)}, lab.Holds},
		{"at most contradicted", lab.Claim{AtMost: f(1.4)}, lab.Contradicted},
		{"reproduced", lab.Claim{Published: f(1.5)}, lab.Reproduced},
		{"published contradicted", lab.Claim{Published: f(3.0)}, lab.Contradicted},
		{"published undecided", lab.Claim{Published: f(1.6 * 1.15)}, lab.Undecided},
		{"both parts", lab.Claim{AtLeast: f(1.5), Published: f(3.0)}, lab.Contradicted},
		{"no such state", lab.Claim{AtLeast: f(1.5), State: "nowhere"}, lab.NotMeasurable},
	} {
		c.claim.Of, c.claim.Over = lab.Goodput, "base"
		if c.claim.State == "" {
			c.claim.State = "step1"
		}
		p.Experiment.Claims = []lab.Claim{c.claim}
		all := All(lab.Results{Plan: p, Runs: rs})
		i := slices.IndexFunc(all, func(v lab.Verdict) bool { return v.Family == FamilyClaims })
		if all[i].Word != c.want {
			t.Errorf("%s: %s (%s)", c.name, all[i].Word, all[i].Text)
		}
	}
}

func TestPublishedRatioIsNotComparableWhenAKnobCouldNotBeSet(t *testing.T) {
	q := 1.6
	p := planOf(1, []string{"a"}, repeat20)
	p.Experiment.Claims = []lab.Claim{{Name: "x", Of: lab.Goodput, State: "step1", Over: "base", Published: &q}}
	p.Experiment.Publish.Conditions = map[string]string{"kernel": "3.17.2", "link": "10 Gbit/s"}
	p.Facts = map[lab.HostName]lab.Facts{"web": {Kernel: "6.18.0"}}
	p.Refused = []lab.Refusal{{Step: "step1", Knob: lab.KnobID{Kind: lab.KnobSysctl, Name: "net.ipv4.tcp_tw_recycle"}, Reason: "removed in Linux 4.12"}}
	rs := figures(p, lab.Goodput, func(state, _ string) float64 { return map[string]float64{"base": 1, "step1": 1.6, "control": 1}[state] })
	all := All(lab.Results{Plan: p, Runs: rs})
	i := slices.IndexFunc(all, func(v lab.Verdict) bool { return v.Family == FamilyClaims })
	v := all[i]
	if v.Word != lab.NotComparable || len(v.Reasons) != 3 || v.Reasons[1] != "kernel: published 3.17.2, here 6.18.0" {
		t.Errorf("%s: %q", v.Word, v.Reasons)
	}
}

func TestLowerBoundClaimsAreJudgedFromBelowOnly(t *testing.T) {
	c := lab.Comparison{Ratio: 2, Low: 1.9, High: 2.1, LowerBound: true}
	if w := published(c, 3); w != lab.Undecided {
		t.Errorf("published 3, at least 1.9: %s", w)
	}
	if w := published(c, 1.5); w != lab.Contradicted {
		t.Errorf("published 1.5, at least 1.9: %s", w)
	}
}
