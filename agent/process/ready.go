package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"
)

// ready waits for the first answer, then verifies everything else, within the deadline.
func (sv *serving) ready(ctx context.Context) error {
	limit := sv.asked.Deadline.Duration
	if sv.asked.Command != nil {
		limit = sv.asked.Command.Within.Duration
	}
	if limit <= 0 {
		limit = serverDeadline
	}
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var err error
	for _, step := range []func(context.Context) error{sv.settled, sv.listening, sv.answering, sv.shaken, sv.quick, sv.probeAll, sv.counted, sv.readBack, sv.steady} {
		if err = step(bounded); err != nil {
			break
		}
	}
	if vanished(err) { // its end is known a moment later
		select {
		case <-sv.gone:
		case <-time.After(2 * pipeGrace):
		}
	}
	select {
	case <-sv.gone:
		return sv.died()
	default:
	}
	if bounded.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("not ready within %v: %w%s", limit, err, sv.logEnd())
	}
	return err
}

// listening polls until all ports accept.
func (sv *serving) listening(ctx context.Context) error {
	return sv.until(ctx, serverPoll, func() error {
		err := sv.accepted(ctx)
		if sv.asked.StatusPort > 0 {
			err = errors.Join(err, accepts(ctx, sv.asked.StatusPort))
		}
		return err
	})
}

// accepted says when nothing listens on the site's port.
func (sv *serving) accepted(ctx context.Context) error {
	if err := accepts(ctx, sv.asked.Port); err != nil {
		return fmt.Errorf("process %d runs, and nothing answers on port %d: %w", sv.pid, sv.asked.Port, err)
	}
	return nil
}

// until polls until there is no error any more; the last is returned when ctx ends, and died when the server has.
func (sv *serving) until(ctx context.Context, every time.Duration, try func() error) error {
	ticks := time.NewTicker(every)
	defer ticks.Stop()
	for {
		err := try()
		if err == nil {
			return nil
		}
		gone := sv.gone
		if sv.leaving() {
			gone = nil
		}
		select {
		case <-gone:
			return sv.died()
		case <-ctx.Done():
			return err
		case <-ticks.C:
		}
	}
}

// steady finds workers that end and are started again for ever: their ports accept all the same.
func (sv *serving) steady(context.Context) error {
	text, err := os.ReadFile(filepath.Join(sv.prefix, errorLog))
	if err == nil && endedWorker.Match(text) {
		return fmt.Errorf("its workers end and are started again%s", sv.logEnd())
	}
	return nil
}

// endedWorker is what nginx's master says of a worker that ended by itself (ngx_process_get_status, nginx 1.22).
var endedWorker = regexp.MustCompile(`\[(alert|notice)\] .* process \d+ exited (on signal|with fatal code|with code [1-9])`)
