package plan_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ngxlab/experiments"
	"ngxlab/lab"
)

// Why a host cannot have a knob of a published study; "" = it can.
const (
	set       = ""
	removed   = "was removed in Linux 4.12"
	shared    = "is a container (docker) and shares its kernel"
	lacks     = "has no sysctl"
	above     = "above the hard limit of 20000"
	forwards  = "resets every net.ipv4.conf.*.forwarding"
	noModule  = "lacks the module gzip_static"
	ofTengine = "Tengine had it until 2.2"
	noCPU     = "has CPU 2, the server may use [0 1]"
)

// tenMasks binds ten workers on what the study took for twelve CPUs.
const tenMasks = "000000000001 000000000010 000000000100 000000001000 000000010000 000000100000 000001000000 000010000000 000100000000 001000000000"

// knob is one knob of a study, and what becomes of it on the machine of testdata/facts-linux-6.18.json and in a
// container on it.
type knob struct {
	kind, name, value string
	here, container   string
}

// published are all sysctls, directives and limits of the four studies of stepwise tuning that the lab re-runs.
var published = map[string][]knob{
	"1: stepwise tuning of nginx on 8 cores, 16 GB": {
		{"sysctl", "net.core.somaxconn", "50000", set, set},
		{"sysctl", "net.ipv4.tcp_syncookies", "0", set, set},
		{"sysctl", "net.ipv4.tcp_tw_recycle", "1", removed, removed},
		{"sysctl", "net.ipv4.tcp_tw_reuse", "1", set, set},
		{"sysctl", "net.ipv4.tcp_timestamps", "1", set, set},
		{"sysctl", "vm.max_map_count", "262144", set, shared},
		{"nginx", "worker_processes", "8", set, set},
		{"nginx", "worker_connections", "65535", set, set},
		{"nginx", "use", "epoll", set, set},
		{"nginx", "sendfile", "on", set, set},
		{"nginx", "tcp_nopush", "on", set, set},
		{"nginx", "tcp_nodelay", "on", set, set},
		{"nginx", "open_file_cache", "max=10000 inactive=20s", set, set},
		{"nginx", "open_file_cache_valid", "30s", set, set},
		{"nginx", "open_file_cache_min_uses", "5", set, set},
		{"nginx", "open_file_cache_errors", "off", set, set},
		{"nginx", "gzip", "on", set, set},
		{"nginx", "gzip_static", "on", noModule, noModule},
		{"nginx", "gzip_min_length", "1024", set, set},
		{"nginx", "gzip_comp_level", "5", set, set},
		{"nginx", "gzip_buffers", "4 32k", set, set},
		{"nginx", "gzip_http_version", "1.1", set, set},
		{"nginx", "gzip_vary", "on", set, set},
		{"nginx", "gzip_types", "text/css text/xml application/javascript", set, set},
		{"nginx", "server_tokens", "off", set, set},
		{"nginx", "client_header_timeout", "60", set, set},
		{"nginx", "client_body_timeout", "60", set, set},
		{"nginx", "reset_timedout_connection", "on", set, set},
		{"nginx", "send_timeout", "600", set, set},
		{"nginx", "client_max_body_size", "100m", set, set},
		{"nginx", "client_body_buffer_size", "256k", set, set},
		{"nginx", "access_log", "logs/access.log combined", set, set},
		{"nginx", "keepalive_timeout", "0", set, set},
		{"nofile", "", "200000", above, above},
		{"nginx", "worker_rlimit_nofile", "102400", above, above},
	},
	"2: Tengine reuse_port against nginx accept_mutex": {
		{"sysctl", "net.ipv4.tcp_mem", "3097431 4129911 6194862", set, shared},
		{"sysctl", "net.ipv4.tcp_rmem", "4096 87380 6291456", set, set},
		{"sysctl", "net.ipv4.tcp_wmem", "4096 65536 4194304", set, set},
		{"sysctl", "net.ipv4.tcp_max_tw_buckets", "262144", set, set},
		{"sysctl", "net.ipv4.tcp_tw_recycle", "0", removed, removed},
		{"sysctl", "net.ipv4.tcp_tw_reuse", "1", set, set},
		{"sysctl", "net.ipv4.tcp_syncookies", "1", set, set},
		{"sysctl", "net.ipv4.tcp_fin_timeout", "15", set, set},
		{"sysctl", "net.ipv4.ip_local_port_range", "1024 65535", set, set},
		{"sysctl", "net.ipv4.tcp_max_syn_backlog", "65535", set, set},
		{"sysctl", "net.core.somaxconn", "65535", set, set},
		{"sysctl", "net.core.netdev_max_backlog", "200000", set, shared},
		{"nofile", "", "65535", above, above},
		{"nginx", "events.reuse_port", "on", ofTengine, ofTengine},
		{"nginx", "listen.reuseport", "true", set, set},
		{"nginx", "events.accept_mutex", "on", set, set},
		{"nginx", "worker_processes", "auto", set, set},
		{"nginx", "worker_cpu_affinity", "auto", set, set},
		{"nginx", "worker_rlimit_nofile", "65535", above, above},
		{"nginx", "worker_connections", "65535", set, set},
		{"nginx", "keepalive_timeout", "0", set, set},
		{"nginx", "listen.backlog", "65535", set, set},
		{"nginx", "access_log", "logs/access.log combined", set, set},
		{"nginx", "events.accept_mutex", "off", set, set},
		{"nginx", "worker_cpu_affinity", "01 10", set, set}, // one mask per CPU, of this machine's two
	},
	"3: nginx 1.16.1 with the echo module, before and after tuning": {
		{"nginx", "keepalive_requests", "100000", set, set},
		{"nginx", "accept_mutex", "off", set, set},
		{"nginx", "multi_accept", "on", set, set},
		{"nginx", "worker_processes", "10", set, set},
		{"nginx", "worker_cpu_affinity", tenMasks, noCPU, noCPU},
		{"nginx", "worker_connections", "204800", set, set},
		{"nginx", "server_name", "localhost backlog=204800", set, set},
		{"sysctl", "net.ipv4.tcp_timestamps", "0", set, set},
		{"sysctl", "net.ipv4.tcp_syncookies", "1", set, set},
		{"sysctl", "net.ipv4.tcp_tw_reuse", "1", set, set},
		{"sysctl", "net.ipv4.tcp_fin_timeout", "15", set, set},
		{"sysctl", "net.ipv4.tcp_synack_retries", "1", set, set},
		{"sysctl", "net.ipv4.tcp_syn_retries", "1", set, set},
		{"sysctl", "net.ipv4.tcp_keepalive_time", "120", set, set},
		{"sysctl", "net.core.somaxconn", "65535", set, set},
		{"sysctl", "net.core.netdev_max_backlog", "200000", set, shared},
		{"sysctl", "net.ipv4.ip_local_port_range", "1024 65535", set, set},
		{"sysctl", "fs.file-max", "1048576", set, shared},
		{"sysctl", "net.ipv4.tcp_max_tw_buckets", "262144", set, set},
		{"sysctl", "net.ipv4.tcp_max_syn_backlog", "65535", set, set},
		{"sysctl", "net.core.rmem_default", "67108864", set, shared},
		{"sysctl", "net.core.rmem_max", "67108864", set, shared},
		{"sysctl", "net.core.wmem_default", "67108864", set, shared},
		{"sysctl", "net.core.wmem_max", "67108864", set, shared},
		{"sysctl", "net.ipv4.tcp_rmem", "4096 87380 6291456", set, set},
		{"sysctl", "net.ipv4.tcp_wmem", "4096 65536 4194304", set, set},
		{"sysctl", "net.ipv4.tcp_mem", "3097431 4129911 6194862", set, shared},
		{"sysctl", "net.ipv4.conf.default.rp_filter", "1", set, set},
		{"sysctl", "net.ipv4.conf.all.rp_filter", "1", set, set},
		{"sysctl", "net.ipv4.ip_forward", "1", forwards, forwards},
		{"sysctl", "net.ipv4.conf.default.accept_source_route", "0", set, set},
		{"sysctl", "net.ipv4.conf.all.accept_source_route", "0", set, set},
		{"sysctl", "kernel.sysrq", "0", lacks, shared}, // this kernel is built without CONFIG_MAGIC_SYSRQ
		{"sysctl", "kernel.core_uses_pid", "1", set, shared},
		{"sysctl", "kernel.msgmnb", "65536", set, shared},
		{"sysctl", "kernel.msgmax", "65536", set, shared},
		{"sysctl", "kernel.shmmax", "68719476736", set, shared},
		{"sysctl", "kernel.shmall", "4294967296", set, shared},
		{"sysctl", "vm.overcommit_memory", "1", set, shared},
		{"nofile", "", "65535", above, above},
		{"nproc", "", "40960", set, set},
	},
	"4: one target, two load hosts, three load tools": {
		{"nginx", "worker_processes", "8", set, set},
		{"nginx", "worker_cpu_affinity", "auto", set, set},
		{"nginx", "use", "epoll", set, set},
		{"nginx", "multi_accept", "on", set, set},
		{"nginx", "worker_connections", "65535", set, set},
		{"nginx", "worker_rlimit_nofile", "65535", above, above},
		{"nginx", "keepalive_requests", "10000", set, set},
		{"nginx", "open_file_cache", "max=10000", set, set},
	},
}

