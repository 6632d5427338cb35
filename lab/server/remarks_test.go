package server

import (
	"strings"
	"testing"
)

func TestAffinityIsHeldAgainstWorkersAndCPUs(t *testing.T) {
	for _, c := range []struct {
		value   string
		workers int
		cpus    []int
		remark  string // part of the only one; "" = none
		err     string
	}{
		{"01 10", 2, []int{0, 1}, "", ""},
		{"auto", 2, []int{0, 1}, "", ""},
		{"auto 1100", 2, []int{2, 3}, "", ""},
		{"01", 2, nil, "1 masks for 2 workers: nginx gives the last mask to the others", ""},
		{"01 10 01", 2, []int{0, 1}, "3 masks for 2 workers: the last 1 are not used", ""},
		{"0001 0010", 2, []int{0, 1}, "mask 0001 has 4 places, the last CPU that the server may use is 1", ""},
		{"01 01", 2, []int{0, 1}, "2 workers are bound to CPU 0 alone", ""},
		{"0100 1000", 2, []int{0, 1}, "", "mask 0100 of worker_cpu_affinity has CPU 2, the server may use [0 1]"},
		{"0011", 1, []int{1}, "", "has CPU 0, the server may use [1]"},
		{"auto", 2, []int{2, 3}, "", "auto begins at CPU 0"},
		{"auto", 4, []int{0, 1}, "4 workers for 2 CPUs", ""},
		{"auto 01", 2, []int{0, 1}, "2 workers for 1 CPUs", ""},
		{"auto 01 10", 2, []int{0, 1}, "", "one mask at most"},
		{"00", 1, nil, "", `mask "00" of worker_cpu_affinity has no CPU`},
		{"0x3", 1, nil, "", `has the character 'x'`},
		{"", 1, nil, "", "has no mask"},
	} {
		remarks, err := Affinity(c.value, c.workers, c.cpus)
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%q: error %v, want %s", c.value, err, c.err)
		}
		if said := strings.Join(remarks, "; "); c.remark == "" && err == nil && said != "" || !strings.Contains(said, c.remark) {
			t.Errorf("%q for %d workers on %v: %q, want %s", c.value, c.workers, c.cpus, said, c.remark)
		}
	}
}

func TestDirectivesThatDoNothingAreNamed(t *testing.T) {
	for _, c := range []struct{ directive, value, want string }{
		{"server.server_name", "localhost backlog=204800", "backlog= on server_name is a name, not a backlog: the listening socket keeps its own; write listen.backlog: 204800"},
		{"http.keepalive_timeout", "65 backlog=10", "backlog= belongs to listen and is no backlog in keepalive_timeout; write listen.backlog: 10"},
		{"listen.backlog", "204800", ""}, {"server.server_name", "localhost", ""}, {"server_name", "backlog=x", ""},
		{"lock_file", "logs/lock", "lock_file does nothing"}, {"http.send_lowat", "1", "send_lowat does nothing on Linux"},
		{"events.use", "epoll", "epoll is what nginx uses on Linux anyway"}, {"events.use", "poll", ""}, {"keepalive_requests", "0", ""},
	} {
		if got := Inert(c.directive, c.value); got != c.want && (c.want == "" || !strings.HasPrefix(got, c.want)) {
			t.Errorf("%s %s: %q, want %q", c.directive, c.value, got, c.want)
		}
	}
}
