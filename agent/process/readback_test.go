package process

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"ngxlab/lab"
)

func TestSettingsAreReadBackWhereTheyTakeEffect(t *testing.T) {
	in := input(t, "hello",
		nginx("access_log", "off"), nginx("events.worker_connections", "2048"), nginx("worker_processes", "2"),
		nginx("listen.reuseport", "true"), nginx("listen.backlog", "100"), nginx("open_file_cache", "max=10   inactive=20s"),
		nginx("http.log_format", `lab '$remote_addr "$request"; {'`), nginx("location.keepalive_timeout", "5s"),
		lab.Setting{Knob: lab.KnobID{Kind: lab.KnobNofile}, Value: "4096"})
	in.CPUs = []int{0}
	s, _ := serve(t, serverRunner(t), servingOf(t, in))
	if len(s.Workers) != 2 || s.NofileSoft != 4096 || s.Backlog != 100 {
		t.Errorf("workers %v, nofile %d, backlog %d; want 2 workers, 4096, 100", s.Workers, s.NofileSoft, s.Backlog)
	}
	if len(s.ReadBack) != 9 {
		t.Errorf("%d settings read back, want 9", len(s.ReadBack))
	}
	for _, a := range s.ReadBack {
		if a.Differs || a.ReadBack.Text == "" {
			t.Errorf("%+v", a)
		}
	}
	if strings.Contains(s.Effective, s.Prefix) {
		t.Error("the effective configuration names the fresh directory, so that equal servers differ")
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.Workers[0]))
	if err != nil || !strings.Contains(string(status), "Cpus_allowed_list:\t0\n") {
		t.Errorf("worker is not pinned to CPU 0: %v", err)
	}
}

func TestBlocksSeveralValuesAndRemovalsAreReadBack(t *testing.T) {
	gone := func(name string) lab.Setting {
		s := nginx(name, "")
		s.Absent = true
		return s
	}
	in := input(t, "hello",
		nginx("http.map", "$http_host $x { default 0; 'a;b' \"}\"; }"), nginx("add_header", `X-A "1; 2"; X-B '{' always`),
		nginx("location.if", `($x = "}") { return 403; }`), nginx("server.location", "= /more { return 204; }"), nginx("upstream", "back { server 127.0.0.1:9; keepalive 4; }"),
		nginx("http.log_format", `a '$remote_addr'; b "${status}\t\"x\""`), gone("keepalive_timeout"), gone("default_type"), gone("http.types"), gone("listen.backlog"),
		lab.Setting{Knob: lab.KnobID{Kind: lab.KnobNproc}, Value: "900"})
	s, _ := serve(t, serverRunner(t), servingOf(t, in))
	if s.NprocSoft != 900 || s.Port != in.Spec.Port {
		t.Errorf("process limit %d, port %d; want 900, %d", s.NprocSoft, s.Port, in.Spec.Port)
	}
	if len(s.ReadBack) != 11 {
		t.Errorf("%d settings read back, want 11", len(s.ReadBack))
	}
	for _, a := range s.ReadBack {
		if a.Differs || a.ReadBack.Absent != a.Change.To.Absent {
			t.Errorf("%+v", a)
		}
	}
}

// TestQuotedNumbersAreReadBack: to nginx they are the same.
func TestQuotedNumbersAreReadBack(t *testing.T) {
	s, _ := serve(t, serverRunner(t), servingOf(t, input(t, "hello", nginx("worker_rlimit_nofile", "'1000'"), nginx("worker_processes", `"1"`))))
	for _, a := range s.ReadBack {
		if a.Differs {
			t.Errorf("%+v", a)
		}
	}
	if len(s.ReadBack) != 2 || s.NofileSoft != 1000 {
		t.Errorf("%d settings read back, limit %d", len(s.ReadBack), s.NofileSoft)
	}
}

func TestWhatIsNotInForceIsAnError(t *testing.T) {
	type expected = lab.Setting
	for _, c := range []struct {
		expected
		want string
	}{
		{expected{Knob: lab.KnobID{Kind: lab.KnobNginx, Name: "sendfile"}, At: "http.sendfile", Absent: true}, `nginx sendfile is not in force: asked nothing, found "on"`},
		{expected{Knob: lab.KnobID{Kind: lab.KnobNginx, Name: "http.map"}, Value: "$uri $x { default 1; }"}, `nginx http.map is not in force: asked "$uri $x { default 1; }", found nothing`},
		{expected{Knob: lab.KnobID{Kind: lab.KnobNproc}, Value: "901"}, `nproc is not in force: asked "901", found "`},
		{expected{Knob: lab.KnobID{Kind: lab.KnobNginx, Name: "listen.reuseport"}, Value: "on"}, `nginx listen.reuseport is not in force: asked "on", found "off"`},
	} {
		s := servingOf(t, input(t, "hello"))
		s.Expect = []lab.Setting{c.expected}
		err := serverRunner(t).Serve(t.Context(), s, func(lab.Server) {})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %s", c.Knob, err, c.want)
		}
	}
}

func TestClampedBacklogIsAnErrorUnlessBestEffort(t *testing.T) {
	clamped := nginx("listen.backlog", "2000000000")
	in := input(t, "hello", clamped)
	err := serverRunner(t).Serve(t.Context(), servingOf(t, in), func(lab.Server) {})
	if err == nil || !strings.Contains(err.Error(), `nginx listen.backlog is not in force: asked "2000000000", found "`) {
		t.Errorf("error: %v", err)
	}
	clamped.BestEffort = true
	in.State.Settings["here"] = []lab.Setting{clamped}
	s, _ := serve(t, serverRunner(t), servingOf(t, in))
	if len(s.ReadBack) != 1 || !s.ReadBack[0].Differs || s.ReadBack[0].ReadBack.Text != strconv.Itoa(s.Backlog) {
		t.Errorf("read back: %+v, backlog in force %d", s.ReadBack, s.Backlog)
	}
}
