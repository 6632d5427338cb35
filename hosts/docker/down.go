package docker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"ngxlab/lab"
)

// Removed is what was removed, by name.
type Removed struct {
	Containers []string
	Networks   []string
	Keys       []string // directories
}

// Down removes what carries the label of a lab and the lab's key; nothing else, and nothing of it left is no error. What
// could not be removed is in the error, and is tried again by the next call. A lab that a campaign holds, or that is
// another user's, is a *Problem of kind Held or Foreign, and stays.
func (e *Engine) Down(ctx context.Context, name string) (Removed, error) {
	return e.down(ctx, name, func(ctx context.Context, boxes []box, networks []bridge) error {
		if p := e.foreign(name, boxes, networks); p != nil {
			return p
		}
		if err := e.held(ctx, name, boxes); err != nil {
			return fmt.Errorf("lab %s: %w", name, err)
		}
		return nil
	})
}

// ForceDown is Down of a lab whoever made it, and whatever holds it.
func (e *Engine) ForceDown(ctx context.Context, name string) (Removed, error) {
	return e.down(ctx, name, func(context.Context, []box, []bridge) error { return nil })
}

// down removes a lab unless may has something against it.
func (e *Engine) down(ctx context.Context, name string, may func(context.Context, []box, []bridge) error) (Removed, error) {
	if !labName.MatchString(name) {
		return Removed{}, nil // no lab can have this name
	}
	unlock, err := e.lock(ctx, name)
	if err != nil {
		return Removed{}, err
	}
	defer unlock()
	boxes, networks, err := e.parts(ctx, name)
	if err != nil {
		return Removed{}, err
	}
	if err := may(ctx, boxes, networks); err != nil {
		return Removed{}, err
	}
	var removed Removed
	err = e.during("removing the hosts of lab "+name, func() error {
		removed, err = e.removeAll(ctx, boxes, networks)
		return err
	})
	if err != nil {
		return removed, fmt.Errorf("lab %s: %w", name, err) // the key is kept: a host may still be there
	}
	k := keys{dir: e.labDir(name)}
	if _, err := os.Stat(k.dir); errors.Is(err, fs.ErrNotExist) {
		return removed, nil
	}
	if err := k.remove(); err != nil {
		return removed, fmt.Errorf("lab %s: remove its key: %w", name, err)
	}
	removed.Keys = []string{k.dir}
	return removed, nil
}

// RemoveImages removes the images that ngxlab made on this engine and returns their names. One that a container was
// made from stays and is an error. Images that an experiment names, and what was fetched to build on, are not ours.
func (e *Engine) RemoveImages(ctx context.Context) ([]string, error) {
	refs, err := e.api.ownImages(ctx, labelImage)
	if err != nil {
		return nil, fmt.Errorf("list the images: %w", err)
	}
	var removed []string
	var errs []error
	for _, ref := range refs {
		if err := e.api.removeImage(ctx, ref); err != nil {
			errs = append(errs, fmt.Errorf("remove image %s: %w", ref, err))
			continue
		}
		removed = append(removed, ref)
	}
	return removed, errors.Join(errs...)
}

// LabStatus is a lab, or what is left of one.
type LabStatus struct {
	Name    string
	Owner   string // who made it, "ana@desk"; "" = it does not say
	Network string // "" = it has none
	Subnet  string // in CIDR notation
	Created time.Time
	Hosts   []Container // by name
}

// Labs returns what there is of labs on the engine, whoever made them, by name.
func (e *Engine) Labs(ctx context.Context) ([]LabStatus, error) {
	boxes, err := e.api.boxes(ctx, map[string]string{labelLab: ""})
	if err != nil {
		return nil, err
	}
	networks, err := e.api.networks(ctx, map[string]string{labelLab: ""})
	if err != nil {
		return nil, err
	}
	found := map[string]*LabStatus{}
	named := func(labels map[string]string, created time.Time) *LabStatus {
		name := labels[labelLab]
		s := found[name]
		if s == nil {
			s = &LabStatus{Name: name, Created: created}
			found[name] = s
		}
		if s.Owner == "" {
			s.Owner = labels[labelOwner]
		}
		if created.Before(s.Created) {
			s.Created = created
		}
		return s
	}
	for _, n := range networks {
		s := named(n.labels, n.created)
		s.Network, s.Subnet = n.name, n.subnet
	}
	for _, b := range boxes {
		s := named(b.labels, b.created)
		s.Hosts = append(s.Hosts, e.containerOf(b))
	}
	var all []LabStatus
	for _, s := range found {
		all = append(all, *s)
	}
	slices.SortFunc(all, func(a, b LabStatus) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// status is what there is of one lab.
func (e *Engine) status(ctx context.Context, name string) (LabStatus, error) {
	labs, err := e.Labs(ctx)
	if err != nil {
		return LabStatus{}, err
	}
	for _, s := range labs {
		if s.Name == name {
			return s, nil
		}
	}
	return LabStatus{Name: name}, nil
}

func (e *Engine) containerOf(b box) Container {
	name := b.labels[labelLab]
	c := Container{
		Host: lab.HostName(b.labels[labelHost]), Name: b.name, ID: b.id, State: b.state, Made: b.labels[labelMade], Created: b.created,
		Address: b.address[networkName(name)], HostKey: b.labels[labelHostKey],
	}
	k := keys{dir: e.labDir(name)}
	if !labName.MatchString(name) {
		return c // a label that another has set
	}
	if _, err := os.Stat(k.private()); err == nil {
		c.Key, c.KnownHosts = k.private(), k.knownHosts()
	}
	return c
}
