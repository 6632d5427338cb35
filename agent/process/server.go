package process

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"ngxlab/lab"
)

const (
	serverPoll     = 2 * time.Millisecond // between two looks whether a server is ready
	serverDeadline = 10 * time.Second     // to become ready, when the Serving says none
	logEnd         = 10                   // lines of the error log that an error shows
)

// serving is one server being started, in its fresh directory.
type serving struct {
	r      *Runner
	asked  lab.Serving
	prefix string
	master *child
	server lab.Server
}

// Serve starts a server in a fresh directory, reads back what is in force, probes it, tells started, and stays until
// ctx ends, which is no error once it runs, or the server does, which is. It waits first until the server before is
// gone. Whatever happens, the server's processes and its directory are gone when it returns.
//
// Errors: a port in use (with its owner), a configuration that nginx refuses (in nginx's own words), a server that does
// not become ready, a directive or limit that is not in force, a path that is not served, a server that died (with the
// end of its error log).
func (r *Runner) Serve(ctx context.Context, s lab.Serving, started func(lab.Server)) error {
	free, err := r.occupy(ctx)
	if err != nil {
		return err
	}
	defer free()
	prefix, err := r.fresh("server")
	if err != nil {
		return err
	}
	sv := &serving{r: r, asked: s, prefix: prefix}
	err = sv.serve(ctx, started)
	if err = errors.Join(err, os.RemoveAll(prefix)); err != nil {
		return fmt.Errorf("server of state %q: %w", s.State, err)
	}
	return nil
}

// ErrorLog returns the path of the running server's error log, "" when no server runs.
func (r *Runner) ErrorLog() string {
	s, ok := r.Current()
	if !ok {
		return ""
	}
	return filepath.Join(s.Prefix, errorLog)
}

const errorLog = "logs/error.log"

func (sv *serving) serve(ctx context.Context, started func(lab.Server)) error {
	if err := sv.write(); err != nil {
		return err
	}
	if err := portsFree(sv.asked.Port, sv.asked.StatusPort); err != nil {
		return err
	}
	if err := sv.test(ctx); err != nil {
		return err
	}
	master, err := sv.r.start(ctx, sv.command(), nil)
	if err != nil {
		return err
	}
	sv.master = master
	err = sv.run(ctx, started)
	sv.r.setCurrent(nil)
	master.end(syscall.SIGTERM) // nginx: fast shutdown
	return errors.Join(err, master.clean())
}

// run reads the server back and stays with it.
func (sv *serving) run(ctx context.Context, started func(lab.Server)) error {
	if err := sv.ready(ctx); err != nil {
		return err
	}
	sv.r.setCurrent(&sv.server)
	started(sv.server)
	select {
	case <-ctx.Done():
		return nil
	case <-sv.master.done:
		return sv.died()
	}
}

// ready waits for the first answer, then verifies everything else, within the deadline.
func (sv *serving) ready(ctx context.Context) error {
	limit := sv.asked.Deadline.Duration
	if limit <= 0 {
		limit = serverDeadline
	}
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := sv.listening(bounded)
	if err == nil {
		err = sv.probeAll(bounded)
	}
	if err == nil {
		err = sv.readBack(bounded)
	}
	select {
	case <-sv.master.done:
		return sv.died()
	default:
	}
	if bounded.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("not ready within %v: %w%s", limit, err, sv.logEnd())
	}
	return err
}

// listening polls until both ports accept.
func (sv *serving) listening(ctx context.Context) error {
	ticks := time.NewTicker(serverPoll)
	defer ticks.Stop()
	for {
		err := errors.Join(accepts(ctx, sv.asked.Port), accepts(ctx, sv.asked.StatusPort))
		if err == nil {
			return nil
		}
		select {
		case <-sv.master.done:
			return sv.died()
		case <-ctx.Done():
			return err
		case <-ticks.C:
		}
	}
}

// probeAll asks for every path and keeps what it is answered.
func (sv *serving) probeAll(ctx context.Context) error {
	sv.server.Probes = map[string]lab.Probe{}
	for _, url := range sv.asked.URLs {
		p, err := probe(ctx, sv.asked.Port, url)
		if err != nil {
			return fmt.Errorf("probe %s: %w%s", url, err, sv.logEnd())
		}
		if p.Status >= 400 {
			return fmt.Errorf("probe %s: status %d%s", url, p.Status, sv.logEnd())
		}
		if sv.server.StartedS == 0 {
			sv.server.StartedS = Now().Sub(sv.master.process.Released).Seconds()
		}
		sv.server.Probes[url] = p
	}
	return nil
}

// test lets nginx check the configuration and dump it as it read it.
func (sv *serving) test(ctx context.Context) error {
	c := sv.command()
	c.Argv = append(c.Argv, "-T", "-q")
	p, err := sv.r.Run(ctx, c, nil)
	if err != nil {
		return err
	}
	if p.Exit != 0 {
		return fmt.Errorf("nginx refuses the configuration: %s", strings.TrimSpace(sv.placeless(p.Stderr)))
	}
	sv.server.Effective = sv.placeless(p.Stdout)
	sum := sha256.Sum256([]byte(sv.server.Effective))
	sv.server.EffectiveSHA = hex.EncodeToString(sum[:])
	return nil
}

// placeless is a text of nginx with {prefix} for the fresh directory.
func (sv *serving) placeless(text []byte) string {
	return strings.ReplaceAll(string(text), sv.prefix, "{prefix}")
}

func (sv *serving) command() lab.Command {
	return lab.Command{
		Argv: []string{sv.asked.Build.Binary, "-p", sv.prefix + "/", "-c", filepath.Join(sv.prefix, "nginx.conf")},
		Dir:  sv.prefix, CPUs: sv.asked.CPUs, Nofile: sv.asked.Nofile, Nproc: sv.asked.Nproc, Campaign: sv.asked.Campaign,
		Deadline: lab.Duration{Duration: serverDeadline}, // of the test; the server itself runs until ctx ends
	}
}

// died explains the end of the master.
func (sv *serving) died() error {
	p := sv.master.process
	how := fmt.Sprintf("exit %d", p.Exit)
	if p.Signal != "" {
		how = "signal: " + p.Signal
	}
	said, _ := sv.master.errs.bytes("stderr")
	if text := strings.TrimSpace(sv.placeless(said)); text != "" {
		how += "; " + text
	}
	return fmt.Errorf("the server died (%s)%s", how, sv.logEnd())
}

// logEnd is the end of the error log as part of a message, "" when it is empty.
func (sv *serving) logEnd() string {
	text, err := os.ReadFile(filepath.Join(sv.prefix, errorLog))
	if err != nil || len(bytes.TrimSpace(text)) == 0 {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(sv.placeless(text)), "\n")
	return "; its error log ends:\n" + strings.Join(lines[max(0, len(lines)-logEnd):], "\n")
}
