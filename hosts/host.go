// Package hosts reaches the hosts of a study: a link to an agent, and typed calls over it.
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

// Link is a connection to the standard input and output of an agent on a host, and a way to put files there.
type Link interface {
	io.ReadWriteCloser
	// Put writes a file on the host, whole or not at all.
	Put(ctx context.Context, path string, mode fs.FileMode, r io.Reader) error
}

// explainer is a link that can tell more about its end, e.g. what the agent printed on standard error.
type explainer interface{ Explain() string }

// Host is one host with an agent that answers. Its methods may be called at the same time. Errors name the host; those
// that the agent sent hold a *wire.Error, whose Kind tells those apart that somebody acts on.
type Host struct {
	name    lab.HostName
	address string
	conn    *conn
	session *yamux.Session
	client  *http.Client
	running sync.WaitGroup // servers kept

	mu    sync.Mutex
	armed map[string]time.Duration // set → longest deadline of its commands
}

// attach greets the agent on the far end of link, which must speak this program's protocol and have one of the hashes;
// none is any. On an error the link is closed.
func attach(ctx context.Context, link Link, name lab.HostName, hashes []string) (*Host, error) {
	c := &conn{Link: link}
	if err := greet(ctx, c, hashes); err != nil {
		return nil, fmt.Errorf("%s: %w", name, errors.Join(err, c.Close()))
	}
	session, err := yamux.Client(c, wire.Session(complaints{c}))
	if err != nil {
		return nil, fmt.Errorf("%s: start the session: %w", name, errors.Join(err, c.Close()))
	}
	h := &Host{name: name, conn: c, session: session, armed: map[string]time.Duration{}}
	h.client = &http.Client{Transport: &http.Transport{
		DialContext:         func(context.Context, string, string) (net.Conn, error) { return session.Open() },
		DisableCompression:  true,
		MaxIdleConnsPerHost: 2, // each costs goroutines; calls come one or two at a time
	}}
	return h, nil
}

// greet reads the agent's greeting, for as long as ctx allows.
func greet(ctx context.Context, c *conn, hashes []string) error {
	stop := context.AfterFunc(ctx, func() { _ = c.Close() }) // ends the read
	g, noise, err := wire.ReadGreeting(c)
	if !stop() {
		err = errors.Join(ctx.Err(), err)
	}
	if err != nil {
		return fmt.Errorf("wait for the agent: %w%s%s", err, said(noise), c.explain())
	}
	if g.Protocol != wire.Protocol {
		return fmt.Errorf("the agent speaks protocol %d, this program %d", g.Protocol, wire.Protocol)
	}
	for _, hash := range hashes {
		if hash == g.Hash {
			return nil
		}
	}
	if len(hashes) > 0 {
		return fmt.Errorf("the agent is another program than the one sent: its hash is %s, not %s", g.Hash, strings.Join(hashes, " or "))
	}
	return nil
}

// said is what else came over a link, for an error message.
func said(noise []byte) string {
	text := strings.TrimFunc(string(noise), func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) })
	if text == "" {
		return ""
	}
	return fmt.Sprintf("; the host said %.1000q", text)
}

// Name is the host's name in the experiment.
func (h *Host) Name() lab.HostName { return h.name }

// Put writes a file on the host.
func (h *Host) Put(ctx context.Context, path string, mode fs.FileMode, r io.Reader) error {
	if err := h.conn.Put(ctx, path, mode, r); err != nil {
		return fmt.Errorf("%s: put %s: %w", h.name, path, err)
	}
	return nil
}

// Close ends the session: the agent ends everything it started, frees the host's lock, and ends itself. Calls still
// under way return errors.
func (h *Host) Close() error {
	_ = h.session.Close() // closes conn, whose error is kept
	h.running.Wait()
	h.client.CloseIdleConnections()
	if err := h.conn.Close(); err != nil {
		return fmt.Errorf("%s: close the link: %w", h.name, err)
	}
	return nil
}

// conn is the link as the session uses it: closed once, with a memory of what came last, for messages.
type conn struct {
	Link
	once sync.Once
	err  error

	mu   sync.Mutex
	last []byte   // the beginning of the latest read
	log  []string // the session's complaints, oldest first, not endless
}

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Link.Read(p)
	if n > 0 {
		c.mu.Lock()
		c.last = append(c.last[:0], p[:min(n, 512)]...)
		c.mu.Unlock()
	}
	return n, err
}

func (c *conn) Close() error {
	c.once.Do(func() { c.err = c.Link.Close() })
	return c.err
}

// complaints is where the session writes its log.
type complaints struct{ conn *conn }

func (c complaints) Write(p []byte) (int, error) {
	c.conn.mu.Lock()
	defer c.conn.mu.Unlock()
	if len(c.conn.log) < 1000 {
		c.conn.log = append(c.conn.log, strings.TrimSpace(string(p)))
	}
	return len(p), nil
}

func (c *conn) explain() string {
	if e, ok := c.Link.(explainer); ok {
		if text := e.Explain(); text != "" {
			return "; " + text
		}
	}
	return ""
}

// gone says why the session ended.
func (h *Host) gone() error {
	_ = h.session.Close() // waits until it has ended, and said why
	h.conn.mu.Lock()
	defer h.conn.mu.Unlock()
	text := ""
	if len(h.conn.log) > 0 {
		_, why, _ := strings.Cut(h.conn.log[0], "yamux: ")
		text = ": " + why
	}
	if strings.Contains(strings.Join(h.conn.log, " "), "Invalid protocol version") { // something else wrote into the stream
		text += said(h.conn.last)
	}
	return fmt.Errorf("the link to the agent is gone%s%s", text, h.conn.explain())
}
