package experiments

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"ngxlab/lab"
	"ngxlab/lab/plan"
)

func TestEveryLibraryFileDecodes(t *testing.T) {
	files, err := filepath.Glob("library/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("library files %v: %v", files, err)
	}
	entries := Library()
	if len(entries) != len(files) {
		t.Fatalf("%d entries, %d files", len(entries), len(files))
	}
	for _, entry := range entries {
		text, err := Open(entry.Name)
		if err != nil {
			t.Fatal(err)
		}
		e := decode(t, string(text))
		if entry.Title == "" || entry.Line == "" || e.Name != entry.Name {
			t.Errorf("entry %+v of experiment %q", entry, e.Name)
		}
		for i, s := range e.Steps {
			if s.Why == "" {
				t.Errorf("%s: step %d has no why", entry.Name, i)
			}
		}
	}
	if _, err := Open("quickstrat"); err == nil || !strings.Contains(err.Error(), `"quickstart"`) {
		t.Errorf("error %v does not name the nearest", err)
	}
}

// TestEveryLibraryFileCanBePlanned plans each on machines of root that have every sysctl that it names, but for those
// that Linux no longer has.
func TestEveryLibraryFileCanBePlanned(t *testing.T) {
	for _, entry := range Library() {
		text, err := Open(entry.Name)
		if err != nil {
			t.Fatal(err)
		}
		e := decode(t, string(text))
		facts := map[lab.HostName]lab.Facts{}
		for i, h := range e.Hosts {
			facts[h.Name] = able(e, i)
		}
		pl, err := plan.New(e, facts, 1)
		if err != nil {
			t.Errorf("%s: %v", entry.Name, err)
		}
		for _, r := range pl.Fatal() {
			t.Errorf("%s is refused: %s: %s", entry.Name, r.Knob, r.Reason)
		}
		if len(pl.States) != len(e.Steps)+1 {
			t.Errorf("%s: %d states of %d steps and a control", entry.Name, len(pl.States), len(e.Steps))
		}
	}
}

// able are the facts of the i-th host of an experiment, which can have what it asks for.
func able(e lab.Experiment, i int) lab.Facts {
	f := lab.Facts{
		Host: e.Hosts[i].Name, BootID: fmt.Sprint("boot", i), Address: fmt.Sprint("10.0.0.", 10+i), Cores: 16, MemoryBytes: 64 << 30, AvailableBytes: 60 << 30, Kernel: "6.1.0",
		Distribution: "debian 12", Architecture: "amd64", NofileSoft: 1 << 20, NofileHard: 1 << 20, NrOpen: 1 << 20, Root: true, RaiseNofile: true, CanInstall: true,
		Compiler: "cc 12", LogBytesFree: 9 << 30, Sysctls: map[string]string{"net.ipv4.ip_local_port_range": "1024 65535"}, SysctlWritable: map[string]bool{},
		Commands: map[string]string{"wrk": "/usr/bin/wrk", "ab": "/usr/bin/ab", "cc": "/usr/bin/cc", "make": "/usr/bin/make", "apt-get": "/usr/bin/apt-get", "dpkg-deb": "/usr/bin/dpkg-deb"},
		Limits:   map[string]lab.Rlimit{"nofile": {Soft: 1 << 20, Hard: 1 << 20}, "nproc": {Soft: 1 << 20, Hard: 1 << 20}},
	}
	for n := range f.Cores {
		f.CPUs = append(f.CPUs, n)
	}
	for _, s := range e.Steps {
		for name, value := range s.Sysctl {
			if name != "net.ipv4.tcp_tw_recycle" {
				f.Sysctls[name], f.SysctlWritable[name] = value, true
			}
		}
	}
	return f
}

func TestScaffoldIsValidAndLocal(t *testing.T) {
	var b bytes.Buffer
	if err := Scaffold(&b, ScaffoldOptions{Name: "queue"}); err != nil {
		t.Fatal(err)
	}
	e := decode(t, b.String())
	if e.Name != "queue" || !e.Hosts[0].Local || len(e.Hosts) != 1 {
		t.Errorf("name %q, hosts %+v", e.Name, e.Hosts)
	}
	if err := Scaffold(&b, ScaffoldOptions{Name: "a b"}); err == nil {
		t.Error("a name with a blank was taken")
	}
}
