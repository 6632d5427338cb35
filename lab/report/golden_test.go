package report

import (
	"bytes"
	"encoding/json"
	"flag"
	"image/png"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"ngxlab/lab"
	"ngxlab/lab/verdict"
)

var (
	update  = flag.Bool("update", false, "rewrite the golden report")
	rejudge = flag.Bool("update-verdicts", false, "rewrite the recorded verdicts, too")
	preview = flag.String("preview", "", "directory to write the report of the fake campaign to, to be looked at")
)

// recordedVerdicts are those that lab/verdict once gave for the fake campaign: the golden report shows how verdicts are
// written up, not how they are found.
func recordedVerdicts(t *testing.T, r lab.Results) []lab.Verdict {
	t.Helper()
	file := filepath.Join("testdata", "verdicts.json")
	if *rejudge {
		text, err := json.MarshalIndent(verdict.All(r), "", "\t")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, append(text, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var verdicts []lab.Verdict
	if err := json.Unmarshal(text, &verdicts); err != nil {
		t.Fatal(err)
	}
	return verdicts
}

func TestMarkdownIsTheGoldenOne(t *testing.T) {
	r := fakeResults(t)
	r.Verdicts = recordedVerdicts(t, r)
	got := markdown(t, r)
	golden := filepath.Join("testdata", "report.md")
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got == string(want) {
		return
	}
	g, w := strings.Split(got, "\n"), strings.Split(string(want), "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			t.Fatalf("line %d\n got %s\nwant %s\n(go test -update rewrites it; review the difference)", i+1, g[i], w[i])
		}
	}
	t.Fatalf("%d lines, want %d", len(g), len(w))
}

func TestFilesHoldBothDocumentsAndEveryPictureTheMarkdownNames(t *testing.T) {
	files, err := Files(fakeResults(t), Options{ChartsDir: "pictures"})
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string][]byte{}
	for _, f := range files {
		byName[f.Name] = f.Data
	}
	if *preview != "" {
		writePreview(t, files)
	}
	named := regexp.MustCompile(`\]\((pictures/[^)]*)\)`).FindAllSubmatch(byName[MarkdownName], -1)
	if len(named) != len(files)-2 || len(named) < 8 {
		t.Errorf("%d pictures are named, %d files", len(named), len(files))
	}
	for _, m := range named {
		if _, err := png.Decode(bytes.NewReader(byName[string(m[1])])); err != nil {
			t.Errorf("%s: %v", m[1], err)
		}
	}
	if n := bytes.Count(byName[HTMLName], []byte("<svg ")); n != len(named) {
		t.Errorf("%d charts in the page, %d pictures", n, len(named))
	}
}

func writePreview(t *testing.T, files []File) {
	t.Helper()
	for _, f := range files {
		name := filepath.Join(*preview, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
