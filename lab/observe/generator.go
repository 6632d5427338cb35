package observe

import (
	"bytes"
	"fmt"
	"strings"

	"ngxlab/lab"
)

// Thresholds of the generator's rules.
const (
	clientBusy   = 0.90 // share of the generators' CPUs; wrk at its limit ran at 0.96 to 0.99
	clientThread = 0.95 // cores of one thread; limited 0.96 to 0.99, not limited 0.40 to 0.77

	fewerWarned  = 0.99 // of the connections asked for
	fewerInvalid = 0.95

	shortWarnedS     = 2.0 // the first 0.25 s is 2 to 9 % low
	shortInvalidS    = 1.0
	shortWarnedPer   = 20 // requests per connection of a fixed count
	shortInvalidPer  = 5
	shortRounding    = 0.01 // share by which a tool may print the duration short
	stragglerWarned  = 0.25 // longest request ÷ duration
	stragglerInvalid = 0.5
	stragglerAlone   = 2 // longest request ÷ mean from which it is one that straggles: below, all take as long

	keepAliveTool = 0.98 // ab's own count of kept requests ÷ complete
)

// The thresholds that are plain levels.
var (
	skewLevels      = []level{{0.01, lab.Warn}, {0.05, lab.Invalidate}} // (latest − earliest release) ÷ duration
	keepAliveLevels = []level{{0.01, lab.Warn}, {0.50, lab.Invalidate}} // connections beyond c and keepalive_requests, per request
)

func generatorRules() []Rule {
	return []Rule{
		{"client-cpu", Instrument, clientCPU},
		{"client-single-thread", Instrument, clientSingleThread},
		{"client-throttled", Instrument, clientThrottled},
		{"client-fds", Instrument, clientFDs},
		{"fewer-connections", Instrument, fewerConnections},
		{"short-run", Instrument, shortRun},
		{"straggler", Instrument, straggler},
		{"start-skew", Instrument, startSkew},
		{"uneven-end", Instrument, unevenEnd},
		{"keepalive-ineffective", Instrument, keepAliveIneffective},
	}
}

func clientCPU(o Observation) lab.Finding {
	busy := o.Client.Busy
	if !busy.Known || busy.Value < clientBusy && len(o.Client.Unseen) > 0 {
		return unseen("no samples of the load hosts within the window", o.Client.Unseen)
	}
	values := map[string]float64{"busy_ratio": busy.Value, "threshold": clientBusy}
	if busy.Value < clientBusy {
		return with(quiet("the generators' CPUs were %.2f busy, limit %.2f", busy.Value, clientBusy), values)
	}
	return with(found(lab.LowerBound, "Give the generators more cores, or more load hosts; the target can do at least this much.",
		"the generators' CPUs were %.2f busy, limit %.2f", busy.Value, clientBusy), values)
}

func clientSingleThread(o Observation) lab.Finding {
	thread := o.Client.ThreadMax
	if !thread.Known || thread.Value < clientThread && len(o.Client.UnseenThreads) > 0 {
		return unseen("no samples of the load processes' threads within the window", o.Client.UnseenThreads)
	}
	values := map[string]float64{"cores": thread.Value, "threshold": clientThread}
	if thread.Value < clientThread {
		return with(quiet("the busiest thread used %.2f of a core, limit %.2f", thread.Value, clientThread), values)
	}
	return with(found(lab.LowerBound, "Use more processes, or threads where the tool has them (ab has one).",
		"the busiest thread used %.2f of a core, limit %.2f", thread.Value, clientThread), values)
}

// unseen is a rule that lacks the observation of some load hosts. One that is at its limit is enough to fire; below it the
// others must be known as well.
func unseen(why string, hosts []lab.HostName) lab.Finding {
	if len(hosts) > 0 {
		why += ": " + strings.Trim(fmt.Sprint(hosts), "[]")
	}
	return unknown(why)
}

// emfile is what the C library says for EMFILE.
var emfile = []byte("Too many open files")

func clientFDs(o Observation) lab.Finding {
	if len(o.Run.Processes) == 0 {
		return unknown("no output of load processes")
	}
	const advice = "Raise the open-file limit of the load processes to the connections of each plus 20."
	for _, p := range o.Run.Processes {
		if bytes.Contains(p.Stderr, emfile) || bytes.Contains(p.Stdout, emfile) {
			return found(lab.Invalidate, advice, "%s on %s says %q", p.Command.Tool, p.Host, emfile)
		}
	}
	refused := o.Figures[lab.ErrConnect]
	drops := o.Counts.ListenDrops
	if refused > 0 && o.Point.Tool == "wrk" && drops.Known && drops.Value == 0 {
		return found(lab.Invalidate, advice, "wrk could not open %g connections, and the server's sockets refused none", refused)
	}
	return quiet("no load process ran out of descriptors")
}

