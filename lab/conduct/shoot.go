package conduct

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"ngxlab/lab"
	"ngxlab/lab/observe"
)

const (
	// fireLead is the time from the decision to the common start: long enough that every host has the instant and
	// every watch is set, with ten times the clock's uncertainty (five round trips) on top.
	fireLead = 30 * time.Millisecond
	// samplesPerRun, minInterval and maxInterval give the sampling: every D/20 between 0.5 and 1 s. In 2 s runs on 2 cores
	// that target and load share, sampling every 0.1 s cost 2.4 % of the goodput, every 0.2 s still 1.5 to 2 % (40 pairs
	// against the same command by hand).
	samplesPerRun = 20
	minInterval   = 500 * time.Millisecond
	maxInterval   = time.Second
)

// shot is what was seen of one execution of a load point.
type shot struct {
	began     time.Time
	ended     time.Time // of the load
	processes []lab.Process
	samples   []lab.Sample // by host: before the release, on the grid, after the end
	yards     []lab.Yardstick
	knobs     []observe.KnobReading // before, then after
	mu        sync.Mutex
}

// shoot arms the load hosts, reads everything before, lets all go at one instant while watching, and reads
// everything after. What has drifted before is errDrifted, and nothing is let go.
func (c *campaign) shoot(ctx context.Context, r *running, p lab.LoadPoint, d lab.Driving) (*shot, error) {
	seen := &shot{}
	err := c.armed(ctx, d.Measured, func(sets map[lab.HostName]set) error {
		if err := c.around(ctx, r, seen, observe.BeforeRun); err != nil {
			return err
		}
		if anyDrifted(seen.knobs) {
			return errDrifted
		}
		return c.fireWatched(ctx, r.serving, p, sets, seen)
	})
	if err == nil {
		err = c.around(ctx, r, seen, observe.AfterRun)
	}
	return seen, err
}

// clock reads the clocks of all hosts, again for every server: they drift. What they may be wrong by is kept with the
// campaign's events. Round 0 is none.
func (c *campaign) clock(ctx context.Context, round int) error {
	names := c.names()
	clocks := make([]lab.Clock, len(names))
	err := each(names, func(name lab.HostName) (err error) {
		clocks[slices.Index(names, name)], err = c.hosts[name].Clock(ctx)
		return err
	})
	if err != nil {
		return fmt.Errorf("read the clocks: %w", err)
	}
	doubts := make([]string, len(names))
	for i, name := range names {
		c.clocks[name] = clocks[i]
		doubts[i] = fmt.Sprintf("%s ±%.3f ms", name, clocks[i].UncertaintyS*1000)
	}
	if len(names) == 1 {
		return nil // nothing is compared with it
	}
	return c.say(ctx, lab.Event{Kind: lab.EventClock, Round: round, Text: strings.Join(doubts, ", ")})
}

// lead is how far ahead the common start is set.
func (c *campaign) lead() time.Duration {
	worst := 0.0
	for _, clock := range c.clocks {
		worst = max(worst, clock.UncertaintyS)
	}
	return fireLead + time.Duration(10*worst*float64(time.Second))
}

// involved are the hosts that a run is watched on: those of its server first, then its load hosts.
func (c *campaign) involved(s lab.Serving) []lab.HostName {
	hosts := hostsOf(s)
	for _, name := range c.names() {
		if !slices.Contains(hosts, name) && c.has(name, lab.RoleLoad) {
			hosts = append(hosts, name)
		}
	}
	return hosts
}

// around reads yardstick, knobs and one sample on every host involved, before (in this order) or after (in reverse:
// the sample stands next to the run), and meanwhile the knobs of all other hosts.
func (c *campaign) around(ctx context.Context, r *running, seen *shot, when string) error {
	values, before := map[lab.HostName][]lab.Value{}, len(seen.samples)
	involved := c.involved(r.serving)
	timed := c.plan.YardstickHosts(involved)
	group, ctx := errgroup.WithContext(ctx)
	for _, name := range c.names() {
		read := []func() error{func() error { return c.knobs(ctx, name, seen, values) }}
		if slices.Contains(involved, name) {
			read = []func() error{
				func() error { return c.yardstick(ctx, name, timed, seen, when == observe.AfterRun) },
				read[0],
				func() error {
					return c.sample(ctx, c.watchOf(name, r.serving, lab.Watch{Once: true}), name, seen)
				},
			}
		}
		if when == observe.AfterRun {
			slices.Reverse(read)
		}
		group.Go(func() error { return inOrder(read) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	seen.knobs = slices.Concat(seen.knobs, c.readings(values, when), r.readings(c.complete(r.serving), seen.samples[before:], when))
	return nil
}

// inOrder does one thing after the other until one fails.
func inOrder(all []func() error) error {
	for _, do := range all {
		if err := do(); err != nil {
			return err
		}
	}
	return nil
}

// yardstick takes the yardstick of a host, if it is one of those timed: hosts on the same CPUs would disturb each other.
func (c *campaign) yardstick(ctx context.Context, name lab.HostName, timed []lab.HostName, seen *shot, after bool) error {
	if !slices.Contains(timed, name) {
		return nil
	}
	y, err := c.hosts[name].Yardstick(ctx)
	y.Host, y.After = name, after
	seen.mu.Lock()
	defer seen.mu.Unlock()
	seen.yards = append(seen.yards, y)
	return err
}

// knobs reads every knob that the plan sets on the host.
func (c *campaign) knobs(ctx context.Context, name lab.HostName, seen *shot, values map[lab.HostName][]lab.Value) error {
	asked := c.plan.Original.Settings[name]
	if len(asked) == 0 {
		return nil
	}
	read, err := c.hosts[name].Read(ctx, asked)
	if err == nil && len(read) != len(asked) {
		err = fmt.Errorf("%s: read: %d values of %d knobs", name, len(read), len(asked))
	}
	seen.mu.Lock()
	defer seen.mu.Unlock()
	values[name] = read
	return err
}

// watchOf completes a watch for a host: server things on the hosts of the server, load processes on load hosts. On the kernel
// of a pinned server the monitors keep off its CPUs.
func (c *campaign) watchOf(name lab.HostName, s lab.Serving, w lab.Watch) lab.Watch {
	w.Load = c.has(name, lab.RoleLoad)
	for at := &s; at != nil; at = at.Upstream {
		if name == at.Target {
			w = watchServer(*at, w)
		}
		if c.plan.SameKernel(name, at.Target) {
			w.Avoid = append(slices.Clip(w.Avoid), at.CPUs...)
		}
	}
	return w
}

// watchServer completes a watch with a server and the place where it tells its requests.
func watchServer(s lab.Serving, w lab.Watch) lab.Watch {
	w.Server, w.StatusPort, w.Ports = true, s.StatusPort, []int{s.Port}
	if s.Count != nil {
		w.ServedBy, w.Port, w.TLS = s.Count, s.Port, s.TLS != nil
	}
	return w
}

// sample adds the samples of one watch.
func (c *campaign) sample(ctx context.Context, w lab.Watch, name lab.HostName, seen *shot) error {
	return c.hosts[name].Watch(ctx, w, func(s lab.Sample) {
		s.Host = name
		seen.mu.Lock()
		defer seen.mu.Unlock()
		seen.samples = append(seen.samples, s)
	})
}

// full reports whether every process of a timed run took its time: then the watch is at its end as well.
func full(p lab.LoadPoint, processes []lab.Process) bool {
	for _, process := range processes {
		if process.Ended.Sub(process.Released) < p.Duration.Duration {
			return false
		}
	}
	return p.Timed()
}

// watch samples every host involved on one grid from local time at, and calls lost when a host is. The function it returns
// waits for the end of the grid, or cuts the watching short. The samples of a timed run are held on the hosts until then.
func (c *campaign) watch(ctx context.Context, w watching, seen *shot, lost context.CancelCauseFunc) func(wait bool) error {
	ctx, cancel := context.WithCancel(ctx)
	group, ctx := errgroup.WithContext(ctx)
	interval := min(max(w.point.Duration.Duration/samplesPerRun, minInterval), maxInterval)
	for _, name := range c.involved(w.serving) {
		one := lab.Watch{Start: c.clocks[name].Instant(w.at), Interval: lab.Duration{Duration: interval}}
		if w.point.Timed() {
			one.Count, one.Held = int(w.point.Duration.Duration/interval)+1, true
		}
		one = c.watchOf(name, w.serving, one)
		group.Go(func() error {
			err := c.sample(ctx, one, name, seen)
			if err != nil {
				lost(err)
			}
			return err
		})
	}
	return func(wait bool) error {
		defer cancel()
		if !wait {
			cancel()
		}
		return group.Wait()
	}
}
