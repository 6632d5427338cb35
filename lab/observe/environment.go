package observe

import (
	"fmt"
	"math"
	"strings"

	"ngxlab/lab"
)

// Thresholds of the environment. Foreign CPU in quiet runs: −0.07 to +0.05 core (the error of the method); 0.13 to 0.6
// core of a compiler cost 15 to 45 % of the rate.
const (
	foreignWarnedCores  = 0.08
	foreignWarnedShare  = 0.03 // of the host; the larger counts
	foreignInvalidCores = 0.20
	foreignInvalidShare = 0.08
	yardMedianNote      = 0.10 // from the campaign's median
	swapInvalidPerS     = 256  // pages
	clockWarnedS        = 0.005
	clockInvalidShare   = 0.01 // of the time between the readings
)

// The environment's plain levels.
var (
	stealLevels = []level{{0.01, lab.Warn}, {0.05, lab.Invalidate}} // [c] share of CPU time
	yardLevels  = []level{{0.15, lab.Warn}, {0.25, lab.Invalidate}} // after ÷ before, either way
)

func environmentRules() []Rule {
	return []Rule{
		{"foreign-cpu", Environment, foreignCPU},
		{"host-speed", Environment, hostSpeed},
		{"cpu-steal", Environment, cpuSteal},
		{"swap", Environment, swap},
		{"shared-cpu", Environment, sharedCPU},
		{"shared-kernel", Environment, sharedKernel},
		{"knob-drift", Environment, knobDrift},
		{"server-restarted", Environment, serverRestarted},
		{"clock-step", Environment, clockStep},
	}
}

// eachHost judges every host and returns the gravest finding. A host that could not be judged is graver than one where
// nothing was found; one that the rule does not concern has a finding without outcome.
func eachHost(o Observation, judge func(HostView) lab.Finding) lab.Finding {
	worst := lab.Finding{}
	for _, h := range o.Hosts {
		if f := judge(h); concern(f) > concern(worst) {
			worst = f
		}
	}
	if worst.Outcome == "" {
		return unknown("no observation of any host")
	}
	return worst
}

func concern(f lab.Finding) int {
	switch f.Outcome {
	case "":
		return -1
	case lab.Quiet:
		return 0
	case lab.NotEvaluated:
		return 1
	}
	return gravity(f)
}

func gravity(f lab.Finding) int {
	if f.Outcome != lab.Fired {
		return map[lab.RuleOutcome]int{lab.NotEvaluated: 0, lab.Quiet: 1}[f.Outcome]
	}
	return map[lab.Consequence]int{lab.Note: 2, lab.Limit: 3, lab.LowerBound: 4, lab.Warn: 5, lab.Invalidate: 6}[f.Consequence]
}

func foreignCPU(o Observation) lab.Finding {
	return eachHost(o, func(h HostView) lab.Finding {
		if !h.Foreign.Known {
			return unknown("no samples within the window")
		}
		warned := max(foreignWarnedCores, foreignWarnedShare*float64(h.Cores))
		invalid := max(foreignInvalidCores, foreignInvalidShare*float64(h.Cores))
		values := map[string]float64{"cores": h.Foreign.Value, "warned_from": warned, "invalid_from": invalid}
		evidence := fmt.Sprintf("others than the lab used %.3f cores of %s (warned from %.2f, invalid from %.2f)", h.Foreign.Value, h.Name, warned, invalid)
		const advice = "Stop what else runs on the host, then run again."
		switch {
		case h.Foreign.Value >= invalid:
			return with(found(lab.Invalidate, advice, "%s", evidence), values)
		case h.Foreign.Value >= warned:
			return with(found(lab.Warn, advice, "%s", evidence), values)
		}
		return with(quiet("%s", evidence), values)
	})
}

// hostSpeed: the CPU time of the same work tells how fast the cores are; steal does not show it.
func hostSpeed(o Observation) lab.Finding {
	return eachHost(o, func(h HostView) lab.Finding {
		if !h.YardBefore.Known && !h.YardAfter.Known {
			return lab.Finding{} // not timed: another host is on the same CPUs
		}
		if !h.YardBefore.Known || !h.YardAfter.Known {
			return unknown("no yardstick before and after")
		}
		const advice = "The machine changes speed by itself: pairs within a round still compare, absolute figures do not."
		change := math.Max(h.YardAfter.Value/h.YardBefore.Value, h.YardBefore.Value/h.YardAfter.Value) - 1
		f := graded(change, yardLevels, advice, fmt.Sprintf("fixed work on %s took %.2f ms of CPU before and %.2f ms after, %.3f apart", h.Name, 1000*h.YardBefore.Value, 1000*h.YardAfter.Value, change))
		if f.Outcome == lab.Fired || !h.YardMedian.Known {
			return f
		}
		off := math.Abs((h.YardBefore.Value+h.YardAfter.Value)/2/h.YardMedian.Value - 1)
		return graded(off, []level{{yardMedianNote, lab.Note}}, advice, fmt.Sprintf("%s; %.3f from the campaign's median of %.2f ms", f.Evidence, off, 1000*h.YardMedian.Value))
	})
}

