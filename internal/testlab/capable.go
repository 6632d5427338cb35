package testlab

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// Capable reports whether this process has a capability in force (capabilities(7)): root in a container lacks many.
func Capable(t testing.TB, capability int) bool {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "CapEff:"); ok {
			set, err := strconv.ParseUint(strings.TrimSpace(rest), 16, 64)
			if err != nil {
				t.Fatal(err)
			}
			return set>>capability&1 == 1
		}
	}
	t.Fatal("/proc/self/status has no CapEff")
	return false
}

// RequireWritable skips the test, saying so, when a file cannot be opened for writing: a sysctl in a container, say, or
// as an ordinary user.
func RequireWritable(t testing.TB, path string) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Skipf("SKIPPED: %v", err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}

// RequireCapability skips the test, saying so, when this process lacks the capability.
func RequireCapability(t testing.TB, capability int, name string) {
	t.Helper()
	if !Capable(t, capability) {
		t.Skipf("SKIPPED: needs %s", name)
	}
}
