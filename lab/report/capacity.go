package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"ngxlab/lab"
	"ngxlab/plots"
	"ngxlab/templates"
)

// capacity is memory per connection, and what it means for a memory size.
func (s *study) capacity() (templates.Section, error) {
	section := templates.Section{ID: "capacity", Title: "Capacity"}
	r := s.Capacity
	switch {
	case r == nil && len(s.Levels) > 0:
		section.Blocks = append(section.Blocks, paragraph(plain(plural(len(s.Levels), "level")+" of held connections were measured, but nothing was concluded from them.")))
		return section, nil
	case r == nil && s.Plan.Experiment.Capacity != nil:
		section.Blocks = append(section.Blocks, paragraph(styled("Connections were to be held, but no level was measured.", templates.Doubt)))
		return section, nil
	case r == nil:
		return section, nil
	case r.Problem != "":
		section.Blocks = append(section.Blocks, paragraph(styled("Nothing can be concluded: "+r.Problem+".", templates.Doubt)))
	}
	for _, kind := range kindsOf(*r) {
		blocks, err := s.capacityOf(*r, kind)
		if err != nil {
			return section, err
		}
		section.Blocks = append(section.Blocks, blocks...)
	}
	if notes := textList(r.Notes); len(notes) > 0 {
		section.Blocks = append(section.Blocks, heading("What these figures rest on"), templates.Block{List: notes})
	}
	return section, nil
}

func textList(lines []string) []templates.Text {
	var list []templates.Text
	for _, l := range lines {
		list = append(list, prose(l))
	}
	return list
}

func kindsOf(r lab.CapacityResult) []lab.HoldKind {
	var kinds []lab.HoldKind
	for _, f := range r.Fits {
		if !slices.Contains(kinds, f.Kind) {
			kinds = append(kinds, f.Kind)
		}
	}
	return kinds
}

func (s *study) capacityOf(r lab.CapacityResult, kind lab.HoldKind) ([]templates.Block, error) {
	blocks := []templates.Block{heading(kindWords(kind)), paragraph(plain(s.heldWords(r, kind)))}
	blocks = append(blocks, fitTable(r, kind).block())
	chart, err := s.memoryChart(r, kind)
	if err != nil {
		return nil, err
	}
	blocks = append(blocks, chart...)
	if t := s.projectionTable(r, kind); !t.empty() {
		blocks = append(blocks, paragraph(plain("What fits in a memory size. The reserve stays free for the system; users are those whose browsers open that many connections each.")), t.block())
	}
	if t := s.limitTable(); !t.empty() {
		blocks = append(blocks, paragraph(plain("Every known bound on connections here, smallest first:")), t.block())
	}
	if t := ruleTable(r, kind); !t.empty() {
		blocks = append(blocks, paragraph(plain("Rules of thumb beside the measured figure:")), t.block())
	}
	return blocks, nil
}

func kindWords(k lab.HoldKind) string {
	switch k {
	case lab.HoldIdle:
		return "Idle connections (keep-alive, one request done)"
	case lab.HoldActive:
		return "Active connections (a request in progress)"
	}
	return string(k) + " connections"
}

// heldWords says which levels and ramps stand behind a kind.
func (s *study) heldWords(r lab.CapacityResult, kind lab.HoldKind) string {
	ramps, most := map[int]bool{}, 0
	for _, l := range r.Levels {
		if l.Kind == kind {
			ramps[l.Ramp] = true
			most = max(most, l.Connections)
		}
	}
	text := fmt.Sprintf("%s, each from a fresh server, up to %s connections", plural(len(ramps), "ramp"), count(int64(most)))
	if p := s.Plan.Capacity; p != nil && p.State != "" {
		text += " in state " + quoted(p.State)
	}
	return text + ". Bytes per connection: mean of one slope per ramp, 95% interval by t over the ramps."
}

func fitTable(r lab.CapacityResult, kind lab.HoldKind) *tableBuilder {
	t := newTable("part", ">bytes per connection", ">95% interval", ">at zero connections", ">ramps", "remarks")
	for _, f := range r.Fits {
		if f.Kind != kind {
			continue
		}
		name := plain(f.Part)
		if f.Part == lab.PartTotal {
			name = styled(f.Part, templates.Strong)
		}
		t.row(name, plain(wholeBytes(f.BytesPerConnection)), plain(fitInterval(f)), plain(bytesIn(f.InterceptBytes)), plain(fmt.Sprint(len(f.Slopes))), plain(fitRemarks(f)))
	}
	return t
}

// wholeBytes prints bytes per connection: whole bytes, or one decimal below ten.
func wholeBytes(v float64) string {
	if math.Abs(v) >= 9.95 {
		return lab.Number(v, 0)
	}
	if math.Abs(v) < 0.05 {
		return "0"
	}
	return trimZeros(lab.Number(v, 1))
}

func fitInterval(f lab.CapacityFit) string {
	if f.NoInterval || len(f.Slopes) < 2 {
		return "none"
	}
	return wholeBytes(f.Low) + " … " + wholeBytes(f.High)
}

func fitRemarks(f lab.CapacityFit) string {
	var words []string
	switch f.Part {
	case lab.PartTotal:
		words = append(words, "server + kernel")
	case lab.PartKernel:
		words = append(words, "all named caches and socket memory")
	case lab.PartFloor:
		words = append(words, "TCP + filp + epoll: the least a connection costs")
	case lab.PartServer:
		if words = append(words, "PSS of all server processes"); f.Anonymous {
			words[0] = "anonymous resident memory of all server processes"
		}
	}
	if f.Divided {
		words = append(words, "kernel memory ÷ 2 by assumption")
	}
	if f.NotLinear {
		words = append(words, "not linear")
	}
	return orUnknown(strings.Join(words, "; "))
}

