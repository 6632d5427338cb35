package main

import (
	"context"
	"errors"
	"io"
	"slices"

	"ngxlab/lab"
	"ngxlab/lab/conduct"
)

// lent is the Builder of a container. Containers may have no way out to fetch the source of a build: what one cannot make
// is made by this machine and copied.
type lent struct {
	conduct.Builder
	name lab.HostName
	here func(ctx context.Context) (conduct.Builder, func() error, error) // this machine, and what lets it go
	say  func(format string, args ...any)
}

// Build makes a recipe in the container, else here. When that does not work either, the container's error counts.
func (l lent) Build(ctx context.Context, r lab.Recipe, log io.Writer) (lab.Build, error) {
	b, err := l.Builder.Build(ctx, r, log)
	if err == nil || ctx.Err() != nil || errors.Is(err, lab.ErrLost) {
		return b, err
	}
	l.say("%s: the build %s cannot be made there; trying to make it on this machine and to copy it", l.name, r.Name)
	copied, failed := l.copied(ctx, r, log)
	if failed != nil {
		l.say("%s: the build %s cannot be lent by this machine: %v", l.name, r.Name, failed)
		return b, err
	}
	return copied, nil
}

// copied makes a recipe on this machine, or finds it made, and copies it into the container.
func (l lent) copied(ctx context.Context, r lab.Recipe, log io.Writer) (b lab.Build, err error) {
	here, leave, err := l.here(ctx)
	if err != nil {
		return b, err
	}
	defer func() { err = errors.Join(err, leave()) }()
	if b, err = here.Build(ctx, r, log); err != nil {
		return b, err
	}
	return carry(ctx, b, here, l.Builder)
}

// carry copies a build from one host to another, as a stream.
func carry(ctx context.Context, b lab.Build, from, to conduct.Builder) (lab.Build, error) {
	r, w := io.Pipe()
	exported := make(chan error, 1)
	go func() {
		err := from.Export(ctx, b, w)
		exported <- errors.Join(err, w.CloseWithError(err))
	}()
	got, err := to.Import(ctx, b, r)
	return got, errors.Join(err, r.Close(), <-exported)
}

// thisMachine is the Builder of this machine: that of the fleet when it is one of the hosts, else one attached and
// claimed for as long as it takes.
func (a *app) thisMachine(f *fleet, c lab.CampaignID) func(ctx context.Context) (conduct.Builder, func() error, error) {
	return func(ctx context.Context) (conduct.Builder, func() error, error) {
		if i := slices.IndexFunc(f.x.Hosts, func(h lab.Host) bool { return h.Local }); i >= 0 {
			return f.machines[i].Builder, func() error { return nil }, nil
		}
		m, err := a.attach(ctx, "", lab.Host{Name: "this machine", Local: true})
		if err != nil {
			return nil, nil, err
		}
		if err := m.claim(ctx, c); err != nil {
			return nil, nil, errors.Join(err, m.close())
		}
		return m.Builder, m.close, nil
	}
}
