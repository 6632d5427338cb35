package hold

import (
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"ngxlab/lab"
)

const (
	// inFlight bounds the connections being opened by one holder: below the usual backlog of 511.
	inFlight = 256
	// openTimeout is for one connection, from its connect to held: SYNs lost to a full backlog come again after 1, 2,
	// 3 and 4 s (7 s before Linux 6.5).
	openTimeout = 10 * time.Second
	// tick is how often time-outs are looked at.
	tick = 100 * time.Millisecond
)

type state uint8

// The states of a descriptor.
const (
	none       state = iota
	connecting       // connect called
	asking           // request sent, answer not yet complete (idle)
	held
)

// loop opens and holds the connections of one holder in one epoll set, edge-triggered. Per connection it keeps one
// byte; a parser exists only while an answer is being read.
type loop struct {
	kind    lab.HoldKind
	family  int
	server  unix.Sockaddr
	request []byte
	ports   *ports

	epoll, wake int
	events      [inFlight]unix.EpollEvent
	buffer      [1 << 16]byte

	states  []state // by descriptor
	busy    map[int]time.Time
	answers map[int]*answer
	held    int

	answered, failed int   // since the last fill
	problem          error // the first
	looked           time.Time
	ended            atomic.Bool // no more demands will come: the parent is gone
}

func (l *loop) open() error {
	var err error
	if l.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return fmt.Errorf("hold: epoll: %w", err)
	}
	if l.wake, err = unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC); err != nil {
		return fmt.Errorf("hold: eventfd: %w", err)
	}
	l.busy, l.answers = map[int]time.Time{}, map[int]*answer{}
	e := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLET, Fd: int32(l.wake)}
	if err := unix.EpollCtl(l.epoll, unix.EPOLL_CTL_ADD, l.wake, &e); err != nil {
		return fmt.Errorf("hold: epoll: %w", err)
	}
	return nil
}

func (l *loop) close() {
	for fd, s := range l.states {
		if s != none {
			l.drop(fd)
		}
	}
	_, _ = unix.Close(l.epoll), unix.Close(l.wake)
}

// until gives the demands as they come, and keeps an eye on the connections in between. A demand is followed by a
// wake-up, so looking for one before each wait misses none.
func (l *loop) until(demands <-chan demand) iter.Seq[demand] {
	return func(yield func(demand) bool) {
		for {
			select {
			case d, ok := <-demands:
				if !ok || !yield(d) {
					return
				}
			default:
				l.turn(-1)
			}
		}
	}
}

// fill opens connections until n are held, each tried once, or closes the surplus. It counts those that the server
// closed since the call before.
func (l *loop) fill(n int) reply {
	l.turn(0)
	for fd := len(l.states) - 1; fd >= 0 && l.held > n; fd-- {
		if l.states[fd] == held {
			l.drop(fd)
			l.held--
		}
	}
	for left := n - l.held; (left > 0 || len(l.busy) > 0) && !l.ended.Load(); {
		left -= l.launch(left)
		l.turn(int(tick / time.Millisecond))
		l.expire(time.Now())
	}
	l.turn(0)
	r := reply{Open: l.held, Answered: l.answered, Failed: l.failed}
	if l.problem != nil {
		r.Error = l.problem.Error()
	}
	l.answered, l.failed, l.problem = 0, 0, nil
	return r
}

// launch begins up to so many connections, as many as may be in flight, and returns how many are dealt with: all of
// them when there is no use in going on.
func (l *loop) launch(most int) (n int) {
	for ; n < most && len(l.busy) < inFlight; n++ {
		err := l.connect()
		if errors.Is(err, unix.EMFILE) || errors.Is(err, errNoPort) || errors.Is(err, unix.EADDRNOTAVAIL) {
			l.fail(err, most-n)
			return most
		}
		if err != nil {
			l.fail(err, 1)
		}
	}
	return n
}

func (l *loop) fail(err error, n int) {
	if l.problem == nil {
		l.problem = err
	}
	l.failed += n
}

// tries bounds how often a connection is begun anew from another port: its own is free, but an older connection to
// this server from there is not yet forgotten.
const tries = 1024

// connect begins one connection.
func (l *loop) connect() error {
	var err error
	for range tries {
		var fd int
		if fd, err = l.begin(); err == nil {
			for fd >= len(l.states) {
				l.states = append(l.states, make([]state, 1024)...)
			}
			l.states[fd] = connecting
			l.busy[fd] = time.Now().Add(openTimeout)
			return nil
		}
		if !errors.Is(err, unix.EADDRNOTAVAIL) {
			return err
		}
	}
	return err
}

