package knob_test

import (
	"strings"
	"testing"

	"ngxlab/lab"
)

func TestFilesOfTheKernelAreChangedAndPutBack(t *testing.T) {
	m := newMachine(t)
	before := m.snapshot()
	k := m.keeper()
	vs, err := k.Read(t.Context(), lab.Naming(sysfs(hugePages), sysfs(steering), sysfs("/sys/class/net/eth7/mtu")))
	if err != nil || vs[0].Text != "madvise" || vs[1].Text != "00000000,00000000" || !vs[2].Absent {
		t.Fatalf("read %+v, %v", vs, err)
	}
	m.apply(k, to(sysfs(hugePages), "madvise", "never"), to(sysfs(steering), "0", "3"))
	if m.text(hugePages) != "always madvise [never]\n" || m.text(steering) != "00000000,00000003\n" {
		t.Errorf("huge pages %q, steering %q", m.text(hugePages), m.text(steering))
	}
	m.restore(k)
	if d := differences(m.snapshot(), before); len(d) > 0 || !m.settled() {
		t.Errorf("not as before: %q", d)
	}
}

func TestWordThatAListDoesNotHaveIsNotWritten(t *testing.T) {
	m := newMachine(t)
	k := m.keeper()
	_, err := k.Apply(t.Context(), "camp", []lab.Change{to(sysfs(hugePages), "madvise", "sometimes")})
	if err == nil || !strings.Contains(err.Error(), "always, madvise, never") || m.text(hugePages) != "always [madvise] never\n" {
		t.Errorf("error %v, file %q", err, m.text(hugePages))
	}
}

func TestPatternIsEveryFileThatMatches(t *testing.T) {
	m := newMachine(t)
	asked := lab.Setting{Knob: sysfs("/sys/class/net/eth0/queues/rx-*/rps_cpus"), Value: "00000000,00000003", Step: "spread"}
	facts, err := m.keeper().Probe(t.Context(), []lab.Setting{asked, {Knob: sysfs(flows), Value: "4096"}})
	if err != nil || len(facts) != 3 {
		t.Fatalf("facts %+v, %v", facts, err)
	}
	for i, queue := range []string{"rx-0", "rx-1"} {
		f := facts[i]
		if f.Asked != asked || f.Knob.Name != "/sys/class/net/eth0/queues/"+queue+"/rps_cpus" || f.Now.Text != "00000000,00000000" || f.To.Text != "3" || f.Reason != "" {
			t.Errorf("fact %+v", f)
		}
	}
	if f := facts[2]; f.Knob != f.Asked.Knob || f.Now.Text != "0" || f.To.Text != "4096" || f.Reason != "" {
		t.Errorf("fact %+v", f)
	}
}

func TestProbeSaysWhyAFileOfTheKernelCannotBeHad(t *testing.T) {
	m := newMachine(t)
	m.put("/sys/block/sda/size", "1000\n", 0o444)
	m.put("/sys/class/net/eth0/mtu", "1500\n", 0o644)
	for _, name := range []string{"/proc/self/oom_score_adj", "/proc/thread-self/comm", "/proc/1/oom_score_adj"} {
		m.put(name, "0\n", 0o644)
	}
	for _, c := range []struct{ name, value, reason, cure string }{
		{hugePages, "sometimes", `does not take "sometimes"`, "always, madvise, never"},
		{"/sys/class/net/eth1/queues/rx-*/rps_cpus", "3", "no such file", "/sys/class/net is there"},
		{"/sys/class/net/eth0/queues/rx-9/rps_cpus", "3", "no such file", "/sys/class/net/eth0/queues is there"},
		{"/sys/block/sda/size", "3", "only shows it (mode 0444)", "leave it out"},
		{"/sys/block/sda", "3", "cannot be read", "leave it out"},
		{"/proc/sys/net/core/somaxconn", "3", "is a sysctl", "net.core.somaxconn"},
		{"/proc/sys/net/ipv4/conf/eth0.100/tag", "3", "is a sysctl", "net.ipv4.conf.eth0/100.tag"},
		{"/etc/passwd", "3", "not a path below", "files"},
		{"/sys/../etc/passwd", "3", "shortest form", "/etc/passwd"},
		{"/sys/block/[", "3", "pattern", "brackets"},
		{"/proc/self/oom_score_adj", "3", "come and go", "command knob"},
		{"/proc/thread-self/comm", "x", "come and go", "command knob"},
		{"/proc/1/oom_score_adj", "3", "come and go", "command knob"},
		{"/proc/*/oom_score_adj", "3", "come and go", "command knob"},
		{"/proc/[0-9]*/oom_score_adj", "3", "come and go", "command knob"},
		{"/proc/s?lf/oom_score_adj", "3", "come and go", "command knob"},
		{steering, "all", "no mask", "ff"},
		{steering, "0x3", "no mask", "ff"},
		{"/sys/class/net/eth0/mtu", "big", "no number", "decimal"},
		{"/sys/class/net/eth0/mtu", "-1", "no number", "decimal"},
	} {
		facts, err := m.keeper().Probe(t.Context(), []lab.Setting{{Knob: sysfs(c.name), Value: c.value}})
		if err != nil || len(facts) != 1 || !strings.Contains(facts[0].Reason, c.reason) || !strings.Contains(facts[0].Cure, c.cure) || facts[0].Privilege {
			t.Errorf("%s = %s: facts %+v, %v; want %q, %q", c.name, c.value, facts, err, c.reason, c.cure)
		}
	}
}

func TestProbeOfAKindThatNoHostHasIsARefusal(t *testing.T) {
	facts, err := newMachine(t).keeper().Probe(t.Context(), []lab.Setting{{Knob: lab.KnobID{Kind: lab.KnobNginx, Name: "events.accept_mutex"}, Value: "on"}})
	if err != nil || len(facts) != 1 || facts[0].Reason == "" {
		t.Errorf("facts %+v, %v", facts, err)
	}
}
