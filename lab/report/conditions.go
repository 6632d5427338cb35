package report

import (
	"fmt"
	"slices"

	"ngxlab/lab"
	"ngxlab/templates"
)

// conditions are what somebody must know to compare with their own.
func (s *study) conditions() (templates.Section, error) {
	section := templates.Section{ID: "conditions", Title: "Conditions"}
	section.Blocks = append(section.Blocks, heading("Hosts"))
	section.Blocks = append(section.Blocks, s.sharedKernels()...)
	section.Blocks = append(section.Blocks, s.hostTable())
	if t := s.versionTable(); !t.empty() {
		section.Blocks = append(section.Blocks, heading("Tools and packages"), t.block())
	}
	section.Blocks = append(section.Blocks, heading("Builds"))
	section.Blocks = append(section.Blocks, s.builds()...)
	if t := s.serverTable(); !t.empty() {
		section.Blocks = append(section.Blocks, heading("Servers"), t.block())
	}
	section.Blocks = append(section.Blocks, heading("Knobs as read back"),
		paragraph(plain("Every knob that a state's own step sets; a state has those of the steps before it, too, where the ladder is cumulative.")), s.knobTable())
	section.Blocks = append(section.Blocks, heading("Design"), templates.Block{List: s.design()})
	if warnings := s.warnings(); len(warnings) > 0 {
		section.Blocks = append(section.Blocks, heading("Said by the plan beforehand"), templates.Block{List: warnings})
	}
	return section, nil
}

// versionTable names the load tools and the packages of each host.
func (s *study) versionTable() *tableBuilder {
	t := newTable("host", "what", "version")
	for _, h := range s.Plan.Experiment.Hosts {
		f := s.Plan.Facts[h.Name]
		for _, list := range []map[string]string{f.ToolVersions, f.Packages} {
			for _, name := range sortedKeys(list) {
				t.row(plain(string(h.Name)), mono(name), plain(orUnknown(list[name])))
			}
		}
		for _, name := range s.Plan.Packages[h.Name] {
			t.row(plain(string(h.Name)), mono(name), plain("installed for this campaign"))
		}
	}
	return t
}

func sortedKeys[V any](m map[string]V) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// knobTable is what each state's step sets, beside the value before the campaign and the value read back.
func (s *study) knobTable() templates.Block {
	t := newTable("state", "host", "knob", "before", "asked", "read back")
	for _, state := range s.Plan.States {
		if state.Control || state.Without {
			continue
		}
		for _, host := range hostNames(state.Settings) {
			s.knobRows(t, state, host)
		}
	}
	for _, state := range s.Plan.States {
		if server, known := s.serverOf(state.Name); known && !state.Control {
			t.row(plain(state.Name), plain(lab.Unknown), plain("in force at the server"), plain(lab.Unknown), plain(lab.Unknown), plain(serverWords(server)))
		}
	}
	return t.block()
}

// knobRows adds the knobs of a state's own step on one host.
func (s *study) knobRows(t *tableBuilder, state lab.State, host lab.HostName) {
	own := state.Step
	if own == "" {
		own = state.Name
	}
	for _, setting := range state.Settings[host] {
		if setting.Step == own {
			t.row(plain(state.Name), plain(string(host)), mono(setting.Knob.String()),
				s.before(state.Name, host, setting.Knob), valueText(setting.Knob, valueOf(setting)), s.readBack(state.Name, host, setting))
		}
	}
}

// serverWords is what was read from a running server itself.
func serverWords(x lab.Server) string {
	return fmt.Sprintf("%s, open files %s soft and %s hard, backlog %s", plural(len(x.Workers), "worker"), number(x.NofileSoft), number(x.NofileHard), number(x.Backlog))
}

// serverOf is the server of the state's first valid run, or of its first run: what was read back is no figure.
func (s *study) serverOf(state string) (server lab.Server, known bool) {
	for _, r := range s.Runs {
		if r.Cell.State != state || r.Part != s.lastPart() || len(r.Server.Workers) == 0 {
			continue
		}
		if r.Validity != lab.Invalid {
			return r.Server, true
		}
		if !known {
			server, known = r.Server, true
		}
	}
	return server, known
}

