package observe

import (
	"fmt"

	"ngxlab/lab"
)

// throttledShare is how much of the time a host's control group may wait for its CPU quota, summed over its CPUs.
const throttledShare = 0.01

// ThrottleView is how the CPU quota of a host's control group held it back within the window.
type ThrottleView struct {
	QuotaKnown       bool    // whether there is one
	QuotaCPUs        float64 // CPU time per time; 0 = none
	Periods          Number
	PeriodsThrottled Number // in which the quota was used up
	ThrottledS       Number // summed over CPUs
	SpanS            float64
}

// periodsRatio is the throttled share of the periods.
func (t ThrottleView) periodsRatio() Number {
	if !t.Periods.Known || !t.PeriodsThrottled.Known || t.Periods.Value <= 0 {
		return Number{}
	}
	return known(t.PeriodsThrottled.Value / t.Periods.Value)
}

func throttled(v *HostView, in Input, s series) {
	facts, known := in.Facts[v.Name]
	v.Throttle = ThrottleView{QuotaKnown: known, QuotaCPUs: facts.CgroupCPUs}
	those, ok := s.edges(v.Name, func(sample lab.Sample) bool { return sample.Throttle != nil })
	if !ok {
		return
	}
	v.Throttle = ThrottleView{
		QuotaKnown: true, QuotaCPUs: those.last().Throttle.QuotaCPUs, SpanS: those.seconds(),
		Periods:          those.grown(func(sample lab.Sample) float64 { return float64(sample.Throttle.Periods) }),
		PeriodsThrottled: those.grown(func(sample lab.Sample) float64 { return float64(sample.Throttle.PeriodsThrottled) }),
		ThrottledS:       those.grown(func(sample lab.Sample) float64 { return sample.Throttle.ThrottledS }),
	}
}

// clientThrottled: a generator that waits for its quota stands still for tens of milliseconds at a time: neither its
// throughput nor its latencies are the server's.
func clientThrottled(o Observation) lab.Finding {
	return eachHost(o, func(h HostView) lab.Finding {
		if h.Load && h.Target {
			return quiet("%s is the target as well: its quota is the size that is studied", h.Name)
		}
		return judgeThrottle(h, h.Load, lab.Invalidate, "Give the load hosts a larger CPU quota, or use more of them.")
	})
}

// cpuThrottled: the quota of the target is the size of the hardware that is studied.
func cpuThrottled(o Observation) lab.Finding {
	return eachHost(o, func(h HostView) lab.Finding {
		return judgeThrottle(h, h.Target, lab.Limit, "The quota is the size of the server's machine: compare states under the same one.")
	})
}

func judgeThrottle(h HostView, concerned bool, c lab.Consequence, advice string) lab.Finding {
	t := h.Throttle
	switch {
	case !concerned:
		return lab.Finding{}
	case !t.QuotaKnown:
		return unknown("whether " + string(h.Name) + " has a CPU quota is not known")
	case t.QuotaCPUs <= 0:
		return quiet("%s has no CPU quota", h.Name)
	case !t.ThrottledS.Known || !t.periodsRatio().Known:
		return unknown(fmt.Sprintf("how the CPU quota of %s, %g CPUs, held it back was not read within the window", h.Name, t.QuotaCPUs))
	}
	share := t.ThrottledS.Value / t.SpanS
	values := map[string]float64{"quota_cpus": t.QuotaCPUs, "throttled_s": t.ThrottledS.Value, "throttled_ratio": share, "threshold": throttledShare,
		"periods": t.Periods.Value, "periods_throttled": t.PeriodsThrottled.Value, "periods_throttled_ratio": t.periodsRatio().Value}
	evidence := fmt.Sprintf("the CPU quota of %s, %g CPUs, was used up in %g of %g periods (%.0f%%) and held its processes back for %.3g s of %.3g s, summed over CPUs (limit %.2f of the time)",
		h.Name, t.QuotaCPUs, t.PeriodsThrottled.Value, t.Periods.Value, 100*t.periodsRatio().Value, t.ThrottledS.Value, t.SpanS, throttledShare)
	if share <= throttledShare {
		return with(quiet("%s", evidence), values)
	}
	return with(found(c, advice, "%s", evidence), values)
}

// putThrottled gives the figures of the target, and those of the load host that waited most; the latter only when they are
// known of every load host with a quota.
func putThrottled(put func(lab.Metric, Number), hosts []HostView) {
	worst, ratio, complete := Number{}, Number{}, true
	for _, h := range hosts {
		t := h.Throttle
		if h.Target {
			put(lab.ServerThrottledS, t.ThrottledS)
			put(lab.ServerThrottled, t.periodsRatio())
		}
		if h.Load && (!t.QuotaKnown || t.QuotaCPUs > 0) {
			complete = complete && t.ThrottledS.Known && t.periodsRatio().Known
			worst, ratio = larger(worst, t.ThrottledS), larger(ratio, t.periodsRatio())
		}
	}
	if complete {
		put(lab.ClientThrottledS, worst)
		put(lab.ClientThrottled, ratio)
	}
}
