package lab

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ControlName names the state that is the baseline measured a second time.
const ControlName = "control"

// AllSteps names the full state of a leave-one-out ladder; the states beside it are "without " and a step's name.
const AllSteps = "all steps"

// States turns the steps of an experiment into states: the baseline first, then one state per rung of the ladder,
// then the control when Repeat.Control asks for it.
//
// The `server:` section and the first step hold in every state; later steps override earlier ones. Over names the
// state that a state is compared with, and Step the step whose effect that comparison shows ("" when several steps
// differ):
//
//	cumulative     state k has the steps 0…k, over state k−1
//	isolated       state k has the steps 0 and k, over the baseline
//	listed         each list, after step 0, over the baseline; a list of step 0 alone is the baseline and not repeated
//	leave-one-out  "all steps" over the baseline; then for each step k "without k" with Without set and Over
//	               "all steps": the effect of step k is Over ÷ State there, the inverse of the others
//
// Settings go to hosts by role: sysctls and other knobs of a host where the step's `on` says (default the target), everything else to the targets.
// It fails when there is no step, when a list names an unknown step, and when two states would have one name.
func States(e Experiment) ([]State, error) {
	if len(e.Steps) == 0 {
		return nil, fmt.Errorf("ladder of %q: no steps", e.Name)
	}
	states, err := rungs(e)
	if err != nil {
		return nil, fmt.Errorf("ladder of %q: %w", e.Name, err)
	}
	if e.Repeat.Control {
		states = append(states, control(states[0]))
	}
	seen := map[string]bool{}
	for _, s := range states {
		if seen[s.Name] {
			return nil, fmt.Errorf("ladder of %q: two states are named %q", e.Name, s.Name)
		}
		seen[s.Name] = true
	}
	return states, nil
}

func rungs(e Experiment) ([]State, error) {
	switch e.Ladder.Kind {
	case Cumulative, "":
		return cumulative(e), nil
	case Isolated:
		return isolated(e), nil
	case LeaveOneOut:
		return leaveOneOut(e), nil
	case Listed:
		return listed(e)
	}
	return nil, fmt.Errorf("unknown kind %q", e.Ladder.Kind)
}

func cumulative(e Experiment) []State {
	states := []State{baseline(e)}
	for k := 1; k < len(e.Steps); k++ {
		s := stateOf(e, e.Steps[k].Name, e.Steps[:k+1])
		s.Step, s.Over = e.Steps[k].Name, e.Steps[k-1].Name
		states = append(states, s)
	}
	return states
}

func isolated(e Experiment) []State {
	states := []State{baseline(e)}
	for _, step := range e.Steps[1:] {
		s := stateOf(e, step.Name, []Step{e.Steps[0], step})
		s.Step, s.Over = step.Name, e.Steps[0].Name
		states = append(states, s)
	}
	return states
}

func leaveOneOut(e Experiment) []State {
	states := []State{baseline(e)}
	if len(e.Steps) == 1 {
		return states
	}
	full := stateOf(e, AllSteps, e.Steps)
	full.Over = e.Steps[0].Name
	states = append(states, full)
	for k := 1; k < len(e.Steps) && len(e.Steps) > 2; k++ { // with one step, "all steps" shows its effect already
		rest := slices.Delete(slices.Clone(e.Steps), k, k+1)
		s := stateOf(e, "without "+e.Steps[k].Name, rest)
		s.Step, s.Over, s.Without = e.Steps[k].Name, AllSteps, true
		states = append(states, s)
	}
	if len(e.Steps) == 2 {
		states[1].Step = e.Steps[1].Name
	}
	return states
}

