package lab

import (
	"reflect"
	"testing"
)

// fleet: a machine, two containers of it on CPUs of their own and one on all, and another machine.
var fleet = map[HostName]Facts{
	"here": {BootID: "a", Network: "net:[1]", CPUs: []int{0, 1, 2, 3}},
	"low":  {BootID: "a", Network: "net:[2]", Container: "docker", CPUs: []int{0, 1}},
	"high": {BootID: "a", Network: "net:[3]", Container: "docker", CPUs: []int{2, 3}},
	"wide": {BootID: "a", Network: "net:[4]", Container: "docker", CPUs: []int{0, 1, 2, 3}},
	"far":  {BootID: "b", Network: "net:[1]", CPUs: []int{0, 1, 2, 3}},
	"dark": {}, "mute": {},
}

func TestHostsOfOneBootShareTheirKernel(t *testing.T) {
	names := []HostName{"far", "here", "low", "dark", "high", "mute"}
	if got := Kernels(fleet, names); !reflect.DeepEqual(got, [][]HostName{{"here", "low", "high"}}) {
		t.Errorf("kernels %v", got)
	}
	p := Plan{Facts: fleet}
	for load, want := range map[HostName]bool{"low": true, "here": true, "far": false, "dark": false} {
		if got := p.SharedKernel("here", []HostName{load}); got != want {
			t.Errorf("here and %s share a kernel: %v", load, got)
		}
	}
	if !p.SharedKernel("dark", []HostName{"far", "dark"}) {
		t.Error("a host has its own kernel")
	}
}

func TestOneMachineUnderTwoNamesIsKnownByItsNetwork(t *testing.T) {
	for _, c := range []struct {
		a, b Facts
		want bool
	}{
		{fleet["here"], fleet["low"], false}, {fleet["here"], fleet["far"], false}, {fleet["here"], fleet["here"], true}, {fleet["dark"], fleet["mute"], false},
		{Facts{BootID: "a"}, Facts{BootID: "a"}, true}, {Facts{BootID: "a", Container: "lxc"}, Facts{BootID: "a"}, false},
	} {
		if got := SameMachine(c.a, c.b); got != c.want {
			t.Errorf("%+v and %+v: %v", c.a, c.b, got)
		}
	}
}

func TestYardsticksOfOneKernelAreTakenOncePerCPU(t *testing.T) {
	p := Plan{Facts: fleet}
	for _, c := range [][2][]HostName{
		{{"low", "high", "wide", "far"}, {"low", "high", "far"}},
		{{"wide", "low", "high", "far"}, {"wide", "far"}},
		{{"here", "dark", "mute"}, {"here", "dark", "mute"}},
	} {
		if got := p.YardstickHosts(c[0]); !reflect.DeepEqual(got, c[1]) {
			t.Errorf("of %v: %v, want %v", c[0], got, c[1])
		}
	}
}

func TestBoundsOfAControlGroupCount(t *testing.T) {
	f := Facts{CPUs: []int{0, 1, 2, 3}, Cores: 8, MemoryBytes: 8 << 30}
	if f.UsableCPUs() != 4 || f.BoundBytes() != 8<<30 || (Facts{Cores: 2}).UsableCPUs() != 2 || (Facts{}).UsableCPUs() != 0 {
		t.Errorf("unbounded: %d CPUs, %d bytes", f.UsableCPUs(), f.BoundBytes())
	}
	f.CgroupCPUs, f.CgroupBytes = 1.5, 1<<30
	if f.UsableCPUs() != 2 || f.BoundBytes() != 1<<30 {
		t.Errorf("bounded: %d CPUs, %d bytes", f.UsableCPUs(), f.BoundBytes())
	}
	f.CgroupCPUs, f.CgroupBytes = 16, 64<<30
	if f.UsableCPUs() != 4 || f.BoundBytes() != 8<<30 {
		t.Errorf("bounds beyond the machine: %d CPUs, %d bytes", f.UsableCPUs(), f.BoundBytes())
	}
}
