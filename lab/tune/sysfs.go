package tune

import (
	"path"
	"slices"
	"strings"
)

// cpuMasks are the ends of the names of kernel files that hold a set of CPUs as hexadecimal digits in groups of eight
// (lib/vsprintf.c, bitmap_string; lib/bitmap-str.c, bitmap_parse).
var cpuMasks = []string{"rps_cpus", "xps_cpus", "xps_rxqs", "smp_affinity", "/cpumask"}

// choice is the word that a kernel file puts in brackets among those that it takes, "always [madvise] never"; the
// value itself when none is.
func choice(value string) string {
	words := strings.Fields(value)
	i := slices.IndexFunc(words, func(w string) bool { return len(w) > 2 && w[0] == '[' && w[len(w)-1] == ']' })
	if i < 0 || len(words) == 1 {
		return fields(value)
	}
	return strings.Trim(words[i], "[]")
}

// normaliseSysfs collapses white space, takes the word in brackets, writes a CPU mask without commas and leading
// zeros, and a module's yes and no as 1 and 0 (kernel/params.c, param_get_bool).
func normaliseSysfs(name, value string) string {
	text := choice(value)
	switch {
	case slices.ContainsFunc(cpuMasks, func(end string) bool { return strings.HasSuffix(name, end) }):
		return mask(text)
	case strings.HasPrefix(name, "/sys/module/"):
		return yesNo(text)
	}
	return text
}

func yesNo(text string) string {
	switch text {
	case "Y", "y":
		return "1"
	case "N", "n":
		return "0"
	}
	return text
}

// mask writes a set of CPUs in one way: "00000000,00000003" is "3".
func mask(text string) string {
	digits, groups := "", strings.Split(strings.ToLower(text), ",")
	for _, group := range groups {
		if len(group) > 8 && len(groups) > 1 || strings.Trim(group, "0123456789abcdef") != "" {
			return text
		}
		digits += strings.Repeat("0", max(0, 8-len(group))) + group
	}
	if digits = strings.TrimLeft(digits, "0"); digits == "" {
		return "0"
	}
	return digits
}

func checkSysfs(name, value string) error {
	_, err := path.Match(name, "")
	below := strings.HasPrefix(name, "/sys/") || strings.HasPrefix(name, "/proc/")
	if err != nil || !below || path.Clean(name) != name {
		return &ValueError{Value: name, Want: "an absolute path or pattern below /sys or /proc"}
	}
	if strings.HasPrefix(name, "/proc/sys/") {
		return &ValueError{Value: name, Want: "a sysfs knob: write it below sysctl"}
	}
	return oneLine(value)
}

func oneLine(value string) error {
	if strings.ContainsAny(strings.TrimSpace(value), "\n\x00") || fields(value) == "" {
		return &ValueError{Value: value, Want: "a value of one line"}
	}
	return nil
}
