package plan_test

import (
	"reflect"
	"strings"
	"testing"

	"ngxlab/lab"
	"ngxlab/lab/plan"
)

func built(recipe string) *lab.Build { return &lab.Build{Recipe: recipe} }

func TestWhatABuildRefusesIsFatalAtTheDirective(t *testing.T) {
	e := withBuilds(map[string]lab.Recipe{"first": nginxOf("1.26.3"), "second": nginxOf("")}, lab.Step{Build: "second", Nginx: map[string]string{"location.more_set": "x"}})
	e.Server.Nginx = map[string]string{"http.odd": "1"}
	e.Cannot = lab.CannotSkip
	before := make1(t, e)
	if len(before.Refused) > 0 {
		t.Fatalf("refused: %+v", before.Refused)
	}
	ok := plan.Trial{Target: "here", State: "default", Tried: lab.Tried{Build: built("first")}}
	for _, c := range []struct{ words, path, step string }{
		{`nginx: [emerg] unknown directive "more_set" in {prefix}/nginx.conf:17`, "steps[1].nginx.location.more_set", "second"},
		{`nginx: [emerg] unknown directive "odd" in {prefix}/nginx.conf:9`, "server.nginx.http.odd", ""},
		{`nginx: [emerg] open() "/nowhere" failed (2: No such file or directory)`, "steps[1]", "second"},
	} {
		p := plan.WithTrials(before, []plan.Trial{ok, {Target: "here", State: "second", Tried: lab.Tried{Build: built("second"), Refused: c.words}}})
		r := refusal(t, p, c.words, c.path, true)
		if r.Step != c.step || !strings.Contains(r.Reason, `build "second"`) || !strings.Contains(r.Cure, "unsupported: skip` does not apply") || r.Host != "here" {
			t.Errorf("%s: %+v", c.words, r)
		}
	}
	if len(before.Refused) > 0 {
		t.Error("the plan that was given changed")
	}
}

func TestTroubleOfAllStatesIsTheServers(t *testing.T) {
	before := make1(t, withBuilds(map[string]lab.Recipe{"first": nginxOf("1.26.3")}, lab.Step{Nofile: 5000}))
	words := "nginx: [emerg] host not found"
	var all []plan.Trial
	for _, s := range before.States {
		all = append(all, plan.Trial{Target: "here", State: s.Name, Tried: lab.Tried{Build: built("first"), Refused: words}})
	}
	p := plan.WithTrials(before, all)
	refusal(t, p, words, "server", true)
	if len(p.Refused) != 1 {
		t.Errorf("said %d times: %+v", len(p.Refused), p.Refused)
	}
}

func TestBuildsThatAreThereTakeNoTime(t *testing.T) {
	back := machine("there")
	back.Users = map[string]int{"www-data": 33}
	before := make1(t, proxied(), machine("here"), back)
	if p := plan.WithTrials(before, nil); !reflect.DeepEqual(p, before) {
		t.Error("a plan changes without trials")
	}
	var tried []plan.Trial
	for _, s := range before.States {
		tried = append(tried, plan.Trial{Target: "here", State: s.Name, Tried: lab.Tried{Build: built("first")}}, plan.Trial{Target: "there", State: s.Name})
	}
	one := plan.WithTrials(before, tried)
	for i := range tried {
		if tried[i].Target == "there" {
			tried[i].Tried.Build = built("back")
		}
	}
	both := plan.WithTrials(before, tried)
	first, second := before.Estimate.Duration-one.Estimate.Duration, one.Estimate.Duration-both.Estimate.Duration
	if first <= 0 || first != second || before.EstimateMax.Duration-both.EstimateMax.Duration != first+second {
		t.Errorf("estimates %s, %s and %s", before.Estimate, one.Estimate, both.Estimate)
	}
}