// targetTurnedAway says that the target itself refused, dropped or closed connections: then fewer of them are its
// result.
func targetTurnedAway(o Observation) bool {
	return o.Counts.ListenDrops.Value > 0 || workerConnectionsRule(o).Outcome == lab.Fired || serverFDs(o).Outcome == lab.Fired
}

func fewerConnections(o Observation) lab.Finding {
	c := float64(o.Point.Connections)
	switch {
	case !o.Point.KeepAlive:
		return unknown("without keep-alive connections come and go")
	case c == 0 || !o.Counts.ActiveMedian.Known:
		return unknown("fewer than three readings of stub_status within the window")
	}
	open := o.Counts.ActiveMedian.Value
	if accepts := o.Counts.Accepts; accepts.Known {
		open = min(open, accepts.Value)
	}
	values := map[string]float64{"open": open, "asked": c, "warned_below": fewerWarned * c, "invalid_below": fewerInvalid * c}
	evidence := fmt.Sprintf("%g of %g connections were open (warned below %g, invalid below %g)", open, c, fewerWarned*c, fewerInvalid*c)
	const advice = "The load was smaller than asked for; see what kept the others from connecting."
	switch {
	case open < fewerInvalid*c && !targetTurnedAway(o):
		return with(found(lab.Invalidate, advice, "%s", evidence), values)
	case open < fewerInvalid*c:
		return with(found(lab.Warn, advice, "%s; the target turned connections away", evidence), values)
	case open < fewerWarned*c:
		return with(found(lab.Warn, advice, "%s", evidence), values)
	}
	return with(quiet("%s", evidence), values)
}

func shortRun(o Observation) lab.Finding {
	d, known := o.Figures[lab.DurationS]
	if !known {
		return unknown("no duration")
	}
	n, c := o.Figures[lab.Requests], float64(o.Point.Connections)
	d *= 1 + shortRounding
	fixed := !o.Point.Timed() && c > 0
	evidence := fmt.Sprintf("%.3g s (warned below %g, invalid below %g)", o.Figures[lab.DurationS], shortWarnedS, shortInvalidS)
	if fixed {
		evidence += fmt.Sprintf(", %.4g requests per connection (warned below %d, invalid below %d)", n/c, shortWarnedPer, shortInvalidPer)
	}
	values := map[string]float64{"duration_s": o.Figures[lab.DurationS], "requests": n}
	const advice = "Measure longer: the start of a run is slower, and its share must be small."
	switch {
	case d < shortInvalidS || fixed && n < shortInvalidPer*c:
		return with(found(lab.Invalidate, advice, "%s", evidence), values)
	case d < shortWarnedS || fixed && n < shortWarnedPer*c:
		return with(found(lab.Warn, advice, "%s", evidence), values)
	}
	return with(quiet("%s", evidence), values)
}

// straggler: a fixed count ends with its slowest request, so that the rate is the length of that request.
func straggler(o Observation) lab.Finding {
	d, longest := o.Figures[lab.DurationS], of(o.Figures, lab.MaxS)
	switch {
	case o.Point.Timed():
		return unknown("a timed run does not end with its slowest request")
	case d <= 0 || !longest.Known:
		return unknown("no duration or no longest request")
	}
	share := longest.Value / d
	values := map[string]float64{"longest_over_duration": share, "warned_from": stragglerWarned, "invalid_from": stragglerInvalid}
	evidence := fmt.Sprintf("the longest request took %.3g s of %.3g s, %.2f (warned from %.2f, invalid from %.2f)", longest.Value, d, share, stragglerWarned, stragglerInvalid)
	if mean := of(o.Figures, lab.MeanS); mean.Known && longest.Value < stragglerAlone*mean.Value {
		values["longest_over_mean"] = longest.Value / mean.Value
		return with(quiet("%s; the mean of all is %.3g s, so that it is none that straggles", evidence, mean.Value), values)
	}
	if share < stragglerWarned {
		return with(quiet("%s", evidence), values)
	}
	low, high, ok := bracket(o)
	if ok {
		evidence += fmt.Sprintf("; without it between %.0f and %.0f per second (an estimate: one straggler, started while the others ran)", low, high)
		values["rate_low_per_s"], values["rate_high_per_s"] = low, high
	} else {
		evidence += "; the rate without it cannot be recovered from this report"
	}
	consequence := lab.Warn
	if share >= stragglerInvalid {
		consequence = lab.Invalidate
	}
	return with(found(consequence, "Run for a time, not for a number of requests.", "%s", evidence), values)
}

