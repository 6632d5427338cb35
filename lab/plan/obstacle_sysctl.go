package plan

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"ngxlab/lab"
	"ngxlab/lab/tune"
)

func sysctlObstacle(f lab.Facts, step lab.Step, s lab.Setting) obstacle {
	name := s.Knob.Name
	now, present := f.Sysctls[name]
	if since, cure := tune.Removed(name, f.Kernel); since != "" && !present {
		return obstacle{reason: fmt.Sprintf("%s was removed in Linux %s; %s runs %s", name, since, f.Host, f.Kernel), cure: cure}
	}
	if reason, cure := tune.Coupled(name, f.Sysctls); reason != "" {
		return obstacle{reason: name + ": " + reason, cure: cure}
	}
	if present && tune.Equal(s.Knob, now, s.Value) {
		return obstacle{}
	}
	if o := containerObstacle(f, name); o.reason != "" {
		return o
	}
	switch {
	case !present:
		return obstacle{reason: absent(f, name), cure: nearestCure(name, f.Sysctls)}
	case !f.SysctlWritable[name] && !f.Root:
		return obstacle{reason: fmt.Sprintf("step %q needs root on %s: %s may be written by root only", s.Step, f.Host, name),
			cure: "run as root", privilege: true}
	case !f.SysctlWritable[name]:
		return obstacle{reason: fmt.Sprintf("%s does not let %s be written, not even by root", f.Host, name),
			cure: "set it on the machine that owns the kernel, or leave it out"}
	}
	if o := portObstacle(f, step, s); o.reason != "" {
		return o
	}
	return valueObstacle(f, s)
}

// valueObstacle: what the kernel does not take, or takes and rounds, which only a best-effort step may.
func valueObstacle(f lab.Facts, s lab.Setting) obstacle {
	if reason, cure := tune.Unavailable(s.Knob.Name, s.Value, f.Sysctls); reason != "" {
		return obstacle{reason: fmt.Sprintf("%s has %s", f.Host, reason), cure: cure}
	}
	to, why := tune.Clamped(s.Knob.Name, s.Value)
	if to == "" || s.BestEffort {
		return obstacle{}
	}
	return obstacle{reason: fmt.Sprintf("%s = %s becomes %s: the kernel has it %s", s.Knob.Name, s.Value, to, why), mistake: true,
		cure: fmt.Sprintf("write %s, or best_effort: true in the step to take what comes", to)}
}

// containerObstacle: a container has sysctls of its own for its network alone; every other value is the machine's, would
// change it and would outlive the lab.
func containerObstacle(f lab.Facts, name string) obstacle {
	if f.Container == "" || tune.Namespaced(name) {
		return obstacle{}
	}
	return obstacle{
		reason: fmt.Sprintf("%s is a container (%s) and shares its kernel with the machine: only net.* of its own network namespace can be set there, and %s is one value for the whole machine",
			f.Host, f.Container, name),
		cure: "set it on the machine itself, outside the study, or leave it out",
	}
}

// absent says where a sysctl was looked for in vain.
func absent(f lab.Facts, name string) string {
	if f.Container != "" {
		return fmt.Sprintf("%s has no sysctl %s: the network namespace of a container has not every value of the machine (%s, Linux %s)", f.Host, name, f.Container, f.Kernel)
	}
	return fmt.Sprintf("%s has no sysctl %s (Linux %s)", f.Host, name, f.Kernel)
}

// portObstacle: the kernel refuses a range of local ports that begins below the first unprivileged port.
func portObstacle(f lab.Facts, step lab.Step, s lab.Setting) obstacle {
	first := number(step.Sysctl[firstOpen], number(f.Sysctls[firstOpen], 0))
	numbers := strings.Fields(s.Value)
	if s.Knob.Name != portsKnob || first == 0 || len(numbers) == 0 {
		return obstacle{}
	}
	if low, err := strconv.Atoi(numbers[0]); err == nil && low < first {
		return obstacle{reason: fmt.Sprintf("net.ipv4.ip_local_port_range may not begin below net.ipv4.ip_unprivileged_port_start = %d", first),
			cure: fmt.Sprintf("begin at %d or above", first), mistake: true}
	}
	return obstacle{}
}

// nearestCure names the sysctl whose name is the most like the one asked for.
func nearestCure(name string, known map[string]string) string {
	near, ok := lab.Nearest(name, slices.Sorted(maps.Keys(known)))
	if !ok {
		return "load the kernel module that has it, or leave it out"
	}
	return fmt.Sprintf("did you mean %s?", near)
}
