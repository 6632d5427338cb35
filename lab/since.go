package lab

import "slices"

// What was counted between two samples is taken here and nowhere else: a counter that went down began anew, and how much
// was counted then is not known. It is no small number.

// Grown is by how much a cumulative counter grew from one reading to a later one; not known when it went down.
func Grown(before, after float64) (by float64, known bool) {
	if after < before {
		return 0, false
	}
	return after - before, true
}

// Is reports whether two samples show the same process: a pid may be given again.
func (p ProcessSample) Is(q ProcessSample) bool {
	return p.PID == q.PID && p.StartedTicks == q.StartedTicks
}

// CPUSince is the CPU time in seconds that the processes which is true of spent since an earlier sample. One that appeared
// in between counts with its whole life. It is not known when one that was there is gone, for what it used until its end
// was not seen, nor when the time of one went down.
func (s Sample) CPUSince(before Sample, which func(ProcessSample) bool) (seconds float64, known bool) {
	for _, p := range before.Processes {
		if which(p) && !slices.ContainsFunc(s.Processes, p.Is) {
			return 0, false
		}
	}
	for _, p := range s.Processes {
		if !which(p) {
			continue
		}
		was := 0.0
		if i := slices.IndexFunc(before.Processes, p.Is); i >= 0 {
			was = before.Processes[i].CPUS
		}
		spent, known := Grown(was, p.CPUS)
		if !known {
			return 0, false
		}
		seconds += spent
	}
	return seconds, true
}

// cpuJitterS is by how much the kernel's times of one CPU may go down without having begun anew: waiting for I/O is
// taken back when a task wakes on another CPU (proc_stat(5)), and all are kept in ticks of 10 ms.
const cpuJitterS = 0.02

// Since is what a CPU's time was spent on since an earlier reading; not known when a time went down by more than the
// kernel's jitter, which counts as none.
func (c CPUTimes) Since(before CPUTimes) (spent CPUTimes, known bool) {
	spent.CPU, known = c.CPU, true
	for _, kind := range []struct {
		into          *float64
		before, after float64
	}{
		{&spent.UserS, before.UserS, c.UserS}, {&spent.SystemS, before.SystemS, c.SystemS}, {&spent.IdleS, before.IdleS, c.IdleS},
		{&spent.IRQS, before.IRQS, c.IRQS}, {&spent.SoftIRQS, before.SoftIRQS, c.SoftIRQS}, {&spent.StealS, before.StealS, c.StealS},
	} {
		by, grew := Grown(kind.before, max(kind.after, min(kind.before, kind.after+cpuJitterS)))
		*kind.into, known = by, known && grew
	}
	return spent, known
}
