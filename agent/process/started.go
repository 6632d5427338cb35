package process

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
)

// started is what the agent notes of a process in its directory of work, so that a later agent knows it again by what
// anyone may read: environment, binary and directory of another user's process need CAP_SYS_PTRACE.
type started struct {
	pid     int    // also its process group
	session int    // which its group never leaves
	start   uint64 // field 22 of /proc/PID/stat: ticks from the boot to its start
	boot    string // boot id
}

// startedFile is its file, in a directory below Dir/work.
const startedFile = ".started"

// note writes down that pid, the leader of a group of its own, was started with the directory work.
func note(work string, pid int) error {
	s, err := readStarted(pid)
	if err != nil {
		return err
	}
	line := fmt.Sprintf("%d %d %d %s\n", s.pid, s.session, s.start, s.boot)
	return os.WriteFile(filepath.Join(work, startedFile), []byte(line), 0o644)
}

func readStarted(pid int) (started, error) {
	p, err := readStat(pid)
	if err != nil {
		return started{}, fmt.Errorf("read the state of process %d: %w", pid, err)
	}
	return started{pid: pid, session: p.session, start: p.start, boot: bootID()}, nil
}

func bootID() string {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "unknown"
	}
	return string(bytes.TrimSpace(text))
}

// noted are the notes below a directory of work that are of this boot. One that cannot be read is of an agent that was
// killed before it let the process go, which then has ended by itself.
func noted(work string) []started {
	files, _ := filepath.Glob(filepath.Join(work, "*", startedFile)) // the pattern is well formed
	var all []started
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		var s started
		if _, err := fmt.Sscanf(string(text), "%d %d %d %s\n", &s.pid, &s.session, &s.start, &s.boot); err == nil && s.boot == bootID() {
			all = append(all, s)
		}
	}
	return all
}

// of reports whether p is the process noted, or one of its group whose leader has ended: while a group lives, the kernel
// gives its number to no other process.
func (s started) of(p stat, table processTable) bool {
	if p.group != s.pid || p.session != s.session || p.start < s.start {
		return false
	}
	leader, lives := table[s.pid]
	return !lives || leader.start == s.start
}
