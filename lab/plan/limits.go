package plan

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"ngxlab/lab"
	"ngxlab/lab/server"
)

// What the configuration of templates/nginx.conf.tmpl has when no step says otherwise: nginx's shipped values, and its
// own backlog (NGX_LISTEN_BACKLOG of 1.22). Without any worker_connections nginx itself has 512.
const (
	defaultWorkerConnections = 1024
	ownWorkerConnections     = 512
	defaultWorkers           = 1
	defaultBacklog           = 511
)

// listeners of a server of ours: the site and stub_status. Each takes one of worker_connections.
const listeners = 2

// bounds are what bounds the connections of one server.
type bounds struct {
	workers, connections int // worker processes; worker_connections of each
	files                int // open-file limit of each worker
	backlog, somaxconn   int
	ends                 int  // connections that a worker has for each of a client: 2 of a proxy
	foreign              bool // it is not nginx: files alone is known
}

// clean is the number of connections of one worker up to which nginx closes none of them by itself: it does when
// at most 1/16 of worker_connections is free (ngx_connection.c, ngx_drain_connections; METHOD §7).
func (b bounds) clean() int { return b.connections*15/16 - listeners - 2 }

func (p *planner) bounds(s lab.State, target lab.HostName) bounds {
	b := p.boundsOf(p.e.Server, s, target, p.cpus[target])
	if b.ends = 1; p.e.Server.Site == "proxy" {
		b.ends = 2
	}
	b.foreign = p.command(s, target) != nil
	return b
}

// boundsOf are those of a server on a host.
func (p *planner) boundsOf(spec lab.ServerSpec, s lab.State, host lab.HostName, cpus []int) bounds {
	f := p.facts[host]
	b := bounds{workers: defaultWorkers, connections: defaultWorkerConnections, backlog: defaultBacklog}
	processes := nginx(s, host, "main", "worker_processes")
	if spec.Site == "template" {
		text := func(name string) string { return lab.Unquoted(p.untouched(p.host(host), name).Text) }
		if processes == "" {
			processes = text("worker_processes")
		}
		b.connections, b.backlog = number(text("events.worker_connections"), ownWorkerConnections), number(text("listen.backlog"), defaultBacklog)
	}
	b.workers = number(processes, b.workers)
	b.connections = number(nginx(s, host, "events", "worker_connections"), b.connections)
	b.files = number(value(s, host, lab.KnobNofile, ""), f.NofileSoft)
	b.backlog = number(nginx(s, host, "listen", "backlog"), b.backlog)
	b.somaxconn = number(value(s, host, lab.KnobSysctl, "net.core.somaxconn"), number(f.Sysctls["net.core.somaxconn"], 0))
	b.files = number(nginx(s, host, "main", "worker_rlimit_nofile"), b.files)
	if processes == "auto" {
		if b.workers = server.Workers(cpus, f); b.workers == 0 { // as nginx counts
			b.workers = max(f.Cores, 1)
		}
	}
	return b
}

// command is how the server of a state is started; nil when it is nginx.
func (p *planner) command(s lab.State, target lab.HostName) *lab.ServerCommand {
	build := value(s, target, lab.KnobBuild, "")
	if build == "" {
		build = p.e.Server.Build
	}
	return p.e.CommandOf(p.recipe(build))
}

// inForce are the facts of all hosts with the sysctls that a state gives them.
func (p *planner) inForce(s lab.State) map[lab.HostName]lab.Facts {
	all := map[lab.HostName]lab.Facts{}
	for host, f := range p.facts {
		sysctls := map[string]string{}
		maps.Copy(sysctls, f.Sysctls)
		for _, setting := range s.Settings[host] {
			if setting.Knob.Kind == lab.KnobSysctl {
				sysctls[setting.Knob.Name] = setting.Value
			}
		}
		f.Sysctls = sysctls
		all[host] = f
	}
	return all
}

func number(text string, otherwise int) int {
	if n, err := strconv.Atoi(strings.TrimSpace(text)); err == nil {
		return n
	}
	return otherwise
}

// nginx returns what a state gives to a directive, without quotes, and "" when nothing or when it is taken out: by its name
// with or without its context, the later step first.
func nginx(s lab.State, target lab.HostName, context, name string) string {
	found, at := "", -2
	for _, setting := range s.Settings[target] {
		if setting.Knob.Kind != lab.KnobNginx || (setting.Knob.Name != name && setting.Knob.Name != context+"."+name) {
			continue
		}
		if step := slices.Index(s.Steps, setting.Step); step >= at {
			if found, at = lab.Unquoted(setting.Value), step; setting.Absent {
				found = ""
			}
		}
	}
	return found
}

// limits says where connections, descriptors, backlog, memory and ports will not do.
func (p *planner) limits() error {
	for _, h := range p.e.Hosts {
		for _, needed := range p.opened(h) {
			p.port(h.Name, needed)
		}
	}
	for _, target := range p.targets {
		for _, l := range p.plan.Loads {
			p.connections(target.Name, l)
		}
	}
	for _, l := range p.plan.Loads {
		p.passed(l)
	}
	return nil
}

// openedPort is a port that a server of the lab opens, and the key that says so.
type openedPort struct {
	path string
	port int
}

