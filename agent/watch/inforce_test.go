package watch

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ngxlab/internal/testlab"
	"ngxlab/lab"
)

// under is a watcher of the real server, whose configuration stands as nginx.conf in the prefix.
func under(t testing.TB, backlog int) (*Watcher, lab.Server) {
	t.Helper()
	s := testlab.Serve(t, backlog)
	server := lab.Server{Master: s.Master, Prefix: filepath.Dir(s.ErrorLog), Port: s.Port}
	if _, err := os.Stat(filepath.Join(server.Prefix, "nginx.conf")); err != nil {
		t.Fatal(err)
	}
	w := &Watcher{Server: func() (lab.Server, bool) { return server, true }}
	testlab.Eventually(t, "both workers call themselves so and are set up", func() bool {
		titled := 0
		for _, pid := range w.workers(server) {
			if title, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil && bytes.Contains(title, []byte("worker process")) {
				titled++
			}
		}
		return titled == 2
	})
	return w, server
}

func TestWhatTheServerRunsUnderIsSampled(t *testing.T) {
	w, s := under(t, 300)
	what := lab.Watch{Server: true}
	first := once(t, w, what).InForce
	text, err := os.ReadFile(filepath.Join(s.Prefix, "nginx.conf"))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(text)
	var own unix.CPUSet
	if err := unix.SchedGetaffinity(0, &own); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{"config": hex.EncodeToString(sum[:]), "binary": testlab.Nginx(t).Binary, "nofile": "18000", "backlog": "300"} {
		if first[key] != want {
			t.Errorf("%s: %q, want %q", key, first[key], want)
		}
	}
	if _, err := strconv.Atoi(first["nproc"]); err != nil || first["cpus"] == "" || len(first) != 6 {
		t.Errorf("in force: %v", first)
	}
	what.Ports = []int{s.Port}
	if again := once(t, w, what).InForce; again["backlog"] != "300" {
		t.Errorf("with its port among those read: %v", again)
	}
}

// asItsUser runs a command as the user of a process, who may change its limits without a capability.
func asItsUser(t *testing.T, pid int, argv []string) {
	t.Helper()
	testlab.Require(t, argv[0])
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	if os.Geteuid() == 0 {
		var who syscall.Credential
		_, ids, _ := bytes.Cut(status, []byte("\nUid:"))
		if _, err := fmt.Sscanf(string(ids), "%d", &who.Uid); err != nil {
			t.Fatal(err)
		}
		_, ids, _ = bytes.Cut(ids, []byte("\nGid:"))
		if _, err := fmt.Sscanf(string(ids), "%d", &who.Gid); err != nil {
			t.Fatal(err)
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &who}
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v: %s", argv, err, out)
	}
}

func TestWhatSomebodyChangesIsInTheNextSample(t *testing.T) {
	w, s := under(t, 300)
	what := lab.Watch{Server: true}
	before := once(t, w, what).InForce
	workers := w.workers(s)
	if len(workers) != 2 {
		t.Fatalf("workers %v", workers)
	}
	for _, c := range []struct {
		pid  int
		argv []string
	}{{workers[0], []string{"prlimit", "--nofile=9000:18000", "--pid"}}, {workers[1], []string{"prlimit", "--nproc=77:77", "--pid"}}, {workers[1], []string{"taskset", "-cp", "0"}}} {
		asItsUser(t, c.pid, append(c.argv, strconv.Itoa(c.pid)))
	}
	config := filepath.Join(s.Prefix, "nginx.conf")
	if err := os.WriteFile(config, []byte("# somebody's\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	after := once(t, w, what).InForce
	if after["nofile"] != "9000,18000" || after["nproc"] == before["nproc"] || after["config"] == before["config"] || after["backlog"] != "300" {
		t.Errorf("before %v, after %v", before, after)
	}
	if before["cpus"] != "0" && after["cpus"] != "0,"+before["cpus"] {
		t.Errorf("CPUs before %q, after %q", before["cpus"], after["cpus"])
	}
}

func TestOnlySingleSamplesTellWhatIsInForce(t *testing.T) {
	w, _ := under(t, 300)
	var got []lab.Sample
	err := w.Watch(t.Context(), lab.Watch{Server: true, Count: 2, Interval: lab.Seconds(0.01)}, func(s lab.Sample) { got = append(got, s) })
	if err != nil || len(got) == 0 || slices.ContainsFunc(got, func(s lab.Sample) bool { return s.InForce != nil }) {
		t.Errorf("%d samples, %v: in force %v", len(got), err, got[0].InForce)
	}
	if s := once(t, w, lab.Watch{}); s.InForce != nil {
		t.Errorf("without the server: %v", s.InForce)
	}
}

func TestLimitsAndValuesAreToldApart(t *testing.T) {
	limits := map[string]lab.Rlimit{"Max processes": {Soft: -1, Hard: -1}, "Max open files": {Soft: 1024, Hard: 20000}}
	for name, want := range map[string]string{"Max processes": "-1", "Max open files": "1024", "Max nothing": ""} {
		if got := softLimit(limits, name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if got := distinct([]string{"1024", "", "900", "1024", "-1"}); got != "-1,900,1024" {
		t.Errorf("joined: %s", got)
	}
}

// BenchmarkInForce measures what the reading costs at two workers; the budget is 1 ms at eight.
func BenchmarkInForce(b *testing.B) {
	w, s := under(b, 300)
	for b.Loop() {
		w.inForce(s, siteListeners(s, lab.Watch{}, nil))
	}
	b.ReportMetric(float64(b.Elapsed()/time.Duration(max(1, b.N)))/1e6, "ms/reading")
}
