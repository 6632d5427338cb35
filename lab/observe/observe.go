package observe

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"ngxlab/lab"
)

// nginx's defaults where the configuration says nothing.
const (
	defaultWorkerConnections = 512  // ngx_event.c
	defaultKeepAliveRequests = 1000 // since 1.19.10
)

// Observe reduces a run to what the rules look at.
func Observe(in Input) Observation {
	o := Observation{Run: in.Run, Point: in.Point, SharedKernel: in.SharedKernel, Figures: lab.Figures{}, Sampled: len(in.Run.Samples) > 0,
		DelayS: in.Serving.DelayS, AtOnce: in.Serving.AtOnce}
	for m, v := range in.Run.Figures {
		o.Figures[m] = v
	}
	for _, host := range loadHosts(in) {
		o.ClockDoubtS = max(o.ClockDoubtS, in.ClockDoubt[host].Seconds())
	}
	s := newSeries(in)
	target := in.Run.Cell.Target
	o.Grid.Target = len(s.inside(target))
	o.Counts = counts(in, s)
	o.Server = server(in, s)
	o.Client = client(in, s)
	o.Hosts = hosts(in, s)
	o = knobs(o, in.Knobs)
	for _, sample := range s.of[target] {
		o.ErrorLog = append(o.ErrorLog, sample.ErrorLog...)
	}
	for m, v := range derived(in, o, s) {
		o.Figures[m] = v
	}
	return o
}

// knobs counts what was read, and describes every knob that was not as it should be.
func knobs(o Observation, readings []KnobReading) Observation {
	for _, r := range readings {
		if r.Server {
			o.ServerRead++
		} else {
			o.KnobsRead++
		}
		if r.Drifted {
			o.Drifted = append(o.Drifted, r.String())
		}
	}
	return o
}

// counts compares the first and the last reading of the server's counters.
func counts(in Input, s series) CountView {
	target := in.Run.Cell.Target
	var c CountView
	if those, ok := s.ends(target, hasCount); ok && s.encloses(target, those) {
		c.Requests = those.served()
	}
	if those, ok := s.ends(target, hasStatus); ok && s.encloses(target, those) {
		c.Accepts = those.counted(acceptsOf)
		c.Unhandled = minus(c.Accepts, those.counted(handledOf))
	}
	c.ActiveMedian = activeMedian(s.inside(target))
	if those, ok := s.ends(target, hasListener(in.Serving.Port)); ok {
		c.ListenDrops = those.dropped(in.Serving.Port)
	}
	c.ListenOverflows = s.counter(target, "ListenOverflows")
	return c
}

func hasStatus(s lab.Sample) bool { return s.Status != nil }

// hasCount says that a sample has the server's count of requests.
func hasCount(s lab.Sample) bool { return s.Status != nil || s.Served != nil }

func hasListener(port int) func(lab.Sample) bool {
	return func(s lab.Sample) bool {
		return slices.ContainsFunc(s.Listeners, func(l lab.Listener) bool { return l.Port == port })
	}
}

// fewestActive is the number of readings that a median of open connections needs.
const fewestActive = 3

func activeMedian(samples []lab.Sample) Number {
	var active []float64
	for _, s := range samples {
		if s.Status != nil {
			active = append(active, float64(s.Status.Active-1)) // the poll is a connection itself
		}
	}
	if len(active) < fewestActive {
		return Number{}
	}
	slices.Sort(active)
	return known((active[(len(active)-1)/2] + active[len(active)/2]) / 2)
}

var (
	workerConnections = regexp.MustCompile(`(?m)^\s*worker_connections\s+(\d+)\s*;`)
	keepAliveRequests = regexp.MustCompile(`(?m)^\s*keepalive_requests\s+(\d+)\s*;`)
	listens           = regexp.MustCompile(`(?m)^\s*listen\s`)
)

func server(in Input, s series) ServerView {
	v := ServerView{CPUs: len(serverCPUs(in)), Quota: in.Facts[in.Run.Cell.Target].CgroupCPUs, Probe: in.Run.Server.Probes[in.Point.URL]}
	v.KeepAliveRequests, v.Command = defaultKeepAliveRequests, isCommand(in)
	if config := in.Serving.Config; config != "" {
		v.WorkerConnections = known(firstNumber(workerConnections, config, defaultWorkerConnections))
		v.KeepAliveRequests = firstNumber(keepAliveRequests, config, defaultKeepAliveRequests)
		v.Listeners = len(listens.FindAllString(config, -1))
	}
	target := in.Run.Cell.Target
	if those, ok := s.edges(target, hasServer); ok {
		if !v.Command {
			v.Workers = workerCores(those)
		}
		v.Cores = those.cores(those.cpuSeconds(isServer))
	}
	v.FDs, v.FDLimit = fullestWorker(s.of[target], v.Command)
	v.Restarted = replaced(in.Run.Server, s.of[target])
	if up := in.Run.Server.Upstream; up != nil && in.Serving.Upstream != nil {
		v.UpstreamHost = in.Serving.Upstream.Target
		v.UpstreamRestarted = replaced(*up, s.of[v.UpstreamHost])
		v.UpstreamBusy = upstreamBusy(in, s)
	}
	return v
}

