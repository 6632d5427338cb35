package main

import (
	"context"
	"errors"
	"slices"

	"ngxlab/lab"
	"ngxlab/lab/conduct"
)

// lender is this machine, for builds that a container cannot make: the host of the fleet that it is, else one attached and
// claimed for as long as a build takes.
func (a *app) lender(f *fleet, c lab.CampaignID) *conduct.Lender {
	if i := slices.IndexFunc(f.x.Hosts, func(h lab.Host) bool { return h.Local }); i >= 0 {
		open := func(context.Context) (conduct.Builder, func() error, error) {
			return f.machines[i].Builder, func() error { return nil }, nil
		}
		return &conduct.Lender{Name: f.x.Hosts[i].Name, Open: open}
	}
	here := lab.Host{Name: "this machine", Local: true}
	open := func(ctx context.Context) (conduct.Builder, func() error, error) {
		m, err := a.attach(ctx, "", here)
		if err != nil {
			return nil, nil, err
		}
		if err := m.claim(ctx, c); err != nil {
			return nil, nil, errors.Join(err, m.close())
		}
		return m.Builder, m.close, nil
	}
	return &conduct.Lender{Name: here.Name, Open: open}
}
