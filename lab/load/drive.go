package load

import (
	"fmt"
	"math"
	"net"
	"strconv"
	"time"

	"ngxlab/lab"
)

// Target is where the load goes.
type Target struct {
	Host    lab.HostName
	Address string // as the load hosts reach it, without port
	Port    int
	TLS     bool
}

// url is a path of the target.
func (t Target) url(path string) string {
	scheme := "http"
	if t.TLS {
		scheme = "https"
	}
	return scheme + "://" + net.JoinHostPort(t.Address, strconv.Itoa(t.Port)) + path
}

const (
	// deadlineSlack is what a run may take beyond twice the time asked for (METHOD §8).
	deadlineSlack = 30 * time.Second
	// perRequest is the time allowed for one request of a fixed count, whose length is not known in advance.
	perRequest = 10 * time.Millisecond
	// spareFiles is how many descriptors a generator needs besides its connections.
	spareFiles = 20
)

// Drive returns the commands of a load point against one target: connections and requests split exactly over hosts and
// processes, threads and CPUs per process, deadlines, files to write and to collect. Processes without a connection are
// left out. facts are those of the load hosts.
//
// Both tools take whole seconds. A warm-up with a fraction is asked for the next whole second and carries the wanted
// time as its deadline, at which it is interrupted: its TimedOut is no fault.
func Drive(p lab.LoadPoint, t Target, facts map[lab.HostName]lab.Facts) (lab.Driving, error) {
	tool, ok := Named(p.Tool)
	if !ok {
		return lab.Driving{}, fmt.Errorf("drive %q: unknown tool %q", p.Name, p.Tool)
	}
	d := driver{p: p, tool: tool, facts: facts, url: t.url(p.URL)}
	return lab.Driving{
		Target: t.Host, Load: p.Name, Measured: d.commands(d.measured),
		First:  d.warmups(p.WarmupFirst.Duration),
		Warmup: d.warmups(p.Warmup.Duration),
	}, nil
}

// driver makes the commands of one load point.
type driver struct {
	p     lab.LoadPoint
	tool  Tool
	facts map[lab.HostName]lab.Facts
	url   string
}

// part is one process's part of the load point on its host.
type part struct {
	host  lab.HostName
	share lab.Share
	cpus  []int // nil = not pinned
}

// parts splits the load point over hosts and processes, the larger shares first.
func (d driver) parts() []part {
	hosts, each := d.p.Hosts, max(d.p.Processes, 1)
	connections := lab.Split(d.p.Connections, len(hosts)*each)
	used := 0
	for used < len(connections) && connections[used] > 0 {
		used++
	}
	requests := lab.Split(d.p.Requests, used)
	var parts []part
	for i := range used {
		host, process := hosts[i%len(hosts)], i/len(hosts)
		cpus := slice(d.p.CPUs[host], each, process)
		share := lab.Share{Connections: connections[i], Requests: requests[i], Duration: d.p.Duration}
		if d.tool.Threaded {
			share.Threads = d.threads(host, connections[i], cpus)
		}
		parts = append(parts, part{host, share, cpus})
	}
	return parts
}

// threads is what the load point asks for, else the most that divide the connections and have a CPU each, within the quota
// of a container.
func (d driver) threads(host lab.HostName, connections int, cpus []int) int {
	if d.p.Threads > 0 {
		return d.p.Threads
	}
	room := d.facts[host].UsableCPUs() / max(d.p.Processes, 1)
	if len(cpus) > 0 && (room == 0 || len(cpus) < room) {
		room = len(cpus)
	}
	n := max(min(room, connections), 1)
	for connections%n != 0 {
		n--
	}
	return n
}

// slice returns the CPUs of one of several processes: a part of its own where there are enough, else one in turn.
func slice(cpus []int, processes, index int) []int {
	if len(cpus) == 0 {
		return nil
	}
	if processes >= len(cpus) {
		return []int{cpus[index%len(cpus)]}
	}
	from := 0
	sizes := lab.Split(len(cpus), processes)
	for _, size := range sizes[:index] {
		from += size
	}
	return cpus[from : from+sizes[index]]
}

func (d driver) commands(command func(part) lab.Command) map[lab.HostName][]lab.Command {
	commands := map[lab.HostName][]lab.Command{}
	for _, part := range d.parts() {
		c := command(part)
		c.CPUs, c.Nofile = part.cpus, d.nofile(part)
		commands[part.host] = append(commands[part.host], c)
	}
	return commands
}

func (d driver) measured(part part) lab.Command {
	s := part.share
	c := d.tool.command(ask{url: d.url, connections: s.Connections, threads: s.Threads, requests: s.Requests,
		seconds: wholeSeconds(d.p.Duration.Duration), keepAlive: d.p.KeepAlive})
	if !d.p.Timed() {
		s.Duration = lab.Duration{}
	}
	c.Share, c.Deadline = s, lab.Duration{Duration: d.deadline(s)}
	return c
}

// deadline is twice the time asked for, warm-up included, and 30 s (METHOD §8).
func (d driver) deadline(s lab.Share) time.Duration {
	length := d.p.Duration.Duration
	if !d.p.Timed() {
		length = time.Duration(s.Requests) * perRequest
	}
	return 2*(length+d.p.WarmupFirst.Duration) + deadlineSlack
}

// warmups are the commands of a warm-up of the measured shape; none when it has no length.
func (d driver) warmups(length time.Duration) map[lab.HostName][]lab.Command {
	if length <= 0 {
		return nil
	}
	return d.commands(func(part part) lab.Command {
		seconds := wholeSeconds(length)
		c := d.tool.command(ask{url: d.url, connections: part.share.Connections, threads: part.share.Threads,
			seconds: seconds, keepAlive: d.p.KeepAlive, warmup: true})
		deadline := length
		if time.Duration(seconds)*time.Second == length {
			deadline = 2*length + deadlineSlack
		}
		c.Share = lab.Share{Connections: part.share.Connections, Threads: part.share.Threads, Duration: lab.Duration{Duration: length}}
		c.Deadline = lab.Duration{Duration: deadline}
		return c
	})
}

func wholeSeconds(d time.Duration) int { return int(math.Ceil(d.Seconds())) }

// nofile is the open-file limit that the process needs, 0 when it has it already.
func (d driver) nofile(part part) int {
	need := files(part.share)
	if need <= d.facts[part.host].NofileSoft {
		return 0
	}
	return need
}

// files is how many descriptors a process needs.
func files(s lab.Share) int { return s.Connections + s.Threads + spareFiles }
