package plan

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"

	"ngxlab/lab"
)

// obstacle says why a knob cannot have a value on a host; without a reason there is none.
type obstacle struct {
	reason, cure string
	mistake      bool // of the file: refused whatever its policy
	privilege    bool // that another user has: a file for both skips it
	persist      bool // of a file that `persist` asks for
}

// at is the place of the obstacle in the experiment file.
func (o obstacle) at(section string, knob lab.KnobID) string {
	if o.persist {
		return section + ".persist"
	}
	return knobPath(section, knob)
}

// knobs refuses what the hosts cannot have, and leaves it out of the experiment that the rest of the plan is made
// of: the knob out of its step, a step without knobs out of the ladder.
func (p *planner) knobs() error {
	var err error
	if p.asked, err = lab.States(p.e); err != nil {
		return err
	}
	p.serverKnobs()
	steps := make([]lab.Step, len(p.e.Steps))
	dropped := map[string]bool{}
	for i, step := range p.e.Steps {
		refused := p.refuseStep(i, step)
		steps[i] = without(step, refused)
		if i > 0 && len(refused) > 0 && empty(steps[i]) {
			dropped[step.Name] = true
		}
	}
	p.e.Steps = slices.DeleteFunc(steps, func(s lab.Step) bool { return dropped[s.Name] })
	p.e.Ladder.Lists = lists(p.e.Ladder.Lists, dropped)
	p.sayDropped(dropped)
	return nil
}

// serverKnobs refuses what the `server:` section asks for in vain; it has no policy to skip.
func (p *planner) serverKnobs() {
	server := p.e.Server
	spec := lab.Step{Nginx: server.Nginx, Nofile: server.Nofile, Nproc: server.Nproc, Build: server.Build}
	refused := map[lab.KnobID]bool{}
	for _, host := range p.targets {
		for _, s := range lab.StepSettings(spec, host) {
			o := p.obstacle(host.Name, spec, s)
			if o.reason == "" {
				continue
			}
			refused[s.Knob] = true
			p.refuse(lab.Refusal{Host: host.Name, Knob: s.Knob, Path: knobPath("server", s.Knob), Reason: o.reason, Cure: o.cure, Fatal: true})
		}
	}
	kept := without(spec, refused)
	p.e.Server.Nginx, p.e.Server.Nofile, p.e.Server.Nproc = kept.Nginx, kept.Nofile, kept.Nproc
}

// refuseStep refuses what a host cannot have of a step; a knob refused on one host is left out on all, so that hosts
// remain comparable.
func (p *planner) refuseStep(index int, step lab.Step) map[lab.KnobID]bool {
	refused := map[lab.KnobID]bool{}
	policy := p.e.Cannot
	if step.Cannot != "" {
		policy = step.Cannot
	}
	for _, host := range p.e.Hosts {
		for knob, o := range p.stepObstacles(host, step) {
			refused[knob] = true
			fatal := o.mistake || policy != lab.CannotSkip
			if fatal && o.privilege {
				o.cure += ", or let the step say `unsupported: skip`"
			}
			p.refuse(lab.Refusal{
				Host: host.Name, Step: step.Name, Knob: knob, Path: o.at(fmt.Sprintf("steps[%d]", index), knob),
				Reason: o.reason, Cure: o.cure, Fatal: fatal,
			})
		}
	}
	return refused
}

// stepObstacles goes over what a host cannot have of a step, in the order of its knobs.
func (p *planner) stepObstacles(host lab.Host, step lab.Step) iter.Seq2[lab.KnobID, obstacle] {
	facts := p.facts[host.Name]
	return func(yield func(lab.KnobID, obstacle) bool) {
		settings := lab.StepSettings(step, host)
		clashes := p.contradictions(facts, settings)
		for _, s := range settings {
			o, clash := clashes[s.Knob]
			if !clash {
				o = cmp.Or(p.obstacle(host.Name, step, s), p.touchedObstacle(host.Name, s), p.fileObstacle(host, s))
			}
			if o.reason != "" && !yield(s.Knob, o) {
				return
			}
		}
		for _, file := range persisted(step, host) {
			if o := p.persistObstacle(host, step, file); o.reason != "" && !yield(file.Knob, o) {
				return
			}
		}
	}
}

// knobPath is the place of a knob in the experiment file.
func knobPath(section string, k lab.KnobID) string {
	if k.Name == "" {
		return section + "." + k.Kind
	}
	return section + "." + k.Kind + "." + k.Name
}

// without is a step less the knobs refused.
func without(step lab.Step, refused map[lab.KnobID]bool) lab.Step {
	keep := func(kind string, values map[string]string) map[string]string {
		kept := maps.Clone(values)
		maps.DeleteFunc(kept, func(name, _ string) bool { return refused[lab.KnobID{Kind: kind, Name: name}] })
		return kept
	}
	step.Nginx, step.Sysctl = keep(lab.KnobNginx, step.Nginx), keep(lab.KnobSysctl, step.Sysctl)
	step.Remove = slices.DeleteFunc(slices.Clone(step.Remove), func(name string) bool { return refused[lab.KnobID{Kind: lab.KnobNginx, Name: name}] })
	step.Knobs = slices.DeleteFunc(slices.Clone(step.Knobs), func(s lab.Setting) bool { return refused[s.Knob] })
	if refused[lab.KnobID{Kind: lab.KnobNofile}] {
		step.Nofile = 0
	}
	if refused[lab.KnobID{Kind: lab.KnobNproc}] {
		step.Nproc = 0
	}
	if refused[lab.KnobID{Kind: lab.KnobBuild}] {
		step.Build = ""
	}
	step.Persist = step.Persist && !refused[fileKnob(sysctlFile)] && !refused[fileKnob(limitsFile)]
	return step
}

func empty(s lab.Step) bool {
	return len(s.Nginx)+len(s.Remove)+len(s.Sysctl)+len(s.Knobs)+s.Nofile+s.Nproc == 0 && s.Build == ""
}

// lists leaves dropped steps out of a listed ladder, and lists that thereby repeat another.
func lists(all [][]string, dropped map[string]bool) [][]string {
	var kept [][]string
	for _, names := range all {
		left := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return dropped[name] })
		same := func(other []string) bool { return slices.Equal(other, left) }
		if len(left) == len(names) || (len(left) > 0 && !slices.ContainsFunc(kept, same)) {
			kept = append(kept, left)
		}
	}
	return kept
}

// sayDropped warns of steps that lost every knob, and of claims that thereby cannot be tested.
func (p *planner) sayDropped(dropped map[string]bool) {
	for i, step := range p.plan.Experiment.Steps {
		if dropped[step.Name] {
			p.warn("", fmt.Sprintf("steps[%d]", i), fmt.Sprintf("step %q is left out: none of its knobs can be set here", step.Name))
		}
	}
	for i, c := range p.e.Claims {
		if dropped[c.State] || dropped[c.Over] {
			p.warn("", fmt.Sprintf("claims[%d]", i), fmt.Sprintf("claim %q cannot be tested: its step is left out", c.Name))
		}
	}
}
