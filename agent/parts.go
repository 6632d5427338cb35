package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"ngxlab/agent/build"
	"ngxlab/agent/hold"
	"ngxlab/agent/knob"
	"ngxlab/agent/process"
	"ngxlab/agent/watch"
	"ngxlab/agent/wire"
	"ngxlab/lab"
)

// parts is what the agent is made of: the packages below, joined. They do not know each other.
type parts struct {
	read    func(context.Context, []lab.Setting) ([]lab.Value, error)
	apply   func(context.Context, lab.CampaignID, []lab.Change) ([]lab.Applied, error)
	restore func(context.Context) ([]lab.Restored, error)
	pending func() ([]lab.Pending, error)
	stand   func(context.Context) ([]lab.Standing, error)

	install func(context.Context, []string, io.Writer) error
	build   func(context.Context, lab.Recipe, io.Writer) (lab.Build, error)
	export  func(context.Context, lab.Build, io.Writer) error
	take    func(context.Context, lab.Build, io.Reader) (lab.Build, error) // imports
	builds  func(context.Context) ([]lab.KeptBuild, error)
	unbuild func(context.Context, []string) (lab.Cleaned, error) // only with the lock
	try     func(context.Context, lab.Trial) (lab.Tried, error)

	serve func(context.Context, lab.Serving, func(lab.Server)) error // until the context ends or the server does
	arm   func(context.Context, []lab.Command) (lab.Armed, error)
	fire  func(context.Context, lab.Armed, lab.Instant) ([]lab.Process, error)
	hold  func(context.Context, lab.Hold) (lab.Held, error)

	facts     func(context.Context, lab.FactsQuery) (lab.Facts, error)
	watch     func(context.Context, lab.Watch, func(lab.Sample)) error
	yardstick func(context.Context) (lab.Yardstick, error)
	clock     func() wire.Clock

	clear func() error                // ends and removes what earlier agents left; only with the lock
	clean func() (lab.Cleaned, error) // removes what is kept; only with the lock
	end   func() error                // ends everything that was started, but for a package manager
}

// newParts joins the packages for one session.
func newParts(o Options) (parts, error) {
	if o.Exe == "" {
		o.Exe = "/proc/self/exe"
	}
	keeper, err := knob.Open(o.Dir)
	if err != nil {
		return parts{}, err
	}
	keeper.Wall = o.Wall
	runner := &process.Runner{Dir: o.Dir, Exe: o.Exe, Nice: o.Nice}
	packages := &process.Runner{Dir: o.Dir, Exe: o.Exe, Nice: o.Nice} // end does not end these
	cache := build.Cache{Dir: o.Dir, Run: toTheEnd(runner)}
	runner.Versions = build.Cache{Dir: o.Dir, Run: toTheEnd(packages)}.Versions
	watcher := &watch.Watcher{
		Server: runner.Current, ErrorLog: runner.ErrorLog, LoadPIDs: runner.LoadPIDs,
		Agent: o.Hash, StateDir: o.Dir, Wall: o.Wall,
	}
	holder := &hold.Holder{Self: o.Exe}
	return parts{
		read: keeper.Read, apply: keeper.Apply, restore: afterServer(runner, keeper.Restore), pending: keeper.Pending,
		stand:   keeper.Standing,
		install: build.Cache{Dir: o.Dir, Run: toTheEnd(packages)}.Install,
		build:   cache.Build, export: cache.Export, take: cache.Import, builds: cache.List, unbuild: cache.Remove, try: try(cache, runner),
		serve: runner.Serve, arm: runner.Arm, fire: runner.Fire,
		hold:  holder.Hold,
		facts: withKnobs(watcher.Facts, keeper.Probe), watch: watcher.Watch, yardstick: watcher.Yardstick, clock: clock(wallClock(o)),
		clear: func() error { return clearWork(o.Dir) },
		clean: func() (lab.Cleaned, error) { return cleanHost(o.Dir, keeper.Pending) },
		end:   func() error { return errors.Join(runner.KillAll(), holder.Close()) },
	}, nil
}

// withKnobs adds to the facts those of the knobs asked for.
func withKnobs(
	facts func(context.Context, lab.FactsQuery) (lab.Facts, error),
	probe func(context.Context, []lab.Setting) ([]lab.KnobFact, error),
) func(context.Context, lab.FactsQuery) (lab.Facts, error) {
	return func(ctx context.Context, q lab.FactsQuery) (lab.Facts, error) {
		f, err := facts(ctx, q)
		if err == nil && !q.Brief {
			f.Knobs, err = probe(ctx, q.Knobs)
		}
		return f, err
	}
}

// try lets the finished build of a recipe say what it thinks of a configuration.
func try(cache build.Cache, r *process.Runner) func(context.Context, lab.Trial) (lab.Tried, error) {
	return func(ctx context.Context, t lab.Trial) (lab.Tried, error) {
		b, ok := cache.Find(ctx, t.Recipe)
		if !ok {
			return lab.Tried{}, nil
		}
		t.Serving.Build = b
		refused, err := r.Try(ctx, t.Serving)
		return lab.Tried{Build: &b, Refused: refused}, err
	}
}

// clock reads both clocks, one right after the other.
func clock(wall func() time.Time) func() wire.Clock {
	return func() wire.Clock { return wire.Clock{At: process.Now(), WallNS: wall().UnixNano()} }
}

// serverGone bounds the wait for a server that is being stopped: twice what the runner gives it.
const serverGone = 20 * time.Second

// afterServer restores when a server that is being stopped is gone, so that the host is then wholly as it was. It
// restores also when the server stays, and says both.
func afterServer(r *process.Runner, restore func(context.Context) ([]lab.Restored, error)) func(context.Context) ([]lab.Restored, error) {
	return func(ctx context.Context) ([]lab.Restored, error) {
		waiting, cancel := context.WithTimeout(ctx, serverGone)
		defer cancel()
		waited := r.Idle(waiting)
		restored, err := restore(ctx)
		return restored, errors.Join(waited, err)
	}
}

// toTheEnd runs a command of the builder, for which every end but exit 0 is an error.
func toTheEnd(r *process.Runner) func(context.Context, lab.Command, io.Writer) error {
	return func(ctx context.Context, c lab.Command, out io.Writer) error {
		p, err := r.Run(ctx, c, out)
		switch {
		case err != nil:
			return err
		case p.TimedOut:
			return fmt.Errorf("not done after %v", c.Deadline.Duration)
		case p.Signal != "":
			return fmt.Errorf("ended by signal: %s", p.Signal)
		case p.Exit != 0:
			return fmt.Errorf("exit %d", p.Exit)
		}
		return nil
	}
}

// clearWork ends the processes and removes the directories of work that an agent left which was killed with its guard.
// The directories tell of the processes, so they stay while those do.
func clearWork(dir string) error {
	if err := process.KillSurvivors(dir); err != nil {
		return err
	}
	return os.RemoveAll(filepath.Join(dir, "work"))
}

// kindOf tells what an error of the parts means to the asker.
func kindOf(err error) wire.Kind {
	var changed *knob.ChangedError
	var readBack *knob.ReadBackError
	switch {
	case errors.As(err, &changed):
		return wire.KindForeign
	case errors.As(err, &readBack):
		return wire.KindReadBack
	case errors.Is(err, knob.ErrJournal):
		return wire.KindDamaged
	case errors.Is(err, knob.ErrKind), errors.Is(err, errors.ErrUnsupported):
		return wire.KindNotSupport
	}
	return wire.KindFailed
}
