package lab

import (
	"math"
	"testing"
)

func TestCPUTimeIsKnownOnlyWhileItsProcessesAre(t *testing.T) {
	p := func(pid int, started uint64, cpuS float64) ProcessSample {
		return ProcessSample{PID: pid, StartedTicks: started, CPUS: cpuS}
	}
	for name, c := range map[string]struct {
		before, after []ProcessSample
		want          float64
		known         bool
	}{
		"two":                      {[]ProcessSample{p(1, 7, 1), p(2, 7, 2)}, []ProcessSample{p(1, 7, 1.5), p(2, 7, 2.25)}, 0.75, true},
		"one more":                 {[]ProcessSample{p(1, 7, 1)}, []ProcessSample{p(1, 7, 1.5), p(2, 9, 0.25)}, 0.75, true},
		"one gone":                 {[]ProcessSample{p(1, 7, 1), p(2, 7, 2)}, []ProcessSample{p(1, 7, 1.5)}, 0, false},
		"one replaced":             {[]ProcessSample{p(1, 7, 1), p(2, 7, 2)}, []ProcessSample{p(1, 7, 1.5), p(3, 9, 0.1)}, 0, false},
		"its number given again":   {[]ProcessSample{p(1, 7, 1), p(2, 7, 2)}, []ProcessSample{p(1, 7, 1.5), p(2, 9, 3)}, 0, false},
		"a time that fell":         {[]ProcessSample{p(1, 7, 1), p(2, 7, 2)}, []ProcessSample{p(1, 7, 1.5), p(2, 7, 1.9)}, 0, false},
		"nothing was used":         {[]ProcessSample{p(1, 7, 1)}, []ProcessSample{p(1, 7, 1)}, 0, true},
		"none there at either end": {nil, nil, 0, true},
	} {
		got, known := Sample{Processes: c.after}.CPUSince(Sample{Processes: c.before}, func(ProcessSample) bool { return true })
		if math.Abs(got-c.want) > 1e-12 || known != c.known {
			t.Errorf("%s: %v s, known %v; want %v, %v", name, got, known, c.want, c.known)
		}
	}
	others := func(q ProcessSample) bool { return q.PID != 2 }
	if got, known := (Sample{Processes: []ProcessSample{p(1, 7, 1.5)}}).CPUSince(Sample{Processes: []ProcessSample{p(1, 7, 1), p(2, 7, 2)}}, others); got != 0.5 || !known {
		t.Errorf("one that was not asked for is gone: %v s, known %v", got, known)
	}
}

func TestTimesOfACPUMayJitterButNotFall(t *testing.T) {
	before := CPUTimes{CPU: 3, UserS: 10, SystemS: 5, IdleS: 100, SoftIRQS: 1}
	after := CPUTimes{CPU: 3, UserS: 11, SystemS: 5, IdleS: 99.99, SoftIRQS: 1.5}
	if spent, known := after.Since(before); !known || spent != (CPUTimes{CPU: 3, UserS: 1, SoftIRQS: 0.5}) {
		t.Errorf("%+v, known %v", spent, known)
	}
	after.IdleS = 99.9
	if spent, known := after.Since(before); known {
		t.Errorf("idle time fell: %+v", spent)
	}
}
