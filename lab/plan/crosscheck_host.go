package plan

import (
	"fmt"
	"strconv"
	"strings"

	"ngxlab/lab"
)

// pageBytes is the unit of tcp_mem.
const pageBytes = 4096

// tcpMemory: above the memory there is, TCP is never told to save before the host runs out.
func tcpMemory(v sight) {
	const name = "net.ipv4.tcp_mem"
	pages, memory := v.numbers(name), v.facts.BoundBytes()
	if len(pages) != 3 || memory == 0 || pages[2] <= memory/pageBytes || !v.set(sysctl(name)) {
		return
	}
	mib := make([]string, len(pages))
	for i, n := range pages {
		mib[i] = strconv.FormatInt(n*pageBytes>>20, 10)
	}
	v.say(sysctl(name), "%s = %s pages lets TCP take %s MiB, the host has %d MiB: memory ends before TCP is told to save",
		name, strings.Join(strings.Fields(v.facts.Sysctls[name]), " "), strings.Join(mib, ", "), memory>>20)
}

// socketBuffers: a default above the maximum is what a socket gets that asks for nothing, and more than one may ask for.
func socketBuffers(v sight) {
	for _, side := range []string{"rmem", "wmem"} {
		most, usual := "net.core."+side+"_max", "net.core."+side+"_default"
		if !v.set(sysctl(most)) && !v.set(sysctl(usual)) {
			continue
		}
		if m, d := v.number(most), v.number(usual); m > 0 && d > m {
			knob := sysctl(usual)
			if !v.set(knob) {
				knob = sysctl(most)
			}
			v.say(knob, "%s = %d is above %s = %d: a socket that asks for a size gets less than one that does not", usual, d, most, m)
		}
	}
}

// reuse: a port in TIME_WAIT is taken again by timestamp only (net/ipv4/tcp_ipv4.c, tcp_twsk_unique).
func reuse(v sight) {
	const name, needs = "net.ipv4.tcp_tw_reuse", "net.ipv4.tcp_timestamps"
	if v.number(name) == 0 || v.facts.Sysctls[needs] == "" || v.number(needs) != 0 || !v.set(sysctl(name)) && !v.set(sysctl(needs)) {
		return
	}
	knob := sysctl(name)
	if !v.set(knob) {
		knob = sysctl(needs)
	}
	v.say(knob, "%s = %d has no effect while %s = 0", name, v.number(name), needs)
}

const (
	portsKnob    = "net.ipv4.ip_local_port_range"
	reservedKnob = "net.ipv4.ip_local_reserved_ports"
	firstOpen    = "net.ipv4.ip_unprivileged_port_start"
)

// ports are the local ports in force: the range, and what of it is reserved.
type ports struct {
	low, high int
	reserved  []span
}

type span struct{ first, last int }

func (v sight) ports() (ports, bool) {
	numbers := v.numbers(portsKnob)
	if len(numbers) != 2 {
		return ports{}, false
	}
	found := ports{low: int(numbers[0]), high: int(numbers[1])}
	for _, part := range strings.Split(strings.TrimSpace(v.facts.Sysctls[reservedKnob]), ",") {
		from, to, ranged := strings.Cut(part, "-")
		first, err := strconv.Atoi(from)
		if err != nil {
			continue
		}
		found.reserved = append(found.reserved, span{first, first})
		if last, err := strconv.Atoi(to); ranged && err == nil {
			found.reserved[len(found.reserved)-1].last = last
		}
	}
	return found, true
}

// kept counts the reserved ports of the range.
func (p ports) kept() int {
	n := 0
	for _, s := range p.reserved {
		n += max(0, min(s.last, p.high)-max(s.first, p.low)+1)
	}
	return n
}

// free reports whether a connection may take the port.
func (p ports) free(port int) bool {
	for _, s := range p.reserved {
		if port >= s.first && port <= s.last {
			return false
		}
	}
	return port >= p.low && port <= p.high
}

// portRange: reserved ports are not used, and the range may not begin below the first unprivileged port.
func portRange(v sight) {
	all, known := v.ports()
	if !known || !v.set(sysctl(portsKnob)) && !v.set(sysctl(reservedKnob)) && !v.set(sysctl(firstOpen)) {
		return
	}
	knob := sysctl(portsKnob)
	if !v.set(knob) {
		knob = sysctl(reservedKnob)
	}
	if n, size := all.kept(), all.high-all.low+1; n > 0 && (v.set(sysctl(portsKnob)) || v.set(sysctl(reservedKnob))) {
		v.say(knob, "%d of the %d ports of %s = %d %d are kept by %s = %s", n, size, portsKnob, all.low, all.high, reservedKnob, strings.TrimSpace(v.facts.Sysctls[reservedKnob]))
	}
	if first := v.number(firstOpen); first > all.low {
		if !v.set(knob) || knob.Name == reservedKnob {
			knob = sysctl(firstOpen)
		}
		v.p.refuseOnce(lab.Refusal{Host: v.host.Name, Knob: knob, Path: v.place(knob), Fatal: true,
			Reason: fmt.Sprintf("%s = %d %d begins below %s = %d: the kernel refuses the two together", portsKnob, all.low, all.high, firstOpen, first),
			Cure:   fmt.Sprintf("let the range begin at %d or above", first)})
	}
}

// serverPorts: between two servers, an outgoing connection of the host may take a port that lies among the local ones.
func serverPorts(v sight) {
	all, known := v.ports()
	if !known {
		return
	}
	var taken []string
	for _, o := range v.p.opened(v.host) {
		if all.free(o.port) {
			taken = append(taken, strconv.Itoa(o.port))
		}
	}
	if len(taken) > 0 {
		v.say(sysctl(portsKnob), "port %s of the server lies in %s = %d %d: while no server listens, a connection that %s opens may take it, and the next server cannot start; set %s: \"%s\"",
			strings.Join(taken, " and "), portsKnob, all.low, all.high, v.host.Name, reservedKnob, strings.Join(taken, ","))
	}
}
