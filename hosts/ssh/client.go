package ssh

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/melbahja/goph"
	xssh "golang.org/x/crypto/ssh"

	"ngxlab/hosts"
)

// Client is a login on a host. Its methods may be called at the same time. It is a hosts.Door.
type Client struct {
	target *target
	ssh    *goph.Client
	root   net.Conn // the TCP connection that all goes over
	via    *Client  // the jump, nil = none
	noSFTP atomic.Bool
	close  sync.Once
}

func newClient(t *target, conn *sshConn, via *Client) *Client {
	go refuse(conn)
	inner := &xssh.Client{Conn: conn.Conn} // NewClient would start three goroutines for each host
	return &Client{target: t, ssh: &goph.Client{Client: inner}, root: conn.root, via: via}
}

// refuse answers what a host asks for by itself: there is nothing that it may have.
func refuse(conn *sshConn) {
	channels, requests := conn.channels, conn.requests
	for channels != nil || requests != nil {
		select {
		case c, open := <-channels:
			if !open {
				channels = nil
				continue
			}
			_ = c.Reject(xssh.Prohibited, "not asked for") // a connection that is gone needs no answer
		case r, open := <-requests:
			if !open {
				requests = nil
				continue
			}
			if r.WantReply {
				_ = r.Reply(false, nil)
			}
		}
	}
}

// Address is the host's name or address after configuration, as others reach it.
func (c *Client) Address() string { return c.target.address }

// DialContext connects from the host: network "tcp" to host:port, or "unix" to the path of a socket.
func (c *Client) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := c.ssh.DialContext(ctx, network, address)
	if err != nil {
		return nil, fmt.Errorf("%s: connect to %s from there: %w", c.target.written, address, err)
	}
	return conn, nil
}

// farewell bounds what is still written to a far end that may not read any more.
const farewell = time.Second

// Close ends the connection, all that runs over it, and the jumps. That the far end is gone already is no error.
func (c *Client) Close() error {
	c.close.Do(func() {
		_ = c.root.SetWriteDeadline(time.Now().Add(farewell))
		_ = c.ssh.Close()
		if c.via != nil {
			_ = c.via.Close()
		}
		_ = c.ssh.Wait() // its end is what was asked for
	})
	return nil
}

// cut ends a connection whose far end does not answer any more.
func (c *Client) cut() { _ = c.root.Close() }

// Answers asks the host for any answer, which it gives unless the connection is lost.
func (c *Client) Answers(ctx context.Context) error {
	_, err := hosts.Await(ctx, func() (struct{}, error) { return struct{}{}, c.alive() }, func(struct{}) {})
	return err
}

// alive asks the far end for any answer.
func (c *Client) alive() error {
	_, _, err := c.ssh.SendRequest("keepalive@openssh.com", true, nil)
	return err
}
