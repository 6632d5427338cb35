package process

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"ngxlab/lab"
)

const (
	armedFor  = 2 * time.Minute // a set not fired within this time is ended
	fireAhead = time.Minute     // an instant further ahead comes from a wrong clock
)

// armedSet is the children of one Arm.
type armedSet struct {
	children []*child
	expire   *time.Timer
}

// Arm starts one small waiting process per command, in the commands' order. A set that is not fired within two
// minutes is ended. On an error nothing of it is left waiting. Without commands it ends every set that still waits.
func (r *Runner) Arm(ctx context.Context, cs []lab.Command) (lab.Armed, error) {
	if len(cs) == 0 {
		return lab.Armed{}, r.disarm()
	}
	set := &armedSet{}
	for _, c := range cs {
		ch, err := r.prepare(c, nil)
		if err != nil {
			return lab.Armed{}, errors.Join(err, set.abandon())
		}
		set.children = append(set.children, ch)
	}
	armed := lab.Armed{PIDs: make([]int, len(cs))}
	for i, ch := range set.children {
		if err := ch.ready(ctx); err != nil {
			return lab.Armed{}, errors.Join(err, set.abandon())
		}
		armed.PIDs[i] = ch.pid
	}
	armed.ID = r.keep(set)
	return armed, nil
}

// keep files the set under a new name.
func (r *Runner) keep(set *armedSet) (id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fired++
	id = strconv.Itoa(r.fired)
	if r.armed == nil {
		r.armed = map[string]*armedSet{}
	}
	r.armed[id] = set
	for _, ch := range set.children {
		ch.load = true
	}
	set.expire = time.AfterFunc(armedFor, func() {
		if late, err := r.take(id); err == nil {
			_ = late.abandon() // nobody waits for an answer; what is left in Dir/work goes with the next claim
		}
	})
	return id
}

// disarm ends the sets that wait.
func (r *Runner) disarm() error {
	r.mu.Lock()
	sets := r.armed
	r.armed = nil
	r.mu.Unlock()
	var errs []error
	for _, set := range sets {
		set.expire.Stop()
		errs = append(errs, set.abandon())
	}
	return errors.Join(errs...)
}

// take removes a set, so that it is fired or ended once.
func (r *Runner) take(id string) (*armedSet, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	set, ok := r.armed[id]
	if !ok {
		return nil, fmt.Errorf("fire set %q: it is not armed (fired before, or not fired within %v)", id, armedFor)
	}
	delete(r.armed, id)
	set.expire.Stop()
	return set, nil
}

func (s *armedSet) abandon() error {
	for _, ch := range s.children {
		ch.kill()
	}
	var errs []error
	for _, ch := range s.children {
		errs = append(errs, ch.abandon())
	}
	return errors.Join(errs...)
}

// Fire lets the processes of a set go at one instant of this host's clock, at once when it is past, and returns when all
// have ended, in the order of their commands. How they ended is in the Processes; the error tells which commands could
// not be started, or that ctx ended: all are then killed.
func (r *Runner) Fire(ctx context.Context, a lab.Armed, at lab.Instant) ([]lab.Process, error) {
	set, err := r.take(a.ID)
	if err != nil {
		return nil, err
	}
	if ahead := at.Sub(Now()); ahead > fireAhead {
		return nil, errors.Join(fmt.Errorf("fire set %q: its instant lies %v ahead, more than %v", a.ID, ahead, fireAhead), set.abandon())
	}
	errs := make([]error, len(set.children))
	for i, ch := range set.children {
		errs[i] = ch.release(at)
	}
	ps := make([]lab.Process, len(set.children))
	var wg sync.WaitGroup
	for i, ch := range set.children {
		wg.Go(func() { ps[i], errs[i] = ch.fired(ctx, errs[i]) })
	}
	wg.Wait()
	return ps, errors.Join(errs...)
}

// fired sees a released child to its end.
func (c *child) fired(ctx context.Context, err error) (lab.Process, error) {
	if err == nil {
		err = c.begun(ctx)
	}
	if err != nil {
		err = errors.Join(err, c.abandon())
		return c.process, err
	}
	p, err := c.finish(ctx)
	return p, errors.Join(err, c.clean())
}
