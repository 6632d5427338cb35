package build

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// What compilers, configure scripts and the kernel say when they stop.
var (
	outOfMemory = regexp.MustCompile(`Killed signal terminated program|virtual memory exhausted|out of memory allocating|Cannot allocate memory|(?m)^make.*\] Killed$|signal: killed`)
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

// memoryBytes is what the host has, or the bound of its control group when that is less; -1 unknown.
func memoryBytes() int64 {
	least := int64(-1)
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		least = int64(info.Totalram) * int64(info.Unit)
	}
	for _, file := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
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
