package build_test

import (
	"io"
	"testing"

	"ngxlab/agent/build"
	"ngxlab/internal/testlab"
)

// BenchmarkSecondUse asks for a real nginx that is built, with the versions of its libraries; the budget is 1 s.
func BenchmarkSecondUse(b *testing.B) {
	made := testlab.Nginx(b)
	c := build.Cache{Dir: testlab.CacheDir(b)}
	for b.Loop() {
		again, err := c.Build(b.Context(), testlab.Recipe(), io.Discard)
		if err != nil || !again.Cached || again.ID != made.ID || len(again.Libraries) == 0 {
			b.Fatalf("%+v, %v", again, err)
		}
	}
	if s := b.Elapsed().Seconds() / float64(b.N); s > 1 {
		b.Errorf("%.2f s, more than 1 s", s)
	}
}
