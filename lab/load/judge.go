package load

import (
	"bytes"
	"fmt"
	"strings"

	"ngxlab/lab"
)

// shortestShare is the share of the time asked for that a timed run must have lasted (findings: tool-failed).
const shortestShare = 0.95

// Parse fills Report from what a process printed and wrote, and Problem with the reason when that cannot be used. It
// goes by evidence, never by the exit status: tools exit 0 with nothing measured. A report that exists is kept beside a
// problem.
func Parse(p lab.Process) lab.Process {
	p.Report, p.Problem = lab.Report{}, ""
	tool, ok := Named(p.Command.Tool)
	if !ok {
		p.Problem = fmt.Sprintf("unknown tool %q", p.Command.Tool)
		return p
	}
	report, err := tool.parse(p)
	if err != nil {
		p.Problem = fmt.Sprintf("%s gave no report: %s%s", tool.Name, strings.TrimPrefix(err.Error(), "parse "), ending(p))
		return p
	}
	p.Report = report
	p.Problem = problem(p, tool)
	return p
}

// problem says why the figures of a report cannot be used, "" when they can.
func problem(p lab.Process, tool Tool) string {
	f, share := p.Report.Figures, p.Command.Share
	n, asked := f[lab.Requests], share.Duration.Seconds()
	received, counted := f[lab.BytesRead]
	switch {
	case n == 0:
		return tool.Name + " measured nothing: no request was completed" + ending(p)
	case counted && received == 0:
		return fmt.Sprintf("%s calls %g requests complete, but received not one byte", tool.Name, n)
	case p.TimedOut:
		return tool.Name + " was stopped at its deadline"
	case p.Signal != "" || p.Report.Interrupted:
		return tool.Name + " was interrupted" + ending(p)
	case share.Requests > 0 && n < float64(share.Requests):
		return fmt.Sprintf("%s completed %g of %d requests", tool.Name, n, share.Requests)
	case asked > 0 && f[lab.DurationS] < shortestShare*asked:
		return fmt.Sprintf("%s ran for %.3g s of the %g s asked for", tool.Name, f[lab.DurationS], asked)
	case p.Exit != 0:
		return fmt.Sprintf("%s ended unexpectedly%s", tool.Name, ending(p))
	}
	return ""
}

// ending tells how a process ended and what it last said on standard error, for problems.
func ending(p lab.Process) string {
	var b strings.Builder
	switch {
	case p.TimedOut:
		b.WriteString("; stopped at its deadline")
	case p.Signal != "":
		fmt.Fprintf(&b, "; ended by signal %s", p.Signal)
	case p.Exit != 0:
		fmt.Fprintf(&b, "; exit status %d", p.Exit)
	}
	lines := bytes.Split(bytes.TrimSpace(p.Stderr), []byte("\n"))
	if last := strings.TrimSpace(string(lines[len(lines)-1])); last != "" {
		fmt.Fprintf(&b, "; it said %q", last)
	}
	return b.String()
}
