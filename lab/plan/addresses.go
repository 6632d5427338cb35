package plan

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"ngxlab/lab"
)

// addresses finds where load hosts reach each target, and refuses what they cannot reach.
func (p *planner) addresses() error {
	p.reached = map[lab.HostName]string{}
	for _, target := range p.targets {
		p.reached[target.Name] = p.plan.LoadAddress(target.Name)
		if others := p.others(target.Name); len(others) > 0 {
			p.refuseUnreachable(target, fromLoad, others)
		}
		if u := p.e.Server.Upstream; u != nil && u.Host != target.Name {
			p.refuseUnreachable(p.host(u.Host), fromTarget, []lab.HostName{target.Name})
		}
	}
	return nil
}

// What comes to a server.
const (
	fromLoad   = "load"
	fromTarget = "proxied load"
)

// via is where a target reaches the host of its upstream: itself, or where others do.
func (p *planner) via(target, upstream lab.HostName) string {
	if target == upstream {
		return lab.Loopback
	}
	return p.plan.LoadAddress(upstream)
}

// reach is where these load hosts reach the target: what the file says, itself, or where others do.
func (p *planner) reach(target lab.Host, hosts []lab.HostName) string {
	others := slices.ContainsFunc(hosts, func(host lab.HostName) bool { return host != target.Name })
	if target.LoadAt == "" && !others {
		return lab.Loopback
	}
	return p.reached[target.Name]
}

// others are the load hosts that load a target from elsewhere, in the order of the file.
func (p *planner) others(target lab.HostName) []lab.HostName {
	var used []lab.HostName
	for _, l := range p.plan.Loads {
		used = append(used, l.Hosts...)
	}
	if p.e.Capacity != nil && target == p.targets[0].Name {
		used = append(used, p.holdingHosts(target)...)
	}
	return slices.DeleteFunc(p.loadHosts(), func(host lab.HostName) bool { return host == target || !slices.Contains(used, host) })
}

// refuseUnreachable says when a server cannot be reached by those that send it what comes.
func (p *planner) refuseUnreachable(target lab.Host, what string, others []lab.HostName) {
	address, path := p.plan.LoadAddress(target.Name), "hosts."+string(target.Name)
	if target.LoadAt != "" {
		path += ".load_address"
	}
	from := named(others)
	cure := fmt.Sprintf("give %s the address at which %s reaches it: load_address: ADDRESS", target.Name, others[0])
	var reason string
	switch {
	case address == "":
		reason = fmt.Sprintf("where %s reaches %s is not known", from, target.Name)
	case target.Local && target.LoadAt == "":
		reason = fmt.Sprintf("%s on %s comes from %s, and the server of this machine is open to itself only", what, target.Name, from)
		cure += ` ("ip -br address" lists those of this machine; containers reach it at the gateway of their network)`
	case isLoopback(address):
		reason = fmt.Sprintf("%s is at %s, which on %s is that host itself", target.Name, address, from)
	case strings.Contains(address, "%"):
		reason = fmt.Sprintf("%s is at %s, and load tools take no address with a zone", target.Name, address)
	default:
		return
	}
	p.refuse(lab.Refusal{Host: target.Name, Path: path, Reason: reason, Cure: cure, Fatal: true})
}

// isLoopback reports whether an address is every host's own.
func isLoopback(address string) bool {
	if ip, err := netip.ParseAddr(address); err == nil {
		return ip.Unmap().IsLoopback()
	}
	name := strings.TrimSuffix(strings.ToLower(address), ".")
	return name == "localhost" || strings.HasSuffix(name, ".localhost") || name == "ip6-localhost"
}

// named is "a", "a and b", "a, b and c".
func named(names []lab.HostName) string {
	words := make([]string, len(names))
	for i, name := range names {
		words[i] = string(name)
	}
	if n := len(words); n > 1 {
		return strings.Join(words[:n-1], ", ") + " and " + words[n-1]
	}
	return strings.Join(words, "")
}
