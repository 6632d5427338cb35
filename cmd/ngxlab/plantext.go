package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"ngxlab/lab"
)

// writePlan prints everything that a campaign will do, for people to decide whether it should.
func writePlan(w io.Writer, pl lab.Plan) error {
	p := &page{w: w}
	x := pl.Experiment
	p.line("%s: %s", x.Name, x.Title)
	if x.Source != "" {
		p.line("after %s", x.Source)
	}
	planHosts(p, pl)
	planSoftware(p, pl)
	planServer(p, pl)
	planStates(p, pl)
	planLoads(p, pl)
	planRounds(p, pl)
	planCapacity(p, pl)
	planDoubts(p, pl)
	planTime(p, pl)
	return p.err
}

func planHosts(p *page, pl lab.Plan) {
	p.heading("Hosts")
	for _, h := range pl.Experiment.Hosts {
		f := pl.Facts[h.Name]
		p.line("  %s (%s; %s)", h.Name, roles(h.Roles), whereHost(h, f))
		p.line("    %s", factsLine(f))
	}
	for _, names := range lab.Kernels(pl.Facts, hostNames(pl.Experiment)) {
		p.line("  %s share one kernel", joinHosts(names))
	}
}

// whereHost says what kind of host it is and where load generators reach it.
func whereHost(h lab.Host, f lab.Facts) string {
	switch {
	case h.Local:
		return "this machine"
	case h.Docker != nil:
		return strings.TrimSpace("a container " + f.Address)
	case f.Address != "" && f.Address != h.Address:
		return fmt.Sprintf("%s, address %s", sshDestination(h).String(), f.Address)
	}
	return sshDestination(h).String()
}

func roles(rs []lab.Role) string {
	names := make([]string, len(rs))
	for i, r := range rs {
		names[i] = string(r)
	}
	return strings.Join(names, " and ")
}

// factsLine is a host in one line.
func factsLine(f lab.Facts) string {
	user := "not root"
	if f.Root {
		user = "root"
	}
	parts := []string{
		fmt.Sprintf("%s, %s", count(f.Cores, "core"), f.CPUModel), size(float64(f.MemoryBytes)) + " memory", f.Distribution, "Linux " + f.Kernel, user,
		fmt.Sprintf("%s open files at most", number(float64(f.NofileHard))),
	}
	if f.Virtualisation != "" {
		parts = append(parts, f.Virtualisation)
	}
	return strings.Join(append(parts, bounds(f)...), "; ")
}

// bounds are what a container may take of the machine that it is on.
func bounds(f lab.Facts) []string {
	var parts []string
	if f.Container != "" {
		parts = append(parts, f.Container+" container")
	}
	if f.CgroupCPUs > 0 {
		parts = append(parts, fmt.Sprintf("at most %s × the time of a CPU", number(f.CgroupCPUs)))
	}
	if f.CgroupBytes > 0 {
		parts = append(parts, "at most "+size(float64(f.CgroupBytes))+" memory")
	}
	return parts
}

func planLoads(p *page, pl lab.Plan) {
	p.heading("Load points")
	for _, l := range pl.Loads {
		p.line("  %s: %s, warm-up %s, then %s", l.Name, loadLength(l), span2(l.WarmupFirst.Duration), span2(l.Warmup.Duration))
		for _, d := range pl.Drivings {
			if d.Load == l.Name {
				planCommands(p, pl, d)
			}
		}
	}
}

func loadLength(l lab.LoadPoint) string {
	if l.Timed() {
		return span2(l.Duration.Duration)
	}
	return count(l.Requests, "request")
}

// span2 prints a short time with its fraction: "2s", "500ms".
func span2(d time.Duration) string { return d.String() }

func planCommands(p *page, pl lab.Plan, d lab.Driving) {
	for _, h := range pl.Experiment.Hosts {
		for _, c := range d.Measured[h.Name] {
			pinned := ""
			if len(c.CPUs) > 0 {
				pinned = fmt.Sprintf(" (CPU %s)", numbers(c.CPUs))
			}
			p.line("    %s → %s%s: %s", h.Name, d.Target, pinned, commandLine(c.Argv))
		}
	}
}

// numbers prints "0, 1, 2".
func numbers(all []int) string {
	return strings.Trim(strings.Join(strings.Fields(fmt.Sprint(all)), ", "), "[]")
}

