package docker

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/network"
)

// bridge is a network as the engine tells of it.
type bridge struct {
	id, name string
	labels   map[string]string
	subnet   string // the first one, in CIDR notation
	created  time.Time
	attached []string // the names of the running containers in it
}

func bridgeOf(n network.Inspect) bridge {
	b := bridge{id: n.ID, name: n.Name, labels: n.Labels, created: n.Created}
	if len(n.IPAM.Config) > 0 {
		b.subnet = n.IPAM.Config[0].Subnet
	}
	for _, c := range n.Containers {
		b.attached = append(b.attached, c.Name)
	}
	slices.Sort(b.attached)
	return b
}

// network reports false when there is no network of that name.
func (a *api) network(ctx context.Context, name string) (bridge, bool, error) {
	n, err := a.client.NetworkInspect(ctx, name, network.InspectOptions{})
	if errdefs.IsNotFound(err) {
		return bridge{}, false, nil
	}
	return bridgeOf(n), err == nil, err
}

// makeNetwork makes a bridge; subnet "" is the engine's choice. It is not cut short, as make is not.
func (a *api) makeNetwork(ctx context.Context, name, subnet string, labels map[string]string) (string, error) {
	o := network.CreateOptions{Driver: "bridge", Labels: labels}
	if subnet != "" {
		o.IPAM = &network.IPAM{Config: []network.IPAMConfig{{Subnet: subnet}}}
	}
	ctx, cancel := detached(ctx)
	defer cancel()
	made, err := a.client.NetworkCreate(ctx, name, o)
	return made.ID, err
}

// networks returns those that have all of the labels, as boxes does, without what is attached to them.
func (a *api) networks(ctx context.Context, labels map[string]string) ([]bridge, error) {
	list, err := a.client.NetworkList(ctx, network.ListOptions{Filters: withLabels(labels)})
	if err != nil {
		return nil, fmt.Errorf("list the networks: %w", err)
	}
	var all []bridge
	for _, n := range list {
		all = append(all, bridgeOf(n))
	}
	slices.SortFunc(all, func(a, b bridge) int { return strings.Compare(a.name, b.name) })
	return all, nil
}

// removeNetwork removes a network; one that is gone already is no error.
func (a *api) removeNetwork(ctx context.Context, id string) error {
	if err := a.client.NetworkRemove(ctx, id); err != nil && !errdefs.IsNotFound(err) {
		return err
	}
	return nil
}
