package knob_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"ngxlab/agent/knob"
	"ngxlab/lab"
)

func BenchmarkApplyOfTenToAndFro(b *testing.B) {
	root := b.TempDir()
	names := []string{"kernel/random/boot_id"}
	for i := range 10 {
		names = append(names, fmt.Sprintf("knob%d", i))
	}
	for _, name := range names {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("0\n"), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	k, err := knob.OpenRoots(b.TempDir(), knob.Roots{ProcSys: root})
	if err != nil {
		b.Fatal(err)
	}
	from, to := "0", "1"
	for b.Loop() {
		var cs []lab.Change
		for _, name := range names[1:] {
			cs = append(cs, change(name, from, to))
		}
		if _, err := k.Apply(b.Context(), "camp", cs); err != nil {
			b.Fatal(err)
		}
		from, to = to, from
	}
}
