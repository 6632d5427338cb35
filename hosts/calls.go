package hosts

import (
	"context"
	"fmt"
	"io"
	"time"

	"ngxlab/agent/wire"
	"ngxlab/lab"
)

// margin is what a call with a deadline on the host may take beyond it: the five seconds between SIGINT and SIGKILL, the
// reductions of collected files, and the way back.
const margin = 60 * time.Second

// Facts reads what does not change during a campaign, and what is asked for; it measures the host's clock against ours.
func (h *Host) Facts(ctx context.Context, q lab.FactsQuery) (lab.Facts, error) {
	f, err := call[lab.Facts](ctx, h, wire.PathFacts, q)
	f.Host, f.Address = h.name, h.address
	if err != nil || q.Brief {
		return f, err
	}
	c, err := h.Clock(ctx)
	f.ClockOffsetS, f.ClockDoubtS = c.WallOffsetS, c.UncertaintyS
	return f, err
}

// Claim takes the host's lock for a campaign, without which the agent changes and starts nothing. When another session
// has it, the *wire.Error is of kind wire.KindLocked and tells owner, campaign and since when. owner is for people.
func (h *Host) Claim(ctx context.Context, c lab.CampaignID, owner string) error {
	_, err := call[wire.None](ctx, h, wire.PathClaim, wire.Claim{Campaign: c, Owner: owner})
	return err
}

// Release ends everything that was started and frees the host's lock.
func (h *Host) Release(ctx context.Context) error {
	_, err := call[wire.None](ctx, h, wire.PathRelease, wire.None{})
	return err
}

// Read returns the values of the knobs that the settings name, in their order.
func (h *Host) Read(ctx context.Context, ss []lab.Setting) ([]lab.Value, error) {
	return call[[]lab.Value](ctx, h, wire.PathRead, ss)
}

// Apply journals, writes and reads back each change in order, and returns those done before an error. An error of kind
// wire.KindForeign says that a knob had another value than its From.
func (h *Host) Apply(ctx context.Context, c lab.CampaignID, cs []lab.Change) ([]lab.Applied, error) {
	return call[[]lab.Applied](ctx, h, wire.PathApply, wire.Apply{Campaign: c, Changes: cs})
}

// Restore puts back everything in the host's journal, newest first; it tries everything and joins the errors. It needs
// no claim, but is refused (wire.KindLocked) while another session has the host.
func (h *Host) Restore(ctx context.Context) ([]lab.Restored, error) {
	return call[[]lab.Restored](ctx, h, wire.PathRestore, wire.None{})
}

// Standing returns how the knobs stand that the lab has changed on the host and not yet put back; empty when there are
// none. It needs no claim and changes nothing.
func (h *Host) Standing(ctx context.Context) ([]lab.Standing, error) {
	return call[[]lab.Standing](ctx, h, wire.PathStanding, wire.None{})
}

// Pending returns what the host's journal says is not restored.
func (h *Host) Pending(ctx context.Context) ([]lab.Pending, error) {
	return call[[]lab.Pending](ctx, h, wire.PathPending, wire.None{})
}

// Install installs packages by the host's package manager.
func (h *Host) Install(ctx context.Context, packages []string, log io.Writer) error {
	a, err := ask[wire.None](ctx, h, wire.PathInstall, wire.Install{Packages: packages})
	if err != nil {
		return err
	}
	defer a.body.Close() //nolint:errcheck // only read
	_, err = a.next(ctx, log)
	return err
}

// Build makes a recipe, or finds it already made.
func (h *Host) Build(ctx context.Context, r lab.Recipe, log io.Writer) (lab.Build, error) {
	a, err := ask[lab.Build](ctx, h, wire.PathBuild, r)
	if err != nil {
		return lab.Build{}, err
	}
	defer a.body.Close() //nolint:errcheck // only read
	return first(ctx, a, log)
}

// Builds returns the finished builds that the host keeps, those used last first. It needs no claim.
func (h *Host) Builds(ctx context.Context) ([]lab.KeptBuild, error) {
	return call[[]lab.KeptBuild](ctx, h, wire.PathBuilds, wire.None{})
}

// Unbuild removes builds by their IDs, or beginnings of them that fit one build only: all or, on an ID that there is not,
// none. It is refused (wire.KindLocked) while another session holds the host.
func (h *Host) Unbuild(ctx context.Context, ids []string) (lab.Cleaned, error) {
	return call[lab.Cleaned](ctx, h, wire.PathUnbuild, wire.Unbuild{IDs: ids})
}

// Try asks what the host's finished build of a recipe says of a configuration; see lab.Tried. It needs no claim, and
// changes nothing.
func (h *Host) Try(ctx context.Context, t lab.Trial) (lab.Tried, error) {
	return call[lab.Tried](ctx, h, wire.PathTry, t)
}

// first returns the one item of an answer.
func first[Item any](ctx context.Context, a *answer[Item], log io.Writer) (item Item, err error) {
	got, err := a.next(ctx, log)
	if err == nil && got == nil {
		err = a.host.failed(ctx, a.path, fmt.Errorf("the agent ended without an answer"))
	}
	if err != nil {
		return item, err
	}
	return *got, nil
}

