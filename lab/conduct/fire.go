package conduct

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"ngxlab/lab"
)

// set is the armed processes of one host.
type set struct {
	lab.Armed
	longest time.Duration // deadline of its commands
}

// armed arms the load hosts and hands what waits there to do. When either fails, nothing is left waiting.
func (c *campaign) armed(ctx context.Context, commands map[lab.HostName][]lab.Command, do func(map[lab.HostName]set) error) error {
	sets, err := c.arm(ctx, commands)
	if err == nil {
		err = do(sets)
	}
	if err != nil {
		c.disarm(ctx, commands)
	}
	return err
}

// arm starts the waiting processes on every load host.
func (c *campaign) arm(ctx context.Context, commands map[lab.HostName][]lab.Command) (map[lab.HostName]set, error) {
	sets := map[lab.HostName]set{}
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	for name, list := range commands {
		s := set{}
		for _, command := range list {
			s.longest = max(s.longest, command.Deadline.Duration)
		}
		group.Go(func() (err error) {
			s.Armed, err = c.hosts[name].Arm(ctx, c.ours(list))
			mu.Lock()
			defer mu.Unlock()
			sets[name] = s
			return err
		})
	}
	return sets, group.Wait()
}

// disarm ends what still waits on the load hosts, also when the campaign was cancelled. A lost host does it by itself.
func (c *campaign) disarm(ctx context.Context, commands map[lab.HostName][]lab.Command) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	var all sync.WaitGroup
	for name := range commands {
		all.Go(func() {
			if _, err := c.hosts[name].Arm(ctx, nil); err != nil && !errors.Is(err, lab.ErrLost) {
				c.sayAnyway(ctx, lab.Event{Kind: lab.EventProblem, Host: name, Text: "end what waits to be started: " + err.Error()})
			}
		})
	}
	all.Wait()
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

// fire lets every armed process go at local time at and waits for all of them, as long as their deadlines allow.
func (c *campaign) fire(ctx context.Context, sets map[lab.HostName]set, at time.Time) ([]lab.Process, error) {
	var all []lab.Process
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	for name, s := range sets {
		group.Go(func() error {
			limit := time.Until(at) + s.longest + endBound
			processes, err := within(ctx, name, "fire", limit, func(ctx context.Context) ([]lab.Process, error) {
				return c.hosts[name].Fire(ctx, s.Armed, c.clocks[name].Instant(at))
			})
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

// watching is what a run is watched for.
type watching struct {
	serving lab.Serving
	point   lab.LoadPoint
	at      time.Time // local, of the common start
}

// fireWatched fires at one instant while watching. A host that is lost meanwhile ends it on all.
func (c *campaign) fireWatched(ctx context.Context, s lab.Serving, p lab.LoadPoint, sets map[lab.HostName]set, seen *shot) error {
	w := watching{serving: s, point: p, at: time.Now().Add(c.lead())}
	seen.began = w.at
	flying, lost := context.WithCancelCause(ctx)
	defer lost(nil)
	stop := c.watch(ctx, w, seen, lost)
	processes, err := c.fire(flying, sets, w.at)
	seen.processes, seen.ended = processes, time.Now()
	watchErr := stop(err == nil && full(p, processes))
	if watchErr != nil && ctx.Err() == nil {
		return watchErr // it ended the processes too
	}
	return cmp.Or(err, watchErr)
}
