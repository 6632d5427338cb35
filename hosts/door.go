package hosts

import (
	"context"
	"io"
	"io/fs"
)

// Door is a way into a host that may have no agent yet. Its methods may be called at the same time.
type Door interface {
	// Open starts a script with /bin/sh -c on the host. tty asks for a raw terminal, for sudo's requiretty only. A script
	// is one line without ' ! and backslash: any login shell passes it on unchanged between single quotes.
	Open(ctx context.Context, script string, tty bool) (Pipe, error)
	// Put writes a file on the host, whole or not at all: under a temporary name in the same directory that begins with
	// TemporaryPrefix, with its mode, then renamed. What is left of an upload that failed is removed.
	Put(ctx context.Context, path string, mode fs.FileMode, r io.Reader) error
	Close() error
}

// TemporaryPrefix begins the names of files that a Door's Put has not finished.
const TemporaryPrefix = ".ngxlab-put-"

// Pipe is a process on the host: Read is its standard output, Write its standard input.
type Pipe interface {
	io.ReadWriteCloser // Close closes the process's input, waits (bounded) for its end, and says how it ended
	// Explain tells the end of the process and the last lines of its standard error, "" while it runs.
	Explain() string
}

// addressed is a door that knows where the host is reached by others.
type addressed interface{ Address() string }
