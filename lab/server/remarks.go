package server

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Affinity holds a value of worker_cpu_affinity against the workers there will be and the CPUs that the server may use,
// sorted (none: not known, and not held against). Remarks are worth knowing; the error is what would not be in force: a
// text that nginx refuses, a mask without a CPU that may be used, and "auto" for a server whose CPUs are not the first
// ones (nginx counts from CPU 0, ngx_get_cpu_affinity, 1.22).
func Affinity(value string, workers int, cpus []int) (remarks []string, err error) {
	words := strings.Fields(value)
	if len(words) == 0 {
		return nil, errors.New("worker_cpu_affinity has no mask")
	}
	masks := make([][]int, 0, len(words))
	for i, word := range words {
		if word == "auto" && i == 0 {
			continue
		}
		mask, wrong := maskCPUs(word)
		if wrong == nil {
			wrong = usable(word, mask, cpus)
		}
		err = errors.Join(err, wrong)
		masks = append(masks, mask)
		if len(cpus) > 0 && len(word) > cpus[len(cpus)-1]+1 && wrong == nil {
			remarks = append(remarks, fmt.Sprintf("mask %s has %d places, the last CPU that the server may use is %d", word, len(word), cpus[len(cpus)-1]))
		}
	}
	if words[0] == "auto" {
		more, wrong := automatic(masks, workers, cpus)
		return append(remarks, more...), errors.Join(err, wrong)
	}
	switch {
	case workers <= 0:
	case len(masks) < workers:
		remarks = append(remarks, fmt.Sprintf("%d masks for %d workers: nginx gives the last mask to the others", len(masks), workers))
	case len(masks) > workers:
		remarks = append(remarks, fmt.Sprintf("%d masks for %d workers: the last %d are not used", len(masks), workers, len(masks)-workers))
	}
	return append(remarks, shared(masks, workers)...), err
}

// automatic is Affinity of "auto" and at most one mask.
func automatic(masks [][]int, workers int, cpus []int) (remarks []string, err error) {
	if len(masks) > 1 {
		return nil, errors.New("worker_cpu_affinity auto takes one mask at most")
	}
	for i, cpu := range cpus {
		if len(masks) == 0 && cpu != i {
			return nil, fmt.Errorf("worker_cpu_affinity auto begins at CPU 0, but the server may use CPUs %v only: give auto a mask of these", cpus)
		}
	}
	room := len(cpus)
	if len(masks) == 1 {
		room = len(masks[0])
	}
	if room > 0 && workers > room {
		remarks = append(remarks, fmt.Sprintf("%d workers for %d CPUs: nginx binds the others to CPUs in turn", workers, room))
	}
	return remarks, nil
}

// maskCPUs are the CPUs of a mask, whose last place is CPU 0.
func maskCPUs(mask string) ([]int, error) {
	var cpus []int
	for i, c := range mask {
		switch c {
		case '0':
		case '1':
			cpus = append(cpus, len(mask)-1-i)
		default:
			return nil, fmt.Errorf("mask %q of worker_cpu_affinity has the character %q", mask, c)
		}
	}
	if len(cpus) == 0 {
		return nil, fmt.Errorf("mask %q of worker_cpu_affinity has no CPU", mask)
	}
	slices.Reverse(cpus)
	return cpus, nil
}

// usable refuses a mask with a CPU that may not be used: the kernel leaves it out, or refuses the mask as a whole.
func usable(word string, mask, cpus []int) error {
	for _, cpu := range mask {
		if len(cpus) > 0 && !slices.Contains(cpus, cpu) {
			return fmt.Errorf("mask %s of worker_cpu_affinity has CPU %d, the server may use %v", word, cpu, cpus)
		}
	}
	return nil
}

// shared names a CPU that several workers are bound to alone.
func shared(masks [][]int, workers int) []string {
	alone := map[int]int{}
	var remarks []string
	for i, mask := range masks {
		if len(mask) == 1 && (workers <= 0 || i < workers) {
			alone[mask[0]]++
		}
	}
	for cpu, n := range alone {
		if n > 1 {
			remarks = append(remarks, fmt.Sprintf("%d workers are bound to CPU %d alone", n, cpu))
		}
	}
	slices.Sort(remarks)
	return remarks
}

// Inert says why a directive with that value does nothing on Linux, or not what it seems to; "" when nothing is known
// against it. From the documentation of nginx 1.22 and its sources.
func Inert(directive, value string) string {
	p := locate(directive)
	backlog, misplaced := backlogOf(value)
	switch {
	case p.parameter != "" || p.problem != nil:
		return ""
	case misplaced && p.name == "server_name":
		return fmt.Sprintf("backlog= on server_name is a name, not a backlog: the listening socket keeps its own; write listen.backlog: %s", backlog)
	case misplaced:
		return fmt.Sprintf("backlog= belongs to listen and is no backlog in %s; write listen.backlog: %s", p.name, backlog)
	case p.name == "lock_file":
		return "lock_file does nothing where nginx locks by atomic operations, as on Linux"
	case strings.HasSuffix(p.name, "send_lowat"):
		return p.name + " does nothing on Linux"
	case p.name == "use" && value == "epoll":
		return "epoll is what nginx uses on Linux anyway"
	}
	return ""
}

// backlogOf finds a word backlog=N in a value.
func backlogOf(value string) (n string, found bool) {
	for _, word := range strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune(" \t\r\n;{}", r) }) {
		if n, ok := strings.CutPrefix(word, "backlog="); ok {
			if _, err := strconv.Atoi(n); err == nil {
				return n, true
			}
		}
	}
	return "", false
}
