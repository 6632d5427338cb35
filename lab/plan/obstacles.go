package plan

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"ngxlab/lab"
	"ngxlab/lab/server"
	"ngxlab/lab/tune"
)

// obstacle finds why a host cannot have a setting of a step.
func (p *planner) obstacle(host lab.HostName, step lab.Step, s lab.Setting) obstacle {
	if err := tune.Check(s.Knob, s.Value); err != nil {
		return obstacle{reason: fmt.Sprintf("%s: %v", s.Knob, err), cure: "correct the value", mistake: true}
	}
	facts := p.facts[host]
	switch s.Knob.Kind {
	case lab.KnobSysctl:
		return sysctlObstacle(facts, s)
	case lab.KnobNofile:
		return nofileObstacle(facts, step, "nofile", s.Value)
	case lab.KnobNginx:
		return nginxObstacle(facts, step, s)
	case lab.KnobBuild:
		return p.buildObstacle(s.Value)
	}
	return obstacle{reason: fmt.Sprintf("unknown kind of knob %q", s.Knob.Kind), cure: "leave it out", mistake: true}
}

func sysctlObstacle(f lab.Facts, s lab.Setting) obstacle {
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
	return portObstacle(f, s)
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
func portObstacle(f lab.Facts, s lab.Setting) obstacle {
	first, _ := strconv.Atoi(f.Sysctls["net.ipv4.ip_unprivileged_port_start"])
	numbers := strings.Fields(s.Value)
	if s.Knob.Name != "net.ipv4.ip_local_port_range" || first == 0 || len(numbers) == 0 {
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

// nofileObstacle: beyond the hard limit only CAP_SYS_RESOURCE helps, beyond fs.nr_open nothing does.
func nofileObstacle(f lab.Facts, step lab.Step, what, value string) obstacle {
	n, _ := strconv.Atoi(value)
	nrOpen := f.NrOpen
	if raised, err := strconv.Atoi(step.Sysctl["fs.nr_open"]); err == nil {
		nrOpen = raised
	}
	switch {
	case nrOpen > 0 && n > nrOpen:
		return obstacle{reason: fmt.Sprintf("%s %d is above fs.nr_open = %d of %s", what, n, nrOpen, f.Host),
			cure: fmt.Sprintf("ask for at most %d, or set fs.nr_open in the same step", nrOpen)}
	case n > f.NofileHard && !f.RaiseNofile:
		return obstacle{reason: fmt.Sprintf("%s %d is above the hard limit of %d open files on %s, which the agent may not raise", what, n, f.NofileHard, f.Host),
			cure: fmt.Sprintf("ask for at most %d, or raise the hard limit (limits.conf, LimitNOFILE; nofile of a docker host)", f.NofileHard)}
	}
	return obstacle{}
}

func nginxObstacle(f lab.Facts, step lab.Step, s lab.Setting) obstacle {
	if err := server.Known(s.Knob.Name); err != nil {
		return obstacle{reason: err.Error(), cure: "correct the name, or leave it out"}
	}
	if strings.TrimPrefix(s.Knob.Name, "main.") == "worker_rlimit_nofile" {
		return nofileObstacle(f, step, "worker_rlimit_nofile", s.Value)
	}
	return obstacle{}
}

func (p *planner) buildObstacle(name string) obstacle {
	if _, known := p.e.Builds[name]; known {
		return obstacle{}
	}
	known := strings.Join(slices.Sorted(maps.Keys(p.e.Builds)), ", ")
	return obstacle{reason: fmt.Sprintf("there is no build %q", name), cure: "known builds: " + known, mistake: true}
}