// commandLine prints an argument list as a shell would take it. It is for reading: nothing runs it.
func commandLine(argv []string) string {
	quoted := make([]string, len(argv))
	for i, arg := range argv {
		quoted[i] = arg
		if arg == "" || strings.ContainsAny(arg, " \t\n'\"$`\\|&;<>()*?[]#~!") || strings.Contains(arg, "{") && strings.Contains(arg, ",") {
			quoted[i] = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}

func planRounds(p *page, pl lab.Plan) {
	r := pl.Experiment.Repeat
	p.heading("Rounds")
	p.line("  %s of %s, %s; seed %d", roundsText(r), count(len(pl.Cells), "run"), orderText(pl.Experiment.Order), pl.Seed)
	p.line("  the precision asked for is ±%s%%, the smallest effect that matters %s%%", number(r.Precision*100), number(r.Effect*100))
	if r.Max > r.Min {
		p.line("  rounds stop when every headline interval is as narrow as that")
	}
	if r.Budget.Duration > 0 {
		p.line("  or after %s", span(r.Budget.Duration))
	}
	if r.Why != "" {
		p.line("  %s", r.Why)
	}
	for i, cells := range pl.Rounds[:min(2, len(pl.Rounds))] {
		p.line("  round %d: %s", i+1, roundText(cells, severalTargets(pl.Experiment)))
	}
}

func roundsText(r lab.Repeat) string {
	if r.Min == r.Max {
		return count(r.Min, "round")
	}
	return fmt.Sprintf("%d to %d rounds", r.Min, r.Max)
}

func orderText(o lab.Order) string {
	if o == lab.Blocked {
		return "all rounds of a state together, so that verdicts are confounded with time"
	}
	return "states in balanced order, load points shuffled inside"
}

// severalTargets reports whether a state has to be named together with its target.
func severalTargets(x lab.Experiment) bool {
	targets := 0
	for _, h := range x.Hosts {
		if h.Has(lab.RoleTarget) {
			targets++
		}
	}
	return targets > 1
}

// stateOf is the state of a cell, with its target when there are several.
func stateOf(c lab.CellID, several bool) string {
	if several {
		return fmt.Sprintf("%s, %s", c.Target, c.State)
	}
	return c.State
}

// roundText is the order of a round: each state with its load points.
func roundText(cells []lab.CellID, several bool) string {
	var parts []string
	var last lab.CellID
	for _, c := range cells {
		if len(parts) > 0 && c.State == last.State && c.Target == last.Target {
			parts[len(parts)-1] += ", " + c.Load
		} else {
			parts = append(parts, stateOf(c, several)+": "+c.Load)
		}
		last = c
	}
	return strings.Join(parts, " | ")
}

func planCapacity(p *page, pl lab.Plan) {
	c := pl.Capacity
	if c == nil {
		return
	}
	p.heading("Capacity")
	kinds := make([]string, len(c.Kinds))
	for i, k := range c.Kinds {
		kinds[i] = string(k)
	}
	p.line("  %s connections to %s in state %q: %s; %s per kind, each from a fresh server, %s per load host",
		strings.Join(kinds, " and "), c.Target, c.State, numbers(c.Levels), count(c.Ramps, "ramp"), count(c.Holders, "holder"))
	for _, l := range c.Limits[:min(3, len(c.Limits))] {
		p.line("  at most %s by %s (%s)", number(float64(l.Connections)), l.Name, l.Detail)
	}
}

// planDoubts prints what is left out, refused, and worth knowing, each with its line in the file.
func planDoubts(p *page, pl lab.Plan) {
	if len(pl.Warnings) > 0 {
		p.heading("Worth knowing")
	}
	for _, w := range pl.Warnings {
		p.line("  %s%s", doubtPlace(pl.Experiment, w.Host, w.Path), w.Text)
	}
	skipped := slices.DeleteFunc(slices.Clone(pl.Refused), func(r lab.Refusal) bool { return r.Fatal })
	if len(skipped) > 0 {
		p.heading("Left out")
	}
	for _, r := range skipped {
		p.line("  %s%s", doubtPlace(pl.Experiment, "", r.Path), r.Reason)
		if r.Cure != "" {
			p.line("    hint: %s", r.Cure)
		}
	}
	if len(pl.Fatal()) > 0 {
		p.heading("Refused: the plan cannot be carried out")
		p.line("  %s", strings.ReplaceAll((&refusedError{pl}).Error(), "\n", "\n  "))
	}
}

func doubtPlace(x lab.Experiment, host lab.HostName, path string) string {
	text := ""
	if at, known := position(x, path); known {
		text = fmt.Sprintf("line %d: ", at.Line)
	}
	if host != "" {
		text += string(host) + ": "
	}
	return text
}

func planTime(p *page, pl lab.Plan) {
	p.heading("Time")
	if pl.EstimateMax.Duration > pl.Estimate.Duration {
		p.line("  about %s, at most %s", span(pl.Estimate.Duration), span(pl.EstimateMax.Duration))
		return
	}
	p.line("  about %s", span(pl.Estimate.Duration))
}
