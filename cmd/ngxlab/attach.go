package main

import (
	"context"
	"fmt"
	"os"
	"os/user"

	"ngxlab/hosts"
	"ngxlab/hosts/ssh"
	"ngxlab/lab"
	"ngxlab/lab/conduct"
)

// machine is an attached host: what the engine drives, and what the commands ask before and after.
type machine struct {
	conduct.Machine
	facts    func(ctx context.Context, q lab.FactsQuery) (lab.Facts, error)
	claim    func(ctx context.Context, c lab.CampaignID) error // until close
	pending  func(ctx context.Context) ([]lab.Pending, error)
	standing func(ctx context.Context) ([]lab.Standing, error)
	holder   func(ctx context.Context) (lab.Holder, error)
	clean    func(ctx context.Context) (lab.Cleaned, error)
	builds   func(ctx context.Context) ([]lab.KeptBuild, error)
	unbuild  func(ctx context.Context, ids []string) (lab.Cleaned, error)
	try      func(ctx context.Context, t lab.Trial) (lab.Tried, error)
	close    func() error
}

// reach attaches a host: this machine, one over SSH, or a container of a Docker lab. Errors name the host.
func (a *app) reach(ctx context.Context, inLab string, h lab.Host) (*machine, error) {
	o := hosts.Options{Name: h.Name, Dir: a.stateDir, Agent: a.agent, Sudo: h.Sudo}
	if h.Local {
		return attached(hosts.Local(ctx, o))
	}
	door, err := a.door(ctx, inLab, h)
	if err != nil {
		return nil, named(h, err)
	}
	m, err := attached(hosts.Enter(ctx, door, o))
	if err != nil {
		return nil, &agentlessError{err}
	}
	return m, nil
}

// agentlessError is a host that was reached, and where no agent answers.
type agentlessError struct{ err error }

func (e *agentlessError) Error() string { return e.err.Error() }
func (e *agentlessError) Unwrap() error { return e.err }

// door opens the way into a host that is not this machine.
func (a *app) door(ctx context.Context, inLab string, h lab.Host) (hosts.Door, error) {
	if isDocker(h) {
		return a.docker.enter(ctx, a, inLab, h.Name)
	}
	client, err := ssh.Dial(ctx, sshDestination(h), a.ssh)
	if err != nil {
		return nil, err
	}
	return client, nil
}

// named puts a host's name before what went wrong with it, unless SSH did; nil stays nil.
func named(h lab.Host, err error) error {
	if err == nil || string(h.Name) == sshDestination(h).String() {
		return err
	}
	return fmt.Errorf("%s: %w", h.Name, err)
}

// attached is a host as the commands use it.
func attached(host *hosts.Host, err error) (*machine, error) {
	if err != nil {
		return nil, err
	}
	return &machine{
		Machine:  conduct.Machine{Tuner: host, Builder: host, Runner: host, Watcher: host},
		facts:    host.Facts,
		claim:    func(ctx context.Context, c lab.CampaignID) error { return host.Claim(ctx, c, owner()) },
		pending:  host.Pending,
		standing: host.Standing,
		holder:   host.Holder,
		clean:    host.Clean,
		builds:   host.Builds,
		unbuild:  host.Unbuild,
		try:      host.Try,
		close:    host.Close,
	}, nil
}

// owner says who claims a host, for the people who find it taken.
func owner() string { return fmt.Sprintf("%s, process %d", person(), os.Getpid()) }

// person is who runs the program, and where.
func person() string {
	name := "somebody"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if host, err := os.Hostname(); err == nil {
		name += "@" + host
	}
	return name
}
