package plan

import (
	"slices"
	"strconv"
	"strings"

	"ngxlab/lab"
	"ngxlab/lab/server"
	"ngxlab/lab/tune"
)

// changes tells what each state changes on each host, and which steps change nothing.
func (p *planner) changes() error {
	told := map[lab.HostName][]lab.StateChange{}
	for _, s := range p.plan.States {
		over, compared := p.plan.State(s.Over)
		if !compared {
			over = p.plain()
		}
		made := map[lab.HostName][]lab.StateChange{}
		for _, h := range p.e.Hosts {
			changes, err := p.changesOn(h, s, over)
			if err != nil {
				return err
			}
			if len(changes) > 0 {
				made[h.Name] = changes
				told[h.Name] = append(told[h.Name], changes...)
			}
		}
		p.sayEmpty(s, made)
	}
	if len(told) > 0 {
		p.plan.Changes = told
	}
	return nil
}

// plain is the state before any step: the hosts as they are, and the server section alone.
func (p *planner) plain() lab.State {
	none := p.e
	none.Steps = []lab.Step{{}}
	none.Repeat.Control = false
	plain := lab.State{Name: originalName, Settings: map[lab.HostName][]lab.Setting{}}
	if states, err := lab.States(none); err == nil {
		plain = states[0]
		plain.Name = originalName
	}
	for host, found := range p.plan.Original.Settings {
		plain.Settings[host] = append(plain.Settings[host], found...)
		sortSettings(plain.Settings[host])
	}
	return plain
}

// changesOn are, for people, the values of a state that the state it is compared with does not have, and those that
// its steps set in vain.
func (p *planner) changesOn(h lab.Host, s, over lab.State) ([]lab.StateChange, error) {
	differs, err := tune.Transition(over, s, h.Name)
	if err != nil {
		return nil, err
	}
	for _, setting := range s.Settings[h.Name] {
		is := func(d lab.Change) bool { return d.Knob == setting.Knob }
		if added(setting.Step, s, over) && !slices.ContainsFunc(differs, is) {
			to := lab.Value{Text: setting.Value, Absent: setting.Absent}
			differs = append(differs, lab.Change{Knob: setting.Knob, From: to, To: to})
		}
	}
	var changes []lab.StateChange
	for _, d := range differs {
		c := lab.StateChange{State: s.Name, Step: stepOf(s, h.Name, d.Knob), Knob: d.Knob, To: d.To}
		before, after := d.From, d.To
		if !tune.OnHost(d.Knob.Kind) {
			before, after = p.apart(h, d.Knob, p.brought(h, over, d.Knob), p.brought(h, s, d.Knob))
		}
		anyway := p.anyway(h, over, d.Knob, before, after) || p.anyway(h, s, d.Knob, after, before)
		c.Same = anyway || same(d.Knob, before, after)
		c.Before = before
		if c.Now = before; tune.OnHost(d.Knob.Kind) {
			c.Now, _ = present(p.facts[h.Name], d.Knob)
		}
		if c.Note = p.note(h, c); anyway {
			c.Note = strings.TrimSuffix("nginx's own default; "+c.Note, "; ")
		}
		changes = append(changes, c)
	}
	return changes, nil
}

// added reports whether a step is of a state and not of the one it is compared with.
func added(step string, s, over lab.State) bool {
	return step != "" && slices.Contains(s.Steps, step) && !slices.Contains(over.Steps, step)
}

// stepOf is the step that gave a knob its value, or, when the knob is given up, the step that is left out.
func stepOf(s lab.State, host lab.HostName, knob lab.KnobID) string {
	for _, setting := range s.Settings[host] {
		if setting.Knob == knob && setting.Step != "" {
			return setting.Step
		}
	}
	return s.Step
}

// brought is the value that a fresh server brings in a state.
func (p *planner) brought(host lab.Host, s lab.State, knob lab.KnobID) lab.Value {
	switch text := value(s, host.Name, knob.Kind, knob.Name); {
	case knob.Kind == lab.KnobNginx:
		return p.directive(host, s, knob.Name)
	case text != "":
		return lab.Value{Text: text}
	case knob.Kind == lab.KnobNofile || knob.Kind == lab.KnobNproc:
		return ownLimit(p.facts[host.Name], knob.Kind)
	}
	return lab.Value{Absent: true}
}

// ownLimit is the limit that a server inherits from the agent.
func ownLimit(f lab.Facts, kind string) lab.Value {
	limit, known := f.Limits[kind]
	switch {
	case known && limit.Soft < 0:
		return lab.Value{Text: "unlimited"}
	case known:
		return lab.Value{Text: strconv.FormatInt(limit.Soft, 10)}
	case kind == lab.KnobNofile:
		return lab.Value{Text: strconv.Itoa(f.NofileSoft)}
	}
	return lab.Value{Absent: true}
}

// note says what a person should know of a change.
func (p *planner) note(h lab.Host, c lab.StateChange) string {
	var notes []string
	add := func(when bool, text string) {
		if when && text != "" {
			notes = append(notes, text)
		}
	}
	fact, _ := found(p.facts[h.Name], c.Knob)
	add(tune.NeedsRoot(c.Knob) && !c.Same, "needs root")
	add(true, tune.Note(c.Knob, c.To.Text))
	add(c.Knob.Kind == lab.KnobNginx && !c.To.Absent, server.Inert(c.Knob.Name, c.To.Text))
	add(true, rounded(c))
	add(c.Knob.Kind == lab.KnobSysctl && !tune.Namespaced(c.Knob.Name) && !c.Same, "one value for the whole machine")
	add(asksHost(c.Knob.Kind), fact.Note)
	add(true, roleNote(h, c.Knob))
	return strings.Join(notes, "; ")
}

// rounded tells what the kernel makes of a value that a best-effort step gives.
func rounded(c lab.StateChange) string {
	to, why := tune.Clamped(c.Knob.Name, c.To.Text)
	if c.Knob.Kind != lab.KnobSysctl || to == "" {
		return ""
	}
	return "becomes " + to + ", " + why
}

// What acts on one side of a connection only (Linux 6.18, Documentation/networking/ip-sysctl.rst).
var (
	opening   = []string{portsKnob, reservedKnob} // tune says it of tcp_tw_reuse and tcp_syn_retries, wherever
	accepting = []string{"net.core.somaxconn", "net.ipv4.tcp_max_syn_backlog", "net.ipv4.tcp_synack_retries", "net.ipv4.tcp_syncookies", "net.ipv4.tcp_abort_on_overflow"}
)

// roleNote: a target opens no connections, and a load host accepts none.
func roleNote(h lab.Host, knob lab.KnobID) string {
	switch {
	case knob.Kind != lab.KnobSysctl:
	case slices.Contains(opening, knob.Name) && !h.Has(lab.RoleLoad):
		return "acts on connections that a host opens: no effect on a target, unless its server opens some"
	case slices.Contains(accepting, knob.Name) && !h.Has(lab.RoleTarget):
		return "acts on connections that a host accepts: no effect on a load host"
	}
	return ""
}
