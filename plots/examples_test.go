package plots

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
)

// example is a chart under a name, drawn in both formats by the tests.
type example struct {
	name string
	draw func(w io.Writer, f Format) error
}

var stateNames = []string{
	"default", "access log off", "open file cache", "sockets, worker_connections 16384, backlog and reuseport",
	"kernel: somaxconn, tcp_max_syn_backlog, netdev_max_backlog and the whole port range of the machine", "control",
	"gzip & <sendfile>", "aio threads", "two workers", "four workers", "pinned", "busy poll",
}

// figuresOf makes plausible figures around base for n states and the loads.
func figuresOf(r *rand.Rand, n int, loads []Load, base float64) [][]Figure {
	rows := make([][]Figure, n)
	for s := range rows {
		for _, l := range loads {
			c := float64(l.Connections)
			v := base * (1 + 0.13*float64(s)) * c / (c + 40) * (0.97 + 0.06*r.Float64())
			rows[s] = append(rows[s], Figure{Value: v, Low: v * 0.94, High: v * 1.05, Mark: Clean})
		}
	}
	return rows
}

func sweep(n int) []Load {
	var loads []Load
	for i := range n {
		c := 100 * (i + 1)
		loads = append(loads, Load{Name: fmt.Sprintf("wrk %d keep-alive", c), Group: "wrk, keep-alive, /1k.bin", Connections: c})
	}
	return loads
}

var mixedLoads = []Load{
	{Name: "wrk 10 keep-alive", Group: "wrk, keep-alive", Connections: 10},
	{Name: "wrk 100 keep-alive", Group: "wrk, keep-alive", Connections: 100},
	{Name: "ab 100", Group: "ab, a connection per request", Connections: 100},
}

func factorLoads() []Load {
	var loads []Load
	for _, c := range []int{10, 20, 50, 100, 200, 500, 1000, 5000, 10000, 20000} {
		loads = append(loads, Load{Name: fmt.Sprint("wrk ", c), Group: "wrk, keep-alive", Connections: c})
	}
	return append(loads, mixedLoads[2])
}

func matrixExample(name string, states int, loads []Load, base float64, spoil bool) example {
	r := rand.New(rand.NewPCG(1, uint64(states)))
	m := Matrix{Title: "Goodput over connections, " + name, States: stateNames[:states], Loads: loads,
		Rows: []Row{{Name: "goodput", Unit: PerSecond, Figures: figuresOf(r, states, loads, base)}}}
	if spoil {
		f := m.Rows[0].Figures
		f[0][0].Mark = Invalid
		f[states-1][len(loads)-1].Mark = LowerBound
		f[states/2][len(loads)/2].Mark = Warned
		f[states-1][0] = Figure{}
	}
	return example{"matrix-" + name, func(w io.Writer, f Format) error { return DrawMatrix(w, f, m) }}
}

func latencyExample() example {
	r := rand.New(rand.NewPCG(2, 2))
	m := Matrix{Title: "Latency over connections (closed loop)", States: stateNames[:6], Loads: mixedLoads, Rows: []Row{
		{Name: "p50", Unit: Seconds, Figures: figuresOf(r, 6, mixedLoads, 0.0021)},
		{Name: "p99", Unit: Seconds, Figures: figuresOf(r, 6, mixedLoads, 0.0213)},
	}}
	return example{"latency", func(w io.Writer, f Format) error { return DrawMatrix(w, f, m) }}
}

func errorsExample() example {
	m := Matrix{Title: "Errors", States: stateNames[:3], Loads: mixedLoads, Rows: []Row{{Name: "error ratio", Unit: Share}}}
	for range 3 {
		m.Rows[0].Figures = append(m.Rows[0].Figures, []Figure{
			{Value: 0, Low: 0, High: 0, Mark: Clean}, {Value: 0, Low: 0, High: 0, Mark: Clean}, {Value: 0, Low: math.NaN(), High: math.NaN(), Mark: Clean},
		})
	}
	return example{"errors-none", func(w io.Writer, f Format) error { return DrawMatrix(w, f, m) }}
}

func cpuExample() example {
	r := rand.New(rand.NewPCG(3, 2))
	loads := factorLoads()
	m := Matrix{Title: "CPU of both sides", States: stateNames[:3], Loads: loads, Rows: []Row{
		{Name: "server", Unit: Cores, Figures: figuresOf(r, 3, loads, 0.8)},
		{Name: "load generators", Unit: Cores, Figures: figuresOf(r, 3, loads, 0.6)},
	}}
	return example{"cpu", func(w io.Writer, f Format) error { return DrawMatrix(w, f, m) }}
}

