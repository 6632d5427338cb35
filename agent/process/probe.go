package process

import (
	"bufio"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"ngxlab/lab"
)

// address is where a server of this host is asked.
func address(port int) string { return net.JoinHostPort(lab.Loopback, strconv.Itoa(port)) }

// accepts connects to a port of this host and closes at once.
func accepts(ctx context.Context, port int) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address(port))
	if err != nil {
		return err
	}
	return conn.Close()
}

// site is where a server of this host is asked.
type site struct {
	port int
	tls  *tls.Config // nil = plain HTTP
}

// dial connects, and shakes hands where the site speaks TLS.
func (s site) dial(ctx context.Context) (net.Conn, error) {
	plain, err := (&net.Dialer{}).DialContext(ctx, "tcp", address(s.port))
	if err != nil || s.tls == nil {
		return plain, err
	}
	secure := tls.Client(plain, s.tls)
	if err := secure.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("TLS: %w", err), plain.Close())
	}
	return secure, nil
}

// probe asks for a path once, keeping the connection alive, and measures the response on the wire, inside of TLS. Header
// bytes are all that is not body: also the framing of a chunked body. The request carries X-Ngxlab-Probe: 1, by which a
// location that holds its requests answers at once.
func probe(ctx context.Context, s site, url string) (lab.Probe, error) {
	p, _, err := ask(ctx, s, url)
	return p, err
}

// ask is probe, with the header of the answer.
func ask(ctx context.Context, s site, url string) (lab.Probe, http.Header, error) {
	conn, err := s.dial(ctx)
	if err != nil {
		return lab.Probe{}, nil, err
	}
	defer conn.Close() //nolint:errcheck // the response was read
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nX-Ngxlab-Probe: 1\r\n\r\n", url, address(s.port))
	if err != nil {
		return lab.Probe{}, nil, err
	}
	wire := &counter{r: conn}
	resp, err := http.ReadResponse(bufio.NewReader(wire), nil)
	if err != nil {
		return lab.Probe{}, nil, err
	}
	defer resp.Body.Close() //nolint:errcheck // read to its end
	sum := sha256.New()
	n, err := io.Copy(sum, resp.Body)
	if err != nil {
		return lab.Probe{}, nil, err
	}
	return lab.Probe{
		Status: resp.StatusCode, HeaderBytes: int(wire.n - n), BodyBytes: n, BodySHA256: hex.EncodeToString(sum.Sum(nil)),
	}, resp.Header, nil
}

// counter counts the bytes read.
type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}
