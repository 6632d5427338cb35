// Package outputs reads what load tools print: one file per tool, each a Parse function on an io.Reader.
//
// A report holds only what was printed; a figure that is not there is absent, never zero. The one exception is
// told by the tool's own grammar: a class of errors that a tool prints only when it is above zero is zero in a
// complete report (Failed and NonSuccess). Times are seconds, sizes bytes, rates per second, whatever the tool's
// own unit. Latency histograms are HdrHistogram in µs with three significant digits (see Histogram).
package outputs

import (
	"fmt"
	"io"

	"ngxlab/lab"
)

// The reductions of files that load tools write, for lab.Command.Collect.
const (
	KindABQuantiles = "ab-quantiles" // ab -e
	KindABRequests  = "ab-requests"  // ab -g
)

// Reduce reads a file that a load tool wrote and returns what it says, small enough to be sent: kind is one of
// the Kind constants. It runs on the load host.
func Reduce(kind string, r io.Reader) (lab.Report, error) {
	switch kind {
	case KindABQuantiles:
		return ParseABQuantiles(r)
	case KindABRequests:
		return ParseABRequests(r)
	}
	return lab.Report{}, fmt.Errorf("reduce %q: no such kind; there are %s and %s", kind, KindABQuantiles, KindABRequests)
}
