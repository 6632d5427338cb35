package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"slices"
	"strings"

	"ngxlab/lab"
)

// filter chooses runs: a condition on the table runs, named r, with its one argument.
type filter struct {
	where string
	arg   any
}

func ofCampaign(id lab.CampaignID) filter { return filter{"r.campaign = ?", string(id)} }

// runs reads the runs that f chooses, by part, round and time: one query per table, joined here.
func (s *Store) runs(ctx context.Context, q querier, f filter, o Options) ([]lab.Run, error) {
	b := &bundle{s: s, q: q, f: f, at: map[int64]int{}, servers: map[int64]lab.Server{}}
	steps := []func(context.Context) error{b.readRuns, b.readServers, b.readFigures, b.readFindings, b.readProcesses}
	if o.Raw {
		steps = append(steps, b.readOutputs)
	}
	if o.Samples {
		steps = append(steps, b.readSamples)
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return b.runs, nil
}

// bundle is runs being put together.
type bundle struct {
	s       *Store
	q       querier
	f       filter
	runs    []lab.Run
	at      map[int64]int // run id → index into runs
	server  []int64       // per run
	servers map[int64]lab.Server
}

func (b *bundle) readRuns(ctx context.Context) error {
	return each(ctx, b.q, b.scanRun, `SELECT r.id, c.target, c.state, c.load, r.part, r.round, r.attempt, r.began, r.validity, r.grade, r.loop_model,
		r.limiting, r.problem, r.window_begin_ns, r.window_end_ns, r.duration_s, r.overlap, r.skew_s, r.overhead_s, r.server, r.yardsticks, r.histogram, r.unfired
		FROM runs r JOIN campaign_cells c ON c.id = r.cell WHERE `+b.f.where+" ORDER BY r.part, r.round, r.began, r.id", b.f.arg)
}

func (b *bundle) scanRun(rows *sql.Rows) error {
	var r lab.Run
	var began, unfired string
	var yardsticks sql.NullString
	var server int64
	err := rows.Scan(&r.ID, &r.Cell.Target, &r.Cell.State, &r.Cell.Load, &r.Part, &r.Round, &r.Attempt, &began, &r.Validity, &r.Grade, &r.LoopModel,
		&r.Limit, &r.Problem, &r.Window.Begin, &r.Window.End, &r.Window.DurationS, &r.Window.Overlap, &r.Window.SkewS, &r.OverheadS,
		&server, &yardsticks, &r.Histogram, &unfired)
	if err != nil {
		return err
	}
	if r.Began, err = parseTime(began); err != nil {
		return err
	}
	if yardsticks.Valid {
		if err := json.Unmarshal([]byte(yardsticks.String), &r.Yardsticks); err != nil {
			return err
		}
	}
	if r.Findings, err = parseUnfired(unfired); err != nil {
		return err
	}
	b.at[r.ID] = len(b.runs)
	b.runs = append(b.runs, r)
	b.server = append(b.server, server)
	return nil
}

// parseUnfired returns the findings that did not fire, with gaps where the others go.
func parseUnfired(text string) ([]lab.Finding, error) {
	if text == "[]" {
		return nil, nil
	}
	var ps []placed
	if err := json.Unmarshal([]byte(text), &ps); err != nil {
		return nil, err
	}
	var fs []lab.Finding
	for _, p := range ps {
		fs = place(fs, p.Position, p.Finding)
	}
	return fs, nil
}

// place puts f at position i, making room for it.
func place(fs []lab.Finding, i int, f lab.Finding) []lab.Finding {
	for len(fs) <= i {
		fs = append(fs, lab.Finding{})
	}
	fs[i] = f
	return fs
}

func (b *bundle) readFigures(ctx context.Context) error {
	return each(ctx, b.q, func(rows *sql.Rows) error {
		var id int64
		var metric lab.Metric
		var value float64
		if err := rows.Scan(&id, &metric, &value); err != nil {
			return err
		}
		if i, ok := b.at[id]; ok {
			if b.runs[i].Figures == nil {
				b.runs[i].Figures = lab.Figures{}
			}
			b.runs[i].Figures[metric] = value
		}
		return nil
	}, "SELECT f.run, f.metric, f.value FROM runs r JOIN figures f ON f.run = r.id WHERE "+b.f.where, b.f.arg)
}

func (b *bundle) readFindings(ctx context.Context) error {
	return each(ctx, b.q, func(rows *sql.Rows) error {
		var id int64
		var position int
		var text sql.RawBytes
		var f lab.Finding
		if err := rows.Scan(&id, &position, &text); err != nil {
			return err
		}
		if err := json.Unmarshal(text, &f); err != nil {
			return err
		}
		if i, ok := b.at[id]; ok {
			b.runs[i].Findings = place(b.runs[i].Findings, position, f)
		}
		return nil
	}, "SELECT f.run, f.position, f.json FROM runs r JOIN findings f ON f.run = r.id WHERE "+b.f.where, b.f.arg)
}

func (b *bundle) readProcesses(ctx context.Context) error {
	return each(ctx, b.q, func(rows *sql.Rows) error {
		var id int64
		var packed sql.RawBytes
		var p lab.Process
		if err := rows.Scan(&id, &packed); err != nil {
			return err
		}
		if err := b.s.unpackJSON(packed, &p); err != nil {
			return err
		}
		if i, ok := b.at[id]; ok {
			b.runs[i].Processes = append(b.runs[i].Processes, p)
		}
		return nil
	}, "SELECT p.run, p.json_zst FROM runs r JOIN processes p ON p.run = r.id WHERE "+b.f.where+" ORDER BY p.run, p.position", b.f.arg)
}

func (b *bundle) readOutputs(ctx context.Context) error {
	return each(ctx, b.q, func(rows *sql.Rows) error {
		var id int64
		var position int
		var name string
		var packed sql.RawBytes
		if err := rows.Scan(&id, &position, &name, &packed); err != nil {
			return err
		}
		body, err := b.s.unpack(packed)
		if err != nil {
			return err
		}
		i, ok := b.at[id]
		if !ok || position >= len(b.runs[i].Processes) {
			return nil
		}
		return setOutput(&b.runs[i].Processes[position], name, body)
	}, "SELECT p.run, p.position, o.name, o.body_zst FROM runs r JOIN processes p ON p.run = r.id JOIN outputs o ON o.process = p.id WHERE "+b.f.where, b.f.arg)
}

// setOutput puts a stored output back into its process.
func setOutput(p *lab.Process, name string, body []byte) error {
	switch {
	case name == outputStdout:
		p.Stdout = body
	case name == outputStderr:
		p.Stderr = body
	case strings.HasPrefix(name, outputFile):
		if p.Files == nil {
			p.Files = map[string][]byte{}
		}
		p.Files[strings.TrimPrefix(name, outputFile)] = body
	case strings.HasPrefix(name, outputReduced):
		if p.Reductions == nil {
			p.Reductions = map[string]lab.Report{}
		}
		var r lab.Report
		if err := json.Unmarshal(body, &r); err != nil {
			return err
		}
		p.Reductions[strings.TrimPrefix(name, outputReduced)] = r
	}
	return nil
}

func (b *bundle) readSamples(ctx context.Context) error {
	err := each(ctx, b.q, func(rows *sql.Rows) error {
		var id int64
		var packed sql.RawBytes
		var ss []lab.Sample
		if err := rows.Scan(&id, &packed); err != nil {
			return err
		}
		if err := b.s.unpackJSON(packed, &ss); err != nil {
			return err
		}
		if i, ok := b.at[id]; ok {
			b.runs[i].Samples = append(b.runs[i].Samples, ss...)
		}
		return nil
	}, "SELECT s.run, s.json_zst FROM runs r JOIN samples s ON s.run = r.id WHERE "+b.f.where+" ORDER BY s.run, s.rowid", b.f.arg)
	for i := range b.runs {
		slices.SortStableFunc(b.runs[i].Samples, func(x, y lab.Sample) int { return cmp.Compare(x.WallNS, y.WallNS) })
	}
	return err
}
