package conduct

import (
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"ngxlab/lab"
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
	processes []lab.Process
	samples   []lab.Sample // by host: before the release, on the grid, after the end
	yards     []lab.Yardstick
	before    map[lab.HostName][]lab.Value // of the host knobs of the plan
	after     map[lab.HostName][]lab.Value
	mu        sync.Mutex
}

// shoot arms the load hosts, reads everything before, lets all go at one instant while watching, and reads
// everything after.
func (c *campaign) shoot(ctx context.Context, target lab.HostName, s lab.Serving, p lab.LoadPoint, d lab.Driving) (*shot, error) {
	armed, err := c.arm(ctx, d.Measured)
	if err != nil {
		return nil, err
	}
	seen := &shot{}
	if seen.before, err = c.around(ctx, target, s, seen, false); err != nil {
		return nil, err
	}
	at := time.Now().Add(c.lead())
	seen.began = at
	stop := c.watch(ctx, target, s, p, at, seen)
	seen.processes, err = c.fire(ctx, armed, at)
	watchErr := stop(err == nil && full(p, seen.processes))
	if err != nil {
		return nil, err
	}
	if watchErr != nil {
		return nil, watchErr
	}
	seen.after, err = c.around(ctx, target, s, seen, true)
	return seen, err
}

// clock reads the clocks of all hosts.
func (c *campaign) clock(ctx context.Context) error {
	for _, name := range c.names() {
		clock, err := c.hosts[name].Clock(ctx)
		if err != nil {
			return err
		}
		c.clocks[name] = clock
	}
	return nil
}

// lead is how far ahead the common start is set.
func (c *campaign) lead() time.Duration {
	worst := 0.0
	for _, clock := range c.clocks {
		worst = max(worst, clock.UncertaintyS)
	}
	return fireLead + time.Duration(10*worst*float64(time.Second))
}

// arm starts the waiting processes on every load host.
func (c *campaign) arm(ctx context.Context, commands map[lab.HostName][]lab.Command) (map[lab.HostName]lab.Armed, error) {
	armed := map[lab.HostName]lab.Armed{}
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	for name, list := range commands {
		group.Go(func() error {
			a, err := c.hosts[name].Arm(ctx, c.ours(list))
			mu.Lock()
			defer mu.Unlock()
			armed[name] = a
			return err
		})
	}
	return armed, group.Wait()
}

// ours marks commands with the campaign.
func (c *campaign) ours(list []lab.Command) []lab.Command {
	marked := make([]lab.Command, len(list))
	for i, command := range list {
		command.Campaign = c.id
		marked[i] = command
	}
	return marked
}

// fire lets every armed process go at local time at and waits for all of them.
func (c *campaign) fire(ctx context.Context, armed map[lab.HostName]lab.Armed, at time.Time) ([]lab.Process, error) {
	var all []lab.Process
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	for name, a := range armed {
		group.Go(func() error {
			processes, err := c.hosts[name].Fire(ctx, a, c.clocks[name].Instant(at))
			mu.Lock()
			defer mu.Unlock()
			for _, p := range processes {
				p.Host = name
				all = append(all, p)
			}
			return err
		})
	}
	return all, group.Wait()
}

// involved are the hosts that a run is watched on: the target first, then its load hosts.
func (c *campaign) involved(target lab.HostName) []lab.HostName {
	hosts := []lab.HostName{target}
	for _, name := range c.names() {
		if name != target && c.has(name, lab.RoleLoad) {
			hosts = append(hosts, name)
		}
	}
	return hosts
}

// around reads yardstick, knobs and one sample on every host involved, before (in this order) or after (in reverse:
// the sample stands next to the run).
func (c *campaign) around(ctx context.Context, target lab.HostName, s lab.Serving, seen *shot, after bool) (map[lab.HostName][]lab.Value, error) {
	values := map[lab.HostName][]lab.Value{}
	group, ctx := errgroup.WithContext(ctx)
	for _, name := range c.involved(target) {
		read := []func() error{
			func() error { return c.yardstick(ctx, name, seen, after) },
			func() error { return c.knobs(ctx, name, seen, values) },
			func() error { return c.sample(ctx, c.watchOf(name, target, s, lab.Watch{Once: true}), name, seen) },
		}
		if after {
			slices.Reverse(read)
		}
		group.Go(func() error { return inOrder(read) })
	}
	return values, group.Wait()
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

func (c *campaign) yardstick(ctx context.Context, name lab.HostName, seen *shot, after bool) error {
	y, err := c.hosts[name].Yardstick(ctx)
	y.Host, y.After = name, after
	seen.mu.Lock()
	defer seen.mu.Unlock()
	seen.yards = append(seen.yards, y)
	return err
}

// knobs reads every knob that the plan sets on the host.
func (c *campaign) knobs(ctx context.Context, name lab.HostName, seen *shot, values map[lab.HostName][]lab.Value) error {
	ids := c.knobIDs(name)
	if len(ids) == 0 {
		return nil
	}
	read, err := c.hosts[name].Read(ctx, ids)
	seen.mu.Lock()
	defer seen.mu.Unlock()
	values[name] = read
	return err
}

// knobIDs are the knobs that the plan sets on the host itself, sorted.
func (c *campaign) knobIDs(name lab.HostName) []lab.KnobID {
	var ids []lab.KnobID
	for _, s := range c.plan.Original.Settings[name] {
		ids = append(ids, s.Knob)
	}
	return ids
}

// watchOf completes a watch for a host: server things on the target, load processes on load hosts.
func (c *campaign) watchOf(name, target lab.HostName, s lab.Serving, w lab.Watch) lab.Watch {
	w.Load = c.has(name, lab.RoleLoad)
	if name == target {
		w.Server, w.StatusPort, w.Ports, w.Avoid = true, s.StatusPort, []int{s.Port}, s.CPUs
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

// watch samples every host involved on one grid from local time at. The function it returns waits for the end of the
// grid, or cuts the watching short. The samples of a timed run are held on the hosts until then.
func (c *campaign) watch(ctx context.Context, target lab.HostName, s lab.Serving, p lab.LoadPoint, at time.Time, seen *shot) func(wait bool) error {
	ctx, cancel := context.WithCancel(ctx)
	group, ctx := errgroup.WithContext(ctx)
	interval := min(max(p.Duration.Duration/samplesPerRun, minInterval), maxInterval)
	for _, name := range c.involved(target) {
		w := lab.Watch{Start: c.clocks[name].Instant(at), Interval: lab.Duration{Duration: interval}}
		if p.Timed() {
			w.Count, w.Held = int(p.Duration.Duration/interval)+1, true
		}
		w = c.watchOf(name, target, s, w)
		group.Go(func() error { return c.sample(ctx, w, name, seen) })
	}
	return func(wait bool) error {
		defer cancel()
		if !wait {
			cancel()
		}
		return group.Wait()
	}
}
