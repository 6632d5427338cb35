package outputs

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ngxlab/lab"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// goldenReport is a report with its histogram summed up.
type goldenReport struct {
	lab.Report
	Histogram int64  `json:"histogram_count,omitempty"`
	Error     string `json:"error,omitempty"`
}

func golden(t *testing.T, parse func(io.Reader) (lab.Report, error), text []byte) goldenReport {
	t.Helper()
	report, err := parse(bytes.NewReader(text))
	g := goldenReport{Report: report}
	if err != nil {
		return goldenReport{Error: err.Error()}
	}
	if len(report.Histogram) > 0 {
		h, err := DecodeHistogram(report.Histogram)
		if err != nil {
			t.Fatal(err)
		}
		g.Histogram = h.Count()
	}
	g.Report.Histogram = nil
	return g
}

// The samples were recorded with ab 2.4.71 (Debian 2.4.71-1~deb12u1) and wrk 4.1.0 (Debian 4.1.0-3+b2);
// NAME.cmd is the command, NAME.rc its exit status.
func TestRecordedOutputsParseAsReviewed(t *testing.T) {
	for tool, parse := range map[string]func(io.Reader) (lab.Report, error){"ab": ParseAB, "wrk": ParseWrk} {
		t.Run(tool, func(t *testing.T) {
			files, err := filepath.Glob(filepath.Join("testdata", tool, "*.out"))
			if err != nil || len(files) < 20 {
				t.Fatalf("%d samples, %v", len(files), err)
			}
			got := map[string]goldenReport{}
			for _, file := range files {
				text, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				got[strings.TrimSuffix(filepath.Base(file), ".out")] = golden(t, parse, text)
			}
			compareGolden(t, filepath.Join("testdata", tool+".golden.json"), got)
		})
	}
}

func compareGolden(t *testing.T, file string, got any) {
	t.Helper()
	text, err := json.MarshalIndent(got, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, '\n')
	if *update {
		if err := os.WriteFile(file, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(text, want) {
		t.Errorf("%s differs from what the parser returns now; run with -update and review", file)
	}
}

func sample(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}
