package hold

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"time"

	"ngxlab/lab"
)

// errOneOverTLS says that the holders speak plain HTTP.
var errOneOverTLS = errors.New("connections over TLS are tried one at a time, and not held")

// try opens one connection over TLS, asks once (active connections do not wait for the answer), and closes it.
func try(ctx context.Context, want lab.Hold) (lab.Held, error) {
	if want.Connections > 1 {
		return lab.Held{}, errOneOverTLS
	}
	start := time.Now()
	held := lab.Held{Answered: 1}
	if err := ask(ctx, want); err != nil {
		held = lab.Held{Failed: 1, Error: err.Error()}
	}
	held.TookS = time.Since(start).Seconds()
	return held, ctx.Err()
}

func ask(ctx context.Context, want lab.Hold) (err error) {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}}} //nolint:gosec // the lab's own server, whose certificate it made itself
	conn, err := dialer.DialContext(ctx, "tcp", want.Address)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // what was asked is answered
	if end, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(end); err != nil {
			return err
		}
	}
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", want.URL, want.Address); err != nil || want.Kind == lab.HoldActive {
		return err
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return fmt.Errorf("response: %w", err)
	}
	defer resp.Body.Close() //nolint:errcheck // only read
	if resp.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("response: status %d", resp.StatusCode)
	}
	return nil
}