func listed(e Experiment) ([]State, error) {
	states := []State{baseline(e)}
	for _, names := range e.Ladder.Lists {
		steps := e.Steps[:1:1]
		for _, name := range names {
			k := slices.IndexFunc(e.Steps, func(s Step) bool { return s.Name == name })
			if k < 0 {
				return nil, fmt.Errorf("list names the unknown step %q", name)
			}
			if k > 0 {
				steps = append(steps, e.Steps[k])
			}
		}
		if len(steps) == 1 {
			continue
		}
		s := stateOf(e, strings.Join(stepNames(steps[1:]), " + "), steps)
		s.Over = e.Steps[0].Name
		if len(steps) == 2 {
			s.Step = steps[1].Name
		}
		states = append(states, s)
	}
	return states, nil
}

func baseline(e Experiment) State { return stateOf(e, e.Steps[0].Name, e.Steps[:1]) }

// control copies the baseline; its comparison with the baseline is the A/A proof.
func control(base State) State {
	c := base
	c.Name, c.Over, c.Control = ControlName, base.Name, true
	c.Steps = slices.Clone(base.Steps)
	c.Settings = make(map[HostName][]Setting, len(base.Settings))
	for host, settings := range base.Settings {
		c.Settings[host] = slices.Clone(settings)
	}
	return c
}

func stateOf(e Experiment, name string, steps []Step) State {
	s := State{Name: name, Steps: stepNames(steps), Settings: map[HostName][]Setting{}}
	for _, host := range e.Hosts {
		values := map[KnobID]Setting{}
		if host.Has(RoleTarget) {
			put(values, serverSettings(e.Server))
		}
		for _, step := range steps {
			put(values, StepSettings(step, host))
		}
		if len(values) > 0 {
			s.Settings[host.Name] = sortedSettings(values)
		}
	}
	return s
}

func put(values map[KnobID]Setting, settings []Setting) {
	for _, s := range settings {
		values[s.Knob] = s
	}
}

func serverSettings(spec ServerSpec) []Setting {
	return StepSettings(Step{Build: spec.Build, Nginx: spec.Nginx, Nofile: spec.Nofile, Nproc: spec.Nproc},
		Host{Roles: []Role{RoleTarget}})
}

// StepSettings returns what one step sets on one host, sorted by knob; nil when nothing.
func StepSettings(step Step, host Host) []Setting {
	values := map[KnobID]Setting{}
	add := func(kind, name, value string) {
		id := KnobID{Kind: kind, Name: name}
		values[id] = Setting{Knob: id, Value: value, BestEffort: step.BestEffort, Step: step.Name}
	}
	if host.Has(RoleTarget) {
		for name, value := range step.Nginx {
			add(KnobNginx, name, value)
		}
		if step.Nofile > 0 {
			add(KnobNofile, "", strconv.Itoa(step.Nofile))
		}
		if step.Nproc > 0 {
			add(KnobNproc, "", strconv.Itoa(step.Nproc))
		}
		if step.Build != "" {
			add(KnobBuild, "", step.Build)
		}
		for _, name := range step.Remove {
			id := KnobID{Kind: KnobNginx, Name: name}
			values[id] = Setting{Knob: id, Absent: true, BestEffort: step.BestEffort, Step: step.Name}
		}
	}
	if knobsOn(step, host) {
		for name, value := range step.Sysctl {
			add(KnobSysctl, name, value)
		}
		for _, s := range step.Knobs {
			s.BestEffort, s.Step = step.BestEffort, step.Name
			values[s.Knob] = s
		}
	}
	return sortedSettings(values)
}

func knobsOn(step Step, host Host) bool {
	if len(step.On) == 0 {
		return host.Has(RoleTarget)
	}
	return slices.ContainsFunc(step.On, host.Has)
}

func sortedSettings(values map[KnobID]Setting) []Setting {
	var settings []Setting
	for _, s := range values {
		settings = append(settings, s)
	}
	slices.SortFunc(settings, func(a, b Setting) int {
		return cmp.Or(cmp.Compare(a.Knob.Kind, b.Knob.Kind), cmp.Compare(a.Knob.Name, b.Knob.Name))
	})
	return settings
}

func stepNames(steps []Step) []string {
	names := make([]string, len(steps))
	for i, step := range steps {
		names[i] = step.Name
	}
	return names
}
