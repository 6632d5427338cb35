package watch

import (
	"context"
	"fmt"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"

	"ngxlab/lab"
)

const (
	// yardstickSteps is the fixed work: a chain of dependent multiplications, 4 cycles each, some 10 ms. It is
	// the same on every host and in every campaign, so it must not be changed.
	yardstickSteps = 10_000_000
	repetitions    = 3
)

// Yardstick times a fixed amount of work on every CPU that the agent may use, at once; its CPU times are in the
// order of the CPUs' numbers.
func (w *Watcher) Yardstick(ctx context.Context) (lab.Yardstick, error) {
	y := lab.Yardstick{Host: w.Host}
	cpus, err := allowedCPUs()
	if err != nil {
		return y, fmt.Errorf("yardstick: %w", err)
	}
	y.CPUS = make([]float64, len(cpus))
	errs := make([]error, len(cpus))
	var ready, done sync.WaitGroup
	begin := make(chan struct{})
	for i, cpu := range cpus {
		ready.Add(1)
		done.Go(func() { y.CPUS[i], errs[i] = pinned(cpu, &ready, begin) })
	}
	ready.Wait()
	start := now()
	close(begin)
	done.Wait()
	y.WallS = now().Sub(start).Seconds()
	for i, err := range errs {
		if err != nil {
			return y, fmt.Errorf("yardstick on CPU %d: %w", cpus[i], err)
		}
	}
	return y, ctx.Err()
}

// pinned does the work on one CPU and returns the mean CPU time in seconds. The thread gets its affinity back: were it
// to end instead, so would the processes that were started from it and end with their parent.
func pinned(cpu int, ready *sync.WaitGroup, begin <-chan struct{}) (float64, error) {
	runtime.LockOSThread()
	var set, before unix.CPUSet
	set.Set(cpu)
	err := unix.SchedGetaffinity(0, &before)
	if err == nil {
		err = unix.SchedSetaffinity(0, &set)
	}
	ready.Done()
	if err != nil {
		runtime.UnlockOSThread()
		return 0, err
	}
	<-begin
	start := clock(unix.CLOCK_THREAD_CPUTIME_ID)
	x := uint64(cpu)
	for range repetitions {
		x = work(x)
	}
	spent := clock(unix.CLOCK_THREAD_CPUTIME_ID) - start
	if err := unix.SchedSetaffinity(0, &before); err != nil {
		return 0, err // and the locked thread ends, rather than stay bound to one CPU
	}
	runtime.UnlockOSThread()
	return float64(spent) / 1e9 / repetitions, nil
}

// work is not inlined, so that it is the same code at every call and no call is left out.
//
//go:noinline
func work(x uint64) uint64 {
	for range yardstickSteps {
		x = x*6364136223846793005 + 1442695040888963407
	}
	return x
}
