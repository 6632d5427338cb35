package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"time"

	"ngxlab/hosts"
	"ngxlab/lab"
	"ngxlab/lab/conduct"
	"ngxlab/lab/plan"
)

// machine is an attached host: what the engine drives, and what the commands ask before and after.
type machine struct {
	conduct.Machine
	facts   func(ctx context.Context, q lab.FactsQuery) (lab.Facts, error)
	claim   func(ctx context.Context, c lab.CampaignID) error // until close
	pending func(ctx context.Context) ([]lab.Pending, error)
	close   func() error
}

// attachLocal attaches this machine; hosts elsewhere are not in this version.
func (a *app) attachLocal(ctx context.Context, h lab.Host) (*machine, error) {
	if !h.Local {
		return nil, errSSH
	}
	host, err := hosts.Local(ctx, hosts.Options{Name: h.Name, Dir: a.stateDir, Agent: a.agent})
	if err != nil {
		return nil, err
	}
	return &machine{
		Machine: conduct.Machine{Tuner: host, Builder: host, Runner: host, Watcher: host},
		facts:   host.Facts,
		claim:   func(ctx context.Context, c lab.CampaignID) error { return host.Claim(ctx, c, owner()) },
		pending: host.Pending,
		close:   host.Close,
	}, nil
}

// owner says who claims a host, for the people who find it taken.
func owner() string {
	name := "somebody"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if host, err := os.Hostname(); err == nil {
		name += "@" + host
	}
	return fmt.Sprintf("%s, process %d", name, os.Getpid())
}

// fleet is the attached hosts of an experiment.
type fleet struct {
	names    []lab.HostName // in the order of the file
	machines map[lab.HostName]*machine
}

// withFleet attaches every host of the experiment, hands them to do, and lets them go.
func (a *app) withFleet(ctx context.Context, x lab.Experiment, do func(*fleet) error) (err error) {
	f := &fleet{machines: map[lab.HostName]*machine{}}
	defer func() { err = errors.Join(err, f.close()) }()
	for i, h := range x.Hosts {
		m, err := a.attach(ctx, h)
		if err != nil {
			return atHost(x, i, err)
		}
		f.names = append(f.names, h.Name)
		f.machines[h.Name] = m
	}
	return do(f)
}

// errSSH says that only this machine can be a host.
var errSSH = errors.New("hosts over SSH are not in this version")

// atHost puts the line of the file before what went wrong with a host.
func atHost(x lab.Experiment, i int, err error) error {
	at, known := position(x, fmt.Sprintf("hosts.%s", x.Hosts[i].Name))
	err = fmt.Errorf("%shost %s: %w", place(x.File, at, known), x.Hosts[i].Name, err)
	if errors.Is(err, errSSH) {
		return &hinted{err: err, hint: "write {local: true, roles: [target, load]} to use this machine"}
	}
	return err
}

func (f *fleet) close() error {
	var errs []error
	for _, name := range f.names {
		if err := f.machines[name].close(); err != nil {
			errs = append(errs, fmt.Errorf("leave %s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// claim takes the lock of every host for the campaign.
func (f *fleet) claim(ctx context.Context, c lab.CampaignID) error {
	for _, name := range f.names {
		if err := f.machines[name].claim(ctx, c); err != nil {
			return err // it names the host
		}
	}
	return nil
}

// facts asks every host what the experiment needs to know.
func (f *fleet) facts(ctx context.Context, x lab.Experiment) (map[lab.HostName]lab.Facts, error) {
	all := map[lab.HostName]lab.Facts{}
	for _, name := range f.names {
		facts, err := f.machines[name].facts(ctx, plan.Query(x))
		if err != nil {
			return nil, fmt.Errorf("facts of %s: %w", name, err)
		}
		facts.Host = name
		all[name] = facts
	}
	return all, nil
}

// conducted is the fleet as the engine takes it.
func (f *fleet) conducted() map[lab.HostName]conduct.Machine {
	all := map[lab.HostName]conduct.Machine{}
	for name, m := range f.machines {
		all[name] = m.Machine
	}
	return all
}

// recover puts back what an earlier campaign left on the hosts, before any value is read as an original one.
func (a *app) recover(ctx context.Context, f *fleet) error {
	for _, name := range f.names {
		pending, err := f.machines[name].pending(ctx)
		if err != nil {
			return fmt.Errorf("pending changes of %s: %w", name, err)
		}
		if len(pending) == 0 {
			continue
		}
		a.note("%s: campaign %s left %s changed; putting it back first", name, pending[0].Campaign, count(len(pending), "knob"))
		if err := a.putBack(ctx, f.machines[name]); err != nil {
			return errors.Join(err, &unrestoredError{hosts: []lab.HostName{name}, restore: a.restoreCommand()})
		}
	}
	return nil
}

// restoreTimeout bounds putting a host back, which a cancelled ctx does not stop half-way.
const restoreTimeout = 60 * time.Second

// putBack restores a host from its journal. Until that is done, leaving at once leaves it changed.
func (a *app) putBack(ctx context.Context, m *machine) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), restoreTimeout)
	defer cancel()
	a.touching.Store(true)
	_, err := m.Restore(ctx)
	a.touching.Store(err != nil)
	return err
}

// pendingNote tells what an earlier campaign left on the hosts, for commands that change nothing.
func (a *app) pendingNote(ctx context.Context, f *fleet) error {
	for _, name := range f.names {
		pending, err := f.machines[name].pending(ctx)
		if err != nil {
			return fmt.Errorf("pending changes of %s: %w", name, err)
		}
		if len(pending) > 0 {
			a.note("%s: campaign %s left %s changed: the values below are not the original ones", name, pending[0].Campaign, count(len(pending), "knob"))
			a.note("hint: run %q", a.restoreCommand())
		}
	}
	return nil
}
