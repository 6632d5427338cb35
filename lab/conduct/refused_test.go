package conduct

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"ngxlab/lab"
)

// TestWhatAHostRefusesIsPlacedInTheExperimentFile has the host refuse a build, or one of the servers of the rehearsal.
func TestWhatAHostRefusesIsPlacedInTheExperimentFile(t *testing.T) {
	for _, tc := range []struct {
		name, call string
		n          int // of that call
		complaint  string
		path       string
	}{
		{"build", "build", 1, "checksum differs", "builds.nginx.source"},
		{"directive of a step", "serve", 2, `invalid value "x" in "worker_connections" directive`, "steps[1].nginx.events.worker_connections"},
		{"directive of the server section", "serve", 1, `"sendfile" directive invalid value`, "server.nginx.sendfile"},
		{"something else of a step", "serve", 2, "not ready within 10s", "steps[1]"},
		{"directive of the capacity part", "serve", 4, `"worker_processes" directive invalid value`, "capacity.nginx.worker_processes"},
		{"something else of the capacity part", "serve", 4, "not ready within 10s", "capacity"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			host, n := newFakeHost(t), 0
			host.before = func(_ int, call string) error {
				if call == tc.call {
					if n++; n == tc.n {
						return errors.New(tc.complaint)
					}
				}
				return nil
			}
			_, err := run(t.Context(), host, &fakeStore{}, refusablePlan())
			var refused *RefusedError
			if !errors.As(err, &refused) || refused.Refusal.Path != tc.path || refused.Refusal.Cure == "" || refused.Refusal.Host != web {
				t.Fatalf("error %v, refusal %+v, want one at %s", err, refused, tc.path)
			}
			host.mustBeAsBefore()
		})
	}
}

// refusablePlan is the small plan with directives in the server section, a step and the capacity part.
func refusablePlan() lab.Plan {
	p := withCapacity(smallPlan(1))
	set := func(name, step string) lab.Setting {
		return lab.Setting{Knob: lab.KnobID{Kind: lab.KnobNginx, Name: name}, Step: step}
	}
	p.Experiment.Steps = []lab.Step{{Name: "defaults"}, {Name: "sockets"}}
	for i := range p.States {
		p.States[i].Settings[web] = append(p.States[i].Settings[web], set("sendfile", ""))
	}
	p.States[0].Steps, p.States[1].Steps = []string{"defaults"}, []string{"defaults", "sockets"}
	p.States[1].Settings[web] = append(p.States[1].Settings[web], set("events.worker_connections", "sockets"))
	p.Experiment.Capacity = &lab.CapacitySpec{Nginx: map[string]string{"worker_processes": "x"}}
	return p
}

func TestInterruptedRehearsalIsNotRefused(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	host := newFakeHost(t)
	host.before = func(_ int, call string) error {
		if call == "serve" {
			cancel()
			return fmt.Errorf("cut off: %w", ctx.Err())
		}
		return nil
	}
	_, err := run(ctx, host, &fakeStore{}, smallPlan(1))
	var refused *RefusedError
	if errors.As(err, &refused) || !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	host.mustBeAsBefore()
}
