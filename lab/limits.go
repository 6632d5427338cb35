package lab

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// The names of limits in /proc/PID/limits (Linux, fs/proc/base.c, proc_pid_limits).
const (
	LimitOpenFiles = "Max open files"
	LimitProcesses = "Max processes"
)

// ParseLimits reads the text of /proc/PID/limits, by the names that it has there; a limit of -1 is none.
func ParseLimits(text []byte) (map[string]Rlimit, error) {
	all := map[string]Rlimit{}
	for line := range bytes.Lines(text) {
		fields := strings.Fields(string(line))
		at := 0
		for at < len(fields) && !isLimit(fields[at]) {
			at++
		}
		switch {
		case at == len(fields): // the line of the columns' names
			continue
		case at == 0 || at+1 == len(fields):
			return nil, fmt.Errorf("limits of a process: %q is not a name, a soft and a hard limit", bytes.TrimSpace(line))
		}
		soft, err := parseLimit(fields[at])
		hard, errHard := parseLimit(fields[at+1])
		if err := errors.Join(err, errHard); err != nil {
			return nil, fmt.Errorf("limits of a process: %q: %w", bytes.TrimSpace(line), err)
		}
		all[strings.Join(fields[:at], " ")] = Rlimit{Soft: soft, Hard: hard}
	}
	return all, nil
}

func isLimit(field string) bool {
	return field == "unlimited" || field[0] >= '0' && field[0] <= '9'
}

func parseLimit(field string) (int64, error) {
	if field == "unlimited" {
		return -1, nil
	}
	return strconv.ParseInt(field, 10, 64)
}
