// Package load says how load tools are driven: command lines, limits known before a run, exact splitting over hosts and
// processes, judgement of what they printed on evidence, and the merging of several processes into one result.
package load

import (
	"ngxlab/lab"
)

// Tool is one load generator: how it is called, what it cannot do, and what its figures mean.
type Tool struct {
	Name    string        // in experiment files
	Package string        // Debian package that has it
	Command string        // the program
	Loop    lab.LoopModel // when it sends
	Latency string        // what its latency includes, for reports

	MaxConnections int  // per process; 0 = no limit of its own
	FixedCount     bool // can send a fixed number of requests
	Threaded       bool // runs threads, each with the same number of connections

	command func(a ask) lab.Command                                      // of one process
	parse   func(p lab.Process) (lab.Report, error)                      // what it printed and wrote
	counts  func(f lab.Figures, unexpected float64) outcome              // good, broken and attempted requests of a report
	refused func(status int) bool                                        // does it count this status as not successful
	bytes   func(f lab.Figures, p lab.Probe, keepAlive bool) byteBalance // bytes read against the probe
}

// ask is what one process is to do.
type ask struct {
	url         string // whole
	connections int
	threads     int
	requests    int // 0 = timed
	seconds     int // whole; of a timed run
	keepAlive   bool
	warmup      bool // nothing is measured
}

// outcome of the requests of one or several reports.
type outcome struct {
	good       float64
	broken     float64 // transport errors and time-outs, overlaps removed
	unexpected float64 // responses of a status unlike the probe's
	bad        float64 // broken or unexpected, each once, as far as the tool can tell
	attempts   float64
}

// byteBalance says how far the bytes read are from what the probe promises.
type byteBalance struct {
	known    bool
	excess   float64 // read − promised
	perReply float64 // of one response, as counted
	slack    float64 // what the tool's count may be off besides one response per connection
}

// closeSaves is how much shorter nginx's "Connection: close" is than "Connection: keep-alive", with which it
// answered the probe.
const closeSaves = len("keep-alive") - len("close")

// headerBytes is the size of a response's header.
func headerBytes(p lab.Probe, keepAlive bool) float64 {
	if p.HeaderBytes > 0 && !keepAlive {
		return float64(p.HeaderBytes - closeSaves)
	}
	return float64(p.HeaderBytes)
}

// Tools lists the tools, by name.
func Tools() []Tool { return []Tool{ab, wrk} }

// Named returns the tool of that name.
func Named(name string) (Tool, bool) {
	for _, t := range Tools() {
		if t.Name == name {
			return t, true
		}
	}
	return Tool{}, false
}
