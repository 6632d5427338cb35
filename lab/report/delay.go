package report

import (
	"fmt"
	"math"

	"ngxlab/lab"
	"ngxlab/plots"
	"ngxlab/templates"
)

// bound is the highest goodput that a cell can have when each request waits by design; 0 when none does.
func (s *study) bound(target lab.HostName, state string, load lab.LoadPoint) float64 {
	v := s.serving(target, state)
	return lab.DelayBound(load.Connections, v.AtOnce, v.DelayS)
}

// delays puts what was measured beside the bound of requests that wait by design.
func (s *study) delays() (templates.Section, error) {
	t := newTable("state", "load point", ">connections", ">wait at once", ">delay", ">bound, per s", ">goodput, per s", ">of the bound")
	var impossible []templates.Text
	for _, target := range s.targets {
		for _, state := range s.Plan.States {
			for _, load := range s.Plan.Loads {
				text := s.delayRow(t, target, state, load)
				if text != "" {
					impossible = append(impossible, styled("⚠ "+text, templates.Bad))
				}
			}
		}
	}
	if t.empty() {
		return templates.Section{}, nil
	}
	section := templates.Section{ID: "delay", Title: "Requests that wait"}
	section.Blocks = append(section.Blocks, paragraph(plain("Where each request waits by design, no server completes more than connections ÷ delay requests per second, and one that can have only so many waiting at once no more than that number ÷ delay: a connection carries one request at a time, and each takes at least the delay. A share near 100% says that the delay is all there is; a smaller one, that something else took time as well.")))
	if len(impossible) > 0 {
		section.Blocks = append(section.Blocks, templates.Block{List: impossible})
	}
	section.Blocks = append(section.Blocks, t.block())
	return section, nil
}

// timerTick is by how many seconds a delay may be shorter than it says: nginx counts time in milliseconds (ngx_times.c,
// ngx_current_msec), and a timer that is set late in one ends at the beginning of another.
const timerTick = 0.001

// delayRow adds the row of a cell whose requests wait, and says what cannot be about it.
func (s *study) delayRow(t *tableBuilder, target lab.HostName, state lab.State, load lab.LoadPoint) (impossible string) {
	bound := s.bound(target, state.Name, load)
	if bound == 0 {
		return ""
	}
	v := s.serving(target, state.Name)
	c := s.cells[cellKey{s.lastPart(), lab.CellID{Target: target, State: state.Name, Load: load.Name}}]
	measured := c.figure(lab.Goodput)
	name := state.Name
	if len(s.targets) > 1 {
		name = string(target) + ", " + name
	}
	atOnce, share := "all", plain(lab.Unknown)
	if v.AtOnce > 0 {
		atOnce = count(int64(v.AtOnce))
	}
	if measured.n > 0 && measured.mark != plots.Invalid {
		share = plain(perCent(measured.value / bound))
	}
	if least := lab.DelayBound(load.Connections, v.AtOnce, v.DelayS-timerTick); least > 0 && exceeds(c, measured, least) {
		share = join(share, styled(" ⚠ impossible", templates.Bad))
		impossible = fmt.Sprintf("%s at %s: %s per second cannot be with a delay of %s, whose bound is %s. The figure or the delay is wrong; neither is to be used.",
			quoted(name), load.Name, rate(measured.value), duration.print(v.DelayS), rate(bound))
	}
	t.row(plain(name), plain(load.Name), plain(count(int64(load.Connections))), plain(atOnce), plain(duration.print(v.DelayS)), plain(rate(bound)), measured.text(ratePerS), share)
	return impossible
}

// exceeds reports whether a figure is above its bound by more than its interval or, where rounds are too few for one, in
// every run.
func exceeds(c cell, f summary, bound float64) bool {
	if f.n == 0 || f.mark == plots.Invalid {
		return false
	}
	if !math.IsNaN(f.low) {
		return f.low > bound
	}
	for _, r := range c.valid {
		if v, known := r.Figures[lab.Goodput]; known && v <= bound {
			return false
		}
	}
	return true
}

// plotBounds are the bounds of a target's cells as the chart of goodput draws them; nil when no request waits.
func (s *study) plotBounds(target lab.HostName) [][]float64 {
	var all [][]float64
	any := false
	for _, state := range s.Plan.States {
		row := make([]float64, len(s.Plan.Loads))
		for i, load := range s.Plan.Loads {
			row[i] = s.bound(target, state.Name, load)
			any = any || row[i] > 0
		}
		all = append(all, row)
	}
	if !any {
		return nil
	}
	return all
}
