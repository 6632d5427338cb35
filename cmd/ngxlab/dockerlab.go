package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"ngxlab/hosts"
	"ngxlab/hosts/docker"
	"ngxlab/hosts/ssh"
	"ngxlab/lab"
)

// engine is the Docker engine that DOCKER_HOST names, reached once per program, by the first who asks for it.
type engine struct {
	mu     sync.Mutex
	opened *docker.Engine
	failed *engineError // why it could not be; nil = it was not tried, or was
	over   *ssh.Client  // to the machine of an engine at ssh://; nil for others
	rootfs string       // path of a TAR to make the image from; "" = as can be
}

// open returns the engine, or the *engineError why there is none, which stays. What takes long is said on the error stream.
func (e *engine) open(ctx context.Context, a *app) (*docker.Engine, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.opened != nil {
		return e.opened, nil
	}
	if e.failed != nil {
		return nil, e.failed
	}
	opened, err := e.reach(ctx, a)
	if err == nil {
		e.opened = opened
		return opened, nil
	}
	failed := &engineError{err}
	if ctx.Err() == nil { // else it is not the engine's
		e.failed = failed
	}
	return nil, failed
}

// reach opens the engine, over SSH where DOCKER_HOST says so.
func (e *engine) reach(ctx context.Context, a *app) (*docker.Engine, error) {
	o := docker.Options{Rootfs: e.rootfs, Owner: a.person, Holder: a.holderIn, Say: func(text string) { a.note("docker: %s", text) }}
	if address, over := strings.CutPrefix(os.Getenv("DOCKER_HOST"), "ssh://"); over {
		if err := e.dial(ctx, a, address); err != nil {
			return nil, err
		}
		o.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			return e.over.DialContext(ctx, network, address)
		}
	}
	opened, err := docker.Open(ctx, o)
	if err != nil && e.over != nil {
		_ = e.over.Close() // the first error counts
		e.over = nil
	}
	return opened, err
}

// holderIn asks a container who holds it, by an agent of its own.
func (a *app) holderIn(ctx context.Context, d *docker.Door, name lab.HostName) (lab.Holder, error) {
	h, err := hosts.Enter(ctx, d, hosts.Options{Name: name, Dir: a.stateDir, Agent: a.agent})
	if err != nil {
		return lab.Holder{}, err
	}
	holder, err := h.Holder(ctx)
	return holder, errors.Join(err, h.Close())
}

// dial reaches the machine of an engine at ssh://address.
func (e *engine) dial(ctx context.Context, a *app, address string) error {
	address, _, _ = strings.Cut(address, "/") // the path of its socket
	d, err := ssh.Parse(address)
	if err == nil {
		e.over, err = ssh.Dial(ctx, d, a.ssh)
	}
	if err != nil {
		return fmt.Errorf("reach the machine of the Docker engine at %s: %w", os.Getenv("DOCKER_HOST"), err)
	}
	return nil
}

// close gives the engine up at the end of the program.
func (e *engine) close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	var errs []error
	if e.opened != nil {
		errs = append(errs, e.opened.Close())
	}
	if e.over != nil {
		errs = append(errs, e.over.Close())
	}
	e.opened, e.failed, e.over = nil, nil, nil
	return errors.Join(errs...)
}

// labOf is the Docker lab of an experiment; it has no hosts when none is a container.
func (a *app) labOf(x lab.Experiment) docker.Lab {
	return docker.Lab{Name: x.Name, Hosts: slices.DeleteFunc(slices.Clone(x.Hosts), func(h lab.Host) bool { return !isDocker(h) }), Version: a.version}
}

func isDocker(h lab.Host) bool { return h.Docker != nil }

// bringUp brings the experiment's Docker lab up where it is not, and says so. It stays up.
func (a *app) bringUp(ctx context.Context, x lab.Experiment) error {
	l := a.labOf(x)
	if len(l.Hosts) == 0 {
		return nil
	}
	up, err := a.labUp(ctx, l)
	if err != nil {
		return atLab(x, err)
	}
	if up.made > 0 {
		a.note("lab %s: %s brought up in %s; the lab stays until \"ngxlab hosts down %s\"", l.Name, count(up.made, "container"), seconds(up.tookS), fileOr(x, l.Name))
	}
	return nil
}

// raised is a lab that is up.
type raised struct {
	containers []docker.Container // in the order of the lab's hosts
	made       int                // of them, how many were not there before
	tookS      float64
}

// labUp makes what is missing of a lab.
func (a *app) labUp(ctx context.Context, l docker.Lab) (raised, error) {
	e, err := a.docker.open(ctx, a)
	if err != nil {
		return raised{}, err
	}
	before, err := running(ctx, e, l.Name)
	if err != nil {
		return raised{}, err
	}
	began := time.Now()
	up := raised{}
	up.containers, err = e.Up(ctx, l)
	up.tookS = time.Since(began).Seconds()
	for _, c := range up.containers {
		if !slices.Contains(before, c.ID) {
			up.made++
		}
	}
	return up, err
}

// running are the ids of a lab's containers that run.
func running(ctx context.Context, e *docker.Engine, name string) ([]string, error) {
	labs, err := e.Labs(ctx)
	var ids []string
	for _, l := range labs {
		for _, c := range l.Hosts {
			if l.Name == name && c.State == stateRunning {
				ids = append(ids, c.ID)
			}
		}
	}
	return ids, err
}

// What the engine calls containers that run, and those whose processes it has stopped for a while.
const (
	stateRunning = "running"
	statePaused  = "paused"
)

// atLab adds the advice of the engine to what went wrong with a lab.
func atLab(x lab.Experiment, err error) error {
	h := slices.IndexFunc(x.Hosts, isDocker)
	return atHost(x, h, err)
}

// fileOr is the file of an experiment, or name when it has none.
func fileOr(x lab.Experiment, name string) string {
	if x.File == "" {
		return name
	}
	return x.File
}

// goneError is a container that does not run: the sysctls of its network namespace are gone with it.
type goneError struct{ err error }

func (e *goneError) Error() string { return e.err.Error() }
func (e *goneError) Unwrap() error { return e.err }

// isGone reports whether a host is a container that does not run.
func isGone(err error) bool {
	var gone *goneError
	return errors.As(err, &gone)
}

// enter is the way into a host of a lab.
func (e *engine) enter(ctx context.Context, a *app, inLab string, host lab.HostName) (hosts.Door, error) {
	opened, err := e.open(ctx, a)
	if err != nil {
		return nil, err
	}
	door, err := opened.Enter(ctx, inLab, string(host))
	if err == nil {
		return door, nil
	}
	var problem *docker.Problem
	if errors.As(err, &problem) && problem.Kind == docker.NotRunning && problem.State != statePaused {
		err = &goneError{err}
	}
	return nil, err
}

// isForeign reports whether a lab is another user's, who puts its hosts back.
func isForeign(err error) bool {
	var problem *docker.Problem
	return errors.As(err, &problem) && problem.Kind == docker.Foreign
}

// mayChange refuses a container of a lab that is another user's; other hosts may be changed as far as is known here.
func (a *app) mayChange(ctx context.Context, inLab string, h lab.Host) error {
	if !isDocker(h) {
		return nil
	}
	e, err := a.docker.open(ctx, a)
	if err == nil {
		err = e.Own(ctx, inLab)
	}
	return named(h, err)
}
