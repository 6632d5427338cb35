package plan

import (
	"fmt"
	"slices"

	"ngxlab/lab"
	"ngxlab/lab/load"
	"ngxlab/lab/server"
)

// servings makes one server per target and state.
func (p *planner) servings() error {
	for _, target := range p.targets {
		for _, s := range p.plan.States {
			serving, err := server.Serving(p.input(target, s))
			if err != nil {
				p.refuse(lab.Refusal{Host: target.Name, Path: "server", Reason: err.Error(), Cure: "correct the server section or the step", Fatal: true})
				break // the other states would say the same
			}
			p.plan.Servings = append(p.plan.Servings, serving)
		}
	}
	return nil
}

func (p *planner) input(target lab.Host, s lab.State) server.Input {
	return server.Input{
		Spec: p.e.Server, State: s, Target: target, Facts: p.facts[target.Name], Address: p.reached[target.Name], CPUs: p.cpus[target.Name],
		URLs: p.urls(), Recipe: p.recipe(value(s, target.Name, lab.KnobBuild, "")),
	}
}

// urls are the paths of all load points, in their order.
func (p *planner) urls() []string {
	var urls []string
	for _, l := range p.plan.Loads {
		if !slices.Contains(urls, l.URL) {
			urls = append(urls, l.URL)
		}
	}
	return urls
}

// drivings makes the commands of every load point against every target, after asking what the tools cannot do.
func (p *planner) drivings() error {
	facts := p.inForce(p.plan.Baseline()) // what holds there holds in every state
	possible := map[string]bool{}
	for _, l := range p.plan.Loads {
		refused := load.Check(l, facts)
		for _, r := range refused {
			p.refuseOnce(r)
		}
		possible[l.Name] = len(refused) == 0
	}
	for _, host := range p.targets {
		for _, l := range p.plan.Loads {
			if !possible[l.Name] {
				continue
			}
			target := load.Target{Host: host.Name, Address: p.reach(host, l.Hosts), Port: p.e.Server.Port}
			driving, err := load.Drive(l, target, p.facts)
			if err != nil {
				return fmt.Errorf("load point %q: %w", l.Name, err)
			}
			p.plan.Drivings = append(p.plan.Drivings, driving)
		}
	}
	return nil
}
