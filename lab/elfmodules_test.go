package lab_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"ngxlab/lab"
)

// compiled is a C program with a table of module names as nginx has it.
func compiled(t *testing.T, flags ...string) string {
	t.Helper()
	dir := t.TempDir()
	source, out := filepath.Join(dir, "a.c"), filepath.Join(dir, "a.out")
	const text = "char *ngx_module_names[] = {\"ngx_http_stub_status_module\", \"ngx_core_module\", 0};\nint main(int n, char **v) { return v[0] == ngx_module_names[n]; }\n"
	if err := os.WriteFile(source, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if said, err := exec.Command("cc", append([]string{"-o", out, source}, flags...)...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	return out
}

func TestModulesAreReadFromTheTableOfABinary(t *testing.T) {
	for name, flags := range map[string][]string{"placed anywhere": {"-pie", "-fPIE"}, "placed at an address": {"-no-pie"}} {
		f, err := os.Open(compiled(t, flags...))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close() //nolint:errcheck // only read
		got, err := lab.NginxModules(f)
		if want := []string{"ngx_core_module", "ngx_http_stub_status_module"}; err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

func TestBinariesWithoutNamesOfModulesSaySo(t *testing.T) {
	f, err := os.Open(compiled(t, "-s"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // only read
	if got, err := lab.NginxModules(f); !errors.Is(err, lab.ErrNoSymbols) {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := lab.NginxModules(bytes.NewReader([]byte("#!/bin/sh\n"))); err == nil {
		t.Errorf("a script has the modules %v", got)
	}
}

func FuzzNginxModules(f *testing.F) {
	self, err := os.ReadFile("/bin/true")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(self)
	f.Add([]byte("\x7fELF\x02\x01\x01"))
	f.Fuzz(func(t *testing.T, binary []byte) {
		names, err := lab.NginxModules(bytes.NewReader(binary))
		if err == nil && (len(names) > 1<<13 || slices.Contains(names, "") || !slices.IsSorted(names)) {
			t.Errorf("modules %q", names)
		}
	})
}
