package plan

import (
	"reflect"
	"strconv"
	"strings"

	"ngxlab/lab"
	"ngxlab/lab/tune"
)

// restarts says what it costs to start servers afresh only when needed.
func (p *planner) restarts() error {
	if p.e.Server.Restart != lab.RestartNeeded {
		return nil
	}
	for _, target := range p.targets {
		groups, err := p.sharing(target.Name)
		if err != nil {
			return err
		}
		text := "no two states can share a server here: each begins with a fresh one"
		if len(groups) > 0 {
			text = "one server can go on among the states " + strings.Join(groups, "; and among ") + "; every other move begins with a fresh one. " +
				"How much servers differ among themselves is not sampled there, and intervals are narrower than they should be"
		}
		p.warn(target.Name, "server.restart", text)
	}
	return nil
}

// sharing are the groups of states of which one server can go on into the next.
func (p *planner) sharing(target lab.HostName) ([]string, error) {
	var groups [][]lab.State
	for _, s := range p.plan.States {
		joined := false
		for i := range groups {
			can, err := p.goesOn(target, groups[i][0], s)
			if err != nil {
				return nil, err
			}
			if can && !joined {
				groups[i], joined = append(groups[i], s), true
			}
		}
		if !joined {
			groups = append(groups, []lab.State{s})
		}
	}
	var told []string
	for _, g := range groups {
		if len(g) > 1 {
			names := make([]string, len(g))
			for i, s := range g {
				names[i] = strconv.Quote(s.Name)
			}
			told = append(told, strings.Join(names, ", "))
		}
	}
	return told, nil
}

// goesOn reports whether a server of one state can serve another: it would be started in the same way, and all that
// differs on its host takes effect on a server that already runs.
func (p *planner) goesOn(target lab.HostName, a, b lab.State) (bool, error) {
	hosts := []lab.HostName{target}
	if u := p.e.Server.Upstream; u != nil && u.Host != target {
		hosts = append(hosts, u.Host)
	}
	for _, host := range hosts {
		changes, err := tune.Transition(a, b, host)
		if err != nil {
			return false, err
		}
		for _, c := range changes {
			if tune.OnHost(c.Knob.Kind) && !tune.Live(c.Knob) {
				return false, nil
			}
		}
	}
	first, one := p.servingOf(target, a.Name)
	second, other := p.servingOf(target, b.Name)
	return one && other && reflect.DeepEqual(stateless(first), stateless(second)), nil
}

// stateless is a serving without what only says which state it is of.
func stateless(s lab.Serving) lab.Serving {
	s.State, s.Expect = "", nil
	if s.Upstream != nil {
		up := stateless(*s.Upstream)
		s.Upstream = &up
	}
	return s
}

func (p *planner) servingOf(target lab.HostName, state string) (lab.Serving, bool) {
	for _, s := range p.plan.Servings {
		if s.Target == target && s.State == state {
			return s, true
		}
	}
	return lab.Serving{}, false
}
