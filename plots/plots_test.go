package plots

import (
	"bytes"
	"flag"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var pictures = flag.String("pictures", "", "directory to write every example chart to, to be looked at")

func (e example) bytes(t *testing.T, f Format) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := e.draw(&b, f); err != nil {
		t.Fatalf("draw %s: %v", e.name, err)
	}
	if *pictures != "" {
		name := strings.ReplaceAll(e.name, " ", "-") + "." + f.Extension()
		if err := os.WriteFile(filepath.Join(*pictures, name), b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

func TestEveryChartIsAPictureInBothFormats(t *testing.T) {
	for i, e := range examples() {
		if i%3 != 0 && *pictures == "" {
			continue // the race detector makes rasterising slow
		}
		picture, err := png.Decode(bytes.NewReader(e.bytes(t, PNG)))
		if err != nil {
			t.Errorf("%s: not a PNG: %v", e.name, err)
			continue
		}
		if size := picture.Bounds(); size.Dx() < 800 || size.Dy() < 200 {
			t.Errorf("%s: %v is too small", e.name, size)
		}
		svg := string(e.bytes(t, SVG))
		if !strings.HasPrefix(svg, "<svg ") || !strings.HasSuffix(svg, "</svg>") {
			t.Errorf("%s: not an SVG: %.60s", e.name, svg)
		}
	}
}
