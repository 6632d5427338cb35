// Package conduct is the engine: it walks a plan, emits events, survives faults, and puts the hosts back.
package conduct

import (
	"context"
	"io"

	"ngxlab/lab"
)

// Tuner is a host, for its knobs.
type Tuner interface {
	// Read returns the values of the knobs that the settings name, in their order.
	Read(ctx context.Context, ks []lab.Setting) ([]lab.Value, error)
	// Apply journals, writes and reads back each change in order; it refuses one whose present value is not From.
	Apply(ctx context.Context, c lab.CampaignID, cs []lab.Change) ([]lab.Applied, error)
	// Restore puts back everything in the journal, newest first; it tries everything and joins the errors. A server
	// that is being stopped is gone when it returns.
	Restore(ctx context.Context) ([]lab.Restored, error)
}

// Builder is a host, for its software.
type Builder interface {
	// Install installs packages by the host's package manager.
	Install(ctx context.Context, packages []string, log io.Writer) error
	// Build makes a recipe, or finds it already made.
	Build(ctx context.Context, r lab.Recipe, log io.Writer) (lab.Build, error)
	// Export writes a build that the host has to w, as one stream; after an error what w got is not whole.
	Export(ctx context.Context, b lab.Build, w io.Writer) error
	// Import keeps a build that another host exported, whole or not at all. A host that has it already says so (Cached),
	// whatever the stream holds.
	Import(ctx context.Context, b lab.Build, r io.Reader) (lab.Build, error)
}

// Runner is a host, for its processes.
type Runner interface {
	// Serve starts a server, checks and probes it; it is stopped when ctx is cancelled. A second Serve waits
	// until the server before is gone.
	Serve(ctx context.Context, s lab.Serving) (lab.Server, error)
	// Arm starts one small waiting process per command; without commands it ends every set that still waits.
	Arm(ctx context.Context, cs []lab.Command) (lab.Armed, error)
	// Fire lets them go at one instant of the host's clock and returns when all have ended.
	Fire(ctx context.Context, a lab.Armed, at lab.Instant) ([]lab.Process, error)
	// Hold holds connections open; see lab.Hold.
	Hold(ctx context.Context, h lab.Hold) (lab.Held, error)
}

// Watcher is a host, for its monitors.
type Watcher interface {
	// Watch calls each for every sample until the watch ends or ctx is cancelled (which is no error).
	Watch(ctx context.Context, w lab.Watch, each func(lab.Sample)) error
	// Clock relates the host's monotonic clock to ours.
	Clock(ctx context.Context) (lab.Clock, error)
	// Yardstick times a fixed amount of work on every core at once.
	Yardstick(ctx context.Context) (lab.Yardstick, error)
}

// Machine is one host in all its parts. Every error of its methods names the host and what was tried; one whose link has
// ended holds lab.ErrLost.
type Machine struct {
	Tuner
	Builder
	Runner
	Watcher
	Lender *Lender // nil = nobody makes what this host cannot
}

// Recorder is the store.
type Recorder interface {
	// Begin opens a campaign, or an existing one when id is known (its plan is then replaced by p), and returns
	// what of it is already done, in all parts.
	Begin(ctx context.Context, id lab.CampaignID, p lab.Plan) (lab.Done, error)
	// Originals records values before the first change; committed before Apply.
	Originals(ctx context.Context, c lab.CampaignID, h lab.HostName, cs []lab.Change) error
	// Commit records a build, a run or a capacity level, whole or not at all.
	Commit(ctx context.Context, c lab.CampaignID, r lab.Record) error
	// Event records what happened.
	Event(ctx context.Context, c lab.CampaignID, e lab.Event) error
}
