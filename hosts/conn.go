package hosts

import (
	"io"
	"strings"
	"sync"
	"time"
)

// conn is a pipe as the session uses it: closed at once whatever the link does, with a memory of what came last, for
// messages.
type conn struct {
	pipe   Pipe
	in     *io.PipeReader
	once   sync.Once
	began  time.Time     // of closing
	closed chan struct{} // when the pipe is, too
	err    error         // of closing the pipe

	mu   sync.Mutex
	last []byte   // the beginning of the latest read
	log  []string // the session's complaints, oldest first, not endless
}

// newConn reads the pipe from now on: a read of a lost link may never return, and must hold up nobody.
func newConn(pipe Pipe) *conn {
	in, from := io.Pipe()
	go func() {
		_, err := io.Copy(from, pipe)
		_ = from.CloseWithError(err) // nil is io.EOF; never fails
	}()
	return &conn{pipe: pipe, in: in, closed: make(chan struct{})}
}

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	if n > 0 {
		c.mu.Lock()
		c.last = append(c.last[:0], p[:min(n, 512)]...)
		c.mu.Unlock()
	}
	return n, err
}

func (c *conn) Write(p []byte) (int, error) { return c.pipe.Write(p) }

// Close ends reads at once and begins to close the pipe; wait says how that went.
func (c *conn) Close() error {
	c.once.Do(func() {
		c.began = time.Now()
		_ = c.in.Close() // never fails
		go func() {
			c.err = c.pipe.Close()
			close(c.closed)
		}()
	})
	return nil
}

// wait closes, and returns when the pipe is closed.
func (c *conn) wait() error {
	_ = c.Close() // never fails
	<-c.closed
	return c.err
}

// How long after closing a message waits for what the pipe has to say of its end.
const (
	endOfProcess = 2 * time.Second        // of one that is ending by itself
	endOfLink    = 250 * time.Millisecond // of one that no longer answers
)

// ending closes, and says for a message how the process on the host ended, if it does within limit.
func (c *conn) ending(limit time.Duration) string {
	_ = c.Close() // never fails
	select {
	case <-c.closed:
	case <-time.After(time.Until(c.began.Add(limit))):
	}
	if text := c.pipe.Explain(); text != "" {
		return "; " + text
	}
	return ""
}

// complaints is where the session writes its log.
type complaints struct{ conn *conn }

func (c complaints) Write(p []byte) (int, error) {
	c.conn.complain(strings.TrimSpace(string(p)))
	return len(p), nil
}

func (c *conn) complain(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.log) < 1000 {
		c.log = append(c.log, text)
	}
}

// complaint is why the session gave up, for a message; "" when the link just ended.
func (c *conn) complaint() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.log) == 0 {
		return ""
	}
	_, why, _ := strings.Cut(c.log[0], "yamux: ")
	if strings.Contains(strings.Join(c.log, " "), "Invalid protocol version") { // something else wrote into the stream
		why += said(c.last)
	}
	return ": " + why
}