func ladderExample(name string, n int, scale float64) example {
	effect := func(ratio, half float64, tone Tone, word string) Effect {
		ratio = 1 + (ratio-1)*scale
		return Effect{Figure: Figure{Value: ratio, Low: ratio * (1 - half), High: ratio * (1 + half), Mark: Clean}, Tone: tone, Word: word}
	}
	l := Ladder{Title: "What each step does, " + name, Names: []string{"goodput (more is better)", "server CPU per request (less is better)"}, Delta: 0.05}
	atLeast := effect(1.31, 0, Better, "at least")
	atLeast.Mark = LowerBound
	kinds := [][]Effect{
		{effect(1.384, 0.02, Better, "helps"), effect(0.72, 0.01, Better, "helps")},
		{effect(1.01, 0.015, Same, "no difference larger than ±5%"), effect(1.004, 0.01, Same, "no difference larger than ±5%")},
		{effect(1.04, 0.08, Open, "undecided"), effect(0.97, 0.03, Open, "undecided")},
		{effect(0.91, 0.02, Worse, "hurts"), effect(1.08, 0.02, Worse, "hurts")},
		{atLeast, effect(0.81, 0.01, Better, "helps")},
		{{Word: "not measurable", Tone: None}, effect(1.003, 0.01, Same, "no difference larger than ±5%")},
	}
	for i := range n {
		l.Rungs = append(l.Rungs, Rung{State: stateNames[(i+1)%12], Over: stateNames[i%12], Effects: kinds[i%6]})
	}
	return example{"ladder-" + name, func(w io.Writer, f Format) error { return DrawLadder(w, f, l) }}
}

func memoryExample(name string, top int) example {
	part := func(name string, intercept, slope, spread float64) MemoryPart {
		p := MemoryPart{Name: name, InterceptBytes: intercept, SlopeBytes: slope, LowBytes: slope - spread, HighBytes: slope + spread}
		for ramp := range 3 {
			var points []MemoryPoint
			for _, share := range []float64{0, 0.05, 0.1, 0.25, 0.5, 1} {
				n := int(share * float64(top))
				points = append(points, MemoryPoint{n, intercept + (slope+spread*0.4*float64(ramp-1))*float64(n)})
			}
			p.Ramps = append(p.Ramps, points)
		}
		return p
	}
	m := Memory{Title: "Memory over connections, idle", Parts: []MemoryPart{
		part("total", 40e6, 4531, 250), part("kernel", 12e6, 4000, 200), part("server", 28e6, 531, 50),
	}}
	m.Parts[1].DividedByTwo = true
	return example{"memory-" + name, func(w io.Writer, f Format) error { return DrawMemory(w, f, m) }}
}

func distributionExample(name string, tail float64) example {
	d := Distribution{Title: "Latency distribution, wrk 100 keep-alive", Note: "Closed loop: a slow reply delays the next request, so the tail is what these connections saw, not what users would."}
	for s := range 4 {
		c := Course{Name: stateNames[s], Hollow: s == 2}
		for i := range 400 {
			x := 5 * float64(i) / 400
			c.Quantiles = append(c.Quantiles, Quantile{Q: 1 - math.Pow(10, -x), S: 0.0004 * (1 + 0.1*float64(s)) * math.Pow(1+x, tail)})
		}
		d.Courses = append(d.Courses, c)
	}
	return example{"distribution-" + name, func(w io.Writer, f Format) error { return DrawDistribution(w, f, d) }}
}

func seriesExample() example {
	s := Series{Title: "default at wrk 100 keep-alive, round 3", Note: "A gap: the status page did not answer within its time-out."}
	var times, rates, server, client []float64
	for i := range 20 {
		times = append(times, 0.1*float64(i+1))
		rates = append(rates, 52000+900*math.Sin(float64(i)))
		server = append(server, 0.97)
		client = append(client, 0.77+0.02*math.Cos(float64(i)))
	}
	rates[7] = math.NaN()
	s.Strips = []Strip{
		{"requests counted by the server", PerSecond, []Line{{"server", times, rates}}},
		{"CPU", Cores, []Line{{"server processes", times, server}, {"load processes", times, client}}},
	}
	return example{"series", func(w io.Writer, f Format) error { return DrawSeries(w, f, s) }}
}