// recorded are the facts of this machine, or of a container on it (testdata/README.md).
func recorded(t *testing.T, name string) lab.Facts {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	f := machine("here")
	f.Sysctls, f.SysctlWritable = nil, nil
	if err := json.Unmarshal(text, &f); err != nil {
		t.Fatal(err)
	}
	return f
}

// stepsOf puts the knobs of a study into steps, a new one where a knob comes again.
func stepsOf(knobs []knob) []lab.Step {
	steps := []lab.Step{{Name: "default"}}
	var seen []lab.KnobID
	for _, k := range knobs {
		id := lab.KnobID{Kind: k.kind, Name: k.name}
		if len(seen) == 0 || slices.Contains(seen, id) {
			seen = nil
			steps = append(steps, lab.Step{Name: fmt.Sprintf("tuned %d", len(steps)), Nginx: map[string]string{}, Sysctl: map[string]string{}})
		}
		seen = append(seen, id)
		put(&steps[len(steps)-1], k)
	}
	return steps
}

func put(step *lab.Step, k knob) {
	switch k.kind {
	case lab.KnobNginx:
		step.Nginx[k.name] = k.value
	case lab.KnobSysctl:
		step.Sysctl[k.name] = k.value
	case lab.KnobNofile:
		step.Nofile, _ = strconv.Atoi(k.value)
	case lab.KnobNproc:
		step.Nproc, _ = strconv.Atoi(k.value)
	}
}

