package observe

import (
	"fmt"
	"math"
	"strings"

	"ngxlab/lab"
)

// Thresholds of the target's limits.
const (
	serverBusy       = 0.95 // of the cores that the workers may use, or of a core for one worker
	serverIdleWorker = 0.70 // … while another has less than this
	overflowWarned   = 0.001
	synLevel         = 0.001 // of connections opened
	synExplained     = 0.80  // of the retransmissions, by the target's drops
	fdsShare         = 0.95
	notBusy          = 0.80 // latency-bound: generator and server below, Little's ratio above
)

// What nginx writes to its error log.
const (
	notEnoughConnections = "worker_connections are not enough"
	tooManyFiles         = "Too many open files"
)

func targetRules() []Rule {
	return []Rule{
		{"server-cpu", Target, serverCPU},
		{"listen-overflow", Target, listenOverflow},
		{"syn-retransmit", Target, synRetransmit},
		{"worker-connections", Target, workerConnectionsRule},
		{"server-fds", Target, serverFDs},
		{"server-stalled", Target, serverStalled},
		{"cpu-throttled", Target, cpuThrottled},
		{"latency-bound", Target, latencyBound},
	}
}

func logged(o Observation, text string) bool {
	for _, line := range o.ErrorLog {
		if strings.Contains(line, text) {
			return true
		}
	}
	return false
}

// usable is how many cores the workers can use: one each, no more than the CPUs they may be on, nor their quota. The
// processes of a command may have threads on every CPU.
func (v ServerView) usable() float64 {
	most := float64(v.CPUs)
	if !v.Command {
		most = min(most, max(float64(len(v.Workers)), 1))
	}
	if v.Quota > 0 {
		most = min(most, v.Quota)
	}
	return most
}

func serverCPU(o Observation) lab.Finding {
	if o.Server.Command {
		return commandCPU(o)
	}
	if !o.Server.Cores.Known || len(o.Server.Workers) == 0 || o.Server.CPUs == 0 {
		return unknown("no samples of the server's processes within the window")
	}
	most := o.Server.usable()
	all := 0.0
	for _, w := range o.Server.Workers {
		all += w
	}
	busiest, idlest := o.Server.Workers[0], o.Server.Workers[len(o.Server.Workers)-1]
	values := map[string]float64{"cores": all, "cores_usable": most, "busiest_worker_cores": busiest, "threshold": serverBusy}
	bound := ""
	if most == o.Server.Quota {
		bound = ", the CPU quota"
	}
	evidence := fmt.Sprintf("the workers used %.2f of %g cores%s, the busiest %.2f, the idlest %.2f (limit %.2f)", all, most, bound, busiest, idlest, serverBusy)
	if all >= serverBusy*most || busiest >= serverBusy && idlest < serverIdleWorker {
		return with(found(lab.Limit, "The wanted state of a throughput run: compare server CPU per request.", "%s", evidence), values)
	}
	return with(quiet("%s", evidence), values)
}

// commandCPU is serverCPU of a server whose processes have as many threads as they like.
func commandCPU(o Observation) lab.Finding {
	if !o.Server.Cores.Known || o.Server.CPUs == 0 {
		return unknown("no samples of the server's processes within the window")
	}
	all, most := o.Server.Cores.Value, o.Server.usable()
	values := map[string]float64{"cores": all, "cores_usable": most, "threshold": serverBusy}
	evidence := fmt.Sprintf("the server's processes used %.2f of %g cores (limit %.2f of them)", all, most, serverBusy)
	if all >= serverBusy*most {
		return with(found(lab.Limit, "The wanted state of a throughput run: compare server CPU per request.", "%s", evidence), values)
	}
	return with(quiet("%s", evidence), values)
}

func listenOverflow(o Observation) lab.Finding {
	drops, what := o.Counts.ListenDrops, "the server's listening sockets dropped"
	if !drops.Known {
		drops, what = o.Counts.ListenOverflows, "listening sockets of the target (others than the server's count too) dropped"
	}
	if !drops.Known {
		return unknown("no drop counters of the target")
	}
	values := map[string]float64{"drops": drops.Value, "warned_above_ratio": overflowWarned}
	if drops.Value <= 0 {
		return with(quiet("%s none", what), values)
	}
	f := found(lab.Limit, "Raise the backlog of listen and net.core.somaxconn together: the smaller one is in force.", "%s %g connections", what, drops.Value)
	f.Step = fmt.Sprintf("- {name: backlog, nginx: {listen.backlog: %d}, sysctl: {net.core.somaxconn: %d}}\n", 4*nextPower(o.Point.Connections), 4*nextPower(o.Point.Connections))
	if accepts := o.Counts.Accepts; accepts.Known && accepts.Value > 0 {
		share := drops.Value / accepts.Value
		f.Evidence += fmt.Sprintf(", %.4g%% of those accepted (percentiles are warned above %g%%)", 100*share, 100*overflowWarned)
		if share > overflowWarned {
			f.Consequence = lab.Warn
			f = ofLatency(f)
		}
	}
	return with(f, values)
}

