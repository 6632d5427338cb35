package report

import (
	"cmp"
	"fmt"
	"strings"

	"ngxlab/lab"
	"ngxlab/templates"
)

// hostTable has one row per property and one column per host.
func (s *study) hostTable() templates.Block {
	columns := []string{"property"}
	hosts := s.Plan.Experiment.Hosts
	for _, h := range hosts {
		columns = append(columns, string(h.Name))
	}
	t := newTable(columns...)
	for _, property := range hostProperties {
		row, known := []templates.Text{plain(property.name)}, false
		for _, h := range hosts {
			value := s.property(property, h)
			row, known = append(row, plain(orUnknown(value))), known || value != ""
		}
		if known || !property.optional {
			t.row(row...)
		}
	}
	return t.block()
}

// property is the value of one host, "" when it is not known.
func (s *study) property(p hostProperty, h lab.Host) string {
	facts, known := s.Plan.Facts[h.Name]
	if !known && !p.ofHost {
		return ""
	}
	return p.value(h, facts)
}

// sharedKernels says which hosts are one machine: what they share is not what separate machines have.
func (s *study) sharedKernels() []templates.Block {
	var blocks []templates.Block
	for _, group := range s.Plan.Kernels {
		var names []string
		what := "hosts of one machine"
		for _, name := range group {
			names = append(names, string(name))
			if s.Plan.Facts[name].Container != "" {
				what = "containers of one machine"
			}
		}
		blocks = append(blocks, paragraph(plain(fmt.Sprintf("%s are %s. They share its kernel, and its CPUs, caches and memory as far as their bounds below let them; a container has sysctls of its own for its network alone.",
			strings.Join(names, ", "), what))))
	}
	return blocks
}

// hostProperty is a row of the host table.
type hostProperty struct {
	name     string
	ofHost   bool // known without facts
	optional bool // left out when no host has it
	value    func(lab.Host, lab.Facts) string
}

// hostProperties are the rows of the host table.
var hostProperties = []hostProperty{
	{"roles", true, false, func(h lab.Host, _ lab.Facts) string { return joinRoles(h.Roles) }},
	{"reached by", true, false, reachedBy},
	{"container", false, true, func(_ lab.Host, f lab.Facts) string { return f.Container }},
	{"bounds", false, true, bounds},
	{"CPU", false, false, func(_ lab.Host, f lab.Facts) string { return f.CPUModel }},
	{"cores (usable)", false, false, func(_ lab.Host, f lab.Facts) string {
		return fmt.Sprintf("%s (%s)", number(f.Cores), number(len(f.CPUs)))
	}},
	{"memory", false, false, func(_ lab.Host, f lab.Facts) string {
		if f.Container != "" {
			return sizeIf(f.MemoryBytes) + " of the machine"
		}
		return sizeIf(f.MemoryBytes)
	}},
	{"NUMA nodes", false, true, func(_ lab.Host, f lab.Facts) string {
		if f.NUMANodes < 2 {
			return ""
		}
		return number(f.NUMANodes)
	}},
	{"kernel", false, false, func(_ lab.Host, f lab.Facts) string { return f.Kernel }},
	{"distribution", false, false, func(_ lab.Host, f lab.Facts) string { return f.Distribution }},
	{"architecture", false, false, func(_ lab.Host, f lab.Facts) string { return f.Architecture }},
	{"virtualisation", false, false, func(_ lab.Host, f lab.Facts) string { return f.Virtualisation }},
	{"frequency governor", false, false, func(_ lab.Host, f lab.Facts) string { return f.Governor }},
	{"open files, soft and hard", false, false, func(_ lab.Host, f lab.Facts) string {
		return number(f.NofileSoft) + " and " + number(f.NofileHard)
	}},
	{"network cards", false, false, func(_ lab.Host, f lab.Facts) string { return nics(f.NICs) }},
	{"agent runs as root", false, false, func(_ lab.Host, f lab.Facts) string { return yesNo(f.Root) }},
	{"compiler", false, false, func(_ lab.Host, f lab.Facts) string { return f.Compiler }},
	{"agent", false, false, func(_ lab.Host, f lab.Facts) string { return f.Agent }},
}

// reachedBy is how the lab reaches a host, and how load does where that differs.
func reachedBy(h lab.Host, f lab.Facts) string {
	switch {
	case h.Local && h.LoadAt != "":
		return "this machine; load at " + h.LoadAt
	case h.Local:
		return "this machine, loopback"
	case h.Docker != nil:
		return strings.TrimSpace("the Docker engine; load at " + orUnknown(f.Address))
	}
	text := h.Address
	if at := cmp.Or(h.LoadAt, f.Address); at != "" && at != h.Address {
		text += "; load at " + at
	}
	return text
}

// bounds are what a container or a control group leaves of the machine.
func bounds(h lab.Host, f lab.Facts) string {
	var words []string
	if f.CgroupCPUs > 0 {
		words = append(words, trimZeros(lab.Significant(f.CgroupCPUs, 3))+" CPUs of time")
	}
	if h.Docker != nil && h.Docker.CPUSet != "" {
		words = append(words, "CPUs "+h.Docker.CPUSet)
	}
	if f.CgroupBytes > 0 {
		words = append(words, bytesIn(float64(f.CgroupBytes))+" memory")
	}
	if len(words) == 0 && f.Container != "" {
		return "none"
	}
	return strings.Join(words, ", ")
}

func number(n int) string {
	if n == 0 {
		return lab.Unknown
	}
	return count(int64(n))
}

func sizeIf(n int64) string {
	if n == 0 {
		return ""
	}
	return bytesIn(float64(n))
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func joinRoles(roles []lab.Role) string {
	var words []string
	for _, r := range roles {
		words = append(words, string(r))
	}
	return strings.Join(words, ", ")
}

func nics(all []lab.NIC) string {
	var words []string
	for _, n := range all {
		word := n.Name
		if n.SpeedMbitS > 0 {
			word += " " + count(int64(n.SpeedMbitS)) + " Mbit/s"
		}
		words = append(words, word)
	}
	return strings.Join(words, ", ")
}
