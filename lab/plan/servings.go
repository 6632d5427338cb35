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
		if u := p.e.Server.Upstream; u != nil {
			if _, err := server.Serving(p.upstreamInput(target, p.plan.Baseline())); err != nil {
				p.refuse(lab.Refusal{Host: u.Host, Path: "server.upstream.server", Reason: err.Error(), Cure: "correct the server of the upstream", Fatal: true})
				continue
			}
		}
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
	build := value(s, target.Name, lab.KnobBuild, "")
	if build == "" { // of no state, or of one that sets nothing
		build = p.e.Server.Build
	}
	recipe := p.recipe(build)
	in := server.Input{
		Spec: p.e.Server, State: s, Target: target, Facts: p.facts[target.Name], Address: p.reached[target.Name], CPUs: p.cpus[target.Name],
		URLs: p.urls(), Recipe: recipe, Command: p.e.CommandOf(recipe),
	}
	if u := p.e.Server.Upstream; u != nil && in.Command == nil {
		in.Via = p.via(target.Name, u.Host)
		if up, err := server.Serving(p.upstreamInput(target, s)); err == nil {
			in.Upstream = &up
		}
	}
	return in
}

// upstreamInput is the server that a target passes its requests to. Steps are about the target: it is the same in all states.
func (p *planner) upstreamInput(target lab.Host, s lab.State) server.Input {
	u := p.e.Server.Upstream
	e := p.e
	e.Server = u.Server
	recipe := p.recipe(u.Server.Build)
	return server.Input{
		Spec: u.Server, State: lab.State{Name: s.Name}, Target: p.host(u.Host), Facts: p.facts[u.Host], Address: p.via(target.Name, u.Host),
		CPUs: p.upstreamCPUs, URLs: p.urls(), Recipe: recipe, Command: e.CommandOf(recipe),
	}
}

// host is the host of that name.
func (p *planner) host(name lab.HostName) lab.Host {
	for _, h := range p.e.Hosts {
		if h.Name == name {
			return h
		}
	}
	return lab.Host{Name: name}
}

// urls are the paths of all load points, in their order.
func (p *planner) urls() []string {
	var urls []string
	for _, l := range p.e.Load {
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
			target := load.Target{Host: host.Name, Address: p.reach(host, l.Hosts), Port: p.e.Server.Port, TLS: p.e.Server.TLS != nil}
			driving, err := load.Drive(l, target, p.facts)
			if err != nil {
				return fmt.Errorf("load point %q: %w", l.Name, err)
			}
			p.plan.Drivings = append(p.plan.Drivings, driving)
		}
	}
	return nil
}
