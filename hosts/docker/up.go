package docker

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"net/netip"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"golang.org/x/sync/errgroup"

	"ngxlab/lab"
)

// Lab is what Up makes.
type Lab struct {
	Name    string
	Hosts   []lab.Host // those that are throwaway hosts; the others are passed over
	Subnet  string     // of its network, in CIDR notation; "" = the engine's choice
	Version string     // of this program, noted on what is made; "" = not noted
}

// Container is one host of a lab that is there.
type Container struct {
	Host    lab.HostName
	Name    string // of the container
	ID      string
	State   string // "running", "paused", "exited" …
	Made    string // image and bounds
	Created time.Time

	Address    string // on the lab's network; "" while it does not run
	HostKey    string // "ssh-ed25519 AAAA…"
	Key        string // path of the private key that opens root and bench; "" when it is not kept here
	KnownHosts string // path of a file with the lab's host keys; "" likewise
}

// The users that a lab's key opens: root, and one that may use sudo without a password.
const (
	RootUser = "root"
	User     = "bench"
)

// together is how many containers are made, or removed, at the same time.
const together = 4

// labName is what Docker takes as a name. It names a directory, too: the first character keeps "." and ".." out.
var labName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,99}$`)

func containerName(lab string, host lab.HostName) string { return "ngxlab-" + lab + "-" + string(host) }
func networkName(lab string) string                      { return "ngxlab-" + lab }

// Up makes what is missing of a lab: its key, image, network and containers, and starts or wakes those that do not run.
// A host that was made otherwise than it should be now is made again, which is said. One that a campaign holds is not, and a lab of another owner is left
// alone: those are errors. On an error what this call made is removed again; the error names the host. The containers come in the order of the hosts.
func (e *Engine) Up(ctx context.Context, l Lab) ([]Container, error) {
	l.Hosts = slices.DeleteFunc(slices.Clone(l.Hosts), func(h lab.Host) bool { return h.Docker == nil })
	if err := l.check(); err != nil {
		return nil, err
	}
	unlock, err := e.lock(ctx, l.Name)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := e.Own(ctx, l.Name); err != nil {
		return nil, err
	}
	m := &making{Engine: e, lab: l}
	containers, err := m.all(ctx)
	if err != nil {
		ctx, cancel := detached(ctx)
		defer cancel()
		return nil, errors.Join(fmt.Errorf("lab %s: %w", l.Name, err), m.undo(ctx))
	}
	return containers, nil
}

// nameCure is the advice for a name that is no labName.
const nameCure = "Docker's names have letters, digits, dots, dashes and underscores, and begin with a letter or a digit"

func (l Lab) check() error {
	if !labName.MatchString(l.Name) {
		return &Problem{Kind: BadHost, What: fmt.Sprintf("a lab cannot be named %q", l.Name), Cure: nameCure}
	}
	if len(l.Hosts) == 0 {
		return &Problem{Kind: BadHost, What: "lab " + l.Name + " has no throwaway hosts"}
	}
	if p := l.badSubnet(); p != nil {
		return p
	}
	for _, h := range l.Hosts {
		if !labName.MatchString(string(h.Name)) {
			return &Problem{Kind: BadHost, What: fmt.Sprintf("lab %s: a host cannot be named %q", l.Name, h.Name), Cure: nameCure}
		}
	}
	return nil
}

// badSubnet tells what keeps the addresses asked for from being those of the lab's network.
func (l Lab) badSubnet() *Problem {
	if l.Subnet == "" {
		return nil
	}
	bad := func(cure, format string, args ...any) *Problem {
		return &Problem{Kind: BadSubnet, What: fmt.Sprintf("the subnet %s ", l.Subnet) + fmt.Sprintf(format, args...), Cure: cure}
	}
	p, err := netip.ParsePrefix(l.Subnet)
	if err != nil {
		return bad("write it as 10.99.0.0/24", "is none")
	}
	taken := len(l.Hosts) + 3 // its first and last address, and the engine's own
	switch need := 32 - bits.Len(uint(taken-1)); {
	case !p.Addr().Is4():
		return bad("write it as 10.99.0.0/24", "has IPv6 addresses, and a lab's network has IPv4 ones")
	case p.Bits() > need:
		return bad(fmt.Sprintf("ask for %s or a larger one", netip.PrefixFrom(p.Addr(), need).Masked()),
			"is too small: it has %d of the %d addresses that are needed, one for each host and three for the network", 1<<(32-p.Bits()), taken)
	case p.Masked() != p:
		return bad(fmt.Sprintf("ask for %s", p.Masked()), "names one host in a network")
	}
	return nil
}

// making is one Up under way.
type making struct {
	*Engine
	lab     Lab
	keys    keys
	newKeys bool
	there   map[lab.HostName]box // that were there; made names whether they are as they should be
	before  []string             // ids of the lab's containers and networks that were there
	images  map[string]string    // as asked for → to use
	warned  sync.Map             // what the engine warned of, once each
}

func (m *making) all(ctx context.Context) ([]Container, error) {
	if err := m.look(ctx); err != nil {
		return nil, err
	}
	var err error
	if m.keys, m.newKeys, err = openKeys(m.labDir(m.lab.Name)); err != nil {
		return nil, err
	}
	if err := m.prepare(ctx); err != nil {
		return nil, err
	}
	if err := m.held(ctx, m.lab.Name, m.replaced()); err != nil {
		return nil, fmt.Errorf("make again what is to be otherwise: %w", err)
	}
	made, err := m.hosts(ctx)
	if err != nil {
		return nil, err
	}
	for i := range made {
		if err := m.settle(ctx, &made[i]); err != nil {
			return nil, fmt.Errorf("host %s: %w", m.lab.Hosts[i].Name, err)
		}
	}
	return m.containers(ctx)
}

// look notes what is there already, and removes what an earlier call left half-way.
func (m *making) look(ctx context.Context) error {
	boxes, networks, err := m.parts(ctx, m.lab.Name)
	if err != nil {
		return err
	}
	m.before, m.there = []string{}, map[lab.HostName]box{}
	for _, b := range boxes {
		if b.name != containerName(m.lab.Name, lab.HostName(b.labels[labelHost])) { // an Up was killed before it took its place
			if err := m.api.remove(ctx, b.id); err != nil {
				return fmt.Errorf("remove container %s: %w", b.name, err)
			}
			continue
		}
		m.before = append(m.before, b.id)
		m.there[lab.HostName(b.labels[labelHost])] = b
		asked := func(h lab.Host) bool { return string(h.Name) == b.labels[labelHost] }
		if !slices.ContainsFunc(m.lab.Hosts, asked) {
			m.say(fmt.Sprintf("lab %s: host %s is there, and is not asked for any more; it stays until the lab is taken down", m.lab.Name, b.labels[labelHost]))
		}
	}
	for _, n := range networks {
		m.before = append(m.before, n.id)
	}
	return nil
}

// prepare finds or makes what the hosts share: images and the network.
func (m *making) prepare(ctx context.Context) error {
	m.images = map[string]string{}
	for _, h := range m.lab.Hosts {
		if err := m.canBound(h); err != nil {
			return err
		}
		if _, known := m.images[h.Docker.Image]; known {
			continue
		}
		ref, err := m.image(ctx, h.Docker.Image)
		if err != nil {
			return fmt.Errorf("host %s: %w", h.Name, err)
		}
		m.images[h.Docker.Image] = ref
	}
	return m.bridge(ctx)
}

// bridge makes the lab's network unless it is there.
func (m *making) bridge(ctx context.Context) error {
	name := networkName(m.lab.Name)
	n, there, err := m.api.network(ctx, name)
	if err != nil {
		return fmt.Errorf("look for the network %s: %w", name, err)
	}
	if !there || n.name != name { // an id may begin like the name
		return m.newBridge(ctx, name)
	}
	if n.labels[labelLab] != m.lab.Name {
		return inUse("network", name)
	}
	if m.lab.Subnet != "" && m.lab.Subnet != n.subnet {
		return &Problem{Kind: AddressClash, What: fmt.Sprintf("the lab's network has the subnet %s already, not %s", n.subnet, m.lab.Subnet), Cure: "take the lab down first"}
	}
	return nil
}

func (m *making) newBridge(ctx context.Context, name string) error {
	_, err := m.api.makeNetwork(ctx, name, m.lab.Subnet, m.labels())
	switch {
	case err == nil:
		return nil
	case errdefs.IsConflict(err):
		return inUse("network", name)
	case ctx.Err() != nil:
		return err
	}
	p := &Problem{Kind: AddressClash, What: "make the network " + name, Err: err,
		Cure: "remove networks that are not used any more (docker network ls), name addresses that are free (hosts up --subnet), or give the engine more (default-address-pools in its daemon.json)"}
	if m.lab.Subnet != "" {
		p.What += " with the subnet " + m.lab.Subnet
		p.Cure = "ask for a subnet that no network and no route of the engine's machine has" + m.overlapping(ctx)
	}
	return p
}

// overlapping names the networks whose subnets overlap with the one asked for.
func (m *making) overlapping(ctx context.Context) string {
	asked, err := netip.ParsePrefix(m.lab.Subnet)
	all, listed := m.api.networks(ctx, nil)
	if err != nil || listed != nil {
		return ""
	}
	text := ""
	for _, n := range all {
		if has, err := netip.ParsePrefix(n.subnet); err == nil && has.Overlaps(asked) {
			text += fmt.Sprintf("; the network %s has %s", n.name, n.subnet)
		}
	}
	return text
}

func inUse(what, name string) error {
	return &Problem{Kind: NameInUse, What: fmt.Sprintf("there is a %s %s that does not belong to this lab", what, name),
		Cure: "rename or remove it, or give the experiment another name"}
}

// labels are those of everything that this lab has.
func (m *making) labels() map[string]string {
	labels := map[string]string{labelLab: m.lab.Name, labelKey: m.keys.public}
	if m.owner != "" {
		labels[labelOwner] = m.owner
	}
	if m.lab.Version != "" {
		labels[labelVersion] = m.lab.Version
	}
	return labels
}

// hosts sees to every host, several at a time. The first error ends them all.
func (m *making) hosts(ctx context.Context) ([]swap, error) {
	made := make([]swap, len(m.lab.Hosts))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(together)
	for i, h := range m.lab.Hosts {
		group.Go(func() error {
			s, err := m.host(ctx, h)
			if err != nil {
				return fmt.Errorf("host %s: %w", h.Name, err)
			}
			made[i] = s
			return nil
		})
	}
	return made, m.during("starting the hosts of lab "+m.lab.Name, group.Wait)
}

// containers tells what is there now, in the order of the hosts, and writes the lab's known hosts.
func (m *making) containers(ctx context.Context) ([]Container, error) {
	status, err := m.status(ctx, m.lab.Name)
	if err != nil {
		return nil, err
	}
	if err := m.keys.know(status.Hosts); err != nil {
		return nil, err
	}
	var asked []Container
	for _, h := range m.lab.Hosts {
		for _, c := range status.Hosts {
			if c.Host == h.Name {
				c.Key, c.KnownHosts = m.keys.private(), m.keys.knownHosts()
				asked = append(asked, c)
			}
		}
	}
	if len(asked) != len(m.lab.Hosts) {
		return nil, fmt.Errorf("%d of %d hosts are there: some were removed meanwhile", len(asked), len(m.lab.Hosts))
	}
	return asked, nil
}

// undo removes what was not there before.
func (m *making) undo(ctx context.Context) error {
	if m.before == nil { // nothing was done
		return nil
	}
	boxes, networks, err := m.parts(ctx, m.lab.Name)
	kept := func(id string, labels map[string]string) bool { // another's may have come meanwhile
		return slices.Contains(m.before, id) || labels[labelKey] != m.keys.public
	}
	_, removed := m.removeAll(ctx, slices.DeleteFunc(boxes, func(b box) bool { return kept(b.id, b.labels) }),
		slices.DeleteFunc(networks, func(n bridge) bool { return kept(n.id, n.labels) }))
	err = errors.Join(err, removed)
	if m.newKeys {
		err = errors.Join(err, m.keys.remove())
	}
	return err
}

// removeMost bounds the removal of what a lab has: an engine can be stuck with a container.
const removeMost = time.Minute

// removeAll removes containers, then networks, and returns the names of those removed.
func (e *Engine) removeAll(ctx context.Context, boxes []box, networks []bridge) (Removed, error) {
	ctx, cancel := context.WithTimeout(ctx, removeMost)
	defer cancel()
	var removed Removed
	var mu sync.Mutex
	var errs []error
	var group errgroup.Group
	group.SetLimit(together)
	for _, b := range boxes {
		group.Go(func() error {
			err := e.api.remove(ctx, b.id)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				errs = append(errs, fmt.Errorf("remove container %s: %w", b.name, err))
				return nil
			}
			removed.Containers = append(removed.Containers, b.name)
			return nil
		})
	}
	_ = group.Wait()
	slices.Sort(removed.Containers)
	for _, n := range networks {
		if err := e.api.removeNetwork(ctx, n.id); err != nil {
			errs = append(errs, fmt.Errorf("remove network %s: %w%s", n.name, err, e.attached(ctx, n.id)))
			continue
		}
		removed.Networks = append(removed.Networks, n.name)
	}
	return removed, errors.Join(errs...)
}

// attached names the containers in a network that cannot be removed.
func (e *Engine) attached(ctx context.Context, id string) string {
	if n, there, err := e.api.network(ctx, id); err == nil && there && len(n.attached) > 0 {
		return fmt.Sprintf(" (in it: %v)", n.attached)
	}
	return ""
}
