// Package capacity turns settled memory at levels of held connections into bytes per connection, and those into how
// many connections fit in a memory size (METHOD §6).
//
// Per part and ramp one least-squares slope over the levels; the interval of their mean by t over the ramps, because
// levels of one ramp are not independent and ramps from a fresh server are.
package capacity

import (
	"fmt"
	"slices"
	"strings"

	"ngxlab/lab"
)

// Conclude fits the levels and projects them on the sizes that the experiment names. Levels with a problem are left
// out and named in the notes. The result has a Problem when nothing at all can be concluded.
func Conclude(p lab.Plan, levels []lab.CapacityLevel) lab.CapacityResult {
	var r lab.CapacityResult
	shared := p.Capacity != nil && p.Capacity.SharedKernel
	for _, kind := range kinds(p, levels) {
		used, notes := usable(levels, kind)
		r.Notes = append(r.Notes, notes...)
		if len(used) == 0 {
			r.Notes = append(r.Notes, fmt.Sprintf("%s: no level can be used", kind))
			continue
		}
		parts, patchy := counted(used)
		if len(patchy) > 0 {
			r.Notes = append(r.Notes, fmt.Sprintf("%s: left out, not read at every level: %s", kind, strings.Join(patchy, ", ")))
		}
		parts, notes = ofOneMeasure(kind, parts, used)
		r.Notes = append(r.Notes, notes...)
		for i := range used {
			used[i] = settled(used[i], parts, shared)
		}
		r.Levels = append(r.Levels, used...)
		concludeKind(p, used, shared, &r)
	}
	if len(r.Fits) == 0 {
		r.Problem = "no ramp has two usable levels with different numbers of connections"
		return r
	}
	r.Notes = append(r.Notes, assumptions(p, r)...)
	return r
}

// kinds are those of the plan that were measured, then any other that was.
func kinds(p lab.Plan, levels []lab.CapacityLevel) []lab.HoldKind {
	var planned, all []lab.HoldKind
	if p.Capacity != nil {
		planned = p.Capacity.Kinds
	}
	for _, k := range planned {
		if slices.ContainsFunc(levels, func(l lab.CapacityLevel) bool { return l.Kind == k }) {
			all = append(all, k)
		}
	}
	for _, l := range levels {
		if !slices.Contains(all, l.Kind) {
			all = append(all, l.Kind)
		}
	}
	return all
}

// usable returns the levels of a kind without a problem, by ramp and connections, and says which were left out and
// which had not settled.
func usable(levels []lab.CapacityLevel, kind lab.HoldKind) (used []lab.CapacityLevel, notes []string) {
	for _, l := range levels {
		switch {
		case l.Kind != kind:
			continue
		case l.Problem != "":
			notes = append(notes, fmt.Sprintf("%s, ramp %d, %d connections asked: left out: %s", kind, l.Ramp, l.Asked, l.Problem))
			continue
		case l.Unsettled:
			notes = append(notes, fmt.Sprintf("%s, ramp %d, %d connections: memory had not settled when it was read", kind, l.Ramp, l.Connections))
		}
		used = append(used, l)
	}
	slices.SortStableFunc(used, func(a, b lab.CapacityLevel) int {
		if a.Ramp != b.Ramp {
			return a.Ramp - b.Ramp
		}
		return a.Connections - b.Connections
	})
	return used, notes
}

// concludeKind adds the fits, projections and rules of one kind.
func concludeKind(p lab.Plan, used []lab.CapacityLevel, shared bool, r *lab.CapacityResult) {
	kind := used[0].Kind
	ramps, short := rampsOf(used)
	for _, n := range short {
		r.Notes = append(r.Notes, fmt.Sprintf("%s: ramp %d has fewer than two different levels and gives no slope", kind, n))
	}
	if len(ramps) == 0 {
		return
	}
	if len(ramps) < 2 {
		r.Notes = append(r.Notes, fmt.Sprintf("%s: one ramp only, so there is no interval", kind))
	}
	fits := map[string]lab.CapacityFit{}
	for _, part := range ordered(used[0].Parts) {
		fit := fitPart(part, ramps)
		fit.Divided = shared && part != lab.PartServer
		fit.Anonymous = used[0].Anonymous && (part == lab.PartServer || part == lab.PartTotal)
		fits[part] = fit
		r.Fits = append(r.Fits, fit)
	}
	total, known := fits[lab.PartTotal]
	if !known {
		r.Notes = append(r.Notes, fmt.Sprintf("%s: %s, so nothing is projected", kind, missing(fits)))
		return
	}
	r.Projections = append(r.Projections, project(p, total, fits[lab.PartServer], used)...)
	r.Rules = append(r.Rules, rules(fits)...)
}

func missing(fits map[string]lab.CapacityFit) string {
	if _, known := fits[lab.PartServer]; !known {
		return "the server's memory is not known"
	}
	return "the kernel's named caches were not read (/proc/slabinfo is for root)"
}

// rampsOf splits levels by ramp; ramps without two different numbers of connections are returned as short.
func rampsOf(used []lab.CapacityLevel) (ramps [][]lab.CapacityLevel, short []int) {
	for _, n := range rampNumbers(used) {
		var ramp []lab.CapacityLevel
		for _, l := range used {
			if l.Ramp == n {
				ramp = append(ramp, l)
			}
		}
		if ramp[0].Connections == ramp[len(ramp)-1].Connections {
			short = append(short, n)
			continue
		}
		ramps = append(ramps, ramp)
	}
	return ramps, short
}

func rampNumbers(used []lab.CapacityLevel) []int {
	var numbers []int
	for _, l := range used {
		if !slices.Contains(numbers, l.Ramp) {
			numbers = append(numbers, l.Ramp)
		}
	}
	return numbers
}
