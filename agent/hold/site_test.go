package hold

import (
	"net"
	"net/http"
	"sync"
	"testing"
	"time"
)

// site is a server that knows what its connections are doing.
type site struct {
	t       *testing.T
	address string
	mu      sync.Mutex
	conns   map[net.Conn]http.ConnState
	opened  int
	changed chan struct{}
}

func serve(t *testing.T, listen string, handler http.HandlerFunc) *site {
	t.Helper()
	l, err := net.Listen("tcp", listen)
	if err != nil {
		t.Skipf("listen on %s: %v", listen, err)
	}
	s := &site{t: t, address: l.Addr().String(), conns: map[net.Conn]http.ConnState{}, changed: make(chan struct{}, 1)}
	srv := &http.Server{Handler: handler, ConnState: s.note}
	go func() { _ = srv.Serve(l) }()
	t.Cleanup(func() { _ = srv.Close() })
	return s
}

func (s *site) note(c net.Conn, state http.ConnState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch state {
	case http.StateClosed, http.StateHijacked:
		delete(s.conns, c)
	case http.StateNew:
		s.opened++
		s.conns[c] = state
	default:
		s.conns[c] = state
	}
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// await waits until n connections are in the state, and no others.
func (s *site) await(state http.ConnState, n int) {
	s.t.Helper()
	end := time.After(20 * time.Second)
	for {
		s.mu.Lock()
		all, in := len(s.conns), 0
		for _, c := range s.conns {
			if c == state {
				in++
			}
		}
		s.mu.Unlock()
		if in == n && all == n {
			return
		}
		select {
		case <-s.changed:
		case <-end:
			s.t.Fatalf("%d connections, %d of them %v; want %d", all, in, state, n)
		}
	}
}