// Serve starts a server, checks and probes it. It runs until ctx is cancelled or the host closed; another Serve waits
// until it is gone.
func (h *Host) Serve(ctx context.Context, s lab.Serving) (lab.Server, error) {
	ctx, stop := context.WithCancelCause(ctx)
	late := time.AfterFunc(s.Deadline.Duration+margin, func() { stop(context.DeadlineExceeded) })
	a, err := ask[lab.Server](ctx, h, wire.PathServe, s)
	if err != nil {
		stop(nil)
		return lab.Server{}, err
	}
	server, err := first(ctx, a, io.Discard)
	if err == nil && !late.Stop() {
		err = h.failed(ctx, wire.PathServe, context.DeadlineExceeded)
	}
	if err != nil {
		stop(nil)
		_ = a.body.Close() // only read
		return lab.Server{}, err
	}
	h.running.Go(func() {
		defer stop(nil)
		defer a.body.Close() //nolint:errcheck // only read
		_, _ = a.next(ctx, io.Discard)
	})
	return server, nil
}

// Arm starts one small waiting process per command. A set that is not fired within two minutes ends by itself.
func (h *Host) Arm(ctx context.Context, cs []lab.Command) (lab.Armed, error) {
	a, err := call[lab.Armed](ctx, h, wire.PathArm, cs)
	if err != nil {
		return a, err
	}
	var longest time.Duration
	for _, c := range cs {
		longest = max(longest, c.Deadline.Duration)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.armed[a.ID] = longest
	return a, nil
}

// Fire lets an armed set go at one instant of the host's clock and returns when all processes have ended, in the order of
// their commands. When ctx ends, or the link, they are killed.
func (h *Host) Fire(ctx context.Context, a lab.Armed, at lab.Instant) ([]lab.Process, error) {
	h.mu.Lock()
	longest, known := h.armed[a.ID]
	delete(h.armed, a.ID)
	h.mu.Unlock()
	if known && longest > 0 {
		bounded, cancel := context.WithTimeout(ctx, longest+2*margin) // the instant lies up to a minute ahead
		defer cancel()
		ctx = bounded
	}
	ps, err := call[[]lab.Process](ctx, h, wire.PathFire, wire.Fire{Armed: a, At: at})
	for i := range ps {
		ps[i].Host = h.name
	}
	return ps, err
}

// Hold holds connections open; see lab.Hold.
func (h *Host) Hold(ctx context.Context, hold lab.Hold) (lab.Held, error) {
	return call[lab.Held](ctx, h, wire.PathHold, hold)
}

// Watch calls each for every sample until the watch ends or ctx is cancelled, which is no error.
func (h *Host) Watch(ctx context.Context, w lab.Watch, each func(lab.Sample)) error {
	a, err := ask[lab.Sample](ctx, h, wire.PathWatch, w)
	if err == nil {
		defer a.body.Close() //nolint:errcheck // only read
		err = a.each(ctx, func(s lab.Sample) {
			s.Host = h.name
			each(s)
		})
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func (a *answer[Item]) each(ctx context.Context, do func(Item)) error {
	for {
		item, err := a.next(ctx, io.Discard)
		if err != nil || item == nil {
			return err
		}
		do(*item)
	}
}

// exchanges is how many times Clock asks: the shortest of 20 round trips is rarely disturbed.
const exchanges = 20

// Clock relates the host's clocks to this process's, by the exchange with the shortest round trip of 20.
func (h *Host) Clock(ctx context.Context) (lab.Clock, error) {
	var best lab.Clock
	for i := range exchanges {
		sent := time.Now()
		there, err := call[wire.Clock](ctx, h, wire.PathClock, wire.None{})
		if err != nil {
			return lab.Clock{}, err
		}
		half := time.Since(sent) / 2
		if i == 0 || half.Seconds() < best.UncertaintyS {
			at := sent.Add(half)
			best = lab.Clock{
				At: at, Host: there.At, UncertaintyS: half.Seconds(),
				WallOffsetS: time.Duration(there.WallNS - at.UnixNano()).Seconds(),
			}
		}
	}
	return best, nil
}

// Yardstick times a fixed amount of work on every core at once.
func (h *Host) Yardstick(ctx context.Context) (lab.Yardstick, error) {
	y, err := call[lab.Yardstick](ctx, h, wire.PathYardstick, wire.None{})
	y.Host = h.name
	return y, err
}

// Address is where load generators reach the host, as its door knows it; "" unknown.
func (h *Host) Address() string { return h.address }

// Holder returns who holds the host's lock, the zero Holder when nobody does.
func (h *Host) Holder(ctx context.Context) (lab.Holder, error) {
	return call[lab.Holder](ctx, h, wire.PathHolder, wire.None{})
}

// Clean removes what ngxlab keeps on the host: builds, sources, work, and agents other than this. It is refused while a
// change is not restored, and (wire.KindLocked) while another session holds the host.
func (h *Host) Clean(ctx context.Context) (lab.Cleaned, error) {
	return call[lab.Cleaned](ctx, h, wire.PathClean, wire.None{})
}
