package load

import (
	"bytes"
	"strconv"

	"ngxlab/lab"
	"ngxlab/lab/outputs"
)

// The files that ab writes into its directory.
const (
	abQuantiles = "e.csv" // -e
	abRequests  = "g.tsv" // -g
)

const (
	// abPerSecond is how many requests ab is allowed per second of a timed run: -t alone stops at 50,000. ab allots
	// 32 bytes to each in advance.
	abPerSecond = 300_000
	// abMaxRequests bounds that allotment at 3.2 GB; 1,000 s at 100,000 per second, four times what ab can do.
	abMaxRequests = 100_000_000
	// abMaxConnections is the limit of ab up to 2.4.41; later builds take 200,000, and no build says which it is.
	abMaxConnections = 20_000
)

// ab of apache2-utils 2.4. One thread; HTTP/1.0.
var ab = Tool{
	Name: "ab", Package: "apache2-utils", Command: "ab", Loop: lab.ClosedLoop,
	Latency:        "from the start of connecting to the end of the response",
	MaxConnections: abMaxConnections, FixedCount: true,
	command: abCommand, parse: parseAB, counts: abCounts,
	refused: func(status int) bool { return status < 200 || status > 299 },
	bytes:   abBytes,
}

// abCommand: -t sets n to 50,000, and the last of the two wins, so -n follows -t.
func abCommand(a ask) lab.Command {
	argv := []string{"ab", "-q", "-r", "-s", "30"}
	n := a.requests
	if n == 0 {
		n = min(a.seconds*abPerSecond, abMaxRequests)
		argv = append(argv, "-t", strconv.Itoa(a.seconds))
	}
	argv = append(argv, "-n", strconv.Itoa(n), "-c", strconv.Itoa(a.connections))
	c := lab.Command{Tool: "ab"}
	if !a.warmup {
		argv = append(argv, "-e", "{work}/"+abQuantiles, "-g", "{work}/"+abRequests)
		c.Collect = map[string]string{abQuantiles: outputs.KindABQuantiles, abRequests: outputs.KindABRequests}
	}
	if a.keepAlive {
		argv = append(argv, "-k")
	}
	c.Argv = append(argv, a.url)
	return c
}

// parseAB combines ab's text with what its two files say; a missing file costs precision only.
func parseAB(p lab.Process) (lab.Report, error) {
	text, err := outputs.ParseAB(bytes.NewReader(p.Stdout))
	if err != nil {
		return lab.Report{}, err
	}
	combined, err := outputs.CombineAB(text, reduced(p, abQuantiles), reduced(p, abRequests))
	if err != nil {
		text.Warnings = append(text.Warnings, err.Error())
		return text, nil
	}
	return combined, nil
}

func reduced(p lab.Process, file string) *lab.Report {
	r, ok := p.Reductions[file]
	if !ok {
		return nil
	}
	return &r
}

// abCounts: broken requests are among the complete ones. ab's classes overlap: the length class has broken requests
// and unexpected statuses, so the larger counts. Without one byte received nothing was good.
func abCounts(f lab.Figures, unexpected float64) outcome {
	n, broken := f[lab.Requests], f[lab.Failed]
	bad := max(broken+unexpected, f[lab.ErrLength])
	if received, known := f[lab.BytesRead]; known && received == 0 {
		broken, bad = n, n
	}
	return outcome{good: max(n-bad, 0), broken: broken, unexpected: unexpected, bad: bad, attempts: max(n, bad)}
}

// abBytes: ab counts bodies apart from headers; where bodies are empty, only the total tells.
func abBytes(f lab.Figures, p lab.Probe, keepAlive bool) byteBalance {
	metric, each := lab.BodyBytes, float64(p.BodyBytes)
	if p.BodyBytes == 0 {
		metric, each = lab.BytesRead, headerBytes(p, keepAlive)
	}
	read, known := f[metric]
	return byteBalance{known: known && each > 0, excess: read - f[lab.Requests]*each, perReply: each}
}
