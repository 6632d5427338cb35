package load

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"ngxlab/lab"
)

// portsShare is the share of the ephemeral ports of one source address that may be in use at once: beyond it connect()
// searches long and fails (findings: client-ports).
const portsShare = 0.9

// Check returns what forbids a load point, known before anything runs: from the load point, and the facts of its load
// hosts. Every refusal is fatal and has both numbers and a cure; Path leads into Experiment.Where.
func Check(p lab.LoadPoint, facts map[lab.HostName]lab.Facts) []lab.Refusal {
	c := checker{p: p, facts: facts}
	tool, ok := Named(p.Tool)
	if !ok {
		c.refuse("", "tool", fmt.Sprintf("the lab does not drive %q", p.Tool), "use wrk or ab")
		return c.refused
	}
	c.tool = tool
	c.installed()
	c.length()
	for _, part := range (driver{p: p, tool: tool, facts: facts}).parts() {
		c.process(part)
	}
	for _, host := range p.Hosts {
		c.ports(host)
	}
	return c.refused
}

type checker struct {
	p       lab.LoadPoint
	tool    Tool
	facts   map[lab.HostName]lab.Facts
	refused []lab.Refusal
}

// refuse adds a refusal once.
func (c *checker) refuse(host lab.HostName, key, reason, cure string) {
	r := lab.Refusal{Host: host, Path: fmt.Sprintf("load[%d].%s", c.p.Spec, key), Reason: reason, Cure: cure, Fatal: true}
	for _, before := range c.refused {
		if before == r {
			return
		}
	}
	c.refused = append(c.refused, r)
}

func (c *checker) installed() {
	for _, host := range c.p.Hosts {
		f := c.facts[host]
		if f.Commands[c.tool.Command] == "" && !f.CanInstall {
			cure := fmt.Sprintf("install the package %s on %s", c.tool.Package, host)
			if !f.Root {
				cure += ", or let the lab be root"
			}
			c.refuse(host, "tool", fmt.Sprintf("%s is not installed on %s, and the lab cannot install it there", c.tool.Command, host), cure)
		}
	}
}

// length checks the fixed count or the time.
func (c *checker) length() {
	switch {
	case !c.p.Timed() && !c.tool.FixedCount:
		c.refuse("", "requests", c.tool.Name+" runs for a time; it cannot send a fixed number of requests", "give duration, or use ab")
	case !c.p.Timed() && c.p.Requests < c.p.Connections:
		c.refuse("", "requests", fmt.Sprintf("%d requests are fewer than %d connections", c.p.Requests, c.p.Connections),
			fmt.Sprintf("ask for at least %d requests, 20 for each connection", 20*c.p.Connections))
	case c.p.Timed() && c.p.Duration.Duration%time.Second != 0:
		c.refuse("", "duration", fmt.Sprintf("%s takes whole seconds, %s is none", c.tool.Name, c.p.Duration),
			fmt.Sprintf("duration: %ds", wholeSeconds(c.p.Duration.Duration)))
	}
}

func (c *checker) process(part part) {
	s := part.share
	if most := c.tool.MaxConnections; most > 0 && s.Connections > most {
		c.refuse(part.host, "connections", fmt.Sprintf("%d connections in one process of %s are more than its limit of %d", s.Connections, c.tool.Name, most),
			fmt.Sprintf("processes: %d", (c.p.Connections+len(c.p.Hosts)*most-1)/(len(c.p.Hosts)*most)))
	}
	if hard := c.facts[part.host].NofileHard; hard > 0 && files(s) > hard {
		c.refuse(part.host, "connections", fmt.Sprintf("%d connections in one process need %d open files, the hard limit on %s is %d", s.Connections, files(s), part.host, hard),
			fmt.Sprintf("processes: %d, or raise the hard limit", processesFor(c.p, hard-files(s)+s.Connections)))
	}
	if s.Threads > 0 && s.Connections%s.Threads != 0 {
		c.refuse(part.host, "threads", fmt.Sprintf("%d connections in one process are no multiple of %d threads: %s would open %d and report %d",
			s.Connections, s.Threads, c.tool.Name, s.Connections/s.Threads*s.Threads, s.Connections),
			"choose connections that are a multiple of hosts × processes × threads, or leave threads out")
	}
}

// processesFor is how many processes per host keep each within most connections.
func processesFor(p lab.LoadPoint, most int) int {
	n := max(p.Processes, 1)
	for most > 0 && (p.Connections+len(p.Hosts)*n-1)/(len(p.Hosts)*n) > most {
		n++
	}
	return n
}

// ports checks the connections of a host, all from one source address, against its ephemeral ports.
func (c *checker) ports(host lab.HostName) {
	ports, known := ephemeralPorts(c.facts[host].Sysctls)
	connections := 0
	for _, part := range (driver{p: c.p, tool: c.tool, facts: c.facts}).parts() {
		if part.host == host {
			connections += part.share.Connections
		}
	}
	if room := int(portsShare * float64(ports)); known && connections > room {
		c.refuse(host, "connections", fmt.Sprintf("%d connections from one address of %s are more than %d, %g of its %d ephemeral ports", connections, host, room, portsShare, ports),
			"use fewer connections or more load hosts, or widen net.ipv4.ip_local_port_range in the first step, with on: [load]")
	}
}

// ephemeralPorts is the size of net.ipv4.ip_local_port_range less the reserved ports in it.
func ephemeralPorts(sysctls map[string]string) (int, bool) {
	bounds := strings.Fields(sysctls["net.ipv4.ip_local_port_range"])
	if len(bounds) != 2 {
		return 0, false
	}
	low, err1 := strconv.Atoi(bounds[0])
	high, err2 := strconv.Atoi(bounds[1])
	if err1 != nil || err2 != nil || low > high {
		return 0, false
	}
	return high - low + 1 - reservedPorts(sysctls["net.ipv4.ip_local_reserved_ports"], low, high), true
}

// reservedPorts counts the ports of a list such as "8080,9000-9010" that lie between low and high. The kernel writes
// the list, ascending and without overlap.
func reservedPorts(list string, low, high int) int {
	n := 0
	for _, entry := range strings.Split(strings.TrimSpace(list), ",") {
		first, last, isRange := strings.Cut(entry, "-")
		if !isRange {
			last = first
		}
		from, err1 := strconv.Atoi(first)
		to, err2 := strconv.Atoi(last)
		if err1 == nil && err2 == nil {
			n += max(min(to, high)-max(from, low)+1, 0)
		}
	}
	return n
}
