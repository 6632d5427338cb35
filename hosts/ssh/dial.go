package ssh

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/melbahja/goph"
	xssh "golang.org/x/crypto/ssh"
)

func joined(jumps []string) string { return strings.Join(jumps, ",") }

// login connects to a target and logs in, as often as that makes sense.
func login(ctx context.Context, t *target, via *Client, o Options) (*Client, error) {
	known, err := t.knownKeys()
	if err != nil {
		return nil, err
	}
	keys := newOffer(ctx, t, o.Keys, o.Say)
	for {
		conn, err := t.handshake(ctx, via, func() *xssh.ClientConfig { return t.config(known, keys) })
		if err == nil {
			return newClient(t, conn, via), nil
		}
		again, mendErr := keys.mend(ctx, o.Ask)
		if mendErr != nil {
			return nil, mendErr
		}
		if again {
			continue
		}
		if refusal := keys.refusal(t, err); refusal != nil && ctx.Err() == nil {
			return nil, refusal
		}
		return nil, err
	}
}

func (t *target) config(known *knownKeys, keys *offer) *xssh.ClientConfig {
	signers := keys.signers()
	return &xssh.ClientConfig{
		User:              t.user,
		Auth:              goph.Auth{xssh.PublicKeysCallback(func() ([]xssh.Signer, error) { return signers, nil })},
		AuthCallback:      keys.allowed,
		BannerCallback:    keys.hear,
		HostKeyCallback:   known.verify,
		HostKeyAlgorithms: known.algorithms(),
	}
}

// A host that has too many logins under way (MaxStartups) drops new ones before it says anything. These are tried again,
// after pauses that grow and differ, so that many do not come back at once; together about 12 s.
const (
	maxDropped   = 12
	firstPause   = 100 * time.Millisecond
	longestPause = 2 * time.Second
)

// handshake makes one connection. config is asked for anew for each try.
func (t *target) handshake(ctx context.Context, via *Client, config func() *xssh.ClientConfig) (*sshConn, error) {
	began, pause := time.Now(), firstPause
	for dropped := 1; ; dropped++ {
		conn, err := t.try(ctx, via, config())
		var drop *droppedError
		if err == nil || !errors.As(err, &drop) || ctx.Err() != nil {
			return conn, err
		}
		if dropped == maxDropped {
			return nil, fmt.Errorf("%w, %d times in %v", err, dropped, time.Since(began).Round(100*time.Millisecond))
		}
		select {
		case <-time.After(pause/2 + rand.N(pause)):
		case <-ctx.Done():
			return nil, errors.Join(context.Cause(ctx), err)
		}
		pause = min(2*pause, longestPause)
	}
}

// sshConn is a connection after its handshake.
type sshConn struct {
	xssh.Conn
	channels <-chan xssh.NewChannel
	requests <-chan *xssh.Request
	root     net.Conn // the TCP connection that all goes over, also through jumps
}

// try connects and shakes hands, within the target's time-out.
func (t *target) try(ctx context.Context, via *Client, config *xssh.ClientConfig) (*sshConn, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, t.timeout, &lateError{t.timeout})
	defer cancel()
	conn, err := t.connect(ctx, via)
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, fmt.Errorf("connect to %s: %w", t.dialled(), err)
	}
	root := conn
	if via != nil {
		root = via.root
	}
	w := &watched{Conn: conn}
	check := config.HostKeyCallback
	config.HostKeyCallback = func(name string, remote net.Addr, key xssh.PublicKey) error {
		err := check(name, remote, key)
		if err == nil {
			w.step.Store(stepLogin)
		}
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = root.Close() }) // a jump that does not answer cannot close a connection through it
	c, channels, requests, err := xssh.NewClientConn(w, t.dialled(), config)
	if !stop() && err == nil {
		err = errors.Join(net.ErrClosed, c.Close())
	}
	if err != nil {
		return nil, w.failed(ctx, t, err)
	}
	return &sshConn{Conn: c, channels: channels, requests: requests, root: root}, nil
}

// connect reaches the port, from here or from the jump.
func (t *target) connect(ctx context.Context, via *Client) (net.Conn, error) {
	if via == nil {
		return (&net.Dialer{}).DialContext(ctx, "tcp", t.dialled())
	}
	conn, err := via.ssh.DialContext(ctx, "tcp", t.dialled())
	if err != nil {
		return nil, fmt.Errorf("from its jump %s: %w", via.target.written, err)
	}
	return conn, nil
}

// lateError is a step that ConnectTimeout ended: a context.DeadlineExceeded.
type lateError struct{ limit time.Duration }

func (e *lateError) Error() string {
	return fmt.Sprintf("not done within %v (ConnectTimeout)", e.limit)
}

// Is makes it one with the deadline of a context.
func (e *lateError) Is(target error) bool { return target == context.DeadlineExceeded }

// The steps of a handshake, to tell which took too long.
const (
	stepVersion int32 = iota // until the host has said its version
	stepKeys                 // until its host key is accepted
	stepLogin
)

// tooMany is what OpenSSH says, if anything, when it drops a login. Others that say something are no SSH servers.
const tooMany = "Exceeded MaxStartups"

// droppedError is a connection that the host closed before it said its version.
type droppedError struct {
	said string // tooMany, or nothing
	err  error
}

func (e *droppedError) Error() string {
	text := "the host closed the connection before it said its version"
	if e.said != "" {
		text += fmt.Sprintf(" (it said %.200q)", e.said)
	}
	return text
}

func (e *droppedError) Unwrap() error { return e.err }

// watched is a connection that notes how far the handshake is.
type watched struct {
	net.Conn
	step atomic.Int32
	said []byte // before the version
}

// maxSaid bounds what is kept of a host that is no SSH server.
const maxSaid = 1 << 10

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	if n > 0 && w.step.Load() == stepVersion && len(w.said) < maxSaid { // read byte by byte, by one
		w.said = append(w.said, p[:n]...)
		if line := w.said[bytes.LastIndexByte(bytes.TrimSuffix(w.said, []byte("\n")), '\n')+1:]; bytes.HasSuffix(line, []byte("\n")) && bytes.HasPrefix(line, []byte("SSH-")) {
			w.step.Store(stepKeys)
		}
	}
	return n, err
}

// failed is the error of a handshake.
func (w *watched) failed(ctx context.Context, t *target, err error) error {
	step, said := w.step.Load(), string(bytes.TrimSpace(w.said))
	if ctx.Err() != nil {
		what := map[int32]string{
			stepVersion: "wait for the version of the SSH server at", stepKeys: "exchange keys with", stepLogin: "log in to",
		}[step]
		if step == stepVersion && said != "" {
			return fmt.Errorf("%s %s, which says %.200q: %w", what, t.dialled(), said, context.Cause(ctx))
		}
		return fmt.Errorf("%s %s: %w", what, t.dialled(), context.Cause(ctx))
	}
	if step == stepVersion {
		isClosed := errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
		if isClosed && (said == "" || said == tooMany) {
			return fmt.Errorf("%s: %w", t.dialled(), &droppedError{said: said, err: err})
		}
		return fmt.Errorf("%s is no SSH server: it says %.200q: %w", t.dialled(), said, err)
	}
	return fmt.Errorf("shake hands with %s: %w", t.dialled(), err)
}
