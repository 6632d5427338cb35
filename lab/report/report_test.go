package report

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
)

var preview = flag.String("preview", "", "directory to write the report of the fake campaign to, to be looked at")

func TestPreview(t *testing.T) {
	files, err := Files(fakeResults(t), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if *preview == "" {
		t.SkipNow()
	}
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
