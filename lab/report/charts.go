package report

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strings"

	hdr "github.com/HdrHistogram/hdrhistogram-go"

	"ngxlab/lab"
	"ngxlab/plots"
	"ngxlab/templates"
)

// chart is a picture of the report.
type chart struct {
	name string // of its file, without extension
	draw func(w io.Writer, f plots.Format) error
}

// figure draws a chart for the page and keeps it for the files.
func (s *study) figure(name, caption string, draw func(io.Writer, plots.Format) error) ([]templates.Block, error) {
	var svg bytes.Buffer
	if err := draw(&svg, plots.SVG); err != nil {
		return nil, fmt.Errorf("chart %s: %w", name, err)
	}
	s.charts = append(s.charts, chart{name, draw})
	return []templates.Block{{Figure: &templates.Figure{File: s.options.chartFile(name), SVG: svg.String(), Caption: caption}}}, nil
}

// slug is a name as a file name: lower case letters, digits and hyphens.
func slug(s string) string {
	words := strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	return strings.Join(words, "-")
}

// row is a metric of a chart over states and load points.
type row struct {
	name   string
	unit   plots.Unit
	metric lab.Metric
}

// matrixCharts are the charts over states and load points, in the order of the report.
var matrixCharts = []struct {
	name, title, caption string
	rows                 []row
}{
	{"goodput", "Goodput", "Goodput over connections: median and interval over the rounds. Load points of different tools, addresses or keep-alive are not joined.",
		[]row{{"goodput", plots.PerSecond, lab.Goodput}}},
	{"cpu-per-request", "Server CPU time per request", "CPU time of all server processes for each request. It stays comparable when the load generator is the limit.",
		[]row{{"CPU per request", plots.Seconds, lab.CPUPerRequest}}},
	{"latency", "Latency", "Latency as the tool measured it, p50 and p99. In a closed loop it follows from goodput and connections and is no second proof; percentiles of different loop models are not compared.",
		[]row{{"p50", plots.Seconds, lab.P50S}, {"p99", plots.Seconds, lab.P99S}}},
	{"errors", "Errors", "Share of attempts that failed or were answered with an unexpected status.",
		[]row{{"error ratio", plots.Share, lab.ErrorRatio}}},
	{"cpu", "CPU of both sides", "CPU used by the server's processes and by the load generators, in cores.",
		[]row{{"server", plots.Cores, lab.ServerCPU}, {"load generators", plots.Cores, lab.ClientCPU}}},
}

// pictures are the charts other than ladder and memory.
func (s *study) pictures() (templates.Section, error) {
	section := templates.Section{ID: "charts", Title: "Charts"}
	for _, target := range s.targets {
		for _, c := range matrixCharts {
			m, any := s.matrixChart(target, c.title, c.rows)
			if !any {
				continue
			}
			caption := c.caption
			if m.Rows[0].Bounds != nil {
				caption += " The dotted line is the bound of requests that wait: connections ÷ delay."
			}
			blocks, err := s.figure(s.chartName(c.name, target), caption, func(w io.Writer, f plots.Format) error { return plots.DrawMatrix(w, f, m) })
			if err != nil {
				return section, err
			}
			section.Blocks = append(section.Blocks, blocks...)
		}
		blocks, err := s.distributions(target)
		if err != nil {
			return section, err
		}
		section.Blocks = append(section.Blocks, blocks...)
	}
	blocks, err := s.courseOfOneRun()
	section.Blocks = append(section.Blocks, blocks...)
	return section, err
}

func (s *study) chartName(name string, target lab.HostName) string {
	if len(s.targets) > 1 {
		name += "-" + slug(string(target))
	}
	return name
}

// matrixChart gathers the figures of a chart; any is false when no figure can be drawn.
func (s *study) matrixChart(target lab.HostName, title string, rows []row) (m plots.Matrix, any bool) {
	m = plots.Matrix{Title: title, Loads: s.plotLoads()}
	if len(s.targets) > 1 || len(s.parts) > 1 {
		m.Title += ", " + s.place(s.lastPart(), target)
	}
	for _, state := range s.Plan.States {
		m.States = append(m.States, state.Name)
	}
	for _, r := range rows {
		plotted := plots.Row{Name: r.name, Unit: r.unit}
		for _, state := range s.Plan.States {
			var figures []plots.Figure
			for _, load := range s.Plan.Loads {
				f := s.cells[cellKey{s.lastPart(), lab.CellID{Target: target, State: state.Name, Load: load.Name}}].figure(r.metric)
				any = any || f.n > 0 && f.mark != plots.Invalid
				figures = append(figures, f.plotted())
			}
			plotted.Figures = append(plotted.Figures, figures)
		}
		if r.metric == lab.Goodput {
			plotted.Bounds = s.plotBounds(target)
		}
		m.Rows = append(m.Rows, plotted)
	}
	return m, any
}

