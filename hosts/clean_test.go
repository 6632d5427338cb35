package hosts

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ngxlab/agent/wire"
	"ngxlab/internal/testlab"
	"ngxlab/lab"
)

// write makes a file of 100 bytes, and its directory.
func write(t *testing.T, path string) string {
	t.Helper()
	err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, make([]byte, 100), 0o644))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

func TestCleanRemovesWhatCanBeMadeAgain(t *testing.T) {
	d, dir := home(t), testlab.StateDir(t)
	enterOn := func() *Host {
		h, err := tryEnter(t, d, func(e *entrance) { e.shell.dir = dir })
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = h.Close() })
		return h
	}
	h := enterOn()
	agents := filepath.Dir(d.puts[0])
	gone := []string{
		write(t, dir+"/builds/b1/nginx"), write(t, dir+"/sources/nginx.tar.gz"), write(t, dir+"/work/p1/out"),
		write(t, agents+"/ngxlab-agent-0123456789abcdef"), write(t, agents+"/"+wire.TemporaryPrefix+"1"),
	}
	then := time.Now().Add(-time.Hour)
	if err := os.Chtimes(agents+"/"+wire.TemporaryPrefix+"1", then, then); err != nil {
		t.Fatal(err)
	}
	kept := []string{
		d.puts[0], write(t, agents+"/notes"), write(t, dir+"/journal.restored"),
		write(t, agents+"/"+wire.TemporaryPrefix+"on-its-way"), running(t, agents+"/ngxlab-agent-fedcba9876543210"),
	}
	done, err := h.Clean(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range gone {
		if exists(path) {
			t.Errorf("%s is still there", path)
		}
	}
	for _, path := range kept {
		if !exists(path) {
			t.Errorf("%s is gone", path)
		}
	}
	for _, path := range []string{dir + "/builds/b1", dir + "/sources/nginx.tar.gz", agents + "/ngxlab-agent-0123456789abcdef"} {
		if !slices.Contains(done.Removed, path) {
			t.Errorf("%s is not among %v", path, done.Removed)
		}
	}
	if done.FreedBytes < 400 || done.FreedBytes > 500 { // work is cleared before
		t.Errorf("%d bytes freed", done.FreedBytes)
	}
	if again, err := h.Clean(t.Context()); err != nil || len(again.Removed) > 0 || again.FreedBytes != 0 {
		t.Errorf("a second time: %+v, %v", again, err)
	}
	works(t, d, func(e *entrance) { e.shell.dir = dir })
}

// running is a program that runs until the test ends: an agent of another session.
func running(t *testing.T, path string) string {
	t.Helper()
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(sleep)
	if err == nil {
		err = os.WriteFile(path, content, 0o700) //nolint:gosec // a program
	}
	if err != nil {
		t.Fatal(err)
	}
	argv := []string{"sh", "-c", `exec "$0" 1000`, path} // as one of many tests at once, whose forks may hold it open for writing
	testlab.Eventually(t, "it runs", func() bool {
		cmd := exec.CommandContext(context.Background(), argv[0], argv[1:]...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for {
			if exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", cmd.Process.Pid)); err != nil || exe == path {
				t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
				return exe == path
			}
		}
	})
	return path
}

func TestNothingIsCleanedWhileItIsNeeded(t *testing.T) {
	testlab.RequireWritable(t, "/proc/sys/net/ipv4/tcp_fin_timeout")
	dir := testlab.StateDir(t)
	h := claimed(t, local(t, dir))
	build := write(t, dir+"/builds/b1/nginx")
	knob := lab.KnobID{Kind: lab.KnobSysctl, Name: "net.ipv4.tcp_fin_timeout"}
	values, err := h.Read(t.Context(), lab.Naming(knob))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Clean(t.Context()); err == nil || !strings.Contains(err.Error(), "this session holds the host") {
		t.Errorf("clean of a host that this session holds: %v", err)
	}
	_, err = h.Apply(t.Context(), "c1", []lab.Change{{Knob: knob, From: values[0], To: lab.Value{Text: values[0].Text + "0"}}})
	if err := errors.Join(err, h.Close()); err != nil {
		t.Fatal(err)
	}
	h = local(t, dir)
	_, err = h.Clean(t.Context())
	var sent *wire.Error
	if !errors.As(err, &sent) || !strings.Contains(err.Error(), "campaign c1") || !strings.Contains(err.Error(), knob.Name) || !exists(build) {
		t.Errorf("clean of a host with a pending change: %v", err)
	}
	if _, err := h.Restore(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := h.Clean(t.Context()); err != nil || exists(build) {
		t.Errorf("clean after the restore: %v", err)
	}
}
