// Package report writes a campaign up: one document in Markdown with pictures, and the same as one HTML page with
// everything inside.
//
// It concludes nothing itself. Verdicts come from lab/verdict, findings from the runs, the capacity part from
// lab.Results.Capacity. It is deterministic: the same results give the same bytes.
//
// Two rules hold for every figure in it: an unknown one is printed as "–" and never as 0, and the figure of a run that
// is not clean carries its mark (METHOD, findings).
package report

import (
	"bytes"
	"fmt"
	"time"

	"ngxlab/lab"
	"ngxlab/lab/verdict"
	"ngxlab/plots"
	"ngxlab/templates"
)

// Options changes how a report is written. The zero value is the ordinary report.
type Options struct {
	ChartsDir string // where Markdown finds the pictures, relative to it; default "charts"
}

// File is one file of a report; Name is relative, with slashes.
type File struct {
	Name string
	Data []byte
}

// The names of the two documents among the files.
const (
	MarkdownName = "report.md"
	HTMLName     = "report.html"
)

// Files returns the whole report: report.html, report.md, and the charts as PNG for the latter. Nothing is written
// anywhere; an error means that there is no report at all, never half of one.
func Files(r lab.Results, o Options) ([]File, error) {
	doc, charts, err := build(r, o)
	if err != nil {
		return nil, err
	}
	var page, text bytes.Buffer
	if err := templates.ReportHTML(&page, doc); err != nil {
		return nil, fmt.Errorf("report of %s: %w", r.Campaign.ID, err)
	}
	if err := templates.ReportMarkdown(&text, doc); err != nil {
		return nil, fmt.Errorf("report of %s: %w", r.Campaign.ID, err)
	}
	files := []File{{HTMLName, page.Bytes()}, {MarkdownName, text.Bytes()}}
	for _, c := range charts {
		var picture bytes.Buffer
		if err := c.draw(&picture, plots.PNG); err != nil {
			return nil, fmt.Errorf("report of %s: chart %s: %w", r.Campaign.ID, c.name, err)
		}
		files = append(files, File{o.chartFile(c.name), picture.Bytes()})
	}
	return files, nil
}

func (o Options) chartFile(name string) string {
	dir := o.ChartsDir
	if dir == "" {
		dir = "charts"
	}
	return dir + "/" + name + "." + plots.PNG.Extension()
}

// study is what the sections are made from.
type study struct {
	lab.Results
	verdicts []lab.Verdict
	cells    map[cellKey]cell
	parts    []int
	targets  []lab.HostName
	options  Options
	charts   []chart
}

// build makes the document and its charts.
func build(r lab.Results, o Options) (templates.Report, []chart, error) {
	if len(r.Plan.States) == 0 {
		return templates.Report{}, nil, fmt.Errorf("report of %s: the plan has no states", r.Campaign.ID)
	}
	s := &study{Results: r, options: o, cells: cellsOf(r.Runs)}
	if s.verdicts = r.Verdicts; len(s.verdicts) == 0 {
		s.verdicts = verdict.All(r)
	}
	s.parts, s.targets = partsOf(r.Runs), targetsOf(r.Plan)
	doc := templates.Report{Title: s.title(), Footer: s.footer()}
	for _, section := range []func() (templates.Section, error){
		s.summary, s.ladder, s.delays, s.matrix, s.pictures, s.claims, s.validity, s.capacity, s.conditions, s.method, s.again,
	} {
		part, err := section()
		if err != nil {
			return templates.Report{}, nil, fmt.Errorf("report of %s: %w", r.Campaign.ID, err)
		}
		if len(part.Blocks) > 0 {
			doc.Sections = append(doc.Sections, part)
		}
	}
	return doc, s.charts, nil
}

func (s *study) title() string {
	if s.Plan.Experiment.Title != "" {
		return s.Plan.Experiment.Title
	}
	return s.Plan.Experiment.Name
}

func (s *study) footer() string {
	text := fmt.Sprintf("Campaign %s, begun %s", s.Campaign.ID, utc(s.Campaign.Began))
	if s.Campaign.Ended != nil {
		text += ", ended " + utc(*s.Campaign.Ended)
	}
	text += fmt.Sprintf(". Status: %s.", s.Campaign.Status)
	if s.Version != "" {
		text += " Measured and written by ngxlab " + s.Version + "."
	}
	return text
}

func utc(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }
