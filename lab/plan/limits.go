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
// own backlog (NGX_LISTEN_BACKLOG of 1.22).
const (
	defaultWorkerConnections = 1024
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
}

// clean is the number of connections of one worker up to which nginx closes none of them by itself: it does when
// at most 1/16 of worker_connections is free (ngx_connection.c, ngx_drain_connections; METHOD §7).
func (b bounds) clean() int { return b.connections*15/16 - listeners - 2 }

func (p *planner) bounds(s lab.State, target lab.HostName) bounds {
	f := p.facts[target]
	b := bounds{
		workers:     number(nginx(s, target, "main", "worker_processes"), defaultWorkers),
		connections: number(nginx(s, target, "events", "worker_connections"), defaultWorkerConnections),
		files:       number(value(s, target, lab.KnobNofile, ""), f.NofileSoft),
		backlog:     number(nginx(s, target, "listen", "backlog"), defaultBacklog),
		somaxconn:   number(value(s, target, lab.KnobSysctl, "net.core.somaxconn"), number(f.Sysctls["net.core.somaxconn"], 0)),
	}
	b.files = number(nginx(s, target, "main", "worker_rlimit_nofile"), b.files)
	if nginx(s, target, "main", "worker_processes") == "auto" {
		if b.workers = server.Workers(p.cpus[target], f); b.workers == 0 { // as nginx counts
			b.workers = max(f.Cores, 1)
		}
	}
	return b
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
	for _, target := range p.targets {
		p.port(target.Name)
		for _, l := range p.plan.Loads {
			p.connections(target.Name, l)
		}
	}
	return nil
}

func (p *planner) port(target lab.HostName) {
	for _, needed := range []struct {
		path string
		port int
	}{{"server.port", p.e.Server.Port}, {"server.status_port", p.e.Server.StatusPort}} {
		if slices.Contains(p.facts[target].PortsInUse, needed.port) {
			p.refuse(lab.Refusal{
				Host: target, Path: needed.path, Fatal: true,
				Reason: fmt.Sprintf("port %d on %s is in use by another process", needed.port, target),
				Cure:   fmt.Sprintf("choose another port, or end what listens there: ss -ltnp 'sport = %d' names it", needed.port),
			})
		}
	}
}

// connections holds a load point against worker_connections of every state; states with the same bounds are told
// together.
func (p *planner) connections(target lab.HostName, l lab.LoadPoint) {
	var order []bounds
	states := map[bounds][]string{}
	for _, s := range p.plan.States {
		b := p.bounds(s, target)
		b = bounds{workers: b.workers, connections: b.connections, files: b.files}
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
	room := b.workers * b.connections
	perWorker := (l.Connections + b.workers - 1) / max(b.workers, 1)
	switch {
	case l.Connections > room && !l.ExpectErrors:
		p.refuse(lab.Refusal{
			Host: target, Path: path, Fatal: true, Knob: lab.KnobID{Kind: lab.KnobNginx, Name: "events.worker_connections"},
			Reason: fmt.Sprintf("%s: %d connections are more than %d workers with %d worker_connections can hold (%s)", l.Name, l.Connections, b.workers, b.connections, where),
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
