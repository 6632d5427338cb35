package ssh_test

import (
	"context"
	"os"
	"runtime"
	"testing"
	"time"

	"ngxlab/hosts"
	"ngxlab/hosts/ssh"
	"ngxlab/internal/testlab"
)

// many is how many hosts are to be driven at once.
const many = 200

// enter logs in to a host of a crowd and greets its agent.
func enter(ctx context.Context, d ssh.Destination, o ssh.Options, agent string) (*hosts.Host, error) {
	c, err := ssh.Dial(ctx, d, o)
	if err != nil {
		return nil, err
	}
	return hosts.Enter(ctx, c, hosts.Options{Name: "crowd", Agent: agent})
}

// together does the same with every host at once.
func together(t testing.TB, each func(i int) error) time.Duration {
	t.Helper()
	began, errs := time.Now(), make(chan error, many)
	for i := range many {
		go func() { errs <- each(i) }()
	}
	failed := 0
	for range many {
		if err := <-errs; err != nil {
			if failed++; failed == 1 {
				t.Error(err)
			}
		}
	}
	if failed > 0 {
		t.Fatalf("%d of %d failed", failed, many)
	}
	return time.Since(began)
}

// descriptors is how many files this process has open.
func descriptors(t testing.TB) int {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(open)
}

// entered are hosts of a crowd, which are left when the test ends.
func entered(t testing.TB) (all []*hosts.Host, took time.Duration) {
	t.Helper()
	d, o, agent := crowd(t)
	o.ConnectTimeout = time.Minute
	all = make([]*hosts.Host, many)
	took = together(t, func(i int) (err error) {
		all[i], err = enter(t.Context(), d, o, agent)
		return err
	})
	t.Cleanup(func() { together(t, func(i int) error { return all[i].Close() }) })
	return all, took
}

func TestEachOfManyHostsCostsLittle(t *testing.T) {
	goroutines, files := runtime.NumGoroutine(), descriptors(t)
	all, _ := entered(t)
	together(t, func(i int) error {
		_, err := all[i].Clock(t.Context())
		return err
	})
	t.Logf("%d goroutines and %d descriptors for %d hosts", runtime.NumGoroutine()-goroutines, descriptors(t)-files, many)
	if n := float64(runtime.NumGoroutine()-goroutines) / many; n > 15 {
		t.Errorf("%.1f goroutines for each host, want 15 at most", n)
	}
	if n := float64(descriptors(t)-files-10) / many; n > 1 { // 10 are of the server's process and the runtime's
		t.Errorf("%.2f file descriptors for each host, want 1 at most", n)
	}
}

func TestThousandConnectionsLeaveNothingBehind(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	d, o, agent := crowd(t)
	once := func(i int) {
		c, err := ssh.Dial(t.Context(), d, o)
		if err != nil {
			t.Fatal(err)
		}
		end := c.Close
		if i%10 == 0 { // each of these starts an agent, too
			h, err := hosts.Enter(t.Context(), c, hosts.Options{Name: "crowd", Agent: agent})
			if err != nil {
				t.Fatal(err)
			}
			end = h.Close
		}
		if err := end(); err != nil {
			t.Fatal(err)
		}
	}
	once(0) // what is made once stays
	before, err := os.ReadDir(tmp)
	if err != nil {
		t.Fatal(err)
	}
	goroutines, files := runtime.NumGoroutine(), descriptors(t)
	for i := range 1000 {
		once(i)
	}
	settled(t, goroutines)
	testlab.Eventually(t, "as few descriptors as before", func() bool { return descriptors(t) <= files })
	if after, err := os.ReadDir(tmp); err != nil || len(after) != len(before) {
		t.Errorf("%d temporary files, %v, before there were %d", len(after), err, len(before))
	}
}

// BenchmarkTwoHundredHosts measures one command on 200 hosts at once, with their agents in another process: a call to
// hosts that are entered, and the same from the login on (budget 2 s); and what each entered host costs this process.
func BenchmarkTwoHundredHosts(b *testing.B) {
	goroutines, files := runtime.NumGoroutine(), descriptors(b)
	all, took := entered(b)
	var call time.Duration
	for b.Loop() {
		call += together(b, func(i int) error {
			_, err := all[i].Clock(b.Context())
			return err
		})
	}
	b.ReportMetric(call.Seconds()/float64(b.N), "call-s")
	b.ReportMetric(took.Seconds()+call.Seconds()/float64(b.N), "login-and-call-s")
	b.ReportMetric(float64(runtime.NumGoroutine()-goroutines)/many, "goroutines/host")
	b.ReportMetric(float64(descriptors(b)-files)/many, "descriptors/host")
	b.ReportMetric(0, "ns/op")
}
