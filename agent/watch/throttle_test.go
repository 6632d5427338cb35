package watch

import (
	"path/filepath"
	"testing"

	"ngxlab/lab"
)

// The cpu.stat files are those of a container of one tenth of a CPU: of Docker on Linux 6.18 with the first version, and
// its form in the second.
func TestThrottlingIsThatOfTheTightestQuota(t *testing.T) {
	const (
		first  = "nr_periods 468\nnr_throttled 295\nthrottled_time 21534000000\nnr_bursts 0\nburst_time 0\n"
		second = "usage_usec 271580\nuser_usec 71580\nsystem_usec 200000\nnr_periods 468\nnr_throttled 295\nthrottled_usec 21534000\nnr_bursts 0\nburst_usec 0\n"
		idle   = "nr_periods 5\nnr_throttled 0\nthrottled_usec 0\n"
	)
	want := lab.Throttle{QuotaCPUs: 0.1, Periods: 468, PeriodsThrottled: 295, ThrottledS: 21.534}
	v2 := func(files map[string]string) map[string]string {
		files["sys/fs/cgroup/cgroup.controllers"] = "cpu memory\n"
		return files
	}
	for name, c := range map[string]struct {
		files map[string]string
		want  *lab.Throttle
	}{
		"second version, in a container": {v2(map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "10000 100000\n", "sys/fs/cgroup/cpu.stat": second}), &want},
		"second version, nested": {v2(map[string]string{"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/cpu.max": "10000 100000\n", "sys/fs/cgroup/a/cpu.stat": second,
			"sys/fs/cgroup/a/b/cpu.max": "50000 100000\n", "sys/fs/cgroup/a/b/cpu.stat": idle}), &want},
		"first version, in a container": {map[string]string{"proc/self/cgroup": "4:cpuacct:/docker/8ad1\n1:cpu:/docker/8ad1\n0::/docker/8ad1\n", "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "10000\n",
			"sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n", "sys/fs/cgroup/cpu/cpu.stat": first}, &want},
		"first version, joined with another controller": {map[string]string{"proc/self/cgroup": "1:cpu,cpuacct:/docker/8ad1\n", "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "10000\n",
			"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n", "sys/fs/cgroup/cpu,cpuacct/cpu.stat": first}, &want},
		"without a quota":   {v2(map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "max 100000\n", "sys/fs/cgroup/cpu.stat": second}), nil},
		"not to be read":    {v2(map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "10000 100000\n"}), nil},
		"cut short":         {v2(map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "10000 100000\n", "sys/fs/cgroup/cpu.stat": "usage_usec 271580\nnr_per"}), nil},
		"no control groups": {map[string]string{"x": ""}, nil},
	} {
		root := tree(t, c.files)
		got := (&Watcher{Proc: filepath.Join(root, "proc"), Sys: filepath.Join(root, "sys")}).throttle()
		if (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
