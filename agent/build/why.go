package build

import (
	"errors"
	"fmt"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// What compilers, configure scripts and the kernel say when they stop.
var (
	outOfMemory = regexp.MustCompile(`Killed signal terminated program|terminated with signal 9|unable to execute command: Killed|virtual memory exhausted|` +
		`out of memory allocating|Cannot allocate memory|signal: killed|\(signal: 9, SIGKILL|(?m)^make.*\] (?:Killed|Error 137)$`)
	noSpace     = regexp.MustCompile(`No space left on device|Disk quota exceeded`)
	configError = regexp.MustCompile(`(?m)^\./configure: error: (.*)$|^(?:auto/)?configure: error: (.*)$`)
)

// reason is what the end of a log says of why a build stopped, with the cure; "" when it says nothing that is known.
func reason(log, dir string, cause error) string {
	switch {
	case noSpace.MatchString(log), errors.Is(cause, syscall.ENOSPC):
		return fmt.Sprintf("the disk is full: %s has %s free; free some space, or give the agent another --state-dir", dir, mebibytes(freeBytes(dir)))
	case outOfMemory.MatchString(log):
		return fmt.Sprintf("the compiler was ended for want of memory: there are %s; give the host more, or lower cflags such as -O3 and -flto", mebibytes(memoryBytes()))
	}
	if found := configError.FindStringSubmatch(log); found != nil {
		return strings.TrimSpace(found[1] + found[2])
	}
	return ""
}

func mebibytes(n int64) string {
	if n < 0 {
		return "an unknown amount"
	}
	return fmt.Sprintf("%d MiB", n>>20)
}

func freeBytes(dir string) int64 {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return -1
	}
	return int64(fs.Bavail) * fs.Bsize
}

// memoryBytes is what the host has, or the bound of a control group that this process is in when that is less; -1 unknown.
func memoryBytes() int64 {
	least := int64(-1)
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		least = int64(info.Totalram) * int64(info.Unit)
	}
	own, _ := os.ReadFile("/proc/self/cgroup") // where there is none, there is no bound
	for _, file := range memoryBounds(string(own)) {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && (least < 0 || n < least) {
			least = n
		}
	}
	return least
}

// memoryBounds are the files that may bound the memory of a process: of its control group and of all above it, by its
// /proc/PID/cgroup (cgroups(7): "0::/path" of version 2, "N:memory:/path" of version 1).
func memoryBounds(own string) []string {
	var files []string
	for line := range strings.Lines(own) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 || !strings.HasPrefix(parts[2], "/") {
			continue
		}
		mount, file := "/sys/fs/cgroup", "memory.max"
		if slices.Contains(strings.Split(parts[1], ","), "memory") {
			mount, file = "/sys/fs/cgroup/memory", "memory.limit_in_bytes"
		} else if parts[1] != "" {
			continue
		}
		for dir := path.Clean(parts[2]); ; dir = path.Dir(dir) {
			files = append(files, path.Join(mount, dir, file))
			if dir == "/" {
				break
			}
		}
	}
	return files
}