// plotLoads names the groups of load points that may share a line: everything but the connections is equal.
func (s *study) plotLoads() []plots.Load {
	type group struct {
		tool, url        string
		keepAlive        bool
		hosts, processes int
		duration         lab.Duration
		requests         int
	}
	names := map[group]string{}
	taken := map[string]int{}
	var loads []plots.Load
	for _, l := range s.Plan.Loads {
		g := group{l.Tool, l.URL, l.KeepAlive, len(l.Hosts), l.Processes, l.Duration, l.Requests}
		if names[g] == "" {
			names[g] = s.groupName(l)
			if taken[names[g]]++; taken[names[g]] > 1 {
				names[g] += fmt.Sprintf(" (%d)", taken[names[g]])
			}
		}
		loads = append(loads, plots.Load{Name: l.Name, Group: names[g], Connections: l.Connections})
	}
	return loads
}

func (s *study) groupName(l lab.LoadPoint) string {
	words := []string{l.Tool}
	for _, other := range s.Plan.Loads {
		if other.URL != l.URL {
			words = append(words, l.URL)
			break
		}
	}
	words = append(words, keepAliveWords(l))
	for _, other := range s.Plan.Loads {
		if len(other.Hosts)*other.Processes != len(l.Hosts)*l.Processes {
			words = append(words, fmt.Sprintf("%d × %d processes", len(l.Hosts), l.Processes))
			break
		}
	}
	return strings.Join(words, ", ")
}

// maxDistributions bounds the distribution charts: beyond it only the headline load points get one.
const maxDistributions = 4

// distributions are the latency distributions, one chart per load point, of the merged histograms of the valid runs.
func (s *study) distributions(target lab.HostName) ([]templates.Block, error) {
	var blocks []templates.Block
	drawn := 0
	for _, load := range s.Plan.Loads {
		if len(s.Plan.Loads) > maxDistributions && (!load.Headline || drawn == maxDistributions) {
			continue
		}
		d := plots.Distribution{Title: "Latency distribution, " + load.Name, Note: "Latency: " + s.loopWords(s.lastPart(), target, load)}
		if len(s.targets) > 1 {
			d.Title += ", " + string(target)
		}
		for _, state := range s.Plan.States {
			c := s.cells[cellKey{s.lastPart(), lab.CellID{Target: target, State: state.Name, Load: load.Name}}]
			if quantiles := mergedQuantiles(c.valid); len(quantiles) > 0 {
				d.Courses = append(d.Courses, plots.Course{Name: state.Name, Quantiles: quantiles, Hollow: !allClean(c.valid)})
			}
		}
		if len(d.Courses) == 0 {
			continue
		}
		drawn++
		caption := "Latency over percentiles at " + load.Name + ", histograms of all valid runs merged. Only as far as ten measured requests lie beyond."
		figure, err := s.figure(s.chartName("latency-"+slug(load.Name), target), caption,
			func(w io.Writer, f plots.Format) error { return plots.DrawDistribution(w, f, d) })
		if err != nil {
			return nil, err
		}
		blocks = append(blocks, figure...)
	}
	return blocks, nil
}

// leastBeyond is how many measured requests must lie beyond a quantile for it to be drawn.
const leastBeyond = 10

// mergedQuantiles merges the histograms of runs and reads quantiles off at equal steps of rarity. Nil when any
// histogram is missing or unreadable: a part of the runs would pass for all of them.
func mergedQuantiles(runs []lab.Run) []plots.Quantile {
	var all *hdr.Histogram
	for _, r := range runs {
		if len(r.Histogram) == 0 {
			return nil
		}
		h, err := hdr.Decode(r.Histogram)
		if err != nil {
			return nil
		}
		if all == nil {
			all = h
			continue
		}
		all.Merge(h)
	}
	if all == nil || all.TotalCount() < 2*leastBeyond {
		return nil
	}
	rarest := math.Log10(float64(all.TotalCount()) / leastBeyond)
	const steps = 120
	var quantiles []plots.Quantile
	for i := range steps + 1 {
		q := 1 - math.Pow(10, -rarest*float64(i)/steps)
		quantiles = append(quantiles, plots.Quantile{Q: q, S: float64(all.ValueAtQuantile(q*100)) / 1e6})
	}
	return quantiles
}
