package hosts

import (
	"context"
	"io"
	"io/fs"
	"strings"
	"sync"
)

// Door is a way into a host that may have no agent yet. Its methods may be called at the same time.
type Door interface {
	// Open starts a script with /bin/sh -c on the host. tty asks for a raw terminal, for sudo's requiretty only. A script
	// is one line without ' ! and backslash: any login shell passes it on unchanged between single quotes.
	Open(ctx context.Context, script string, tty bool) (Pipe, error)
	// Put writes a file on the host, whole or not at all: under a temporary name in the same directory that begins with
	// wire.TemporaryPrefix, with its mode, then renamed. What is left of an upload that failed is removed.
	Put(ctx context.Context, path string, mode fs.FileMode, r io.Reader) error
	Close() error
}

// Pipe is a process on the host: Read is its standard output, Write its standard input.
type Pipe interface {
	io.ReadWriteCloser // Close closes the process's input, waits (bounded) for its end, and says how it ended
	// Explain tells the end of the process and the last lines of its standard error, "" while it runs.
	Explain() string
}

// addressed is a door that knows where the host is reached by others.
type addressed interface{ Address() string }

// Tail keeps the last 4 KiB that a process printed, for messages. Its methods may be called at the same time.
type Tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if cut := len(t.text) - 4<<10; cut > 0 {
		t.text = append(t.text[:0], t.text[cut:]...)
	}
	return len(p), nil
}

// String is what is kept, without the space around it.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.text))
}

// Brief is some of the first lines of what is kept, and of the last.
func (t *Tail) Brief() string { return brief(t.String()) }

// Await runs f, which cannot be interrupted, for as long as ctx allows. A result that comes later goes to drop.
func Await[T any](ctx context.Context, f func() (T, error), drop func(T)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := f()
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
	}
	go func() {
		if r := <-done; r.err == nil {
			drop(r.value)
		}
	}()
	var none T
	return none, context.Cause(ctx)
}
