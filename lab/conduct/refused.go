package conduct

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ngxlab/lab"
)

// RefusedError is what a host refused of the experiment before anything was measured, although the plan took it for
// possible: a build that cannot be made, or a server that does not start.
type RefusedError struct {
	Refusal lab.Refusal
	Err     error
}

// Error names the host and what was tried.
func (e *RefusedError) Error() string { return e.Err.Error() }

// Unwrap is the host's own error.
func (e *RefusedError) Unwrap() error { return e.Err }

// refused makes a refusal of what a host answered to what was tried; a campaign that was cancelled was not refused, and a
// lost host refuses nothing.
func refused(ctx context.Context, tried string, err error, r lab.Refusal) error {
	if ctx.Err() != nil || errors.Is(err, lab.ErrLost) {
		return fmt.Errorf("%s: %w", tried, err)
	}
	r.Reason, r.Fatal = err.Error(), true
	return &RefusedError{Refusal: r, Err: err}
}

// buildRefusal places a failed build in the experiment file.
func buildRefusal(recipe lab.Recipe, target lab.HostName) lab.Refusal {
	key, cure := "source", "correct the build there, or give the host what it lacks; then run the file again"
	switch {
	case recipe.Installed != "":
		key, cure = "installed", "install the server on the host, or give the path where it is; then run the file again"
	case len(recipe.Package) > 0:
		key = "package"
	}
	if slices.ContainsFunc(recipe.Sources, func(s lab.BuildSource) bool { return s.URL != "" }) {
		cure = "compare url and sha256 with what the publisher says; " + cure
	}
	return lab.Refusal{Host: target, Path: fmt.Sprintf("builds.%s.%s", recipe.Name, key), Knob: lab.KnobID{Kind: lab.KnobBuild}, Cure: cure}
}

// correctIt is the cure of a server that does not start.
const correctIt = "correct it there, then run the file again"

// stateRefusal places a server that does not start at the directive that it names, or at the step.
func (c *campaign) stateRefusal(s lab.Serving, err error) lab.Refusal {
	if behind, is := behindRefusal(err); is {
		return behind
	}
	path := "server"
	if state, ok := c.plan.State(s.State); ok {
		path = c.faulty(state, s.Target, err)
	}
	return lab.Refusal{Host: s.Target, Path: path, Cure: correctIt}
}

// behindRefusal places an upstream that does not start; false when it was not the upstream.
func behindRefusal(err error) (lab.Refusal, bool) {
	var up *upstreamError
	if !errors.As(err, &up) {
		return lab.Refusal{}, false
	}
	return lab.Refusal{Host: up.serving.Target, Path: "server.upstream.server", Cure: correctIt}, true
}

// capacityRefusal places a server that starts in every state, but not for the capacity part.
func (c *campaign) capacityRefusal(s lab.Serving, err error) lab.Refusal {
	if behind, is := behindRefusal(err); is {
		return behind
	}
	r := lab.Refusal{Host: s.Target, Path: "capacity", Cure: correctIt}
	if spec := c.plan.Experiment.Capacity; spec != nil {
		for _, name := range slices.Sorted(maps.Keys(spec.Nginx)) {
			if mentions(err, name) {
				r.Path = "capacity.nginx." + name
			}
		}
	}
	return r
}

// faulty is the path of the directive that the server names among those of a state, or else of the state's own step.
func (c *campaign) faulty(state lab.State, target lab.HostName, err error) string {
	for _, s := range state.Settings[target] {
		if s.Knob.Kind == lab.KnobNginx && mentions(err, s.Knob.Name) {
			return c.section(s.Step) + ".nginx." + s.Knob.Name
		}
	}
	if len(state.Steps) == 0 {
		return "server"
	}
	return c.section(state.Steps[len(state.Steps)-1])
}

// section is where a step stands in the experiment file; settings of no step are of the server section.
func (c *campaign) section(step string) string {
	for i, s := range c.plan.Experiment.Steps {
		if s.Name == step {
			return fmt.Sprintf("steps[%d]", i)
		}
	}
	return "server"
}

// mentions reports whether a server's complaint names a directive, which nginx puts into quotes.
func mentions(err error, directive string) bool {
	name := directive[strings.LastIndex(directive, ".")+1:]
	return strings.Contains(err.Error(), fmt.Sprintf("%q", name))
}