func cpuSteal(o Observation) lab.Finding {
	return eachHost(o, func(h HostView) lab.Finding {
		if !h.Steal.Known {
			return unknown("no samples within the window")
		}
		return graded(h.Steal.Value, stealLevels, "Other guests of the physical host take CPU time; measure when they do not.",
			fmt.Sprintf("%.4f of the CPU time of %s was stolen", h.Steal.Value, h.Name))
	})
}

func swap(o Observation) lab.Finding {
	return eachHost(o, func(h HostView) lab.Finding {
		if !h.SwapPages.Known || h.SpanS <= 0 {
			return unknown("no samples around the run")
		}
		rate := h.SwapPages.Value / h.SpanS
		return graded(rate, []level{{0, lab.Warn}, {swapInvalidPerS, lab.Invalidate}}, "Free memory on the host, or use a larger one.",
			fmt.Sprintf("%s swapped %g pages, %.1f per second", h.Name, h.SwapPages.Value, rate))
	})
}

func sharedCPU(o Observation) lab.Finding {
	if !o.Client.SharedKnown {
		return unknown("the CPUs of the server are not known")
	}
	if len(o.Client.SharedCPUs) == 0 {
		return quiet("generators and server use different CPUs")
	}
	return found(lab.Warn, "Pin them apart: server.cpus and pin: true.", "generators and server may both use CPU %s", strings.Trim(fmt.Sprint(o.Client.SharedCPUs), "[]"))
}

func sharedKernel(o Observation) lab.Finding {
	if !o.SharedKernel {
		return quiet("load and target have kernels of their own")
	}
	return found(lab.Note, "Compare states with each other; for absolute figures use a load host of its own.",
		"load and target share a kernel: each side pays a part of the other's network work")
}

func knobDrift(o Observation) lab.Finding {
	switch {
	case len(o.Drifted) > 0:
		return found(lab.Invalidate, "Something else sets this knob: find it, then run again.", "%s", strings.Join(o.Drifted, "; "))
	case o.ServerRead == 0:
		return unknown(fmt.Sprintf("what the server runs under was not read; %d knobs of hosts were as they should be", o.KnobsRead))
	}
	return quiet("%d knobs of hosts and %d of the server were as they should be, before and after", o.KnobsRead, o.ServerRead)
}

func serverRestarted(o Observation) lab.Finding {
	const advice = "See the server's error log: it was restarted or died during the run."
	for _, h := range o.Hosts {
		if h.Rebooted {
			return found(lab.Invalidate, "Run again: the host was rebooted.", "the boot id of %s changed", h.Name)
		}
	}
	switch {
	case o.Server.Restarted != "":
		return found(lab.Invalidate, advice, "%s", o.Server.Restarted)
	case o.Server.UpstreamRestarted != "":
		return found(lab.Invalidate, "See what ended the upstream: it was restarted or died during the run.",
			"the upstream on %s: %s", o.Server.UpstreamHost, o.Server.UpstreamRestarted)
	case !o.Sampled:
		return unknown("no samples")
	}
	return quiet("the same processes served from before to after")
}

func clockStep(o Observation) lab.Finding {
	return eachHost(o, func(h HostView) lab.Finding {
		if !h.ClockStepS.Known || h.SpanS <= 0 {
			return unknown("no samples around the run")
		}
		step := math.Abs(h.ClockStepS.Value)
		return graded(step, []level{{clockWarnedS, lab.Warn}, {max(clockInvalidShare*h.SpanS, clockWarnedS), lab.Invalidate}},
			"Let the clock settle before the campaign; durations here come from the monotonic clock.",
			fmt.Sprintf("the wall clock of %s moved %.1f ms against the monotonic one in %.1f s", h.Name, 1000*h.ClockStepS.Value, h.SpanS))
	})
}
