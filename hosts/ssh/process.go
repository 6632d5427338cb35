package ssh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	xssh "golang.org/x/crypto/ssh"

	"ngxlab/agent/wire"
	"ngxlab/hosts"
)

// Open starts a script with /bin/sh -c on the host, whatever the login shell. tty asks for a terminal that passes
// everything on unchanged; standard error then comes with standard output. ctx bounds the start only.
func (c *Client) Open(ctx context.Context, script string, tty bool) (hosts.Pipe, error) {
	p, err := c.start(ctx, script, tty)
	if err != nil {
		return nil, fmt.Errorf("%s: start a script: %w", c.target.written, err)
	}
	return p, nil
}

// unquotable are the characters that login shells treat differently between single quotes.
const unquotable = "'!\\\n\r\x00"

func (c *Client) start(ctx context.Context, script string, tty bool) (*process, error) {
	if strings.ContainsAny(script, unquotable) {
		return nil, fmt.Errorf("the script has one of ' ! \\ or a line break, which not every login shell passes on: %q", script)
	}
	open := func() (*process, error) { return c.session("exec /bin/sh -c '"+script+"'", tty) }
	return hosts.Await(ctx, open, func(p *process) { _ = p.Close() })
}

// rawTerminal turns off all that a terminal does to what passes (RFC 4254, section 8): the encoded modes.
var rawTerminal = xssh.TerminalModes{
	xssh.ECHO: 0, xssh.ECHOE: 0, xssh.ECHOK: 0, xssh.ECHONL: 0, xssh.ECHOCTL: 0, xssh.ECHOKE: 0,
	xssh.ICANON: 0, xssh.ISIG: 0, xssh.IEXTEN: 0,
	xssh.OPOST: 0, xssh.ONLCR: 0, xssh.OCRNL: 0, xssh.ONOCR: 0, xssh.ONLRET: 0,
	xssh.ICRNL: 0, xssh.INLCR: 0, xssh.IGNCR: 0, xssh.ISTRIP: 0, xssh.INPCK: 0, xssh.PARMRK: 0,
	xssh.IXON: 0, xssh.IXOFF: 0, xssh.IXANY: 0, xssh.IMAXBEL: 0,
	xssh.CS8: 1, xssh.PARENB: 0,
}

// session starts a command in a session of its own.
func (c *Client) session(command string, tty bool) (*process, error) {
	channel, requests, err := c.ssh.OpenChannel("session", nil)
	if err != nil {
		return nil, fmt.Errorf("open a session: %w", err)
	}
	p := &process{client: c, channel: channel, tty: tty, ended: make(chan struct{})}
	go p.follow(requests)
	if tty {
		err = p.request("pty-req", ptyRequest{Term: "dumb", Columns: 80, Rows: 24, Modes: encoded(rawTerminal)})
	}
	if err == nil {
		err = p.request("exec", struct{ Command string }{command})
	}
	if err != nil {
		_ = channel.Close() // the first error says it
		return nil, err
	}
	return p, nil
}

// ptyRequest is RFC 4254, section 6.2.
type ptyRequest struct {
	Term          string
	Columns, Rows uint32
	Width, Height uint32
	Modes         string
}

func encoded(modes xssh.TerminalModes) string {
	var b []byte
	for opcode, value := range modes {
		b = append(b, xssh.Marshal(struct {
			Opcode byte
			Value  uint32
		}{opcode, value})...)
	}
	return string(append(b, 0)) // TTY_OP_END
}

const connectionGone = "the connection to the host is gone"

// process is a script on the host: a hosts.Pipe.
type process struct {
	client  *Client
	channel xssh.Channel
	tty     bool
	stderr  hosts.Tail
	ended   chan struct{}
	how     string // it ended, set before ended is closed; "" = nobody told
	failed  bool
	writing sync.Mutex // of channel, whose Write and CloseWrite race
	once    sync.Once
	err     error
}