// begin makes a socket that connects. It is reset when closed, so that it leaves no TIME_WAIT behind on either side.
func (l *loop) begin() (fd int, err error) {
	fd, err = unix.Socket(l.family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("socket: %w", err)
	}
	defer func() {
		if err != nil {
			_ = unix.Close(fd)
		}
	}()
	if err := unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1}); err != nil {
		return fd, fmt.Errorf("linger: %w", err)
	}
	if err := l.ports.next(fd); err != nil {
		return fd, fmt.Errorf("bind: %w", err)
	}
	if err := unix.Connect(fd, l.server); err != nil && !errors.Is(err, unix.EINPROGRESS) {
		return fd, fmt.Errorf("connect: %w", err)
	}
	e := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | unix.EPOLLET, Fd: int32(fd)}
	if err := unix.EpollCtl(l.epoll, unix.EPOLL_CTL_ADD, fd, &e); err != nil {
		return fd, fmt.Errorf("epoll: %w", err)
	}
	return fd, nil
}

// turn waits for events, at most so many milliseconds (-1: for ever), and handles them.
func (l *loop) turn(milliseconds int) {
	for {
		n, err := unix.EpollWait(l.epoll, l.events[:], milliseconds)
		if err == unix.EINTR {
			continue
		}
		for _, e := range l.events[:max(n, 0)] {
			if fd := int(e.Fd); fd != l.wake {
				l.event(fd, e.Events)
			}
		}
		if n < len(l.events) {
			return
		}
		milliseconds = 0
	}
}

func (l *loop) event(fd int, events uint32) {
	if l.states[fd] == connecting && events&(unix.EPOLLOUT|unix.EPOLLERR|unix.EPOLLHUP) != 0 {
		if err := l.ask(fd); err != nil {
			l.lose(fd, err)
			return
		}
	}
	if l.states[fd] != none && events&(unix.EPOLLIN|unix.EPOLLRDHUP|unix.EPOLLERR|unix.EPOLLHUP) != 0 {
		if err := l.receive(fd); err != nil {
			l.lose(fd, err)
		}
	}
}

// ask sends the request. With it, an active connection is held; an idle one is when the answer was read.
func (l *loop) ask(fd int) error {
	n, err := unix.Write(fd, l.request)
	if err != nil {
		return fmt.Errorf("request: %w", err)
	}
	if n < len(l.request) {
		return fmt.Errorf("request: %d of %d bytes sent", n, len(l.request))
	}
	switch {
	case l.kind == lab.HoldIdle:
		l.states[fd] = asking
	case l.states[fd] == connecting:
		l.keep(fd)
	}
	return nil
}

func (l *loop) keep(fd int) {
	l.states[fd] = held
	l.held++
	delete(l.busy, fd)
}

// receive reads what there is; an error means that the connection is of no more use.
func (l *loop) receive(fd int) error {
	for {
		n, err := unix.Read(fd, l.buffer[:])
		switch {
		case err == unix.EAGAIN:
			return nil
		case err == unix.EINTR:
			continue
		case err != nil:
			return fmt.Errorf("response: %w", err)
		case n == 0:
			return errClosed
		}
		if err := l.read(fd, l.buffer[:n]); err != nil {
			return err
		}
		if n < len(l.buffer) {
			return nil // drained: more is another event, the end of the stream too
		}
	}
}

// read takes a part of an answer. An answer to an active connection is followed by the next request.
func (l *loop) read(fd int, part []byte) error {
	if l.kind == lab.HoldIdle && l.states[fd] == held {
		return nil // nothing was asked; the server is about to close
	}
	a := l.answers[fd]
	if a == nil {
		a = &answer{}
		l.answers[fd] = a
	}
	done, err := a.feed(part)
	if err != nil || !done {
		return err
	}
	delete(l.answers, fd)
	l.answered++
	if l.kind == lab.HoldActive {
		return l.ask(fd)
	}
	l.keep(fd)
	return nil
}

// lose closes a connection that failed or was closed by the server.
func (l *loop) lose(fd int, err error) {
	if l.states[fd] == held {
		l.held--
	}
	l.drop(fd)
	l.fail(err, 1)
}

func (l *loop) drop(fd int) {
	_ = unix.Close(fd)
	l.states[fd] = none
	delete(l.busy, fd)
	delete(l.answers, fd)
}

// expire gives up the connections that took too long to open.
func (l *loop) expire(now time.Time) {
	if now.Sub(l.looked) < tick {
		return
	}
	l.looked = now
	for fd, end := range l.busy {
		if now.After(end) {
			l.lose(fd, fmt.Errorf("not open after %v", openTimeout))
		}
	}
}