var serverNames = []string{
	"nginx 1.18.0", "nginx 1.22.1", "nginx 1.26.3", "nginx 1.30.6", "Tengine 2.1.0 reuse_port", "Tengine 3.1 reuse_port",
	"Apache httpd 2.4.62, event MPM", "Go net/http", "control",
}

// serversExample is a study whose states are versions of servers.
func serversExample(n int, loads []Load, kind string) example {
	r := rand.New(rand.NewPCG(4, uint64(n)))
	m := Matrix{Title: "Goodput", States: serverNames[:n], Loads: loads,
		Rows: []Row{{Name: "goodput", Unit: PerSecond, Figures: figuresOf(r, n, loads, 52000)}}}
	return example{fmt.Sprintf("servers %d %s", n, kind), func(w io.Writer, f Format) error { return DrawMatrix(w, f, m) }}
}

// serverLadder is the ladder of such a study.
func serverLadder(n int) example {
	l := Ladder{Title: "What each step does", Names: []string{"goodput (more is better)", "server CPU per request (less is better)"}, Delta: 0.02}
	for i := 1; i < n; i++ {
		v := 1 + 0.03*float64(i%4)
		e := Effect{Figure: Figure{Value: v, Low: v - 0.008, High: v + 0.009, Mark: Clean}, Tone: Better, Word: "helps"}
		l.Rungs = append(l.Rungs, Rung{State: serverNames[i], Over: serverNames[0], Effects: []Effect{e, e}})
	}
	return example{fmt.Sprintf("ladder of %d servers", n), func(w io.Writer, f Format) error { return DrawLadder(w, f, l) }}
}

// boundsExample is goodput beside its bound: of all states the same, or each its own.
func boundsExample(name string, shared bool, loads []Load) example {
	r := rand.New(rand.NewPCG(5, 5))
	states := []string{"waits 1 s", "waits 2 s", "threads that block 1 s", "control"}
	row := Row{Name: "goodput", Unit: PerSecond}
	for s := range states {
		var figures []Figure
		var bounds []float64
		for _, l := range loads {
			bound := float64(l.Connections)
			switch {
			case !shared && s == 1:
				bound /= 2
			case !shared && s == 2:
				bound = math.Min(bound, 8)
			}
			v := bound * (0.96 + 0.03*r.Float64())
			figures, bounds = append(figures, Figure{Value: v, Low: v * 0.99, High: v * 1.005, Mark: Clean}), append(bounds, bound)
		}
		row.Figures, row.Bounds = append(row.Figures, figures), append(row.Bounds, bounds)
	}
	m := Matrix{Title: "Goodput", States: states, Loads: loads, Rows: []Row{row}}
	return example{"bounds " + name, func(w io.Writer, f Format) error { return DrawMatrix(w, f, m) }}
}

func examples() []example {
	all := []example{
		matrixExample("1 state 1 load", 1, sweep(1), 52000, false),
		matrixExample("3 states mixed", 3, mixedLoads, 52000, true),
		matrixExample("6 states mixed", 6, mixedLoads, 52000, true),
		matrixExample("12 states mixed", 12, mixedLoads, 52000, false),
		matrixExample("6 states sweep", 6, sweep(10), 52000, true),
		matrixExample("12 states sweep", 12, sweep(10), 9.1e6, false),
		matrixExample("3 states factor", 3, factorLoads(), 7.4, true),
		latencyExample(), errorsExample(), cpuExample(),
		ladderExample("six steps", 6, 1), ladderExample("one step", 1, 1), ladderExample("twelve steps", 12, 0.08),
		memoryExample("20k", 20000), memoryExample("huge", 1500000), memoryExample("tiny", 40),
		distributionExample("linear", 1.2), distributionExample("log", 4), seriesExample(),
	}
	all = append(all, serversExample(4, mixedLoads[:2], "of nginx"), serversExample(9, mixedLoads[:2], "of all kinds"), serversExample(8, sweep(5), "sweep"),
		serverLadder(4), serverLadder(9),
		boundsExample("shared", true, sweep(5)), boundsExample("of each", false, sweep(5)), boundsExample("of each at two levels", false, mixedLoads[:2]), boundsExample("shared at two levels", true, mixedLoads[:2]))
	big := ladderExample("large", 6, 8)
	return append(all, big)
}
