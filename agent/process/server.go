package process

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
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
	as     identity // of a server that is not nginx
	prefix string
	master *child
	pid    int           // of the server's first process: the master's, or that of its pid file
	first  started       // that process
	gone   chan struct{} // closed when it has ended
	seen   map[int]bool  // processes of a server that is not nginx, so far
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
	sv, err := r.newServing(s)
	if err == nil {
		err = errors.Join(sv.serve(ctx, started), os.RemoveAll(sv.prefix))
	}
	if err != nil {
		return fmt.Errorf("server of state %q: %w", s.State, err)
	}
	return nil
}

// newServing makes the fresh directory.
func (r *Runner) newServing(s lab.Serving) (*serving, error) {
	sv := &serving{r: r, asked: s, seen: map[int]bool{}}
	var err error
	if s.Command != nil {
		if sv.as, err = identityOf(s.User); err != nil {
			return nil, err
		}
	}
	sv.prefix, err = r.fresh("server")
	return sv, err
}

// Try says what a finished build says of a configuration, in its own words, "" when it takes it or has no way to say;
// nothing stays. Errors: what kept it from being tried.
func (r *Runner) Try(ctx context.Context, s lab.Serving) (refused string, err error) {
	if s.Command != nil {
		return "", nil
	}
	s.Bodies = nil // whether they are there makes no difference
	sv, err := r.newServing(s)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(sv.prefix)) }()
	if err := sv.write(); err != nil {
		return "", err
	}
	return sv.dump(ctx)
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
	if err := sv.unoccupied(); err != nil {
		return err
	}
	if err := sv.test(ctx); err != nil {
		return err
	}
	if err := sv.begin(ctx); err != nil {
		return err
	}
	err := sv.run(ctx, started)
	sv.r.setCurrent(nil)
	return errors.Join(err, sv.stop(), sv.master.clean())
}

// unoccupied refuses ports that somebody has: with HTTP/3 also that of UDP.
func (sv *serving) unoccupied() error {
	if err := portsFree(sv.asked.Port, sv.asked.StatusPort); err != nil || sv.asked.TLS == nil || !sv.asked.TLS.HTTP3 {
		return err
	}
	sockets, err := udpSockets(sv.asked.Port)
	if err == nil && len(sockets) > 0 {
		err = fmt.Errorf("UDP port %d is in use", sv.asked.Port)
	}
	return err
}

// begin starts the server, or the command that leaves it behind.
func (sv *serving) begin(ctx context.Context) error {
	master, err := sv.r.newChild(sv.command())
	if err != nil {
		return err
	}
	if c := sv.asked.Command; c != nil {
		master.hard = true
		if c.PIDFile != "" {
			master.leaves = filepath.Join(sv.prefix, errorLog)
		}
	}
	if err := master.spawned(); err != nil {
		return err
	}
	if err := master.letGo(ctx); err != nil {
		return err
	}
	sv.master, sv.pid, sv.first, sv.gone = master, master.pid, master.birth, master.done
	if master.leaves != "" {
		sv.gone = make(chan struct{}) // of a process that is not known yet
	}
	return nil
}

// stop ends the server and all that it started.
func (sv *serving) stop() error {
	if sv.asked.Command != nil {
		return sv.stopCommand()
	}
	sv.master.end(syscall.SIGTERM) // nginx: fast shutdown
	return nil
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
	case <-sv.gone:
		return sv.died()
	}
}

// probeAll asks for every path and keeps what it is answered.
func (sv *serving) probeAll(ctx context.Context) error {
	sv.server.Probes = map[string]lab.Probe{}
	for _, url := range sv.asked.URLs {
		p, err := probe(ctx, sv.site(), url)
		if err != nil {
			return fmt.Errorf("probe %s: %w%s", url, err, sv.logEnd())
		}
		if p.Status >= 400 {
			return fmt.Errorf("probe %s: status %d%s", url, p.Status, sv.logEnd())
		}
		if err := sv.promised(url, p); err != nil {
			return fmt.Errorf("probe %s: %w", url, err)
		}
		if sv.server.StartedS == 0 {
			sv.server.StartedS = Now().Sub(sv.master.process.Released).Seconds()
		}
		sv.server.Probes[url] = p
	}
	return nil
}

