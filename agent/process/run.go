package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"ngxlab/lab"
	"ngxlab/lab/outputs"
)

// collectLimit is how much of a collected raw file is kept.
const collectLimit = 64 << 20

// Run runs one command to its end and returns what became of it; out, when not nil, gets both outputs as they come.
// An exit other than 0, a signal or a missed deadline is in the Process, not an error; an error says that the
// command could not be started or that ctx ended (the group is then killed at once).
func (r *Runner) Run(ctx context.Context, c lab.Command, out io.Writer) (lab.Process, error) {
	ch, err := r.start(ctx, c, out)
	if err != nil {
		return lab.Process{}, err
	}
	p, err := ch.finish(ctx)
	return p, errors.Join(err, ch.clean())
}

// finish waits for the end of a command that runs, enforces its deadline (SIGINT, five seconds, SIGKILL to the group),
// and gathers its outputs.
func (c *child) finish(ctx context.Context) (lab.Process, error) {
	limit := c.command.Deadline.Duration
	if limit <= 0 {
		limit = defaultDeadline
	}
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	var err error
	timedOut := false
	select {
	case <-c.done:
	case <-deadline.C:
		timedOut = true
		c.end(syscall.SIGINT)
	case <-ctx.Done():
		c.kill()
		<-c.done
		err = fmt.Errorf("run %s: %w", c.asked.Argv[0], ctx.Err())
	}
	p := c.process
	p.TimedOut = timedOut
	p.CPUS = max(0, p.CPUS-c.own.Seconds())
	c.gather(&p)
	return p, err
}

// gather puts outputs and collected files into p. What cannot be gathered is said at the end of Stderr.
func (c *child) gather(p *lab.Process) {
	var notes [2]string
	p.Stdout, notes[0] = c.out.bytes("stdout")
	p.Stderr, notes[1] = c.errs.bytes("stderr")
	for _, note := range notes {
		p.Stderr = append(p.Stderr, note...)
	}
	for _, name := range slices.Sorted(maps.Keys(c.command.Collect)) {
		if err := c.collect(p, name, c.command.Collect[name]); err != nil {
			p.Stderr = fmt.Appendf(p.Stderr, "ngxlab: collect %s: %v\n", name, err)
		}
	}
}

func (c *child) collect(p *lab.Process, name, reduction string) error {
	if !filepath.IsLocal(name) {
		return errors.New("it lies outside the directory of the process")
	}
	file, err := os.Open(filepath.Join(c.work, name))
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // opened for reading
	if reduction != "raw" {
		report, err := outputs.Reduce(reduction, file)
		if err != nil {
			return err
		}
		if p.Reductions == nil {
			p.Reductions = map[string]lab.Report{}
		}
		p.Reductions[name] = report
		return nil
	}
	content, err := io.ReadAll(io.LimitReader(file, collectLimit+1))
	if err != nil {
		return err
	}
	if len(content) > collectLimit {
		content, err = content[:collectLimit], fmt.Errorf("cut at %d bytes", collectLimit)
	}
	if p.Files == nil {
		p.Files = map[string][]byte{}
	}
	p.Files[name] = content
	return err
}