// memoryChart draws total, kernel and server over the connections.
func (s *study) memoryChart(r lab.CapacityResult, kind lab.HoldKind) ([]templates.Block, error) {
	m := plots.Memory{Title: "Memory over connections, " + string(kind)}
	for _, f := range r.Fits {
		if f.Kind == kind && slices.Contains([]string{lab.PartTotal, lab.PartKernel, lab.PartServer}, f.Part) {
			m.Parts = append(m.Parts, memoryPart(f, r.Levels))
		}
	}
	if len(m.Parts) == 0 {
		return nil, nil
	}
	return s.figure("memory-"+slug(string(kind)), "Memory over held connections by part, with the fit.",
		func(w io.Writer, f plots.Format) error { return plots.DrawMemory(w, f, m) })
}

func memoryPart(f lab.CapacityFit, levels []lab.CapacityLevel) plots.MemoryPart {
	p := plots.MemoryPart{Name: f.Part, InterceptBytes: f.InterceptBytes, SlopeBytes: f.BytesPerConnection,
		LowBytes: f.Low, HighBytes: f.High, DividedByTwo: f.Divided, NotLinear: f.NotLinear}
	if f.NoInterval || len(f.Slopes) < 2 {
		p.LowBytes, p.HighBytes = math.NaN(), math.NaN()
	}
	byRamp := map[int][]plots.MemoryPoint{}
	var ramps []int
	for _, l := range levels {
		bytes, known := l.Parts[f.Part]
		if l.Kind != f.Kind || !known {
			continue
		}
		if byRamp[l.Ramp] == nil {
			ramps = append(ramps, l.Ramp)
		}
		byRamp[l.Ramp] = append(byRamp[l.Ramp], plots.MemoryPoint{Connections: l.Connections, Bytes: float64(bytes)})
	}
	slices.Sort(ramps)
	for _, ramp := range ramps {
		p.Ramps = append(p.Ramps, byRamp[ramp])
	}
	return p
}

func (s *study) projectionTable(r lab.CapacityResult, kind lab.HoldKind) *tableBuilder {
	var each []int
	if spec := s.Plan.Experiment.Capacity; spec != nil {
		each = spec.ConnectionsPerUser
	}
	columns := []string{">memory", ">reserve", ">connections that fit", ">95% interval"}
	for _, n := range each {
		columns = append(columns, fmt.Sprintf(">users at %d", n))
	}
	t := newTable(append(columns, "first limit", "remarks")...)
	for _, p := range r.Projections {
		if p.Kind != kind {
			continue
		}
		row := []templates.Text{plain(bytesIn(float64(p.SizeBytes))), plain(bytesIn(float64(p.ReserveBytes))), plain(about(p.Connections)), plain(projectionInterval(p))}
		for _, n := range each {
			users, known := p.Users[n]
			row = append(row, plain(aboutIf(users, known)))
		}
		t.row(append(row, plain(limitText(p)), plain(projectionRemarks(p)))...)
	}
	return t
}

// about prints a projected number with three digits: the fit knows no more.
func about(n int64) string { return lab.Significant(float64(n), 3) }

func aboutIf(n int64, known bool) string {
	if !known {
		return lab.Unknown
	}
	return about(n)
}

func projectionInterval(p lab.CapacityProjection) string {
	if p.NoInterval {
		return "none"
	}
	return about(p.Low) + " … " + about(p.High)
}

func limitText(p lab.CapacityProjection) string {
	if p.FirstLimit == "" {
		return lab.Unknown
	}
	if p.AtFirstLimit == p.Connections { // the projection itself
		return p.FirstLimit + ", at " + about(p.AtFirstLimit)
	}
	return p.FirstLimit + ", at " + count(p.AtFirstLimit)
}

func projectionRemarks(p lab.CapacityProjection) string {
	if p.Extrapolation {
		return "extrapolation: beyond 4 × the tested range"
	}
	return lab.Unknown
}

func (s *study) limitTable() *tableBuilder {
	t := newTable("limit", ">connections", "how it comes about")
	if s.Plan.Capacity == nil {
		return t
	}
	for _, l := range s.Plan.Capacity.Limits {
		t.row(plain(l.Name), plain(count(l.Connections)), prose(orUnknown(l.Detail)))
	}
	return t
}

func ruleTable(r lab.CapacityResult, kind lab.HoldKind) *tableBuilder {
	t := newTable("rule", "source", ">it says", ">measured here", "of", "the measured figure is")
	for _, rule := range r.Rules {
		if rule.Kind != kind {
			continue
		}
		says := ruleBytes(rule.LowBytes)
		if rule.HighBytes != rule.LowBytes {
			says += " … " + ruleBytes(rule.HighBytes)
		}
		t.row(plain(rule.Rule), plain(rule.Source), plain(says), plain(ruleBytes(rule.MeasuredBytes)), plain(rule.Of), plain(besideRule(rule)))
	}
	return t
}

// ruleBytes prints decimal bytes, as rules of thumb are given.
func ruleBytes(v float64) string {
	for _, unit := range []struct {
		size float64
		name string
	}{{1e9, "GB"}, {1e6, "MB"}, {1e3, "KB"}} {
		if v >= unit.size {
			return trimZeros(lab.Significant(v/unit.size, 3)) + " " + unit.name
		}
	}
	return trimZeros(lab.Significant(v, 3)) + " bytes"
}

func besideRule(r lab.CapacityRule) string {
	switch {
	case r.MeasuredBytes < r.LowBytes:
		return "below: " + times(r.MeasuredBytes/r.LowBytes)
	case r.MeasuredBytes > r.HighBytes:
		return "above: " + times(r.MeasuredBytes/r.HighBytes)
	}
	return "within"
}
