package lab

import "time"

// CellID is target × state × load point.
type CellID struct {
	Target HostName `json:"target"`
	State  string   `json:"state"`
	Load   string   `json:"load"`
}

// Cell is one combination to measure.
type Cell struct {
	ID CellID `json:"id"`
}

// Run is one measured execution of a cell in a round.
type Run struct {
	ID         int64       `json:"id,omitempty"` // given by the store
	Cell       CellID      `json:"cell"`
	Round      int         `json:"round"`   // from 1
	Attempt    int         `json:"attempt"` // from 1; further attempts repeat an invalid run
	Part       int         `json:"part"`    // of the campaign, from 1; parts are never compared with each other
	Began      time.Time   `json:"began"`
	Window     Window      `json:"window"`
	Processes  []Process   `json:"processes,omitempty"`
	Samples    []Sample    `json:"samples,omitempty"` // of all hosts, by time; the first of each host is before the release, the last after the end
	Server     Server      `json:"server"`
	Yardsticks []Yardstick `json:"yardsticks,omitempty"` // before and after, per host
	Figures    Figures     `json:"figures"`
	Histogram  []byte      `json:"histogram,omitempty"` // merged latency in µs, as Report.Histogram
	Grade      Grade       `json:"grade"`
	LoopModel  LoopModel   `json:"loop_model,omitempty"`
	Findings   []Finding   `json:"findings"`
	Validity   Validity    `json:"validity"`
	Limit      string      `json:"limit,omitempty"`   // the limiting resource
	Problem    string      `json:"problem,omitempty"` // what stopped the run, when it has no figures
	OverheadS  float64     `json:"overhead_s"`        // time since the run before that was neither load, cool-down nor server start
}

// Window is the measured part of a run on the target's clock.
type Window struct {
	Begin     Instant `json:"begin_ns"`
	End       Instant `json:"end_ns"`
	DurationS float64 `json:"duration_s"`
	Overlap   float64 `json:"overlap"` // common ÷ union of the process windows
	SkewS     float64 `json:"skew_s"`  // latest − earliest release
}

// Validity of a run.
type Validity string

// The validities.
const (
	Clean   Validity = "clean"
	Warned  Validity = "warned"
	Invalid Validity = "invalid"
)

// Consequence of a finding, from harmless to grave.
type Consequence string

// The five consequences (facts of METHOD; only the instrument and the environment can invalidate).
const (
	Note       Consequence = "note"
	Limit      Consequence = "limit"       // the target's bound: clean, compared
	LowerBound Consequence = "lower-bound" // the generator was the bound: compared one-sided
	Warn       Consequence = "warned"
	Invalidate Consequence = "invalid"
)

// RuleOutcome is what became of a rule.
type RuleOutcome string

// The outcomes; a rule that lacks its observation is not evaluated, never passed.
const (
	Fired        RuleOutcome = "fired"
	Quiet        RuleOutcome = "quiet"
	NotEvaluated RuleOutcome = "not evaluated"
)

// Finding is something the lab noticed about a run.
type Finding struct {
	Code        string             `json:"code"`
	Outcome     RuleOutcome        `json:"outcome"`
	Consequence Consequence        `json:"consequence,omitempty"`
	Evidence    string             `json:"evidence,omitempty"` // numbers beside their thresholds, one sentence
	Values      map[string]float64 `json:"values,omitempty"`
	Advice      string             `json:"advice,omitempty"`       // one sentence
	Step        string             `json:"step,omitempty"`         // YAML of the step to try
	LatencyOnly bool               `json:"latency_only,omitempty"` // rates and CPU of the run are as good as without it
}

// Concerns reports whether the finding qualifies figures of m.
func (f Finding) Concerns(m Metric) bool { return !f.LatencyOnly || m.IsLatency() }

// Yardstick is a fixed amount of work timed on every core at once.
type Yardstick struct {
	Host  HostName  `json:"host"`
	After bool      `json:"after"` // false: before the run
	CPUS  []float64 `json:"cpu_s"` // CPU time per core, mean of 3 repetitions
	WallS float64   `json:"wall_s"`
}
