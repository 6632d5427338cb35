package load

import (
	"strings"
	"testing"

	"ngxlab/lab"
)

func TestWhatCannotRunIsRefusedBeforeItRuns(t *testing.T) {
	for _, c := range []struct {
		name   string
		point  func(p *lab.LoadPoint)
		facts  func(f *lab.Facts)
		path   string
		reason []string // parts, both numbers among them
		cure   string
	}{
		{"ab's limit", func(p *lab.LoadPoint) { p.Tool, p.Connections = "ab", 20001 }, func(f *lab.Facts) { f.NofileHard, f.Sysctls = 1<<20, nil },
			"load[0].connections", []string{"20001", "20000"}, "processes: 2"},
		{"requests", func(p *lab.LoadPoint) { p.Tool, p.Requests = "ab", 99 }, nil, "load[0].requests", []string{"99", "100"}, "2000 requests"},
		{"fixed count of wrk", func(p *lab.LoadPoint) { p.Requests = 1000 }, nil, "load[0].requests", []string{"wrk"}, "use ab"},
		{"fraction of a second", func(p *lab.LoadPoint) { p.Duration = lab.Seconds(1.5) }, nil, "load[0].duration", []string{"1.5s"}, "duration: 2s"},
		{"port range", func(p *lab.LoadPoint) { p.Connections, p.Processes = 26000, 2 }, nil, "load[0].connections", []string{"26000", "25408", "28232"}, "more load hosts"},
		{"reserved ports", func(p *lab.LoadPoint) { p.Connections = 9001 },
			func(f *lab.Facts) {
				f.Sysctls = map[string]string{"net.ipv4.ip_local_port_range": "32768 42768", "net.ipv4.ip_local_reserved_ports": "80,32768,42768-50000"}
			}, "load[0].connections", []string{"9001", "8999", "9999"}, ""},
		{"open files", func(p *lab.LoadPoint) { p.Connections = 19980 }, nil, "load[0].connections", []string{"19980", "20004", "20000"}, "processes: 2"},
		{"threads", func(p *lab.LoadPoint) { p.Threads, p.Connections = 3, 100 }, nil, "load[0].threads", []string{"100", "3 threads", "open 99"}, ""},
		{"tool missing", nil, func(f *lab.Facts) { f.Commands = nil }, "load[0].tool", []string{"wrk is not installed on a"}, "package wrk"},
		{"unknown tool", func(p *lab.LoadPoint) { p.Tool = "siege" }, nil, "load[0].tool", []string{"siege"}, "wrk or ab"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, facts := point("wrk", 100), able("a")
			if c.point != nil {
				c.point(&p)
			}
			if f := facts["a"]; c.facts != nil {
				c.facts(&f)
				facts["a"] = f
			}
			refused := Check(p, facts)
			if len(refused) != 1 {
				t.Fatalf("refused: %+v", refused)
			}
			r := refused[0]
			for _, part := range c.reason {
				if !strings.Contains(r.Reason, part) {
					t.Errorf("reason %q lacks %q", r.Reason, part)
				}
			}
			if r.Path != c.path || !strings.Contains(r.Cure, c.cure) || !r.Fatal {
				t.Errorf("refusal %+v", r)
			}
		})
	}
}

func TestWhatIsJustPossibleIsNotRefused(t *testing.T) {
	for name, change := range map[string]func(p *lab.LoadPoint, f *lab.Facts){
		"ports":       func(p *lab.LoadPoint, _ *lab.Facts) { p.Connections, p.Processes = 25408, 2 },
		"files":       func(p *lab.LoadPoint, _ *lab.Facts) { p.Tool, p.Connections = "ab", 19980 },
		"ab's limit":  func(p *lab.LoadPoint, f *lab.Facts) { p.Tool, p.Connections, f.NofileHard = "ab", 20000, 30000 },
		"requests":    func(p *lab.LoadPoint, _ *lab.Facts) { p.Tool, p.Requests = "ab", 100 },
		"installable": func(_ *lab.LoadPoint, f *lab.Facts) { f.Commands, f.CanInstall = nil, true },
		"threads":     func(p *lab.LoadPoint, _ *lab.Facts) { p.Threads = 50 },
		"no facts":    func(_ *lab.LoadPoint, f *lab.Facts) { f.Sysctls, f.NofileHard = nil, 0 },
	} {
		p, facts := point("wrk", 100), able("a")
		f := facts["a"]
		change(&p, &f)
		facts["a"] = f
		if refused := Check(p, facts); len(refused) > 0 {
			t.Errorf("%s: %+v", name, refused)
		}
	}
}
