package watch

import (
	"path/filepath"

	"ngxlab/lab"
)

// throttle is the state of the tightest CPU quota around the agent, nil when there is none or it does not say. Inside a
// container that is the container's own: its groups are what it sees of /sys/fs/cgroup, in either version.
func (w *Watcher) throttle() *lab.Throttle {
	tightest, dir := 0.0, ""
	w.eachCPU(w.cgroups(), func(group string, quota float64) {
		if dir == "" || quota < tightest {
			tightest, dir = quota, group
		}
	})
	if dir == "" {
		return nil
	}
	text, err := w.files.read(filepath.Join(dir, "cpu.stat"))
	if err != nil {
		return nil
	}
	t, ok := parseThrottle(text)
	t.QuotaCPUs = tightest
	if !ok {
		return nil
	}
	return &t
}

// parseThrottle reads cpu.stat: of the second version in µs (Documentation/admin-guide/cgroup-v2.rst), of the first in ns
// (Documentation/scheduler/sched-bwc.rst).
func parseThrottle(text []byte) (lab.Throttle, bool) {
	m := parseKeys(text, []string{"nr_periods", "nr_throttled", "throttled_usec", "throttled_time"})
	periods, ok := m["nr_periods"]
	if !ok {
		return lab.Throttle{}, false
	}
	return lab.Throttle{Periods: periods, PeriodsThrottled: m["nr_throttled"], ThrottledS: float64(m["throttled_usec"])/1e6 + float64(m["throttled_time"])/1e9}, true
}
