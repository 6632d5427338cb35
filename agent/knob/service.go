package knob

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"ngxlab/lab"
	"ngxlab/lab/tune"
)

// services are knobs that say whether a unit of systemd is started. Whether it starts with the host is never changed.
type services struct{ systemd systemctl }

// unitTypes are the units that a service knob may name; a name without type is a service's.
var unitTypes = []string{".service", ".socket", ".timer", ".path"}

// unitOf is the whole name of a unit.
func unitOf(name string) string {
	if slices.ContainsFunc(unitTypes, func(t string) bool { return strings.HasSuffix(name, t) }) {
		return name
	}
	return name + ".service"
}

// valueOfService tells the two values apart. What is on its way counts as there.
func valueOfService(state unitState) lab.Value {
	switch {
	case !state.found():
		return lab.Value{Absent: true}
	case state.active():
		return lab.Value{Text: tune.Started}
	}
	return lab.Value{Text: tune.Stopped}
}

// read returns started or stopped; Absent when there is no such unit, or no systemd.
func (s services) read(ctx context.Context, id lab.KnobID, _ lab.Value) (lab.Value, error) {
	if _, err := s.systemd.find(); err != nil {
		return lab.Value{Absent: true}, nil
	}
	state, err := s.systemd.show(ctx, unitOf(id.Name))
	if err != nil {
		return lab.Value{}, fmt.Errorf("%s: %w", id, err)
	}
	return valueOfService(state), nil
}

// write starts or stops the unit, and returns when it is so.
func (s services) write(ctx context.Context, id lab.KnobID, to lab.Value) error {
	unit := unitOf(id.Name)
	verb, known := map[lab.Value]string{{Text: tune.Started}: "start", {Text: tune.Stopped}: "stop"}[to]
	if !known {
		return fmt.Errorf("%s: %q is neither started nor stopped", id, to.Text)
	}
	err := s.systemd.job(ctx, verb, unit, func(state unitState) bool { // and not on its way there
		return valueOfService(state) == to && !strings.HasSuffix(state["ActiveState"], "activating")
	})
	if err != nil {
		return fmt.Errorf("%s: %w", id, err)
	}
	return nil
}

func (s services) await(ctx context.Context, id lab.KnobID) { s.systemd.await(ctx, unitOf(id.Name)) }

func (s services) probe(ctx context.Context, asked lab.Setting) []lab.KnobFact {
	return oneFact(ctx, asked, s.examine)
}

func (s services) examine(ctx context.Context, fact *lab.KnobFact) refusal {
	fact.To.Text = strings.TrimSpace(fact.To.Text)
	if fact.To.Absent || fact.To.Text != tune.Started && fact.To.Text != tune.Stopped {
		return refusal{reason: "a service is started or stopped", cure: "write one of these"}
	}
	unit := unitOf(fact.Asked.Knob.Name)
	state, r := s.systemd.judge(ctx, unit)
	if state != nil {
		fact.Now = valueOfService(state)
	}
	if r.is() {
		return r
	}
	if id := state["Id"]; id != "" { // one unit is one knob by whatever alias
		fact.Knob.Name = strings.TrimSuffix(id, ".service")
	}
	fact.Note = serviceNote(unitOf(fact.Knob.Name), fact.To.Text, state)
	switch {
	case fact.Now == fact.To:
		return refusal{}
	case state["CanStop"] == "no" && state.active(), state["CanStop"] == "no" && fact.To.Text == tune.Started:
		return refusal{reason: unit + " cannot be stopped by hand (RefuseManualStop)", cure: "leave it out"}
	case state["CanStart"] == "no":
		return refusal{reason: unit + " cannot be started by hand (RefuseManualStart)", cure: "leave it out"}
	case state["Type"] == "oneshot" && state["RemainAfterExit"] == "no":
		return refusal{reason: unit + " runs once and ends: it is never started for long", cure: "use a command knob"}
	case s.systemd.euid != 0:
		return needsRoot("starting and stopping services")
	}
	return refusal{}
}

// firewalls are services that keep others out.
var firewalls = []string{"firewalld.service", "ufw.service", "nftables.service", "iptables.service", "ip6tables.service", "fail2ban.service"}

// serviceNote says what changing a unit brings with it.
func serviceNote(unit, to string, state unitState) string {
	var notes []string
	if to == tune.Stopped && slices.Contains(firewalls, unit) {
		notes = append(notes, "weakens security: while it is stopped the host is open to what it keeps out")
	}
	if by := state["TriggeredBy"]; to == tune.Stopped && by != "" {
		notes = append(notes, "it does not last alone, for it is started by "+by+": stop that too")
	}
	if state["ActiveState"] == "failed" {
		notes = append(notes, "it is failed at present, and comes back as stopped without the failure")
	}
	return strings.Join(notes, "; ")
}
