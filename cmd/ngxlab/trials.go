package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"ngxlab/lab"
	"ngxlab/lab/load"
	"ngxlab/lab/plan"
)

// tryTimeout is how long one host may take to say what its finished builds think of all the configurations.
const tryTimeout = 2 * time.Minute

// tried is the plan with what the hosts' finished builds say of it, and with the builds that they have. Nothing is built or
// installed for it, and nothing is left on a host. What cannot be tried is tried before the first run.
func (a *app) tried(ctx context.Context, f *fleet, pl lab.Plan) (lab.Plan, error) {
	answers := make([][]plan.Trial, len(f.machines))
	errs := forEach(ctx, len(f.machines), tryTimeout, func(ctx context.Context, i int) (err error) {
		answers[i], err = trialsOf(ctx, f.machines[i], pl, f.x.Hosts[i].Name)
		return err
	})
	for i, err := range errs {
		switch {
		case ctx.Err() != nil:
			return pl, ctx.Err()
		case errors.Is(err, lab.ErrLost):
			return pl, atHosts(f.x, errs)
		case err != nil:
			a.note("%s: not every configuration could be tried, and is before the first run: %v", f.x.Hosts[i].Name, err)
		}
	}
	all := slices.Concat(answers...)
	pl = plan.WithTrials(pl, all)
	pl.Built = builtAlready(pl, all)
	pl.Warnings = append(slices.Clip(pl.Warnings), differing(pl)...)
	return withoutTools(pl), nil
}

// logStamp is what nginx writes before a message: time, level, and the number of its process (ngx_log.c). Without time and
// number, equal words are equal.
var logStamp = regexp.MustCompile(`(?m)^\d{4}/\d\d/\d\d \d\d:\d\d:\d\d (\[[a-z]+\] )\d+#\d+: `)

// trialsOf are the answers of one host for the servers of all states that it runs; each configuration of a build is tried
// once.
func trialsOf(ctx context.Context, m *machine, pl lab.Plan, host lab.HostName) ([]plan.Trial, error) {
	var all []plan.Trial
	known := map[string]lab.Tried{}
	for _, one := range servingsOn(pl, host) {
		t := lab.Trial{Recipe: recipeNamed(pl, one.Recipe), Serving: one}
		key := trialKey(one)
		answer, asked := known[key]
		if !asked {
			var err error
			if answer, err = m.try(ctx, t); err != nil {
				return all, err
			}
			answer.Refused = logStamp.ReplaceAllString(answer.Refused, "$1")
			known[key] = answer
		}
		all = append(all, plan.Trial{Target: host, State: one.State, Tried: answer})
	}
	return all, nil
}

// servingsOn are the servers of all states that a host runs, those of a proxy and those that it passes requests to.
func servingsOn(pl lab.Plan, host lab.HostName) []lab.Serving {
	var all []lab.Serving
	for _, s := range pl.Servings {
		for at := &s; at != nil; at = at.Upstream {
			if at.Target == host {
				one := *at
				one.Upstream = nil // it is tried on its own host
				all = append(all, one)
			}
		}
	}
	return all
}

// trialKey is the same for servers of one build and configuration.
func trialKey(s lab.Serving) string {
	s.State, s.Expect = "", nil
	text, _ := json.Marshal(s) // plain data
	return string(text)
}

// recipeNamed is the build of that name, as the plan completes it.
func recipeNamed(pl lab.Plan, name string) lab.Recipe {
	i := slices.IndexFunc(pl.Builds, func(r lab.Recipe) bool { return r.Name == name })
	if i < 0 {
		return lab.Recipe{Name: name}
	}
	return pl.Builds[i]
}

// builtAlready are the builds that hosts have, by recipe and host.
func builtAlready(pl lab.Plan, tried []plan.Trial) map[string]map[lab.HostName]lab.Build {
	all := map[string]map[lab.HostName]lab.Build{}
	for _, t := range tried {
		if t.Tried.Build == nil {
			continue
		}
		for _, s := range servingsOn(pl, t.Target) {
			if s.State != t.State || s.Recipe != t.Tried.Build.Recipe {
				continue
			}
			if all[s.Recipe] == nil {
				all[s.Recipe] = map[lab.HostName]lab.Build{}
			}
			all[s.Recipe][t.Target] = *t.Tried.Build
		}
	}
	return all
}

// withoutTools is the plan without the packages that only builds are made with which their hosts have already, and without
// the refusals to have them.
func withoutTools(pl lab.Plan) lab.Plan {
	packages := map[lab.HostName][]string{}
	for host, all := range pl.Packages {
		left := slices.DeleteFunc(slices.Clone(all), func(name string) bool { return onlyToBuild(pl, host, name) })
		if len(left) > 0 {
			packages[host] = left
		}
	}
	pl.Packages = packages
	pl.Refused = slices.DeleteFunc(slices.Clone(pl.Refused), func(r lab.Refusal) bool {
		name, ofBuild := strings.CutPrefix(r.Path, "builds.")
		_, has := pl.Built[name][r.Host]
		return ofBuild && has && r.Host != "" // what a host lacks to make it, as plan.New says it
	})
	return pl
}

// onlyToBuild reports whether a package is there for builds that the host has, and for nothing else.
func onlyToBuild(pl lab.Plan, host lab.HostName, name string) bool {
	spared := false
	for _, r := range pl.Builds {
		if !r.Compiled() || !slices.Contains(r.Packages, name) || !slices.Contains(buildHosts(pl, r.Name), host) {
			continue
		}
		if _, has := pl.Built[r.Name][host]; !has {
			return false
		}
		spared = true
	}
	isTool := func(t load.Tool) bool { return t.Package == name }
	return spared && !slices.ContainsFunc(load.Tools(), isTool)
}

// differing warns of installed servers that are not the same on all targets: their figures then differ by more than the
// hosts.
func differing(pl lab.Plan) []lab.Warning {
	var all []lab.Warning
	for _, r := range pl.Builds {
		if r.Installed == "" {
			continue
		}
		ids, texts := map[string]bool{}, []string{}
		for _, h := range pl.Experiment.Hosts {
			if b, known := pl.Built[r.Name][h.Name]; known && h.Has(lab.RoleTarget) {
				ids[b.ID] = true
				texts = append(texts, fmt.Sprintf("%s %s", h.Name, b.Version))
			}
		}
		if len(ids) > 1 {
			text := fmt.Sprintf("the targets do not run the same build %q: each has its own installed (%s)", r.Name, strings.Join(texts, ", "))
			all = append(all, lab.Warning{Path: "builds." + r.Name + ".installed", Text: text})
		}
	}
	return all
}
