package watch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"ngxlab/lab"
)

// now is the reading of this host's CLOCK_MONOTONIC.
func now() lab.Instant { return lab.Instant(clock(unix.CLOCK_MONOTONIC)) }

// wall is the wall clock in nanoseconds since 1970.
func (w *Watcher) wall() int64 {
	if w.Wall != nil {
		return w.Wall().UnixNano()
	}
	return clock(unix.CLOCK_REALTIME)
}

func clock(id int32) int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(id, &ts); err != nil {
		panic(err) // the clocks used here exist on every Linux
	}
	return ts.Nano()
}

// timer waits for instants of CLOCK_MONOTONIC. It is a timerfd in the runtime's poller: it takes no thread, and a
// late wake-up does not move the instants that follow.
type timer struct{ f *os.File }

func newTimer() (timer, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return timer{}, fmt.Errorf("timer: %w", err)
	}
	return timer{os.NewFile(uintptr(fd), "timer")}, nil
}

func (t timer) close() { _ = t.f.Close() } // nothing was written

// wait returns at the instant, at once when it has passed, or when ctx is cancelled.
func (t timer) wait(ctx context.Context, at lab.Instant) error {
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(max(int64(at), 1))}
	if err := control(t.f, func(fd int) error { return unix.TimerfdSettime(fd, unix.TFD_TIMER_ABSTIME, &spec, nil) }); err != nil {
		return fmt.Errorf("timer: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = t.f.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	var expirations [8]byte
	_, err := t.f.Read(expirations[:])
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("timer: %w", err)
	}
	return nil
}

// control runs do on the descriptor of a file without taking it out of the poller.
func control(f *os.File, do func(fd int) error) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var done error
	if err := raw.Control(func(fd uintptr) { done = do(int(fd)) }); err != nil {
		return err
	}
	return done
}
