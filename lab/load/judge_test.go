package load

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ngxlab/lab"
)

// recorded is a process with recorded output.
func recorded(t *testing.T, tool, name string, exit int, share lab.Share) lab.Process {
	t.Helper()
	read := func(ext string) []byte {
		text, err := os.ReadFile(filepath.Join("testdata", tool+"_"+name+ext))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	return lab.Process{Exit: exit, Stdout: read(".out"), Stderr: read(".err"), Command: lab.Command{Tool: tool, Share: share}}
}

func lasting(seconds float64) lab.Share {
	return lab.Share{Connections: 5, Duration: lab.Seconds(seconds)}
}

func counting(n int) lab.Share { return lab.Share{Connections: 5, Requests: n} }

func TestSuccessIsJudgedOnEvidence(t *testing.T) {
	for _, c := range []struct {
		tool, name string
		exit       int
		share      lab.Share
		want       string // part of the problem, "" = none
	}{
		{"ab", "normal", 0, counting(2000), ""},
		{"ab", "keepalive", 0, counting(5000), ""},
		{"ab", "non2xx", 0, counting(500), ""},                            // the server's result, not a failure of the tool
		{"ab", "drop444", 0, counting(50), "received not one byte"},       // "Failed 0"
		{"ab", "refused_start_r", 0, counting(100), "not one byte"},       // "Complete 100", exit 0
		{"ab", "refused_start", 111, counting(100), "Connection refused"}, // no report
		{"ab", "interrupted", 1, counting(1000000), "interrupted"},
		{"ab", "t_cap50000", 0, lasting(20), "ran for 1.27 s of the 20 s"},
		{"ab", "timeout_t2", 1, lasting(2), "measured nothing"},
		{"ab", "normal", 0, counting(3000), "completed 2000 of 3000"},
		{"wrk", "normal", 0, lasting(3), ""},
		{"wrk", "latency", 0, lasting(3), ""},
		{"wrk", "non2xx", 0, lasting(2), ""},
		{"wrk", "nofile64", 0, lasting(2), ""}, // fewer connections: a finding on the run
		{"wrk", "drop444", 0, lasting(2), "measured nothing"},
		{"wrk", "fin", 0, lasting(2), "measured nothing"},
		{"wrk", "garbage", 0, lasting(2), "measured nothing"},
		{"wrk", "timeout_all", 0, lasting(4), "measured nothing"}, // not even an error line
		{"wrk", "interrupted", 0, lasting(60), "ran for 3.01 s of the 60 s"},
		{"wrk", "refused_start", 1, lasting(2), "no report"},
		{"wrk", "normal", 3, lasting(3), "ended unexpectedly; exit status 3"},
	} {
		p := Parse(recorded(t, c.tool, c.name, c.exit, c.share))
		if c.want == "" && p.Problem != "" || c.want != "" && !strings.Contains(p.Problem, c.want) {
			t.Errorf("%s %s: problem %q, want %q", c.tool, c.name, p.Problem, c.want)
		}
		if c.want == "" && p.Report.Figures[lab.Requests] == 0 {
			t.Errorf("%s %s: no requests in the report", c.tool, c.name)
		}
	}
}

func TestProblemKeepsTheReportThatExists(t *testing.T) {
	p := Parse(recorded(t, "wrk", "interrupted", 0, lasting(60)))
	if p.Report.Figures[lab.Requests] != 91609 {
		t.Errorf("figures %v", p.Report.Figures)
	}
}

func TestDeadlineAndSignalsAreProblems(t *testing.T) {
	p := recorded(t, "wrk", "normal", 0, lasting(3))
	p.TimedOut, p.Signal = true, "interrupt"
	if got := Parse(p).Problem; got != "wrk was stopped at its deadline" {
		t.Errorf("problem %q", got)
	}
	p.TimedOut = false
	if got := Parse(p).Problem; !strings.Contains(got, "interrupted; ended by signal interrupt") {
		t.Errorf("problem %q", got)
	}
	p = lab.Process{Exit: -1, Signal: "killed", Command: lab.Command{Tool: "wrk"}}
	if got := Parse(p).Problem; !strings.Contains(got, "ended by signal killed") {
		t.Errorf("problem %q", got)
	}
	if got := Parse(lab.Process{Command: lab.Command{Tool: "nc"}}).Problem; got != `unknown tool "nc"` {
		t.Errorf("problem %q", got)
	}
}
