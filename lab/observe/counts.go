package observe

import (
	"fmt"
	"math"

	"ngxlab/lab"
)

// Thresholds of the rules on what was counted and timed.
const (
	mismatchNote = 0.001 // of the requests, beyond the interval [0, connections + errors]
	mismatchWarn = 0.01

	littleFewest   = 10   // connections of a wrk run
	littleWrkLow   = 0.40 // quiet wrk keep-alive runs: 0.53 to 1.00
	littleWrkHigh  = 1.25
	littleABLow    = 0.75 // quiet ab runs: 0.91 to 1.06
	littleABHigh   = 1.15
	littleABMeanS  = 0.010 // ab prints whole milliseconds
	correctedAbove = 0.02  // quiet runs 0.002 to 0.010, foreign load 0.02 to 0.14

	errorsWarned     = 0.001
	errorsComparable = 0.05 // above, rates are not compared

	lengthWarned  = 0.005 // of one response
	lengthInvalid = 0.05
	lengthSlackB  = 32 // bytes per response that headers may differ by (length of numbers, chunk frames, close for keep-alive)

	rateTolerance  = 0.01
	rateRoundingS  = 0.006 // half of the last digit of a printed duration
	maxBeyondS     = 0.1
	roundingS      = 0.001 // of latencies in whole milliseconds
	leastServerCPU = 0.5e-6
)

func countRules() []Rule {
	return []Rule{
		{"tool-failed", Instrument, toolFailed},
		{"impossible", Instrument, impossible},
		{"count-mismatch", Instrument, countMismatch},
		{"littles-law", Instrument, littlesLaw},
		{"latency-corrected", Instrument, latencyCorrected},
		{"errors", Instrument, errorsRule},
		{"non-2xx", Instrument, nonSuccess},
		{"length-mismatch", Instrument, lengthMismatch},
	}
}

func toolFailed(o Observation) lab.Finding {
	const advice = "Read the raw output of the run; the same command by hand shows whether tool or target fails."
	switch {
	case o.Run.Problem != "":
		return found(lab.Invalidate, advice, "%s", o.Run.Problem)
	case o.Figures[lab.Requests] == 0:
		return found(lab.Invalidate, advice, "no request was completed")
	}
	for _, p := range o.Run.Processes {
		if p.Problem != "" {
			return found(lab.Invalidate, advice, "%s on %s: %s", p.Command.Tool, p.Host, p.Problem)
		}
	}
	return quiet("%g requests were completed", o.Figures[lab.Requests])
}

// countMismatch holds the tool's count against the server's. The server may have counted more: what was in flight at the
// end, and what failed. Less it counts when the tool's count has requests that were never served; as far as the tool
// calls them failed they are taken off already, and the target may have turned them away.
func countMismatch(o Observation) lab.Finding {
	n, known := o.Figures[lab.Requests]
	if !o.Counts.Requests.Known || !known || n == 0 {
		return unknown("the server's count of requests, or the tool's, is not known")
	}
	d, failed := o.Counts.Requests.Value-n, o.Figures[lab.Failed]
	most := float64(o.Point.Connections) + failed
	beyond := max(-d-failed, d-most, 0) / n
	values := map[string]float64{"difference": d, "least": -failed, "most": most, "beyond_ratio": beyond}
	evidence := fmt.Sprintf("the server counted %g requests more than the tool (0 to %g are in flight or failed), %.5f of them beyond (note up to %g, warned up to %g)", d, most, beyond, mismatchNote, mismatchWarn)
	if d < 0 && beyond == 0 {
		evidence = fmt.Sprintf("the server counted %g requests less than the tool, which counts its %g failed ones too", -d, failed)
	}
	const advice = "Look for other clients of the server, or requests that the tool counts without an answer."
	switch {
	case beyond > mismatchWarn:
		return with(found(lab.Invalidate, advice, "%s", evidence), values)
	case beyond > mismatchNote || d < 0:
		return with(found(lab.Warn, advice, "%s", evidence), values)
	case beyond > 0:
		return with(found(lab.Note, advice, "%s", evidence), values)
	}
	return with(quiet("%s", evidence), values)
}

