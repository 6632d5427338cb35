package plan

import (
	"fmt"
	"slices"
	"strconv"

	"ngxlab/lab"
)

// nofileObstacle: beyond the hard limit only CAP_SYS_RESOURCE helps, beyond fs.nr_open nothing does.
func (p *planner) nofileObstacle(f lab.Facts, step lab.Step, what, value string) obstacle {
	n, _ := strconv.Atoi(value)
	nrOpen := p.nrOpen(f, step)
	switch {
	case nrOpen > 0 && n > nrOpen:
		return obstacle{reason: fmt.Sprintf("%s %d is above fs.nr_open = %d of %s", what, n, nrOpen, f.Host),
			cure: fmt.Sprintf("ask for at most %d, or set fs.nr_open in the same step", nrOpen)}
	case n > f.NofileHard && !f.RaiseNofile:
		return obstacle{reason: fmt.Sprintf("%s %d is above the hard limit of %d open files on %s, which the agent may not raise", what, n, f.NofileHard, f.Host),
			cure: fmt.Sprintf("ask for at most %d, or raise the hard limit (limits.conf, LimitNOFILE; nofile of a docker host)", f.NofileHard)}
	}
	return obstacle{}
}

// nrOpen is the least fs.nr_open in force in the states that have a step; that of the host for the server section.
func (p *planner) nrOpen(f lab.Facts, step lab.Step) int {
	present := number(f.Sysctls["fs.nr_open"], f.NrOpen)
	least, found := 0, false
	for _, s := range p.asked {
		if slices.Contains(s.Steps, step.Name) {
			n := number(value(s, f.Host, lab.KnobSysctl, "fs.nr_open"), present)
			if !found || n < least {
				least, found = n, true
			}
		}
	}
	if !found {
		return present
	}
	return least
}

// nprocObstacle: beyond the hard limit only CAP_SYS_RESOURCE helps, as for open files.
func nprocObstacle(f lab.Facts, value string) obstacle {
	n, _ := strconv.ParseInt(value, 10, 64)
	hard, known := f.Limits[lab.KnobNproc]
	if !known || hard.Hard < 0 || n <= hard.Hard || f.RaiseNofile {
		return obstacle{}
	}
	return obstacle{reason: fmt.Sprintf("nproc %d is above the hard limit of %d processes on %s, which the agent may not raise", n, hard.Hard, f.Host),
		cure: fmt.Sprintf("ask for at most %d, or raise the hard limit (limits.conf, LimitNPROC)", hard.Hard)}
}
