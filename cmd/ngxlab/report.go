package main

import (
	"context"
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
	files, err := writeReport(o.out, r)
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

// writeReport writes the report into the folder and returns the files that a person opens.
func writeReport(dir string, r lab.Results) ([]string, error) {
	files, err := report.Files(r, report.Options{})
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		path := filepath.Join(dir, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(path, f.Data, 0o644); err != nil {
			return nil, err
		}
	}
	return []string{filepath.Join(dir, report.HTMLName), filepath.Join(dir, report.MarkdownName)}, nil
}
