package watch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	"ngxlab/lab"
)

// pollTimeout is how long a poll may take: on a saturated single worker it waits in the queue with the load.
const pollTimeout = time.Second

// maxStatus bounds the answer that is read; nginx sends about 250 bytes.
const maxStatus = 4096

// poller asks a server for its stub_status and counts how often. Every poll is one connection and one request of its
// own: with "Connection: close" the lab's part in accepts, handled and requests is the same number, Polls. A poll
// that times out counts as well, for the server may still take it up. Active includes the poll's own connection.
type poller struct {
	server [2]int // pid of the master and port the count belongs to
	polls  uint64
}

func (p *poller) poll(ctx context.Context, master, port int) *lab.ServerStatus {
	if now := [2]int{master, port}; p.server != now {
		p.server, p.polls = now, 0
	}
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	text, connected, err := ask(ctx, port)
	if connected {
		p.polls++
	}
	if err != nil {
		return nil
	}
	s, err := parseStatus(text)
	if err != nil {
		return nil
	}
	s.Polls = p.polls
	return &s
}

// ask sends the request on a connection of its own; connected reports whether there was one.
func ask(ctx context.Context, port int) (text []byte, connected bool, err error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", net.JoinHostPort(lab.Loopback, strconv.Itoa(port)))
	if err != nil {
		return nil, false, err
	}
	defer c.Close() //nolint:errcheck // answered or given up
	end, _ := ctx.Deadline()
	if err := c.SetDeadline(end); err != nil {
		return nil, true, err
	}
	if _, err := io.WriteString(c, "GET /status HTTP/1.0\r\nHost: localhost\r\n\r\n"); err != nil {
		return nil, true, err
	}
	text, err = io.ReadAll(io.LimitReader(c, maxStatus))
	return text, true, err
}

// parseStatus reads the answer of ngx_http_stub_status_module, with its header.
func parseStatus(text []byte) (lab.ServerStatus, error) {
	var s lab.ServerStatus
	_, body, ok := bytes.Cut(text, []byte("\r\n\r\n"))
	if !ok || !bytes.HasPrefix(text, []byte("HTTP/1.")) || len(text) < 12 || string(text[9:12]) != "200" {
		return s, errors.New("stub_status: not an answer with status 200")
	}
	_, err := fmt.Sscanf(string(body), "Active connections: %d \nserver accepts handled requests\n %d %d %d \nReading: %d Writing: %d Waiting: %d",
		&s.Active, &s.Accepts, &s.Handled, &s.Requests, &s.Reading, &s.Writing, &s.Waiting)
	if err != nil {
		return s, fmt.Errorf("stub_status: %w", err)
	}
	return s, nil
}
