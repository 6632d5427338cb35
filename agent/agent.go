// Package agent does on a host what the program asks: it serves HTTP over a yamux session on a pipe, holds the host's
// lock, and makes sure that nothing it started outlives it.
package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/hashicorp/yamux"

	"ngxlab/agent/process"
	"ngxlab/agent/wire"
)

// Options of Serve.
type Options struct {
	Dir  string           // state directory: journal, builds, work, lock
	Exe  string           // the agent's binary, to be started again as a waiting process or a holder; "" = /proc/self/exe
	Hash string           // SHA-256 of the binary, for greeting and facts
	Nice int              // nice value of the commands
	Lock *os.File         // the lock file, opened by a guard that keeps it open too; nil = Serve opens it
	Wall func() time.Time // the wall clock that the program is told of; nil = time.Now
}

// How long requests in work may take to notice that the session is over, before and after what they run is killed: a link
// that is cut is noticed within four seconds, and everything shall be gone within five.
const (
	leave = 500 * time.Millisecond
	drain = 2 * time.Second
)

// Serve greets, and answers requests on conn until it closes, falls silent for 4 s or ctx ends. Then it ends everything
// it started, frees the lock, and closes conn. The end of the session is no error.
func Serve(ctx context.Context, conn io.ReadWriteCloser, o Options) error {
	lock, err := openLock(o)
	if err != nil {
		return errors.Join(err, conn.Close())
	}
	p, err := newParts(o)
	if err != nil {
		return errors.Join(err, lock.close(), conn.Close())
	}
	s := &session{parts: p, lock: lock, dir: o.Dir}
	err = s.serve(ctx, conn, o.Hash)
	return errors.Join(err, p.end(), lock.close())
}

// session is one connection to the agent.
type session struct {
	parts    parts
	lock     *hostLock
	dir      string
	requests sync.WaitGroup
	installs sync.WaitGroup // those of the requests that run a package manager
}

func (s *session) serve(ctx context.Context, conn io.ReadWriteCloser, hash string) error {
	s.sweep()
	if err := wire.WriteGreeting(conn, wire.Greeting{Protocol: wire.Protocol, Hash: hash}); err != nil {
		return errors.Join(fmt.Errorf("greet: %w", err), conn.Close())
	}
	mux, err := yamux.Server(conn, wire.Session(io.Discard))
	if err != nil {
		return errors.Join(fmt.Errorf("start the session: %w", err), conn.Close())
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	server := &http.Server{
		Handler:     s.routes(),
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(mux) // ends with the session, which is no error
	}()
	select {
	case <-ctx.Done():
	case <-mux.CloseChan():
	}
	cancel()
	_ = mux.Close()    // it closes conn; that the other end is gone already is no error
	_ = server.Close() // as above
	<-ended
	if s.wait(leave) == nil {
		return nil
	}
	err = s.parts.end() // a server, for one, may take longer to stop
	s.installs.Wait()   // a package manager ends by itself
	return errors.Join(err, s.wait(drain))
}

// wait waits for the requests in work, whose context has ended, to clean up.
func (s *session) wait(limit time.Duration) error {
	idle := make(chan struct{})
	go func() {
		s.requests.Wait()
		close(idle)
	}()
	select {
	case <-idle:
		return nil
	case <-time.After(limit):
		return fmt.Errorf("end the session: requests were still in work after %v", limit)
	}
}

// sweep ends what an earlier agent left behind, unless a living one holds the host. Its failure must not keep anyone
// from reading or restoring: a claim does the same again, and fails.
func (s *session) sweep() {
	_ = s.lock.during(wire.Claim{Owner: "an agent that cleans up"}, func() error { return process.KillSurvivors(s.dir) })
}
