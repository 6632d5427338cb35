package docker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"time"

	"ngxlab/agent/wire"
	"ngxlab/hosts"
)

// Door is the way into a host of a lab: processes in its container, as root.
type Door struct {
	engine  *Engine
	id      string // of the container
	name    string
	address string
}

var _ hosts.Door = (*Door)(nil)

// Enter finds the host of a lab. It must run; a *Problem says what to do when it does not.
func (e *Engine) Enter(ctx context.Context, lab, host string) (*Door, error) {
	boxes, err := e.api.boxes(ctx, map[string]string{labelLab: lab, labelHost: host})
	if err != nil {
		return nil, err
	}
	name := hostText(lab, host)
	if len(boxes) == 0 {
		return nil, &Problem{Kind: NotRunning, What: name + " is not there", Cure: "bring the lab up"}
	}
	b := boxes[0]
	if b.state != "running" {
		return nil, &Problem{Kind: NotRunning, What: fmt.Sprintf("%s is %s", name, b.state), Cure: "bring the lab up again", State: b.state}
	}
	return e.doorOf(b), nil
}

// doorOf is the way into a container that runs.
func (e *Engine) doorOf(b box) *Door {
	name := b.labels[labelLab]
	return &Door{engine: e, id: b.id, name: hostText(name, b.labels[labelHost]), address: b.address[networkName(name)]}
}

func hostText(lab, host string) string { return "host " + host + " of lab " + lab }

// Address is where the lab's other hosts reach this one: its address on their network when it was entered.
func (d *Door) Address() string { return d.address }

// Close does nothing: a door holds nothing open.
func (d *Door) Close() error { return nil }

// Open starts a script with /bin/sh -c in the container, as root.
func (d *Door) Open(ctx context.Context, script string, tty bool) (hosts.Pipe, error) {
	command := []string{"/bin/sh", "-c", script}
	if tty {
		command = []string{"/bin/sh", "-c", `stty raw -echo; exec /bin/sh -c "$1"`, "sh", script}
	}
	s, err := d.engine.api.exec(ctx, d.id, command, tty)
	if err != nil {
		return nil, d.why(ctx, fmt.Errorf("%s: start a process: %w", d.name, err))
	}
	p := &pipe{api: d.engine.api, stream: s, ended: make(chan struct{})}
	p.out, p.in = io.Pipe()
	go p.follow()
	return p, nil
}

// why adds what is wrong with the container to an error.
func (d *Door) why(ctx context.Context, err error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	b, there, looked := d.engine.api.inspect(ctx, d.id)
	switch {
	case looked != nil:
		return errors.Join(err, looked)
	case !there:
		return &Problem{Kind: NotRunning, What: d.name + " was removed", Err: err, Cure: "bring the lab up again"}
	case b.state != "running":
		return &Problem{Kind: NotRunning, What: fmt.Sprintf("%s is %s", d.name, b.state), Err: err, Cure: "bring the lab up again", State: b.state}
	}
	return err
}

// The scripts of Put. The second one looks at the size: the first ends well, too, when the connection is cut.
const (
	receiveScript = `umask 077 && cat >"$1"`
	finishScript  = `[ "$(wc -c <"$1")" -eq "$2" ] && chmod "$3" "$1" && mv -f "$1" "$4"`
	removeScript  = `rm -f "$1"`
)

// Put writes a file in the container, whole or not at all.
func (d *Door) Put(ctx context.Context, to string, mode fs.FileMode, r io.Reader) error {
	temporary := path.Join(path.Dir(to), wire.TemporaryPrefix+rand.Text())
	counted := &counter{Reader: r}
	err := d.sh(ctx, counted, receiveScript, temporary)
	if err == nil {
		err = errors.Join(counted.err, ctx.Err())
	}
	if err == nil {
		err = d.sh(ctx, nil, finishScript, temporary, fmt.Sprint(counted.n), fmt.Sprintf("%o", mode.Perm()), to)
	}
	if err == nil {
		return nil
	}
	ctx, cancel := detached(ctx)
	defer cancel()
	return d.why(ctx, errors.Join(fmt.Errorf("%s: write %s: %w", d.name, to, err), d.sh(ctx, nil, removeScript, temporary)))
}

// sh runs a fixed script with arguments, which takes input when there is some.
func (d *Door) sh(ctx context.Context, input io.Reader, script string, args ...string) error {
	var out hosts.Tail
	code, err := d.engine.run(ctx, d.id, append([]string{"/bin/sh", "-c", script, "sh"}, args...), input, &out)
	if err == nil && code != 0 {
		err = fmt.Errorf("exit code %d: %s", code, out.String())
	}
	return err
}

// run runs a command in a container to its end and returns its exit code; what it writes goes to out.
func (e *Engine) run(ctx context.Context, id string, command []string, input io.Reader, out io.Writer) (int, error) {
	s, err := e.api.exec(ctx, id, command, false)
	if err != nil {
		return 0, err
	}
	defer s.close()
	defer context.AfterFunc(ctx, s.close)() // ends what is read and written below
	sent := make(chan error, 1)
	go func() {
		var err error
		if input != nil {
			_, err = io.Copy(writerFunc(s.write), input)
		}
		sent <- errors.Join(err, s.closeWrite())
	}()
	err = s.copy(out, out)
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	code, ended := e.api.end(ctx, s.exec)
	if err = errors.Join(err, ended); err == nil && code == 0 {
		err = <-sent // otherwise the end of the command tells more
	}
	return code, err
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// counter counts what is read, and keeps the error that ended it.
type counter struct {
	io.Reader
	n   int64
	err error
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += int64(n)
	if !errors.Is(err, io.EOF) {
		c.err = err
	}
	return n, err
}