// bracket estimates the rate of 99 % of the requests without the longest one; only when that one can have been alone
// for at least the 99th percentile.
func bracket(o Observation) (low, high float64, ok bool) {
	n, d, longest := o.Figures[lab.Requests], o.Figures[lab.DurationS], o.Figures[lab.MaxS]
	p99, known := o.Figures[lab.P99S]
	rest := d - longest
	if !known || rest < p99 || rest <= 0 {
		return 0, 0, false
	}
	return 0.99 * n / (rest + p99), 0.99 * n / rest, true
}

func startSkew(o Observation) lab.Finding {
	d := o.Figures[lab.DurationS]
	switch {
	case len(o.Run.Processes) == 0 || d <= 0:
		return unknown("no processes or no duration")
	case len(o.Run.Processes) == 1:
		return quiet("one process")
	}
	share := o.Run.Window.SkewS / d
	evidence := fmt.Sprintf("processes were let go within %.1f ms, %.4f of %.3g s", 1000*o.Run.Window.SkewS, share, d)
	if o.ClockDoubtS > 0 {
		evidence += fmt.Sprintf("; the clocks of their hosts are known to ±%.2g ms", 1000*o.ClockDoubtS)
	}
	return graded(share, skewLevels, "Measure longer, or with fewer processes.", evidence)
}

func unevenEnd(o Observation) lab.Finding {
	switch {
	case len(o.Run.Processes) == 0:
		return unknown("no processes")
	case len(o.Run.Processes) == 1:
		return quiet("one process")
	}
	return overlapFinding(o.Run.Window.Overlap)
}

// The common share of the process windows below which rates mislead; unequal windows are never added.
const (
	overlapWarned  = 0.95
	overlapInvalid = 0.80
)

func overlapFinding(overlap float64) lab.Finding {
	values := map[string]float64{"overlap": overlap, "warned_below": overlapWarned, "invalid_below": overlapInvalid}
	evidence := fmt.Sprintf("the processes ran together for %.2f of the time (warned below %.2f, invalid below %.2f)", overlap, overlapWarned, overlapInvalid)
	const advice = "Start the processes together and give them the same time."
	switch {
	case overlap < overlapInvalid:
		return with(found(lab.Invalidate, advice, "%s", evidence), values)
	case overlap < overlapWarned:
		return with(found(lab.Warn, advice, "%s", evidence), values)
	}
	return with(quiet("%s", evidence), values)
}

func keepAliveIneffective(o Observation) lab.Finding {
	if !o.Point.KeepAlive {
		return unknown("keep-alive was not asked for")
	}
	byServer, byTool := keptByServer(o), keptByTool(o)
	if gravity(byTool) > gravity(byServer) {
		return byTool
	}
	return byServer
}

const keepAliveAdvice = "The server closes connections: see keepalive_timeout, keepalive_requests and the length of responses."

// keptByTool goes by ab's own count of requests after which the connection was kept.
func keptByTool(o Observation) lab.Finding {
	kept, n := of(o.Figures, lab.KeptAlive), o.Figures[lab.Requests]
	if !kept.Known || n <= 0 {
		return unknown("the tool does not count connections kept")
	}
	share := kept.Value / n
	values := map[string]float64{"kept_ratio": share, "threshold": keepAliveTool}
	if share >= keepAliveTool {
		return with(quiet("ab kept the connection after %.3f of the requests (warned below %.2f)", share, keepAliveTool), values)
	}
	return with(found(lab.Warn, keepAliveAdvice, "ab kept the connection after %.3f of the requests (warned below %.2f)", share, keepAliveTool), values)
}

// keptByServer goes by the connections that the server accepted.
func keptByServer(o Observation) lab.Finding {
	n := o.Figures[lab.Requests]
	if !o.Counts.Accepts.Known || n <= 0 {
		return unknown("the server's count of connections is not known")
	}
	beyond := (o.Counts.Accepts.Value-float64(o.Point.Connections))/n - 1/o.Server.KeepAliveRequests
	levels := keepAliveLevels
	if targetTurnedAway(o) {
		levels = keepAliveLevels[:1]
	}
	return graded(beyond, levels, keepAliveAdvice,
		fmt.Sprintf("%g connections for %g requests on %d connections, %.4f per request beyond what keepalive_requests asks", o.Counts.Accepts.Value, n, o.Point.Connections, max(beyond, 0)))
}