// before is a knob's value before the campaign, as the plan found it; the plan knows it for knobs set on a host.
func (s *study) before(state string, host lab.HostName, knob lab.KnobID) templates.Text {
	for _, c := range s.Plan.Changes[host] {
		if c.State == state && c.Knob == knob {
			return valueText(knob, c.Now)
		}
	}
	for _, setting := range s.Plan.Original.Settings[host] {
		if setting.Knob == knob {
			return valueText(knob, valueOf(setting))
		}
	}
	return plain(lab.Unknown)
}

func valueOf(s lab.Setting) lab.Value { return lab.Value{Text: s.Value, Absent: s.Absent} }

func valueText(k lab.KnobID, v lab.Value) templates.Text {
	if v.Absent {
		return styled(lab.Shown(k, v), templates.Quiet)
	}
	return plain(lab.Shown(k, v))
}

// readBack is the value that was read after the knob was set. A knob of the host is read back at the write, and a
// difference ends the campaign unless the step is best effort; then what the target made of it is with the server.
func (s *study) readBack(state string, host lab.HostName, setting lab.Setting) templates.Text {
	server, known := s.serverOf(state)
	if !known {
		return plain(lab.Unknown)
	}
	onHost, onTarget := !setting.Knob.Served(), s.isTarget(host)
	for _, a := range server.ReadBack {
		if a.Change.Knob == setting.Knob && (onTarget || !onHost) {
			text := valueText(setting.Knob, a.ReadBack)
			if a.Differs {
				text = join(text, styled(" ⚠ differs from what was asked", templates.Doubt))
			}
			return text
		}
	}
	if onHost && (onTarget || !setting.BestEffort) {
		return plain(fmt.Sprintf("as asked, checked at the write on %s", host))
	}
	return plain("not recorded")
}

// isTarget reports whether a host is a target.
func (s *study) isTarget(name lab.HostName) bool {
	return slices.ContainsFunc(s.Plan.Experiment.Hosts, func(h lab.Host) bool { return h.Name == name && h.Has(lab.RoleTarget) })
}

// design is the plan's order, seed and precision.
func (s *study) design() []templates.Text {
	e := s.Plan.Experiment
	order := "interleaved: states in Williams rows within each round, one fresh server per state and round, load points shuffled inside"
	if e.Order == lab.Blocked {
		order = "blocked: all rounds of a state together; every verdict is confounded with time"
	}
	list := []templates.Text{
		plain("order: " + order),
		join(plain("seed: "), mono(fmt.Sprint(s.Plan.Seed))),
		plain(fmt.Sprintf("rounds: %d to %d, measured %d; cool-down %s", e.Repeat.Min, e.Repeat.Max, s.rounds(), e.Repeat.CoolDown)),
		plain(fmt.Sprintf("precision asked for: ±%s (half-width of the 95%% interval); smallest effect that matters: ±%s", perCent(e.Repeat.Precision), perCent(e.Repeat.Effect))),
	}
	if e.Repeat.Why != "" {
		list = append(list, plain("why these: "+e.Repeat.Why))
	}
	if s.sharesKernel() {
		path := "loopback"
		if len(s.Plan.Kernels) > 0 {
			path = "the network inside the machine"
		}
		list = append(list, plain("load and target share one kernel: CPU and memory of both ends mix, "+path+" bills the server's receive path to the client, and absolute figures do not compare with networked ones"))
	}
	if len(s.parts) > 1 {
		list = append(list, plain(fmt.Sprintf("the campaign was resumed under other conditions and has %d parts, which are never compared with each other; ladder and charts show the last", len(s.parts))))
	}
	return list
}

// sharesKernel reports whether load came from the target's kernel in any cell or in the capacity part.
func (s *study) sharesKernel() bool {
	if p := s.Plan.Capacity; p != nil && p.SharedKernel {
		return true
	}
	return slices.ContainsFunc(s.Plan.Cells, func(c lab.Cell) bool {
		l, known := s.Plan.Load(c.ID.Load)
		return known && s.Plan.SharedKernel(c.ID.Target, l.Hosts)
	})
}

func (s *study) warnings() []templates.Text {
	var list []templates.Text
	for _, w := range s.Plan.Warnings {
		text := w.Text
		if w.Host != "" {
			text = string(w.Host) + ": " + text
		}
		list = append(list, prose(text))
	}
	return list
}
