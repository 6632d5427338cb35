package fingerprint_test

import (
	"context"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"ngxlab/internal/testlab/fingerprint"
)

// host is a tree of kernel parameters and a tree of files on this machine.
type host struct {
	t *testing.T
	o fingerprint.Options
}

func newHost(t *testing.T) host {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: fingerprints are taken by root")
	}
	h := host{t, fingerprint.Options{Sysctls: t.TempDir(), Prefixes: []string{t.TempDir()}}}
	h.write(filepath.Join(h.o.Sysctls, "net/core/somaxconn"), "4096\n")
	h.write(filepath.Join(h.o.Sysctls, "net/netfilter/nf_conntrack_count"), "7\n")
	h.write(h.file("a.conf"), "one\n")
	h.write(h.file("b.conf"), "two\n")
	return h
}

func (h host) file(name string) string { return filepath.Join(h.o.Prefixes[0], name) }

func (h host) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h host) write(path, text string) {
	h.t.Helper()
	h.must(os.MkdirAll(filepath.Dir(path), 0o755))
	h.must(os.WriteFile(path, []byte(text), 0o644))
}

func (h host) take() fingerprint.Fingerprint {
	h.t.Helper()
	f, err := fingerprint.Take(h.t.Context(), h.o)
	h.must(err)
	return f
}

// TestEveryKindOfChangeShows makes one change at a time; other processes of this machine come and go meanwhile.
func TestEveryKindOfChangeShows(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(h host)
		want   []string // parts of one line
	}{
		{"sysctl", func(h host) { h.write(filepath.Join(h.o.Sysctls, "net/core/somaxconn"), "8192\n") }, []string{"sysctl net.core.somaxconn: was 4096, is 8192"}},
		{"content", func(h host) {
			was, err := os.Stat(h.file("a.conf"))
			h.must(err)
			h.write(h.file("a.conf"), "eno\n")
			h.must(os.Chtimes(h.file("a.conf"), was.ModTime(), was.ModTime()))
		}, []string{"a.conf: was sha256=", "is sha256="}},
		{"mode", func(h host) { h.must(os.Chmod(h.file("a.conf"), 0o600)) }, []string{"a.conf: was mode=0644, is mode=0600"}},
		{"owner", func(h host) { h.must(os.Lchown(h.file("a.conf"), 1, 2)) }, []string{"a.conf: was owner=0:0, is owner=1:2"}},
		{"mtime", func(h host) { h.must(os.Chtimes(h.file("a.conf"), time.Time{}, time.Unix(5, 0))) }, []string{"a.conf: was mtime=", "is mtime=5.0"}},
		{"inode", func(h host) {
			h.must(os.Rename(h.file("a.conf"), h.file("old")))
			h.write(h.file("a.conf"), "one\n")
		}, []string{"a.conf: was inode="}},
		{"link", func(h host) { h.must(os.Link(h.file("a.conf"), h.file("second"))) }, []string{"a.conf: was links=1, is links=2"}},
		{"new file", func(h host) { h.write(h.file("c.conf"), "") }, []string{"c.conf: new; is type=file"}},
		{"removed file", func(h host) { h.must(os.Remove(h.file("b.conf"))) }, []string{"b.conf: gone; was type=file"}},
		{"process", func(h host) {
			cmd := exec.CommandContext(h.t.Context(), "sh", "-c", "exec sleep 86399")
			h.must(cmd.Start())
			h.t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		}, nil}, // its own children are left out
		{"listener", func(h host) {
			l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
			h.must(err)
			h.t.Cleanup(func() { _ = l.Close() })
		}, []string{"listener tcp 0100007F:", ": new; is 1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHost(t)
			before := h.take()
			c.change(h)
			lines := fingerprint.Diff(before, h.take())
			has := func(line string) bool {
				return !slices.ContainsFunc(c.want, func(part string) bool { return !strings.Contains(line, part) })
			}
			if len(c.want) > 0 && !slices.ContainsFunc(lines, has) {
				t.Errorf("no line has %q:\n%s", c.want, strings.Join(lines, "\n"))
			}
			if own := slices.DeleteFunc(lines, func(line string) bool { return !strings.Contains(line, "86399") }); len(own) > 0 {
				t.Errorf("of a child is told: %q", own)
			}
		})
	}
}

// TestForeignProcessShows starts one that is not this process's child.
func TestForeignProcessShows(t *testing.T) {
	h := newHost(t)
	before := h.take()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "sleep 86398 & wait")
	h.must(cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for ctx.Err() == nil {
		if slices.Contains(fingerprint.Diff(before, h.take()), "process sleep 86398: new; is 1") {
			h.must(exec.CommandContext(ctx, "pkill", "-P", strconv.Itoa(cmd.Process.Pid)).Run())
			return
		}
	}
	t.Error("not seen")
}

func TestWhatMovesByItselfIsLeftOut(t *testing.T) {
	h := newHost(t)
	before := h.take()
	h.write(filepath.Join(h.o.Sysctls, "net/netfilter/nf_conntrack_count"), "9\n")
	after := h.take()
	for _, line := range fingerprint.Diff(before, after) {
		if strings.HasPrefix(line, "sysctl ") || strings.HasPrefix(line, "file ") {
			t.Error(line)
		}
	}
	for _, kind := range []string{"sysctl ", "file ", "limit of process 1", "soft limits of a login", "hard limits", "process ", "mount ", "interface lo"} {
		if !slices.ContainsFunc(keys(after), func(name string) bool { return strings.HasPrefix(name, kind) }) {
			t.Errorf("no fact begins with %q", kind)
		}
	}
}

func keys(f fingerprint.Fingerprint) []string { return slices.Collect(maps.Keys(f)) }
