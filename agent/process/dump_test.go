package process

import (
	"testing"
)

func FuzzDump(f *testing.F) {
	f.Add("worker_processes 1; http { server { listen 1 backlog=2; } log_format a '{;' \"x\"; map ${a}b { c d; } }")
	f.Add("'")
	f.Add("a\\")
	f.Fuzz(func(t *testing.T, text string) {
		d, err := parseDump(text)
		if err != nil {
			return
		}
		size := 0
		for _, s := range d {
			size += len(s.name) + len(s.args) + 1 // its semicolon
		}
		if size > len(text) {
			t.Errorf("%d bytes of statements from %d bytes of text", size, len(text))
		}
	})
}
