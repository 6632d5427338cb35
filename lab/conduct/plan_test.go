package conduct

import (
	"time"

	"ngxlab/lab"
)

const web lab.HostName = "web"

var finTimeout = lab.KnobID{Kind: lab.KnobSysctl, Name: "net.ipv4.tcp_fin_timeout"}

var somaxconn = lab.KnobID{Kind: lab.KnobSysctl, Name: "net.core.somaxconn"}

// smallPlan has a baseline, a tuned state and a control, two load points, and the number of rounds given.
func smallPlan(rounds int) lab.Plan {
	p := lab.Plan{
		Experiment: lab.Experiment{
			Name:   "small",
			Hosts:  []lab.Host{{Name: web, Local: true, Roles: []lab.Role{lab.RoleTarget, lab.RoleLoad}}},
			Repeat: lab.Repeat{Min: rounds, Max: rounds, Precision: 0.05, Effect: 0.05, Control: true},
		},
		Part: 1, Builds: []lab.Recipe{{Name: "nginx", Version: "1.22.1"}},
		Facts:    map[lab.HostName]lab.Facts{web: {Host: web, Cores: 2, CPUs: []int{0, 1}}},
		Original: lab.State{Name: "original", Settings: settings("4096")},
		States: []lab.State{
			{Name: "defaults", Settings: settings("4096")},
			{Name: "sockets", Step: "sockets", Over: "defaults", Settings: settings("65535")},
			{Name: lab.ControlName, Over: "defaults", Control: true, Settings: settings("4096")},
		},
	}
	for _, name := range []string{"wrk 10 keep-alive", "wrk 100 keep-alive"} {
		p.Loads = append(p.Loads, loadPoint(name))
		p.Drivings = append(p.Drivings, lab.Driving{Target: web, Load: name, Measured: commands(), Warmup: commands(), First: commands()})
	}
	for _, s := range p.States {
		p.Servings = append(p.Servings, lab.Serving{
			Target: web, State: s.Name, Recipe: "nginx", Port: 8081, StatusPort: 8082, URLs: []string{"/"}, CPUs: []int{0},
			Config: "worker_processes 1;\nevents { worker_connections 1024; }\n",
		})
		for _, l := range p.Loads {
			p.Cells = append(p.Cells, lab.Cell{ID: lab.CellID{Target: web, State: s.Name, Load: l.Name}})
		}
	}
	for range rounds {
		var ids []lab.CellID
		for _, c := range p.Cells {
			ids = append(ids, c.ID)
		}
		p.Rounds = append(p.Rounds, ids)
	}
	return p
}

func loadPoint(name string) lab.LoadPoint {
	return lab.LoadPoint{
		Name: name, Tool: "wrk", URL: "/", Connections: 10, KeepAlive: true, Duration: lab.Seconds(2),
		Hosts: []lab.HostName{web}, Processes: 1, Threads: 1, CPUs: map[lab.HostName][]int{web: {1}}, Headline: true,
	}
}

func commands() map[lab.HostName][]lab.Command {
	return map[lab.HostName][]lab.Command{web: {{
		Tool: "wrk", Argv: []string{"wrk", "-t1", "-c10", "-d2s", "http://127.0.0.1:8081/"}, CPUs: []int{1},
		Deadline: lab.Duration{Duration: 30 * time.Second}, Share: lab.Share{Connections: 10, Threads: 1},
	}}}
}

func settings(value string) map[lab.HostName][]lab.Setting {
	return map[lab.HostName][]lab.Setting{web: {{Knob: somaxconn, Value: value}}}
}

// withCapacity adds two levels, two ramps of idle connections.
func withCapacity(p lab.Plan) lab.Plan {
	p.Capacity = &lab.CapacityPlan{
		Target: web, LoadHosts: []lab.HostName{web}, State: "sockets", Levels: []int{0, 1000}, Kinds: []lab.HoldKind{lab.HoldIdle},
		Ramps: 2, Holders: 2, Servings: map[lab.HoldKind]lab.Serving{lab.HoldIdle: p.Servings[1]},
	}
	return p
}

// alsoSet makes the tuned state of the small plan set one more knob of the host.
func alsoSet(p lab.Plan, k lab.KnobID, original, tuned string) {
	add := func(s lab.State, value string) {
		s.Settings[web] = append(s.Settings[web], lab.Setting{Knob: k, Value: value})
	}
	add(p.Original, original)
	for i, s := range p.States {
		add(s, map[bool]string{true: tuned, false: original}[i == 1])
	}
}
