package watch

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// keepOff takes the calling goroutine's thread off CPUs as far as others are left, and returns what undoes it. Sampling
// on a CPU of a saturated server costs the server that time; on a CPU of the load it waits its turn: the thread gives
// up the priority that the agent has for its link. Where the CPUs cannot be had, nothing changes.
func keepOff(cpus []int) (undo func()) {
	nothing := func() {}
	if len(cpus) == 0 {
		return nothing
	}
	runtime.LockOSThread()
	var before, set unix.CPUSet
	err := unix.SchedGetaffinity(0, &before)
	set = before
	for _, cpu := range cpus {
		set.Clear(cpu)
	}
	if err != nil || set.Count() == 0 || unix.SchedSetaffinity(0, &set) != nil {
		runtime.UnlockOSThread()
		return nothing
	}
	raised := yieldPriority()
	return func() {
		if unix.SchedSetaffinity(0, &before) == nil && raised() == nil {
			runtime.UnlockOSThread()
		} // else the thread ends with its goroutine, and nobody else runs on it
	}
}

// yieldPriority gives the calling thread the ordinary priority where it has a higher one, and returns what undoes it.
func yieldPriority() (undo func() error) {
	raw, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	nice := 20 - raw // as the system call gives it, see getpriority(2)
	if err != nil || nice >= 0 || unix.Setpriority(unix.PRIO_PROCESS, 0, 0) != nil {
		return func() error { return nil }
	}
	return func() error { return unix.Setpriority(unix.PRIO_PROCESS, 0, nice) }
}
