package process

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ngxlab/internal/testlab"
	"ngxlab/lab"
)

func bodyOf(t testing.TB, sizeBytes int64) lab.Body {
	t.Helper()
	b, err := lab.NewBody(sizeBytes)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestBodiesAreMadeOnceAndAnewWhenTheyDiffer(t *testing.T) {
	r := runner(t)
	b := bodyOf(t, 100_000)
	path, err := r.keptBody(b)
	if err != nil {
		t.Fatal(err)
	}
	made, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := r.keptBody(b); err != nil {
			t.Fatal(err)
		}
	}
	if again, err := os.Stat(path); err != nil || !os.SameFile(made, again) {
		t.Errorf("it is made again, %v", err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text[50_000] ^= 1
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, time.Now(), made.ModTime().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if _, err := r.keptBody(b); err != nil {
		t.Fatal(err)
	}
	if sum, err := hashOf(path); err != nil || sum != b.SHA256 {
		t.Errorf("a changed body is kept, %v", err)
	}
	b.SHA256 = strings.Repeat("0", 64)
	if _, err := r.keptBody(b); err == nil || !strings.Contains(err.Error(), "agent and program are of different versions") {
		t.Errorf("error: %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(r.Dir, "bodies", ".new-*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestBodyThatIsNotServedAsGeneratedIsAnError(t *testing.T) {
	s := servingOf(t, input(t, "file"))
	s.Config = strings.Replace(s.Config, "location / {", "location / { sub_filter_once off; if ($uri) { return 200 short; }", 1)
	if !strings.Contains(s.Config, "return 200 short") {
		t.Fatalf("no location in\n%s", s.Config)
	}
	s.Config = strings.Replace(s.Config, " sub_filter_once off;", "", 1)
	refuses(t, serverRunner(t), s, "the body is not the one that was generated: 5 bytes")
}

// BenchmarkStartWithBodies measures what five bodies add to a start, of which the largest has 10 MB.
func BenchmarkStartWithBodies(b *testing.B) {
	all := map[string]lab.Body{}
	for name, size := range map[string]int64{"html/0": 0, "html/1k": 1 << 10, "html/100k": 100 << 10, "html/1m": 1 << 20, "html/10m": 10 << 20} {
		all[name] = bodyOf(b, size)
	}
	r := &Runner{Dir: testlab.StateDir(b)}
	for b.Loop() {
		sv, err := r.newServing(lab.Serving{Bodies: all})
		if err == nil {
			err = sv.write()
		}
		if err != nil {
			b.Fatal(err)
		}
		_ = os.RemoveAll(sv.prefix)
	}
}
