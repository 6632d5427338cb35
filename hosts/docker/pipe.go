package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"ngxlab/hosts"
)

// closeGrace is how long a process may take to end once its input is closed: an agent kills what it runs for up to four
// seconds, its guard for as long.
const closeGrace = 10 * time.Second

// pipe is a process in a container.
type pipe struct {
	api    *api
	stream *stream
	out    *io.PipeReader // its standard output
	in     *io.PipeWriter
	stderr hosts.Tail
	once   sync.Once
	closed error
	ended  chan struct{} // closed when its outputs are, and how is known
	how    string        // after ended
	failed bool
}

// follow copies the outputs until their end, then finds out how the process ended.
func (p *pipe) follow() {
	copied := p.stream.copy(discarding{p.in}, &p.stderr)
	code, err := p.api.end(context.Background(), p.stream.exec) // bounded
	switch {
	case err != nil:
		p.how = fmt.Sprintf("the connection to the Docker engine is lost: %v", errors.Join(copied, err))
	default:
		p.how = fmt.Sprintf("the process ended: exit code %d", code)
	}
	p.failed = err != nil || code != 0
	if words := p.stderr.String(); words != "" {
		p.how += ": " + words
	}
	close(p.ended)
	_ = p.in.Close() // always nil
}

// discarding is the writing side of a pipe, which takes what nobody reads any more as written.
type discarding struct{ *io.PipeWriter }

func (d discarding) Write(p []byte) (int, error) {
	n, err := d.PipeWriter.Write(p)
	if errors.Is(err, io.ErrClosedPipe) {
		return len(p), nil
	}
	return n, err
}

func (p *pipe) Read(b []byte) (int, error)  { return p.out.Read(b) }
func (p *pipe) Write(b []byte) (int, error) { return p.stream.write(b) }

// Close closes the process's input and waits for its end, not longer than closeGrace; then it gives up the connection.
func (p *pipe) Close() error {
	p.once.Do(func() {
		err := p.stream.closeWrite()
		_ = p.out.Close() // always nil
		grace := time.NewTimer(closeGrace)
		defer grace.Stop()
		select {
		case <-p.ended:
			if p.failed {
				err = errors.New(p.how)
			}
		case <-grace.C:
			err = errors.Join(err, fmt.Errorf("the process had not ended %v after its input was closed", closeGrace))
		}
		p.stream.close()
		p.closed = err
	})
	return p.closed
}

// Explain tells how the process ended and the last lines of its standard error, once it has.
func (p *pipe) Explain() string {
	select {
	case <-p.ended:
		return p.how
	default:
		return ""
	}
}

// end waits until a process whose outputs are closed has ended.
func (a *api) end(ctx context.Context, exec string) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		ended, code, err := a.ended(ctx, exec)
		if err != nil || ended {
			return code, err
		}
		select {
		case <-ctx.Done():
			return 0, errors.New("it runs on, with its outputs closed")
		case <-tick.C:
		}
	}
}