func (p *process) request(name string, payload any) error {
	ok, err := p.channel.SendRequest(name, true, xssh.Marshal(payload))
	switch {
	case errors.Is(err, io.EOF):
		return fmt.Errorf("%s: %s: %w", name, connectionGone, err)
	case err != nil:
		return fmt.Errorf("%s: %w", name, err)
	case !ok:
		return fmt.Errorf("%s: the host refuses", name)
	}
	return nil
}

// follow keeps standard error and the way the process ended, until its channel closes.
func (p *process) follow(requests <-chan *xssh.Request) {
	said := make(chan struct{})
	go func() {
		defer close(said)
		_, _ = io.Copy(&p.stderr, p.channel.Stderr()) // to its end, however it comes
	}()
	p.failed = true
	for r := range requests {
		switch r.Type {
		case "exit-status":
			var status struct{ Code uint32 }
			if xssh.Unmarshal(r.Payload, &status) == nil {
				p.how, p.failed = fmt.Sprintf("exit status %d", status.Code), status.Code != 0
			}
		case "exit-signal":
			var signal struct {
				Name       string
				CoreDumped bool
				Message    string
				Language   string
			}
			if xssh.Unmarshal(r.Payload, &signal) == nil {
				p.how = strings.TrimSpace(fmt.Sprintf("killed by SIG%s %s", signal.Name, signal.Message))
			}
		}
		if r.WantReply {
			_ = r.Reply(false, nil) // a connection that is gone needs none
		}
	}
	<-said
	close(p.ended)
}

func (p *process) Read(b []byte) (int, error) { return p.channel.Read(b) }

func (p *process) Write(b []byte) (int, error) {
	p.writing.Lock()
	defer p.writing.Unlock()
	return p.channel.Write(b)
}

const (
	closeGrace = 10 * time.Second             // an agent may take this long to end what it runs
	killGrace  = time.Second                  // for the host to kill the script
	silence    = wire.KeepAlive + wire.GiveUp // after which a connection counts as lost, as for a session
)

// Close closes the script's standard input and waits for its end: 10 s, after which it is killed, or 4 s where the host
// does not answer. What cannot be ended so loses its connection.
func (p *process) Close() error {
	p.once.Do(func() { p.err = p.finish() })
	return p.err
}

func (p *process) finish() error {
	hangsUp := p.tty && p.running()
	answered := make(chan struct{})
	go p.closeInput() // writing may block: the script need not read, the connection may be lost
	go func() {
		defer close(answered)
		_ = p.client.alive()
	}()
	switch {
	case !p.over(answered, silence):
		p.client.cut()
		<-p.ended
	case !p.over(p.ended, closeGrace):
		p.kill()
		return fmt.Errorf("%s: the script had not ended %v after its input: %s", p.client.target.written, closeGrace, p.Explain())
	}
	if hangsUp { // which ended it, by a signal or not
		return nil
	}
	return p.ending()
}

func (p *process) closeInput() {
	if p.tty {
		_ = p.channel.Close() // a terminal has no end of input: it hangs up
		return
	}
	p.writing.Lock()
	defer p.writing.Unlock()
	_ = p.channel.CloseWrite()
}

func (p *process) kill() {
	go func() { _, _ = p.channel.SendRequest("signal", false, xssh.Marshal(struct{ Name string }{"KILL"})) }()
	if !p.over(p.ended, killGrace) {
		p.client.cut()
		<-p.ended
	}
}

func (p *process) running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// over waits for what, or the end of the process, and reports whether one came within limit.
func (p *process) over(what <-chan struct{}, limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-p.ended:
	case <-what:
	case <-timer.C:
		return false
	}
	return true
}

// ending is the error of a process that has ended.
func (p *process) ending() error {
	if !p.failed {
		return nil
	}
	return fmt.Errorf("%s: %s", p.client.target.written, p.Explain())
}

// Explain tells how the script ended and what it last printed on standard error, once it has ended.
func (p *process) Explain() string {
	select {
	case <-p.ended:
	case <-time.After(100 * time.Millisecond): // its output may end a moment before it does
		return ""
	}
	text := "the script ended: " + p.how
	if p.how == "" {
		text = connectionGone
	}
	if words := p.stderr.Brief(); words != "" {
		text += ": " + words
	}
	return text
}
