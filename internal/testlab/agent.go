package testlab

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
)

// agent remembers the binary for the life of a test process: the sources do not change meanwhile.
var agent struct {
	sync.Mutex
	path string
}

// Agent returns the path of the agent's binary, static and without cgo, built from this checkout by the first test of
// a process that asks. The path carries the hash of the binary, so it is never written over while it runs.
func Agent(t testing.TB) string {
	t.Helper()
	agent.Lock()
	defer agent.Unlock()
	if agent.path == "" {
		path, err := buildAgent(t.Context(), CacheDir(t))
		if err != nil {
			t.Fatal(err)
		}
		agent.path = path
	}
	return agent.path
}

// buildAgent builds under a lock that all test processes share; an up-to-date binary takes the go command no time.
func buildAgent(ctx context.Context, dir string) (string, error) {
	lock, err := os.OpenFile(filepath.Join(dir, "agent.lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return "", err
	}
	defer lock.Close() //nolint:errcheck // frees the lock
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", err
	}
	latest := filepath.Join(dir, "agent")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", latest, "ngxlab/cmd/ngxlab-agent")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the agent: %w\n%s", err, out)
	}
	content, err := os.ReadFile(latest)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(content)
	path := filepath.Join(dir, "ngxlab-agent-"+hex.EncodeToString(sum[:8]))
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if err := os.WriteFile(path+".new", content, 0o755); err != nil {
		return "", err
	}
	return path, os.Rename(path+".new", path)
}
