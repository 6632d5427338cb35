package watch

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"ngxlab/internal/testlab"
)

func TestSamplingKeepsOffTheServersCPUsAndComesBack(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		t.Fatal(err)
	}
	var mine []int
	for cpu := range 1024 {
		if before.IsSet(cpu) {
			mine = append(mine, cpu)
		}
	}
	undo := keepOff(mine[:1])
	var during, after unix.CPUSet
	if err := unix.SchedGetaffinity(0, &during); err != nil {
		t.Fatal(err)
	}
	if len(mine) > 1 && (during.IsSet(mine[0]) || during.Count() != len(mine)-1) {
		t.Errorf("the thread may run on %d CPUs, on the server's: %v", during.Count(), during.IsSet(mine[0]))
	}
	undo()
	keepOff(mine)() // no CPU would be left
	if err := unix.SchedGetaffinity(0, &after); err != nil || after != before {
		t.Errorf("the thread has not its CPUs back: %v", err)
	}
}

func TestYieldedPriorityComesBack(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	testlab.RequireCapability(t, unix.CAP_SYS_NICE, "CAP_SYS_NICE")
	if err := unix.Setpriority(unix.PRIO_PROCESS, 0, -3); err != nil {
		t.Fatal(err)
	}
	undo := yieldPriority()
	during, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil || during != 20 {
		t.Errorf("nice %d while sampling, %v", 20-during, err)
	}
	if err := undo(); err != nil {
		t.Error(err)
	}
	if after, err := unix.Getpriority(unix.PRIO_PROCESS, 0); err != nil || after != 23 {
		t.Errorf("nice %d afterwards, %v", 20-after, err)
	}
	if err := unix.Setpriority(unix.PRIO_PROCESS, 0, 0); err != nil {
		t.Error(err)
	}
}
