package plan

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"ngxlab/lab"
)

// Trial is what a host answered of the server of one state: a target, or the host of its upstream.
type Trial struct {
	Target lab.HostName
	State  string
	Tried  lab.Tried
}

// WithTrials is the plan with what finished builds say of its configurations: each one refused is a fatal refusal in the
// server's own words, at the directive that they name, else at the step or the server section. The estimate loses the time
// of builds that every host has which needs them. The policy `unsupported: skip` does not hold here: what one directive
// means to a server shows only when the whole configuration is read.
func WithTrials(pl lab.Plan, tried []Trial) lab.Plan {
	pl.Refused = slices.Clone(pl.Refused)
	for _, t := range tried {
		if t.Tried.Refused == "" {
			continue
		}
		r := refusalOf(pl, t, tried)
		if !slices.ContainsFunc(pl.Refused, func(other lab.Refusal) bool { return sameTrouble(other, r) }) {
			pl.Refused = append(pl.Refused, r)
		}
	}
	spared := sparedTime(pl, tried)
	pl.Estimate = lab.Duration{Duration: max(pl.Estimate.Duration-spared, 0)}
	pl.EstimateMax = lab.Duration{Duration: max(pl.EstimateMax.Duration-spared, 0)}
	return pl
}

// sameTrouble leaves out what further states of one host say of one place.
func sameTrouble(a, b lab.Refusal) bool {
	return a.Host == b.Host && a.Path == b.Path && a.Reason == b.Reason
}

// refusalOf is a refused trial as a plan says it.
func refusalOf(pl lab.Plan, t Trial, tried []Trial) lab.Refusal {
	words, recipe := strings.TrimSpace(t.Tried.Refused), recipeOf(pl, t)
	r := lab.Refusal{
		Host: t.Target, Path: "server", Fatal: true, Reason: fmt.Sprintf("build %q refuses the configuration: %s", recipe, words),
		Cure: "correct or leave out what it names, or use a build that knows it; `unsupported: skip` does not apply to what a server refuses",
	}
	if s, found := namedSetting(pl, t, words); found {
		r.Step, r.Knob, r.Path = s.Step, s.Knob, knobPath(sectionOf(pl, s.Step), s.Knob)
	} else if step := newestStep(pl, t, tried); step != "" {
		r.Step, r.Path = step, sectionOf(pl, step)
	}
	return r
}

// sectionOf is the place of a step in the experiment file, that of the server section for "".
func sectionOf(pl lab.Plan, step string) string {
	for i, s := range pl.Experiment.Steps {
		if s.Name == step {
			return fmt.Sprintf("steps[%d]", i)
		}
	}
	return "server"
}

// quotedRE finds what nginx names in its messages (`unknown directive "x" in …`, `invalid parameter "y"`, as
// ngx_conf_log_error prints them).
var quotedRE = regexp.MustCompile(`"([a-z0-9_]+)[="]`)

// namedSetting is the setting of the state, or the directive of the server section, that the words name.
func namedSetting(pl lab.Plan, t Trial, words string) (lab.Setting, bool) {
	state, _ := pl.State(t.State)
	settings := slices.Clone(state.Settings[t.Target])
	for _, name := range slices.Sorted(maps.Keys(pl.Experiment.Server.Nginx)) {
		settings = append(settings, lab.Setting{Knob: lab.KnobID{Kind: lab.KnobNginx, Name: name}})
	}
	for _, quoted := range quotedRE.FindAllStringSubmatch(words, -1) {
		named := func(s lab.Setting) bool {
			return s.Knob.Kind == lab.KnobNginx && s.Knob.Name[strings.LastIndex(s.Knob.Name, ".")+1:] == quoted[1]
		}
		if i := slices.IndexFunc(settings, named); i >= 0 {
			return settings[i], true
		}
	}
	return lab.Setting{}, false
}

// newestStep is the last step of a refused state when the same host takes the configuration of another state; "" when
// it takes none, or the state has no step beyond the baseline's.
func newestStep(pl lab.Plan, t Trial, tried []Trial) string {
	state, known := pl.State(t.State)
	takes := func(other Trial) bool {
		return other.Target == t.Target && other.Tried.Build != nil && other.Tried.Refused == ""
	}
	if !known || len(state.Steps) < 2 || !slices.ContainsFunc(tried, takes) {
		return ""
	}
	return state.Steps[len(state.Steps)-1]
}

// recipeOf is the name of the build that a trial was of.
func recipeOf(pl lab.Plan, t Trial) string {
	for _, s := range pl.Servings {
		for at := &s; at != nil; at = at.Upstream {
			if at.Target == t.Target && s.State == t.State {
				return at.Recipe
			}
		}
	}
	if t.Tried.Build != nil {
		return t.Tried.Build.Recipe
	}
	return ""
}

// sparedTime is that of the builds that every host has which needs them.
func sparedTime(pl lab.Plan, tried []Trial) time.Duration {
	type place struct {
		build string
		host  lab.HostName
	}
	there := map[place]bool{}
	for _, t := range tried {
		if t.Tried.Build != nil {
			there[place{recipeOf(pl, t), t.Target}] = true
		}
	}
	spared := time.Duration(0)
	for _, r := range pl.Builds {
		hosts := buildHosts(pl, r.Name)
		lacks := func(host lab.HostName) bool { return !there[place{r.Name, host}] }
		if len(hosts) > 0 && !slices.ContainsFunc(hosts, lacks) {
			spared += makingTime(pl, r)
		}
	}
	return spared
}
