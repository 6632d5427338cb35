// Package hosts reaches the hosts of a study: a way into each, an agent on its far end, and typed calls to it.
package hosts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/hashicorp/yamux"

	"ngxlab/agent/wire"
	"ngxlab/lab"
)

// Host is one host with an agent that answers. Its methods may be called at the same time. Errors name the host; those
// that the agent sent hold a *wire.Error, whose Kind tells those apart that somebody acts on.
type Host struct {
	name    lab.HostName
	address string
	door    Door
	conn    *conn
	session *yamux.Session
	client  *http.Client
	running sync.WaitGroup // servers kept
	closing sync.Once
	closed  error

	mu    sync.Mutex
	armed map[string]time.Duration // set → longest deadline of its commands
}

// attach starts a session with an agent that has greeted. On an error c is closed.
func attach(c *conn, name lab.HostName) (*Host, error) {
	session, err := yamux.Client(c, wire.Session(complaints{c}))
	if err != nil {
		return nil, fmt.Errorf("start the session: %w", errors.Join(err, c.Close()))
	}
	h := &Host{name: name, conn: c, session: session, armed: map[string]time.Duration{}}
	h.client = &http.Client{Transport: &http.Transport{
		DialContext:         func(context.Context, string, string) (net.Conn, error) { return session.Open() },
		DisableCompression:  true,
		MaxIdleConnsPerHost: 2, // each costs goroutines; calls come one or two at a time
	}}
	return h, nil
}

// said is what else came over a link, for an error message.
func said(noise []byte) string {
	text := strings.TrimFunc(string(noise), func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) })
	if text == "" {
		return ""
	}
	return fmt.Sprintf("; the host said %q", brief(text))
}

// Name is the host's name in the experiment.
func (h *Host) Name() lab.HostName { return h.name }

// Put writes a file on the host.
func (h *Host) Put(ctx context.Context, path string, mode fs.FileMode, r io.Reader) error {
	if err := h.door.Put(ctx, path, mode, r); err != nil {
		return fmt.Errorf("%s: put %s: %w", h.name, path, err)
	}
	return nil
}

// Close ends the session: the agent ends everything it started, frees the host's lock, and ends itself. Calls still
// under way return errors. It closes the door, and returns the same again when called again.
func (h *Host) Close() error {
	h.closing.Do(func() {
		err := errors.Join(h.conn.wait(), h.door.Close()) // nothing can block the session after this
		_ = h.session.Close()                             // closes conn, which is closed
		h.running.Wait()
		h.client.CloseIdleConnections()
		if err != nil {
			h.closed = fmt.Errorf("%s: close the link: %w", h.name, err)
		}
	})
	return h.closed
}

// gone says why the session ended, or ends one over a link that takes nothing any more (err); it is a lab.ErrLost.
func (h *Host) gone(err error) error {
	if silent(err) {
		h.conn.complain("yamux: " + err.Error())
	}
	limit, why := endOfProcess, h.conn.complaint()
	if why != "" {
		limit = endOfLink
	}
	return &lostError{"the link to the agent is gone" + why + h.conn.ending(limit)}
}

// silent reports that nothing could be sent for as long as a link may be silent.
func silent(err error) bool {
	return errors.Is(err, yamux.ErrConnectionWriteTimeout) || errors.Is(err, yamux.ErrTimeout)
}

// lostError is a lab.ErrLost in words of its own.
type lostError struct{ text string }

func (e *lostError) Error() string        { return e.text }
func (e *lostError) Is(target error) bool { return target == lab.ErrLost }