// littlesLaw compares the latency with what rate and connections allow. ab's mean is that of Connection Times, never
// its quotient "Time per request".
func littlesLaw(o Observation) lab.Finding {
	l, ok := o.Figures[lab.LittleRatio]
	if !ok {
		return unknown("no mean latency, rate or number of connections")
	}
	low, high := littleABLow, littleABHigh
	switch o.Point.Tool {
	case "wrk":
		switch {
		case !o.Point.KeepAlive:
			return unknown("wrk without keep-alive does not time the connect")
		case o.Point.Connections < littleFewest:
			return unknown(fmt.Sprintf("fewer than %d connections", littleFewest))
		case latencyCorrected(o).Outcome == lab.Fired:
			return unknown("the latencies are back-filled")
		}
		low, high = littleWrkLow, littleWrkHigh
	case "ab":
		if o.Figures[lab.MeanS] < littleABMeanS {
			return unknown(fmt.Sprintf("the mean of %.1f ms is too small for ab's whole milliseconds", 1000*o.Figures[lab.MeanS]))
		}
	default:
		return unknown("not known for " + o.Point.Tool)
	}
	evidence := fmt.Sprintf("rate × mean latency ÷ connections = %.3f (%.2f to %.2f)", l, low, high)
	values := map[string]float64{"little_ratio": l, "low": low, "high": high}
	if l < low || l > high {
		return with(found(lab.Warn, "Below: most connections had nothing to do, or time is missing from the latency; above: the latency is too long for the rate.", "%s", evidence), values)
	}
	return with(quiet("%s", evidence), values)
}

func latencyCorrected(o Observation) lab.Finding {
	const advice = "The rate stands; mean and percentiles are wrk's back-filled ones. Quieten the machine, or measure longer."
	excess, ok := o.Figures[lab.Corrections]
	if ok {
		return ofLatency(graded(excess, []level{{correctedAbove, lab.Warn}}, advice, fmt.Sprintf("wrk's histogram holds %.4f more latencies than requests", excess)))
	}
	for _, p := range o.Run.Processes {
		if p.Report.Corrected {
			return ofLatency(found(lab.Warn, advice, "its percentiles show that wrk back-filled its histogram by more than %g", correctedAbove))
		}
	}
	return unknown("the size of the histogram is not known")
}

// attempts are the requests tried: ab counts broken ones as complete; wrk's connect, read and write errors are not
// among its requests, its time-outs are.
func attempts(o Observation) float64 {
	n := o.Figures[lab.Requests]
	if o.Point.Tool == "wrk" {
		n += o.Figures[lab.ErrConnect] + o.Figures[lab.ErrRead] + o.Figures[lab.ErrWrite]
	}
	return n
}

func errorsRule(o Observation) lab.Finding {
	return badShare(o, lab.Failed, "of the attempts ended in transport errors or time-outs",
		"Percentiles are of the successes only; find what breaks the connections before comparing.")
}

func nonSuccess(o Observation) lab.Finding {
	return badShare(o, lab.NonSuccess, "of the attempts had another status than the probe",
		"Fast error pages are another load; see the server's error log.")
}

func badShare(o Observation, m lab.Metric, what, advice string) lab.Finding {
	bad, ok := o.Figures[m]
	all := attempts(o)
	if !ok || all == 0 {
		return unknown("the count is not known")
	}
	share := bad / all
	values := map[string]float64{"count": bad, "ratio": share, "warned_above": errorsWarned, "comparable_up_to": errorsComparable}
	evidence := fmt.Sprintf("%g, %.4g%%, %s (warned above %g%%, rates are compared up to %g%%)", bad, 100*share, what, 100*errorsWarned, 100*errorsComparable)
	switch {
	case bad == 0:
		return with(quiet("%s", evidence), values)
	case share > errorsComparable:
		return with(found(lab.Warn, advice, "%s: the rate is not compared, the error ratio is", evidence), values)
	case share > errorsWarned:
		return with(found(lab.Warn, advice, "%s", evidence), values)
	}
	return with(found(lab.Note, advice, "%s", evidence), values)
}

// lengthMismatch holds the bytes read against the probe: neither tool checks a body. Over TLS both count what is
// decrypted (wrk 4.1.0 and ab 2.3 against a server of known lengths).
func lengthMismatch(o Observation) lab.Finding {
	n, probe := o.Figures[lab.Requests], o.Server.Probe
	read, each := of(o.Figures, lab.BodyBytes), float64(probe.BodyBytes)
	if o.Point.Tool == "wrk" {
		read, each = of(o.Figures, lab.BytesRead), float64(probe.BodyBytes)+float64(probe.HeaderBytes)
	}
	switch {
	case probe.Status == 0 || !read.Known || n == 0:
		return unknown("no probe, or no count of bytes")
	case probe.BodyBytes == 0:
		return unknown("the response has no body")
	case o.Point.Tool == "wrk" && probe.HeaderBytes == 0:
		return unknown("the length of the probe's headers is not known")
	}
	inFlight := (float64(o.Point.Connections) + o.Figures[lab.Failed] + o.Figures[lab.NonSuccess]) * each
	off := max(math.Abs(read.Value-n*each)-inFlight-n*lengthSlackB, 0) / (n * each)
	return graded(off, []level{{lengthWarned, lab.Warn}, {lengthInvalid, lab.Invalidate}}, "Ask for the page by hand: responses under load are not what the probe got.",
		fmt.Sprintf("%.6g bytes per response, the probe had %g, %.4f beyond what is in flight", read.Value/n, each, off))
}

