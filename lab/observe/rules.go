package observe

import (
	"fmt"
	"slices"

	"ngxlab/lab"
)

// Side is what a rule looks at. Only the instrument and the environment can make a run invalid.
type Side string

// The sides.
const (
	Instrument  Side = "instrument"
	Target      Side = "target"
	Environment Side = "environment"
)

// Rule is one finding's rule.
type Rule struct {
	Code  string
	Side  Side
	Judge func(Observation) lab.Finding
}

// Rules returns every rule, in the order of findings.md.
func Rules() []Rule {
	return slices.Concat(generatorRules(), countRules(), targetRules(), environmentRules())
}

// Judge applies the rules. It returns the findings of all of them, quiet and not evaluated ones too, in their order,
// and the validity of the run. When generator and server were both at their limit, Little's ratio decides whose limit
// it was.
func Judge(o Observation, rules []Rule) ([]lab.Finding, lab.Validity) {
	findings := make([]lab.Finding, 0, len(rules))
	for _, r := range rules {
		f := r.Judge(o)
		f.Code = r.Code
		if r.Side == Target && f.Consequence == lab.Invalidate {
			f.Consequence = lab.Warn
		}
		findings = append(findings, f)
	}
	breakTie(findings, o)
	return findings, validity(findings)
}

func validity(findings []lab.Finding) lab.Validity {
	v := lab.Clean
	for _, f := range findings {
		if f.Outcome != lab.Fired {
			continue
		}
		switch f.Consequence {
		case lab.Invalidate:
			return lab.Invalid
		case lab.Warn, lab.LowerBound:
			v = lab.Warned
		}
	}
	return v
}

// tieBelow: with both at their limit, a Little ratio below it says that connections waited in a busy wrk.
const tieBelow = 0.8

// breakTie turns a lower bound into a limit when the server was at its limit too and the generator cannot be shown to
// be the narrower one. wrk times from the write of the request, so what waits inside a busy wrk is missing in R.
func breakTie(findings []lab.Finding, o Observation) {
	if !fired(findings, "server-cpu") {
		return
	}
	l := of(o.Figures, lab.LittleRatio)
	client := o.Point.Tool == "wrk" && o.Point.KeepAlive && l.Known && l.Value < tieBelow
	for i := range findings {
		f := &findings[i]
		if f.Outcome != lab.Fired || f.Consequence != lab.LowerBound {
			continue
		}
		if client {
			f.Evidence += fmt.Sprintf("; the server too, but Little's ratio %.2f is below %.2f: the generator is narrower", l.Value, tieBelow)
			continue
		}
		f.Consequence = lab.Limit
		f.Evidence += "; the server was at its limit as well: both"
	}
}

func fired(findings []lab.Finding, codes ...string) bool {
	return slices.ContainsFunc(findings, func(f lab.Finding) bool { return f.Outcome == lab.Fired && slices.Contains(codes, f.Code) })
}

// limitOrder is the order in which a limiting resource is named (findings.md §5).
var limitOrder = []string{
	"client-cpu", "client-single-thread", "client-fds", "conntrack-full", "server-fds", "worker-connections", "listen-overflow",
	"nic-saturated", "softirq-core", "cpu-throttled", "server-cpu", "memory-pressure", "latency-bound",
}

// The names that Limiting gives besides codes.
const (
	LimitGenerator     = "generator"
	LimitNotIdentified = "not identified"
)

// Limiting names the one resource that limited the run: "generator", the code of a target rule, or "not identified".
// A generator finding that the tie rule gave to both does not count as the generator's.
func Limiting(fs []lab.Finding) string {
	for _, code := range limitOrder {
		for _, f := range fs {
			if f.Code != code || f.Outcome != lab.Fired {
				continue
			}
			if !isGenerator(code) {
				return code
			}
			if f.Consequence != lab.Limit {
				return LimitGenerator
			}
		}
	}
	return LimitNotIdentified
}

func isGenerator(code string) bool { return slices.Contains(limitOrder[:4], code) }

// quiet is a rule that looked and found nothing; the evidence says at what it looked.
func quiet(format string, args ...any) lab.Finding {
	return lab.Finding{Outcome: lab.Quiet, Evidence: fmt.Sprintf(format, args...)}
}

// unknown is a rule without its observation.
func unknown(why string) lab.Finding {
	return lab.Finding{Outcome: lab.NotEvaluated, Evidence: why}
}

// found is a rule that fired.
func found(c lab.Consequence, advice, format string, args ...any) lab.Finding {
	return lab.Finding{Outcome: lab.Fired, Consequence: c, Evidence: fmt.Sprintf(format, args...), Advice: advice}
}

// ofLatency is a finding that leaves rates and CPU as good as they are.
func ofLatency(f lab.Finding) lab.Finding {
	f.LatencyOnly = f.Outcome == lab.Fired
	return f
}

// with adds the numbers behind the evidence.
func with(f lab.Finding, values map[string]float64) lab.Finding {
	f.Values = values
	return f
}

// level is a threshold with what comes of exceeding it.
type level struct {
	above       float64
	consequence lab.Consequence
}

// graded fires with the consequence of the highest level that v exceeds; levels ascend. The evidence gets "what: v
// (threshold)".
func graded(v float64, levels []level, advice, evidence string) lab.Finding {
	for i := len(levels) - 1; i >= 0; i-- {
		if v > levels[i].above {
			return with(found(levels[i].consequence, advice, "%s (%s)", evidence, thresholds(levels)), map[string]float64{"value": v, "threshold": levels[i].above})
		}
	}
	return with(quiet("%s (%s)", evidence, thresholds(levels)), map[string]float64{"value": v, "threshold": levels[0].above})
}

func thresholds(levels []level) string {
	text := ""
	for i, l := range levels {
		if i > 0 {
			text += ", "
		}
		text += fmt.Sprintf("%s above %.4g", l.consequence, l.above)
	}
	return text
}