// opened are the ports that the servers on a host open.
func (p *planner) opened(h lab.Host) []openedPort {
	var all []openedPort
	add := func(path string, s lab.ServerSpec) {
		all = append(all, openedPort{path + ".port", s.Port})
		if s.Command == nil || commandsPort(*s.Command) {
			all = append(all, openedPort{path + ".status_port", s.StatusPort})
		}
	}
	if h.Has(lab.RoleTarget) {
		add("server", p.e.Server)
	}
	if u := p.e.Server.Upstream; u != nil && u.Host == h.Name {
		add("server.upstream.server", u.Server)
	}
	return all
}

// commandsPort reports whether a server that is not nginx is told the port of its status.
func commandsPort(c lab.ServerCommand) bool {
	text := fmt.Sprint(c.Start, c.Env, c.Files)
	return strings.Contains(text, "{status_port}")
}

// privileged is the first port that not only root may listen at, unless the host says otherwise.
const privileged = 1024

func (p *planner) port(host lab.HostName, needed openedPort) {
	f := p.facts[host]
	if slices.Contains(f.PortsInUse, needed.port) {
		p.refuse(lab.Refusal{
			Host: host, Path: needed.path, Fatal: true,
			Reason: fmt.Sprintf("port %d on %s is in use by another process", needed.port, host),
			Cure:   fmt.Sprintf("choose another port, or end what listens there: ss -ltnp 'sport = %d' names it", needed.port),
		})
	}
	if first := number(f.Sysctls[firstOpen], privileged); !f.Root && needed.port > 0 && needed.port < first {
		p.refuse(lab.Refusal{
			Host: host, Path: needed.path, Fatal: true,
			Reason: fmt.Sprintf("port %d on %s is below %s = %d, and the agent is not root there", needed.port, host, firstOpen, first),
			Cure:   fmt.Sprintf("choose a port from %d on, or let the lab be root: sudo: true", first),
		})
	}
}

// passed holds a load point against the server of the upstream, which gets one connection for each of the proxy's clients.
func (p *planner) passed(l lab.LoadPoint) {
	u := p.e.Server.Upstream
	if u == nil || u.Server.Site == "template" {
		return
	}
	behind := p.e
	behind.Server = u.Server
	if behind.CommandOf(p.recipe(u.Server.Build)) != nil {
		return
	}
	step := lab.Step{Nginx: u.Server.Nginx, Nofile: u.Server.Nofile}
	s := lab.State{Settings: map[lab.HostName][]lab.Setting{u.Host: lab.StepSettings(step, lab.Host{Roles: []lab.Role{lab.RoleTarget}})}}
	b := p.boundsOf(u.Server, s, u.Host, p.upstreamCPUs)
	b.ends = 1
	p.held(u.Host, l, b, "the upstream")
}

// connections holds a load point against worker_connections of every state; states with the same bounds are told
// together.
func (p *planner) connections(target lab.HostName, l lab.LoadPoint) {
	var order []bounds
	states := map[bounds][]string{}
	for _, s := range p.plan.States {
		b := p.bounds(s, target)
		b = bounds{workers: b.workers, connections: b.connections, files: b.files, ends: b.ends, foreign: b.foreign}
		if s.Control {
			continue
		}
		if states[b] == nil {
			order = append(order, b)
		}
		states[b] = append(states[b], strconv.Quote(s.Name))
	}
	for _, b := range order {
		p.held(target, l, b, "state "+strings.Join(states[b], ", "))
	}
}

func (p *planner) held(target lab.HostName, l lab.LoadPoint, b bounds, where string) {
	path := fmt.Sprintf("load[%d].connections", l.Spec)
	if b.foreign {
		if l.Connections > b.files {
			p.warn(target, path, fmt.Sprintf("%s: %d connections, and a process of the server may have %d open files (%s)", l.Name, l.Connections, b.files, where))
		}
		return
	}
	room, asked := b.workers*b.connections, l.Connections*b.ends
	perWorker := (asked + b.workers - 1) / max(b.workers, 1)
	twice := ""
	if b.ends > 1 {
		twice = ", and as many to the upstream,"
	}
	switch {
	case asked > room && !l.ExpectErrors:
		p.refuse(lab.Refusal{
			Host: target, Path: path, Fatal: true, Knob: lab.KnobID{Kind: lab.KnobNginx, Name: "events.worker_connections"},
			Reason: fmt.Sprintf("%s: %d connections%s are more than %d workers with %d worker_connections can hold (%s)", l.Name, l.Connections, twice, b.workers, b.connections, where),
			Cure:   "raise events.worker_connections or worker_processes there, or say `expect_errors: true` when the errors are the study",
		})
	case perWorker > b.files && !l.ExpectErrors:
		p.refuse(lab.Refusal{
			Host: target, Path: path, Fatal: true, Knob: lab.KnobID{Kind: lab.KnobNofile},
			Reason: fmt.Sprintf("%s: %d connections per worker are more than the %d open files it may have (%s)", l.Name, perWorker, b.files, where),
			Cure:   "raise nofile or worker_rlimit_nofile there, or say `expect_errors: true` when the errors are the study",
		})
	case perWorker > b.clean():
		p.warn(target, path, fmt.Sprintf("%s: %d connections per worker; nginx closes connections by itself above %d of %d worker_connections (%s)",
			l.Name, perWorker, b.clean(), b.connections, where))
	}
}