// impossible looks for figures that contradict each other.
func impossible(o Observation) lab.Finding {
	if len(o.Figures) == 0 {
		return unknown("no figures")
	}
	for _, contradiction := range []func(Observation) string{
		rateContradicts, delayContradicts, percentilesContradict, extremesContradict, failuresContradict, askedContradicts, cpuContradicts,
	} {
		if text := contradiction(o); text != "" {
			return found(lab.Invalidate, "Do not use these figures; run again and keep the raw output.", "%s", text)
		}
	}
	return quiet("the figures agree with each other")
}

func rateContradicts(o Observation) string {
	n, d, rate := of(o.Figures, lab.Requests), of(o.Figures, lab.DurationS), of(o.Figures, lab.RequestRate)
	if !n.Known || !d.Known || !rate.Known || n.Value == 0 || d.Value <= 0 {
		return ""
	}
	if off := math.Abs(rate.Value*d.Value/n.Value - 1); off > rateTolerance+rateRoundingS/d.Value {
		return fmt.Sprintf("%g requests in %g s are %.2f per second, the report says %.2f", n.Value, d.Value, n.Value/d.Value, rate.Value)
	}
	return ""
}

// timerTick is by how many seconds a delay may be shorter than it says: nginx counts time in milliseconds (ngx_times.c).
const timerTick = 0.001

// delayContradicts: of requests that wait each, no more complete than their number at once allows, and one more of each.
func delayContradicts(o Observation) string {
	rate, d := of(o.Figures, lab.Goodput), of(o.Figures, lab.DurationS)
	bound := lab.DelayBound(o.Point.Connections, o.AtOnce, o.DelayS-timerTick)
	if !rate.Known || !d.Known || bound == 0 || d.Value <= 0 {
		return ""
	}
	if most := bound * (d.Value + o.DelayS); rate.Value*d.Value > most*(1+rateTolerance) {
		return fmt.Sprintf("%.4g requests in %.4g s cannot be when each waits %g s, of which at most %.4g complete: the figure or the delay of the server is wrong",
			rate.Value*d.Value, d.Value, o.DelayS, most)
	}
	return ""
}

func percentilesContradict(o Observation) string {
	last, name := 0.0, lab.Metric("")
	for _, m := range []lab.Metric{lab.P50S, lab.P75S, lab.P90S, lab.P95S, lab.P99S, lab.P999S, lab.MaxS} {
		v, ok := o.Figures[m]
		if ok && v < last-roundingS/2-last*0.002 {
			return fmt.Sprintf("%s of %g s is below %s of %g s", m, v, name, last)
		}
		if ok {
			last, name = v, m
		}
	}
	return ""
}

func extremesContradict(o Observation) string {
	mean, longest, d := of(o.Figures, lab.MeanS), of(o.Figures, lab.MaxS), of(o.Figures, lab.DurationS)
	switch {
	case mean.Known && longest.Known && mean.Value > longest.Value+roundingS:
		return fmt.Sprintf("the mean latency of %g s is above the longest of %g s", mean.Value, longest.Value)
	case longest.Known && d.Known && longest.Value > d.Value+maxBeyondS:
		return fmt.Sprintf("the longest request took %g s of a run of %g s", longest.Value, d.Value)
	}
	return ""
}

func failuresContradict(o Observation) string {
	if bad, all := o.Figures[lab.Failed], attempts(o); all > 0 && bad > all {
		return fmt.Sprintf("%g of %g attempts failed", bad, all)
	}
	return ""
}

func askedContradicts(o Observation) string {
	n, c := of(o.Figures, lab.Requests), of(o.Figures, lab.Connections)
	switch {
	case c.Known && o.Point.Connections > 0 && c.Value != float64(o.Point.Connections):
		return fmt.Sprintf("asked for %d connections, the report says %g", o.Point.Connections, c.Value)
	case n.Known && !o.Point.Timed() && n.Value > 0 && math.Abs(n.Value-float64(o.Point.Requests)) > rateTolerance*float64(o.Point.Requests):
		return fmt.Sprintf("asked for %d requests, the report says %g", o.Point.Requests, n.Value)
	}
	return ""
}

func cpuContradicts(o Observation) string {
	if cpu, ok := o.Figures[lab.CPUPerRequest]; ok && cpu < leastServerCPU {
		return fmt.Sprintf("%.3f µs of server CPU per request is less than any server can do (%.1f µs)", 1e6*cpu, 1e6*leastServerCPU)
	}
	return ""
}