// promised holds the answer to a path against the generated body that it has.
func (sv *serving) promised(url string, p lab.Probe) error {
	name, _, _ := strings.Cut(url, "?")
	body, known := sv.asked.Bodies[path.Join("html", name)]
	if known && body.SHA256 != "" && (p.BodyBytes != body.Bytes || p.BodySHA256 != body.SHA256) {
		return fmt.Errorf("the body is not the one that was generated: %d bytes, SHA-256 %.16s…, not %d, %.16s…", p.BodyBytes, p.BodySHA256, body.Bytes, body.SHA256)
	}
	return nil
}

// test lets nginx check the configuration and dump it as it read it; of another server its command and files are that.
func (sv *serving) test(ctx context.Context) error {
	if sv.asked.Command != nil {
		sv.server.Effective = sv.described()
	} else if refused, err := sv.dump(ctx); err != nil {
		return err
	} else if refused != "" {
		return fmt.Errorf("nginx refuses the configuration: %s", refused)
	}
	sum := sha256.Sum256([]byte(sv.server.Effective))
	sv.server.EffectiveSHA = hex.EncodeToString(sum[:])
	return nil
}

// dump keeps the configuration as nginx read it, or says why it refuses it.
func (sv *serving) dump(ctx context.Context) (refused string, err error) {
	c := sv.command()
	c.Argv = append(c.Argv, "-T", "-q")
	p, err := sv.r.Run(ctx, c, nil)
	if err != nil {
		return "", err
	}
	if p.Exit != 0 && bytes.Contains(p.Stderr, []byte(noDump)) {
		return sv.tested(ctx)
	}
	if p.Exit != 0 {
		return strings.TrimSpace(sv.placeless(p.Stderr)), nil
	}
	sv.server.Effective = sv.placeless(p.Stdout)
	return "", nil
}

// noDump is what nginx before 1.9.2, and Tengine made from it, say to -T.
const noDump = `invalid option: "T"`

// tested is dump with a server that only tests a configuration: it is then kept as it was written.
func (sv *serving) tested(ctx context.Context) (refused string, err error) {
	c := sv.command()
	c.Argv = append(c.Argv, "-t", "-q")
	p, err := sv.r.Run(ctx, c, nil)
	if err != nil {
		return "", err
	}
	if p.Exit != 0 {
		return strings.TrimSpace(sv.placeless(p.Stderr)), nil
	}
	text := fileHeading + filepath.Join(sv.prefix, "nginx.conf") + ":\n" + sv.loading() + sv.place(sv.asked.Config) + "\n"
	files := sv.files()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		text += fileHeading + filepath.Join(sv.prefix, name) + ":\n" + sv.place(files[name]) + "\n"
	}
	sv.server.Effective = sv.placeless([]byte(text))
	return "", nil
}

func (sv *serving) command() lab.Command {
	c := lab.Command{
		Dir: sv.prefix, CPUs: sv.asked.CPUs, Nofile: sv.asked.Nofile, Nproc: sv.asked.Nproc, Campaign: sv.asked.Campaign, Env: sv.placed(sv.asked.Build.Env),
		Deadline: lab.Duration{Duration: serverDeadline}, // of the test; the server itself runs until ctx ends
	}
	if sv.asked.Command != nil {
		return sv.started(c, sv.asked.Command.Start)
	}
	c.Argv = []string{sv.asked.Build.Binary, "-p", sv.prefix + "/", "-c", filepath.Join(sv.prefix, "nginx.conf")}
	return c
}

// died explains the end of the master.
func (sv *serving) died() error {
	if sv.pid != sv.master.pid {
		return fmt.Errorf("the server died: process %d is gone%s", sv.pid, sv.logEnd())
	}
	p := sv.master.process
	how := fmt.Sprintf("exit %d", p.Exit)
	if p.Signal != "" {
		how = "signal: " + p.Signal
	}
	said, _ := sv.master.errs.bytes("stderr")
	if text := strings.TrimSpace(sv.placeless(said)); text != "" {
		how += "; " + text
	}
	if c := sv.asked.Command; c != nil && p.Exit == 0 && c.PIDFile == "" {
		how += "; a server that goes into the background is known by its pid_file"
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
