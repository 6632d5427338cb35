package lab

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Split divides total into parts whole shares that sum to total exactly; the larger shares come first and no two
// differ by more than 1: 1000 over 3 is 334, 333, 333. It returns nil when parts is not positive.
func Split(total, parts int) []int {
	if parts <= 0 {
		return nil
	}
	shares := make([]int, parts)
	for i := range shares {
		shares[i] = total / parts
		if i < total%parts {
			shares[i]++
		}
	}
	return shares
}

// ParseCPUs reads a list of CPU numbers as the kernel writes it, "0-3,8", and returns them ascending, each once.
// The empty text is the empty list.
func ParseCPUs(list string) ([]int, error) {
	var cpus []int
	if strings.TrimSpace(list) == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(list, ",") {
		first, last, err := cpuRange(strings.TrimSpace(part))
		if err != nil {
			return nil, fmt.Errorf("CPU list %q: %w", list, err)
		}
		for cpu := first; cpu <= last; cpu++ {
			cpus = append(cpus, cpu)
		}
	}
	slices.Sort(cpus)
	return slices.Compact(cpus), nil
}

// maxCPU bounds a CPU number: Linux allows at most 8192 (CONFIG_NR_CPUS on x86-64).
const maxCPU = 8191

func cpuRange(part string) (first, last int, err error) {
	low, high, isRange := strings.Cut(part, "-")
	if first, err = strconv.Atoi(low); err != nil {
		return 0, 0, fmt.Errorf("%q is not a CPU number", low)
	}
	last = first
	if isRange {
		if last, err = strconv.Atoi(high); err != nil {
			return 0, 0, fmt.Errorf("%q is not a CPU number", high)
		}
	}
	if first < 0 || last < first || last > maxCPU {
		return 0, 0, fmt.Errorf("range %q is not ascending within 0 and %d", part, maxCPU)
	}
	return first, last, nil
}