func synRetransmit(o Observation) lab.Finding {
	lost, opened := o.Client.SynRetrans, o.Client.ActiveOpens
	if !lost.Known || !opened.Known || opened.Value <= 0 {
		return unknown("no counters of the load hosts, or no connection opened")
	}
	share := lost.Value / opened.Value
	values := map[string]float64{"retransmitted": lost.Value, "opened": opened.Value, "ratio": share, "threshold": synLevel}
	evidence := fmt.Sprintf("%g SYNs were sent again for %g connections, %.4g%% (limit %g%%)", lost.Value, opened.Value, 100*share, 100*synLevel)
	if share <= synLevel {
		return with(quiet("%s", evidence), values)
	}
	drops := o.Counts.ListenDrops
	if !drops.Known {
		drops = o.Counts.ListenOverflows
	}
	if drops.Known && drops.Value >= synExplained*lost.Value {
		return with(found(lab.Limit, "The accept queue was full; see listen-overflow.", "%s; the target's sockets dropped %g", evidence, drops.Value), values)
	}
	return with(found(lab.Warn, "SYNs are lost on the path: look at connection tracking, firewall and network card.", "%s; the target's sockets dropped %g", evidence, drops.Value), values)
}

// reusable is how many connections of one worker nginx leaves alone: with a sixteenth or less free it closes idle ones;
// listening sockets and two internal connections count.
func reusable(workerConnections float64, listeners int) float64 {
	return math.Floor(15*workerConnections/16) - float64(listeners) - 2
}

func workerConnectionsRule(o Observation) lab.Finding {
	if o.Server.Command {
		return unknown("the server is none of nginx")
	}
	limit := o.Server.WorkerConnections
	step := fmt.Sprintf("- {name: worker connections, nginx: {events.worker_connections: %d}}\n", max(1024, 2*nextPower(o.Point.Connections)))
	const advice = "Raise worker_connections: nginx closes connections when only a sixteenth is free."
	fire := func(format string, args ...any) lab.Finding {
		f := found(lab.Limit, advice, format, args...)
		f.Step = step
		return f
	}
	if logged(o, notEnoughConnections) {
		return fire("the error log says %q", notEnoughConnections)
	}
	if un := o.Counts.Unhandled; un.Known && un.Value > 0 {
		return fire("nginx accepted %g connections that it did not handle", un.Value)
	}
	if !limit.Known {
		return unknown("worker_connections is not known")
	}
	each := float64(o.Point.Connections) / float64(max(len(o.Server.Workers), 1))
	most := reusable(limit.Value, o.Server.Listeners)
	values := map[string]float64{"connections_per_worker": each, "usable": most, "worker_connections": limit.Value}
	evidence := fmt.Sprintf("%.4g connections per worker, %g of worker_connections %g are usable", each, most, limit.Value)
	if each > most && o.Figures[lab.Failed] > 0 {
		return with(fire("%s; %g requests failed", evidence, o.Figures[lab.Failed]), values)
	}
	if !o.Counts.Unhandled.Known {
		return unknown("the server's counters are not known; " + evidence)
	}
	return with(quiet("%s", evidence), values)
}

// nextPower is the smallest power of two of at least n.
func nextPower(n int) int {
	p := 1
	for p < n {
		p *= 2
	}
	return p
}

func serverFDs(o Observation) lab.Finding {
	fire := func(format string, args ...any) lab.Finding {
		f := found(lab.Limit, "Raise the server's open-file limit.", format, args...)
		f.Step = fmt.Sprintf("- {name: open files, nofile: %d}\n", max(4096, 2*nextPower(o.Point.Connections)))
		return f
	}
	if logged(o, tooManyFiles) {
		return fire("the error log says %q", tooManyFiles)
	}
	fds, limit := o.Server.FDs, o.Server.FDLimit
	if !fds.Known || !limit.Known {
		return unknown("the number of open files of the workers is not known")
	}
	values := map[string]float64{"fds": fds.Value, "limit": limit.Value, "threshold": fdsShare}
	if fds.Value > fdsShare*limit.Value {
		return with(fire("a worker had %g of %g files open (limit %.2f)", fds.Value, limit.Value, fdsShare), values)
	}
	return with(quiet("a worker had at most %g of %g files open (limit %.2f)", fds.Value, limit.Value, fdsShare), values)
}

// latencyBound: nothing else was the limit, so that every connection waited for its answer.
func latencyBound(o Observation) lab.Finding {
	l, busy, cores := of(o.Figures, lab.LittleRatio), o.Client.Busy, o.Server.Cores
	if !l.Known || !busy.Known || len(o.Client.Unseen) > 0 || !cores.Known || o.Server.CPUs == 0 {
		return unknown("Little's ratio, generator or server CPU is not known")
	}
	if latencyCorrected(o).Outcome == lab.Fired {
		return unknown("the latencies are back-filled, and Little's ratio with them")
	}
	for _, r := range append(targetRules(), Rule{"client-throttled", Instrument, clientThrottled}) {
		if r.Code != "latency-bound" && r.Judge(o).Outcome == lab.Fired {
			return quiet("%s was the limit", r.Code)
		}
	}
	if up := o.Server.UpstreamBusy; up.Known && up.Value >= notBusy {
		return quiet("the upstream on %s used %.2f of the cores that it can use (against %.2f): connections waited for it", o.Server.UpstreamHost, up.Value, notBusy)
	}
	share := cores.Value / o.Server.usable()
	values := map[string]float64{"generator_busy": busy.Value, "server_busy": share, "little_ratio": l.Value, "threshold": notBusy}
	evidence := fmt.Sprintf("generator %.2f and server %.2f busy, Little's ratio %.2f (each against %.2f)", busy.Value, share, l.Value, notBusy)
	generator := max(busy.Value, o.Client.ThreadMax.Value)
	if generator < notBusy && share < notBusy && l.Value >= notBusy {
		bound := float64(o.Point.Connections) / o.Figures[lab.MeanS]
		values["bound_per_s"] = bound
		return with(found(lab.Limit, "More connections give more throughput; the answer's own delay is the bound.", "%s; connections ÷ latency = %.0f per second", evidence, bound), values)
	}
	return with(quiet("%s", evidence), values)
}
