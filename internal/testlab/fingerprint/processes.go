package fingerprint

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// startups is sshd's count of logins under way, in its command line.
var startups = regexp.MustCompile(`\d+ of (\d+-\d+ startups)`)

// processes counts those that run by their command lines and limits, without this one and its children. A thread of the kernel has
// none and is left out; so is what has ended meanwhile.
func (f taken) processes() error {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		stat, err := os.ReadFile(filepath.Join(dir, "stat"))
		open, end := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
		if err != nil || open < 0 || end < open {
			continue
		}
		fields := strings.Fields(string(stat[end+1:])) // state, parent, …
		self := strconv.Itoa(os.Getpid())
		if len(fields) < 2 || filepath.Base(dir) == self || fields[1] == self {
			continue
		}
		if fields[0] == "Z" {
			f.count("process that has ended and was not waited for: " + string(stat[open+1:end]))
			continue
		}
		line, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		if err != nil || len(line) == 0 {
			continue
		}
		text := strings.TrimSpace(strings.ReplaceAll(string(line), "\x00", " "))
		f.count("process " + startups.ReplaceAllString(text, "… of $1"))
		f.count("process with " + limitsOf(dir) + ": " + startups.ReplaceAllString(text, "… of $1"))
	}
	return nil
}

// limitsOf are the limits of a process that a study sets.
func limitsOf(dir string) string {
	text, _ := os.ReadFile(filepath.Join(dir, "limits")) // it may have ended
	var found []string
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "Max open files") || strings.HasPrefix(line, "Max processes") {
			found = append(found, strings.Join(strings.Fields(line), " "))
		}
	}
	return strings.Join(found, ", ")
}
