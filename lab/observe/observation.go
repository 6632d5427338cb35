// Package observe turns what was seen of a run into findings: rules with named thresholds, evidence and advice. It is
// pure.
//
// A rule has three outcomes; one that lacks its observation is "not evaluated", never passed. Only the instrument
// (generator, clocks, counts) and the environment can make a run invalid; what limited the target is the result being
// studied. Thresholds are those of findings.md, where their measurements are; [c] marks a convention.
package observe

import (
	"fmt"
	"time"

	"ngxlab/lab"
)

// Input is what Observe needs. Whatever is missing leaves observations unknown, and rules not evaluated.
type Input struct {
	// Run with Cell, Window, Processes (with reports), Samples, Server, Yardsticks, Figures and Problem.
	Run     lab.Run
	Point   lab.LoadPoint
	Serving lab.Serving // for its CPUs, port and configuration
	Facts   map[lab.HostName]lab.Facts
	// SharedKernel: a load host runs on the target's kernel (this machine, containers); see lab.Plan.SharedKernel.
	SharedKernel bool
	// Knobs are those of the hosts and those of the server, before and after the run.
	Knobs []KnobReading
	// BootIDs before the run, per host; a sample with another one means a reboot.
	BootIDs map[lab.HostName]string
	// MedianYardstickS is the campaign's median CPU time of the yardstick per host, in seconds.
	MedianYardstickS map[lab.HostName]float64
	// Ahead is how far each host's clock is ahead of the target's.
	Ahead map[lab.HostName]time.Duration
	// ClockDoubt is how far those may be off, per host; a host that is left out has the target's own clock.
	ClockDoubt map[lab.HostName]time.Duration
}

// KnobReading is one knob held against what it should be, by who can tell whether two values are equal.
type KnobReading struct {
	Host          lab.HostName
	Knob          string // as people call it
	Server        bool   // what the server runs under, and not a knob of the host
	Should, Found string // as they are shown to people
	When          string // it was found so: BeforeRun or AfterRun
	Drifted       bool   // the two are not equal
}

// When a knob is read.
const (
	BeforeRun = "before the run"
	AfterRun  = "after the run"
)

// String says of a knob that has drifted what it should have been.
func (r KnobReading) String() string {
	return fmt.Sprintf("%s: %s should be %s, was %s %s", r.Host, r.Knob, r.Should, r.Found, r.When)
}

// Number is a value that may be unknown.
type Number struct {
	Value float64
	Known bool
}

func known(v float64) Number { return Number{v, true} }

func of(f lab.Figures, m lab.Metric) Number {
	v, ok := f[m]
	return Number{v, ok}
}

// Observation is what the rules look at: one run, reduced to numbers. Cores are CPU seconds per second.
type Observation struct {
	Run          lab.Run
	Point        lab.LoadPoint
	Figures      lab.Figures // of the run, with those derived from the samples
	Sampled      bool        // there are samples at all
	DelayS       float64     // how long each request waits by design; 0 = not at all
	AtOnce       int         // how many can wait at once; 0 = all
	SharedKernel bool
	ClockDoubtS  float64 // of the host whose clock is known worst against the target's; 0 = all have one clock
	Grid         GridView
	Counts       CountView
	Server       ServerView
	Client       ClientView
	Hosts        []HostView // target first, then the load hosts, then that of an upstream
	Drifted      []string   // knobs that were not as they should be, as text
	KnobsRead    int        // of hosts
	ServerRead   int        // of the server
	ErrorLog     []string   // new lines of the server's error log
}

// GridView is how the samples lie in the measured window.
type GridView struct {
	Target int // samples of the target within the window
}

// CountView is what the server counted from before the release to after the end, the lab's own polls subtracted.
type CountView struct {
	Requests, Accepts Number
	Unhandled         Number // accepts − handled
	ActiveMedian      Number // connections open within the window, less the poll's own
	ListenDrops       Number // of the server's own listening sockets
	ListenOverflows   Number // of the whole namespace, other listeners too
}

// ServerView is the server within the window.
type ServerView struct {
	CPUs              int       // it may use
	Quota             float64   // CPU time per time that its container may use; 0 = no bound
	Workers           []float64 // cores per worker, descending; nil = not known
	Cores             Number    // all processes
	FDs, FDLimit      Number    // of the worker with the highest share
	WorkerConnections Number    // per worker, from the configuration
	Listeners         int       // listening directives of the configuration
	KeepAliveRequests float64   // requests until nginx closes a connection
	Restarted         string    // what shows that it was restarted; "" = nothing
	Command           bool      // it was started by a command: none of nginx's counters, limits and log lines are known
	UpstreamHost      lab.HostName
	UpstreamRestarted string // as Restarted, of the server that it passes requests to
	UpstreamBusy      Number // share of the cores that it can use, of the server that it passes requests to
	Probe             lab.Probe
}

// ClientView is the generators within the window.
type ClientView struct {
	Busy          Number         // busiest host: share of the CPUs, or of the quota, that the generators may use
	Unseen        []lab.HostName // load hosts whose share is not known
	ThreadMax     Number         // busiest thread, cores
	UnseenThreads []lab.HostName // load hosts whose threads are not known
	SynRetrans    Number         // growth of TCPSynRetrans, of all load hosts
	ActiveOpens   Number
	SharedCPUs    []int // CPUs that generators and server may both use
	SharedKnown   bool
}

// HostView is one host over the window.
type HostView struct {
	Name         lab.HostName
	Target, Load bool
	Cores        int
	Foreign      Number // cores used by others than the lab
	Steal        Number // share of all CPU time
	SwapPages    Number
	ClockStepS   Number // Δ wall clock − Δ monotonic clock
	SpanS        float64
	Rebooted     bool
	Throttle     ThrottleView
	YardBefore   Number // CPU seconds of the yardstick, mean over cores
	YardAfter    Number
	YardMedian   Number
}
