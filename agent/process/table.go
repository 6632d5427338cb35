package process

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// stat is what is asked of /proc/PID/stat (proc_pid_stat(5)).
type stat struct {
	parent, group, session int
	start                  uint64 // field 22: ticks from the boot to its start
	dead                   bool   // a zombie, or going
}

// processTable is every process, by pid.
type processTable map[int]stat

// processes reads the process table, in some 10 µs for each process: every agent does it when it starts.
func processes() (processTable, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, fmt.Errorf("read the process table: %w", err)
	}
	defer dir.Close() //nolint:errcheck // opened for reading
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("read the process table: %w", err)
	}
	table := make(processTable, len(names))
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if s, err := readStat(pid); err == nil { // else it ended meanwhile
			table[pid] = s
		}
	}
	return table, nil
}

func readStat(pid int) (stat, error) {
	text, err := readProc(pid, "stat")
	if err != nil {
		return stat{}, err
	}
	return parseStat(text)
}

// parseStat reads one line. The second field, a name in parentheses, may hold anything.
func parseStat(text []byte) (s stat, err error) {
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:]) // from the third on
	if len(fields) < 20 {
		return s, fmt.Errorf("stat of a process has %d fields after its name", len(fields))
	}
	s.dead = fields[0][0] == 'Z' || fields[0][0] == 'X'
	for i, field := range []*int{&s.parent, &s.group, &s.session} {
		if *field, err = strconv.Atoi(string(fields[i+1])); err != nil {
			return s, err
		}
	}
	s.start, err = strconv.ParseUint(string(fields[19]), 10, 64)
	return s, err
}

// below are the living processes below root.
func (t processTable) below(root int) []int {
	children := map[int][]int{}
	for pid, p := range t {
		children[p.parent] = append(children[p.parent], pid)
	}
	var found []int
	for queue := []int{root}; len(queue) > 0; queue = queue[1:] {
		for _, pid := range children[queue[0]] {
			queue = append(queue, pid)
			if !t[pid].dead {
				found = append(found, pid)
			}
		}
	}
	return found
}

// living leaves out what has ended.
func (t processTable) living() processTable {
	living := maps.Clone(t)
	maps.DeleteFunc(living, func(_ int, p stat) bool { return p.dead })
	return living
}

func procPath(pid int, name string) string { return filepath.Join("/proc", strconv.Itoa(pid), name) }

// readProc reads a file of a process. The runtime's poller, which os.Open asks first, would cost as much again.
func readProc(pid int, name string) ([]byte, error) {
	fd, err := unix.Open(procPath(pid, name), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd) //nolint:errcheck // opened for reading
	var text []byte
	for buffer := make([]byte, 4096); ; {
		n, err := unix.Read(fd, buffer)
		if err == unix.EINTR {
			continue
		}
		if n <= 0 || err != nil {
			return text, err
		}
		text = append(text, buffer[:n]...)
	}
}
