package plan

import (
	"slices"

	"ngxlab/lab"
)

func sortSettings(settings []lab.Setting) {
	slices.SortFunc(settings, bySetting)
}

// rounds makes the cells and the order in which each round measures them (METHOD §3).
func (p *planner) rounds() error {
	for _, target := range p.targets {
		for _, s := range p.plan.States {
			for _, l := range p.plan.Loads {
				p.plan.Cells = append(p.plan.Cells, lab.Cell{ID: lab.CellID{Target: target.Name, State: s.Name, Load: l.Name}})
			}
		}
	}
	for round, order := range p.orders() {
		p.plan.Rounds = append(p.plan.Rounds, p.round(round+1, order))
	}
	return nil
}

// orders gives the order of states per round: balanced rows, or the ladder's own order where it was asked for.
func (p *planner) orders() [][]int {
	rounds, n := max(p.e.Repeat.Max, p.e.Repeat.Min, 1), len(p.plan.States)
	if p.e.Order != lab.Blocked {
		return lab.Orders(p.plan.Seed, rounds, n)
	}
	ladder := make([]int, n)
	for i := range ladder {
		ladder[i] = i
	}
	return slices.Repeat([][]int{ladder}, rounds)
}

// round puts the cells of one state and target together, so that they share one fresh server; targets take turns
// within a state, because knobs move on all hosts at once.
func (p *planner) round(round int, order []int) []lab.CellID {
	var cells []lab.CellID
	for _, state := range order {
		for _, target := range lab.Shuffle(p.plan.Seed, round, -1-state, len(p.targets)) {
			stream := state*len(p.targets) + target
			for _, l := range lab.Shuffle(p.plan.Seed, round, stream, len(p.plan.Loads)) {
				cells = append(cells, lab.CellID{Target: p.targets[target].Name, State: p.plan.States[state].Name, Load: p.plan.Loads[l].Name})
			}
		}
	}
	return cells
}
