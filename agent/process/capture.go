package process

import (
	"fmt"
	"io"
	"sync"
)

// outputLimit is how much of each output stream is kept: load tools print kilobytes, a runaway one must not fill the
// agent's memory.
const outputLimit = 8 << 20

// capture keeps the first outputLimit bytes written to it and passes everything on to tee. It never fails: a reader
// that went away must not stop the process that writes.
type capture struct {
	mu   sync.Mutex
	kept []byte
	all  int64
	tee  io.Writer // nil = nowhere
}

func (c *capture) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all += int64(len(p))
	c.kept = append(c.kept, p[:min(len(p), outputLimit-len(c.kept))]...)
	if c.tee != nil {
		if _, err := c.tee.Write(p); err != nil {
			c.tee = nil
		}
	}
	return len(p), nil
}

// bytes returns a copy of what was kept, and a note when that is not all.
func (c *capture) bytes(name string) (kept []byte, note string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all > int64(len(c.kept)) {
		note = fmt.Sprintf("ngxlab: %s was cut: %d of %d bytes kept\n", name, len(c.kept), c.all)
	}
	return append([]byte(nil), c.kept...), note
}

// oneAtATime lets two captures share a writer.
type oneAtATime struct {
	mu sync.Mutex
	w  io.Writer
}

func (o *oneAtATime) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.w.Write(p)
}