func TestEveryPublishedKnobIsSetOrRefusedWithTheRightReason(t *testing.T) {
	for study, knobs := range published {
		e := quick()
		e.Capacity, e.Cannot, e.Ladder.Kind, e.Steps = nil, lab.CannotSkip, lab.Isolated, stepsOf(knobs)
		e.Server.CPUs = "" // each of the CPUs there are
		here, container := make1(t, e, recorded(t, "facts-linux-6.18.json")), make1(t, e, recorded(t, "facts-container-6.18.json"))
		for _, k := range knobs {
			became(t, study+", here", here, k, k.here)
			became(t, study+", container", container, k, k.container)
		}
		for _, p := range []lab.Plan{here, container} {
			for _, r := range p.Fatal() {
				t.Errorf("%s: fatal: %+v", study, r)
			}
		}
	}
}

// became holds what a plan says of a knob against what it should.
func became(t *testing.T, where string, p lab.Plan, k knob, want string) {
	t.Helper()
	id := lab.KnobID{Kind: k.kind, Name: k.name}
	refused := slices.IndexFunc(p.Refused, func(r lab.Refusal) bool { return r.Knob == id })
	in := func(s lab.State) bool {
		return slices.ContainsFunc(s.Settings["here"], func(s lab.Setting) bool { return s.Knob == id && s.Value == k.value && s.Step != "" })
	}
	switch {
	case want == set && refused >= 0:
		t.Errorf("%s: %s is refused: %s", where, id, p.Refused[refused].Reason)
	case want == set && !slices.ContainsFunc(p.States, in):
		t.Errorf("%s: %s is in no state", where, id)
	case want != set && refused < 0:
		t.Errorf("%s: %s is not refused", where, id)
	case want != set && (!strings.Contains(p.Refused[refused].Reason, want) || p.Refused[refused].Cure == ""):
		t.Errorf("%s: %s is refused for %q, not %q; cure %q", where, id, p.Refused[refused].Reason, want, p.Refused[refused].Cure)
	case want != set && slices.ContainsFunc(p.States, in):
		t.Errorf("%s: %s is refused and set", where, id)
	}
}

// TestPublishedKnobsOfTheLibraryAreAllInTheTable keeps the table complete: what the library's studies set is in it.
func TestPublishedKnobsOfTheLibraryAreAllInTheTable(t *testing.T) {
	listed := map[lab.KnobID]bool{}
	for _, knobs := range published {
		for _, k := range knobs {
			_, bare, qualified := strings.Cut(k.name, ".")
			listed[lab.KnobID{Kind: k.kind, Name: k.name}] = true
			if k.kind == lab.KnobNginx && qualified {
				listed[lab.KnobID{Kind: k.kind, Name: bare}] = true
			}
		}
	}
	for _, name := range []string{"stepwise-8c16g", "tengine-reuseport-modern", "echo-before-after"} {
		text, err := experiments.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		e, err := experiments.Decode(name+".yaml", bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		for _, step := range append(e.Steps, lab.Step{Nginx: e.Server.Nginx}) {
			for _, s := range lab.StepSettings(step, lab.Host{Roles: []lab.Role{lab.RoleTarget, lab.RoleLoad}}) {
				bare := s.Knob
				if _, rest, qualified := strings.Cut(bare.Name, "."); qualified && bare.Kind == lab.KnobNginx {
					bare.Name = rest
				}
				if !listed[s.Knob] && !listed[bare] && s.Knob.Kind != lab.KnobBuild {
					t.Errorf("%s sets %s, which the table does not have", name, s.Knob)
				}
			}
		}
	}
}