// upstreamBusy is the share of the cores that an upstream can use, of those that it used.
func upstreamBusy(in Input, s series) Number {
	up := in.Serving.Upstream
	those, ok := s.edges(up.Target, hasServer)
	if !ok {
		return Number{}
	}
	cpus := up.CPUs
	if len(cpus) == 0 {
		cpus = allCPUs(in, up.Target)
	}
	v := ServerView{CPUs: len(cpus), Quota: in.Facts[up.Target].CgroupCPUs, Command: up.Command != nil, Workers: workerCores(those)}
	cores := those.cores(those.cpuSeconds(isServer))
	if !cores.Known || v.usable() <= 0 {
		return Number{}
	}
	return known(cores.Value / v.usable())
}

// isCommand reports whether the server was started by a command: it is then none of nginx.
func isCommand(in Input) bool { return in.Serving.Command != nil || in.Run.Server.Tree }

// replaced is what shows that a server is not the one that was started, "" when nothing does.
func replaced(server lab.Server, samples []lab.Sample) string {
	isOurs := isServer
	if server.Tree { // its workers come and go
		isOurs = func(p lab.ProcessSample) bool { return p.Role == lab.ServerMaster }
	}
	if why := restarted(samples, isOurs); why != "" {
		return why
	}
	if server.Master != 0 && ended(samples, isOurs) {
		return "its processes are gone"
	}
	return ""
}

// firstNumber reads the last value of a directive, which may stand in several contexts.
func firstNumber(directive *regexp.Regexp, config string, otherwise float64) float64 {
	all := directive.FindAllStringSubmatch(config, -1)
	if len(all) == 0 {
		return otherwise
	}
	v, err := strconv.ParseFloat(all[len(all)-1][1], 64)
	if err != nil {
		return otherwise
	}
	return v
}

// serverCPUs are the CPUs that the server may use: its affinity, or all.
func serverCPUs(in Input) []int {
	if len(in.Serving.CPUs) > 0 {
		return in.Serving.CPUs
	}
	return allCPUs(in, in.Run.Cell.Target)
}

func allCPUs(in Input, host lab.HostName) []int {
	if facts, ok := in.Facts[host]; ok && len(facts.CPUs) > 0 {
		return facts.CPUs
	}
	for _, s := range in.Run.Samples {
		if s.Host == host {
			var cpus []int
			for _, c := range s.CPUs {
				cpus = append(cpus, c.CPU)
			}
			return cpus
		}
	}
	return nil
}

func isServer(p lab.ProcessSample) bool {
	return p.Role == lab.ServerMaster || p.Role == lab.ServerWorker
}

func hasServer(s lab.Sample) bool { return slices.ContainsFunc(s.Processes, isServer) }

// workerCores are the cores that each worker used, descending; nil when those of one are not known.
func workerCores(those span) []float64 {
	isWorker := func(p lab.ProcessSample) bool { return p.Role == lab.ServerWorker }
	if !those.cpuSeconds(isWorker).Known {
		return nil
	}
	var cores []float64
	for _, p := range those.last().Processes {
		if isWorker(p) {
			cores = append(cores, those.cores(those.cpuSeconds(p.Is)).Value)
		}
	}
	slices.Sort(cores)
	slices.Reverse(cores)
	return cores
}

// fullestWorker is that with the highest share of its open files; of a command it may be the first process.
func fullestWorker(samples []lab.Sample, command bool) (fds, limit Number) {
	share := -1.0
	for _, s := range samples {
		for _, p := range s.Processes {
			serves := p.Role == lab.ServerWorker || command && p.Role == lab.ServerMaster
			if serves && p.FDs > 0 && p.FDLimit > 0 && float64(p.FDs)/float64(p.FDLimit) > share {
				share = float64(p.FDs) / float64(p.FDLimit)
				fds, limit = known(float64(p.FDs)), known(float64(p.FDLimit))
			}
		}
	}
	return fds, limit
}

// restarted compares the server's processes, those that which is true of, and counters over all samples of its host.
func restarted(samples []lab.Sample, which func(lab.ProcessSample) bool) string {
	var first []lab.ProcessSample
	var before *lab.ServerStatus
	var served *lab.Served
	for _, s := range samples {
		if now := processesOf(s, which); len(now) > 0 {
			if first != nil && !slices.EqualFunc(first, now, lab.ProcessSample.Is) {
				return "its processes were " + pidText(first) + " and are " + pidText(now)
			}
			first = now
		}
		if s.Status != nil {
			if before != nil && (s.Status.Requests < before.Requests || s.Status.Accepts < before.Accepts) {
				return "its counters went down"
			}
			before = s.Status
		}
		if s.Served != nil {
			if served != nil && s.Served.Requests < served.Requests {
				return "its count of requests went down"
			}
			served = s.Served
		}
	}
	return ""
}

// ended reports whether the last sample of a host finds no process of the server.
func ended(samples []lab.Sample, which func(lab.ProcessSample) bool) bool {
	return len(samples) > 0 && len(processesOf(samples[len(samples)-1], which)) == 0
}

// processesOf are those of a sample that which is true of, by number.
func processesOf(s lab.Sample, which func(lab.ProcessSample) bool) []lab.ProcessSample {
	var ps []lab.ProcessSample
	for _, p := range s.Processes {
		if which(p) {
			ps = append(ps, p)
		}
	}
	slices.SortFunc(ps, func(a, b lab.ProcessSample) int { return a.PID - b.PID })
	return ps
}

// pidText are the numbers, each with the ticks of its start where those are known: a number may be given again.
func pidText(ps []lab.ProcessSample) string {
	var parts []string
	for _, p := range ps {
		text := strconv.Itoa(p.PID)
		if p.StartedTicks > 0 {
			text += fmt.Sprintf(" (started at tick %d)", p.StartedTicks)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, " ")
}
