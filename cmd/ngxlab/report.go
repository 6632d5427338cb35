package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"ngxlab/lab"
	"ngxlab/lab/report"
	"ngxlab/lab/verdict"
	"ngxlab/store"
)

// reportOptions are the flags of report.
type reportOptions struct {
	out  string
	json bool
}

func newReport(a *app) *cobra.Command {
	o := reportOptions{}
	cmd := &cobra.Command{
		Use:     "report [CAMPAIGN]",
		Short:   "Write the report of a campaign (default: the latest)",
		Example: "  ngxlab report --out report",
		Args:    args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			return a.reading(cmd.Context(), func(s *store.Store) error { return reportCampaign(cmd.Context(), a, s, first(given), o) })
		},
	}
	cmd.Flags().StringVar(&o.out, "out", "", "folder of the report (default out/CAMPAIGN)")
	cmd.Flags().BoolVar(&o.json, "json", false, "print the files written as an array")
	return cmd
}

func reportCampaign(ctx context.Context, a *app, s *store.Store, id string, o reportOptions) error {
	c, err := campaign(ctx, s, id)
	if err != nil {
		return err
	}
	r, err := judged(ctx, s, c.ID)
	if err != nil {
		return err
	}
	if o.out == "" {
		o.out = filepath.Join("out", string(c.ID))
	}
	files, err := writeReport(ctx, o.out, r)
	if err != nil {
		return err
	}
	if o.json {
		return writeJSON(a.out, files)
	}
	p := &page{w: a.out}
	for _, f := range files {
		p.line("%s", f)
	}
	return p.err
}

// judged is the results of a campaign with everything concluded from its runs and levels.
func judged(ctx context.Context, s *store.Store, id lab.CampaignID) (lab.Results, error) {
	r, err := s.Results(ctx, id, store.Options{})
	if err != nil {
		return r, err
	}
	r.Verdicts = verdict.All(r)
	if len(r.Levels) > 0 {
		c := concluded(r)
		r.Capacity = &c
	}
	return r, nil
}

// writeReport writes the report into the folder and returns the files that a person opens. It is written beside the
// folder first, so that one who is interrupted, or has no space left, finds the folder as it was.
func writeReport(ctx context.Context, dir string, r lab.Results) (written []string, err error) {
	files, err := report.Files(r, report.Options{})
	if err = errors.Join(err, ctx.Err()); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return nil, err
	}
	stage, err := os.MkdirTemp(filepath.Dir(dir), ".ngxlab-report-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(stage)) }()
	for _, f := range files {
		if err := writeFile(filepath.Join(stage, filepath.FromSlash(f.Name)), f.Data); err != nil {
			return nil, err
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for _, f := range files {
		name := filepath.FromSlash(f.Name)
		if err := moveFile(filepath.Join(stage, name), filepath.Join(dir, name)); err != nil {
			return nil, err
		}
	}
	return []string{filepath.Join(dir, report.HTMLName), filepath.Join(dir, report.MarkdownName)}, nil
}

// writeFile writes a file into a folder that is made when missing.
func writeFile(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o644)
}

// moveFile moves a file over another, into a folder that is made when missing.
func moveFile(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.Rename(from, to)
}
