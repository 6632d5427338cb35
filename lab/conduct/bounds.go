package conduct

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"ngxlab/lab"
)

// Bounds on what a call to a host may take: a host that never answers ends a campaign, and never hangs it. They are far
// above what the calls take; a link that is cut is noticed by its own keep-alive long before.
const (
	briefBound   = 30 * time.Second // to read, to write knobs, to arm
	installBound = 70 * time.Minute // three runs of the package manager, which end after 20 minutes each
	buildBound   = 3 * time.Hour    // three sources, configure and make, each with its own deadline
	copyBound    = 10 * time.Minute
	holdBound    = 5 * time.Minute
	endBound     = time.Minute // beyond a deadline that the host itself keeps
)

// silentError says that a host did not answer in time.
type silentError struct{ after time.Duration }

func (e *silentError) Error() string { return fmt.Sprintf("no answer within %v", e.after) }

// Is makes a host that does not answer a lost one.
func (e *silentError) Is(target error) bool { return target == lab.ErrLost }

// within asks a host for one thing, for at most so long.
func within[T any](ctx context.Context, name lab.HostName, call string, limit time.Duration, do func(context.Context) (T, error)) (T, error) {
	silent := &silentError{limit}
	bounded, cancel := context.WithTimeoutCause(ctx, limit, silent)
	defer cancel()
	got, err := do(bounded)
	return got, silent.told(bounded, name, call, err)
}

// told is the error of a call whose ctx may have ended with the silence.
func (e *silentError) told(ctx context.Context, name lab.HostName, call string, err error) error {
	if err == nil || !errors.Is(context.Cause(ctx), e) || errors.Is(err, e) {
		return err
	}
	return fmt.Errorf("%s: %s: %w: %w", name, call, e, err)
}

// bounded is a host whose calls all end. Fire is bounded by who knows the deadlines of the commands: fire.
type bounded struct {
	Machine
	name lab.HostName
	slow lab.Slowness // of its knobs
}

// bound bounds every call to the hosts.
func bound(p lab.Plan, hosts map[lab.HostName]Machine) map[lab.HostName]Machine {
	all := map[lab.HostName]Machine{}
	for name, m := range hosts {
		b := bounded{Machine: m, name: name, slow: lab.SlownessOf(p.Original.Settings[name])}
		all[name] = Machine{Tuner: b, Builder: b, Runner: b, Watcher: b, Lender: m.Lender}
	}
	return all
}

// nothing gives a call that has only an error a result.
func nothing(do func(context.Context) error) func(context.Context) (struct{}, error) {
	return func(ctx context.Context) (struct{}, error) { return struct{}{}, do(ctx) }
}

func (b bounded) Read(ctx context.Context, ks []lab.Setting) ([]lab.Value, error) {
	return within(ctx, b.name, "read", briefBound+b.slow.Read, func(ctx context.Context) ([]lab.Value, error) { return b.Machine.Read(ctx, ks) })
}

func (b bounded) Apply(ctx context.Context, id lab.CampaignID, cs []lab.Change) ([]lab.Applied, error) {
	return within(ctx, b.name, "apply", briefBound+b.slow.Apply, func(ctx context.Context) ([]lab.Applied, error) { return b.Machine.Apply(ctx, id, cs) })
}

func (b bounded) Restore(ctx context.Context) ([]lab.Restored, error) {
	return within(ctx, b.name, "restore", restoreTimeout+b.slow.Restore, b.Machine.Restore)
}

func (b bounded) Install(ctx context.Context, packages []string, log io.Writer) error {
	_, err := within(ctx, b.name, "install", installBound, nothing(func(ctx context.Context) error { return b.Machine.Install(ctx, packages, log) }))
	return err
}

func (b bounded) Build(ctx context.Context, r lab.Recipe, log io.Writer) (lab.Build, error) {
	return within(ctx, b.name, "build", buildBound, func(ctx context.Context) (lab.Build, error) { return b.Machine.Build(ctx, r, log) })
}

func (b bounded) Export(ctx context.Context, made lab.Build, w io.Writer) error {
	_, err := within(ctx, b.name, "export", copyBound, nothing(func(ctx context.Context) error { return b.Machine.Export(ctx, made, w) }))
	return err
}

func (b bounded) Import(ctx context.Context, made lab.Build, r io.Reader) (lab.Build, error) {
	return within(ctx, b.name, "import", copyBound, func(ctx context.Context) (lab.Build, error) { return b.Machine.Import(ctx, made, r) })
}

// Serve bounds the start: the server runs until ctx ends.
func (b bounded) Serve(ctx context.Context, s lab.Serving) (lab.Server, error) {
	limit := s.Deadline.Duration + 2*endBound // the server before may take its time to end
	silent := &silentError{limit}
	ctx, cancel := context.WithCancelCause(ctx)
	late := time.AfterFunc(limit, func() { cancel(silent) })
	server, err := b.Machine.Serve(ctx, s)
	if !late.Stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		err = silent.told(ctx, b.name, "serve", err)
		cancel(nil)
	}
	return server, err
}

func (b bounded) Arm(ctx context.Context, cs []lab.Command) (lab.Armed, error) {
	return within(ctx, b.name, "arm", briefBound, func(ctx context.Context) (lab.Armed, error) { return b.Machine.Arm(ctx, cs) })
}

func (b bounded) Hold(ctx context.Context, h lab.Hold) (lab.Held, error) {
	limit := holdBound
	if h.Connections <= 1 {
		limit = briefBound
	}
	return within(ctx, b.name, "hold", limit, func(ctx context.Context) (lab.Held, error) { return b.Machine.Hold(ctx, h) })
}

// Watch bounds what has an end of its own. A cancelled watch is no error; one that ends because nothing came is.
func (b bounded) Watch(ctx context.Context, w lab.Watch, each func(lab.Sample)) error {
	if !w.Once && w.Count == 0 {
		return b.Machine.Watch(ctx, w, each)
	}
	limit := briefBound
	if !w.Once {
		limit = time.Duration(w.Count)*w.Interval.Duration + 2*endBound // its beginning lies ahead
	}
	_, err := within(ctx, b.name, "watch", limit, nothing(func(bounded context.Context) error {
		err := b.Machine.Watch(bounded, w, each)
		if err == nil && ctx.Err() == nil {
			err = bounded.Err()
		}
		return err
	}))
	return err
}

func (b bounded) Clock(ctx context.Context) (lab.Clock, error) {
	return within(ctx, b.name, "clock", briefBound, b.Machine.Clock)
}

func (b bounded) Yardstick(ctx context.Context) (lab.Yardstick, error) {
	return within(ctx, b.name, "yardstick", endBound, b.Machine.Yardstick)
}
