package build

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ngxlab/lab"
)

// host is a strict fake of a host's package manager: it has packages, knows some, and records what would change it.
type host struct {
	t         *testing.T
	installed map[string]bool
	known     map[string]bool // by the package lists now
	after     map[string]bool // by the lists once they are fetched anew
	stale     bool            // the first install fails: the lists name files that are gone
	ran       []string
}

func (h *host) run(_ context.Context, c lab.Command, out io.Writer) error {
	argv := append([]string{filepath.Base(c.Argv[0])}, c.Argv[1:]...)
	switch argv[0] {
	case "dpkg-query":
		if !h.installed[argv[len(argv)-1]] {
			return errors.New("exit 1")
		}
		_, err := fmt.Fprint(out, "installed\n")
		return err
	case "apt-cache":
		for _, p := range argv[3:] {
			if !h.known[p] {
				return errors.New("exit 100")
			}
		}
		return nil
	case "env", "sudo":
		if argv[len(argv)-1] == "true" {
			return nil
		}
		return h.change(argv)
	}
	h.t.Errorf("unexpected command: %v", argv)
	return nil
}

func (h *host) change(argv []string) error {
	for argv[0] != "apt-get" {
		argv = argv[1:]
	}
	h.ran = append(h.ran, strings.Join(argv[:2], " "))
	if argv[1] == "update" {
		h.known, h.stale = h.after, false
		return nil
	}
	for _, p := range argv[6:] {
		if h.stale || !h.known[p] {
			return errors.New("exit 100")
		}
		h.installed[p] = true
	}
	return nil
}

func set(names ...string) map[string]bool {
	all := map[string]bool{}
	for _, n := range names {
		all[n] = true
	}
	return all
}

func TestInstallChangesOnlyWhatIsMissing(t *testing.T) {
	for _, name := range []string{"apt-get", "sudo"} {
		if _, err := exec.LookPath(name); err != nil && (name == "apt-get" || os.Geteuid() != 0) {
			t.Skipf("SKIPPED: no %s here", name)
		}
	}
	tests := []struct {
		name string
		host host
		ran  string
		fail string
	}{
		{"nothing missing", host{installed: set("gcc", "make")}, "", ""},
		{"one missing", host{installed: set("gcc"), known: set("gcc", "make")}, "apt-get install", ""},
		{"lists empty", host{installed: set("gcc"), after: set("make")}, "apt-get update,apt-get install", ""},
		{"lists out of date", host{installed: set("gcc"), known: set("make"), after: set("make"), stale: true}, "apt-get install,apt-get update,apt-get install", ""},
		{"nowhere", host{installed: set("gcc")}, "apt-get update,apt-get install", "install make: "},
	}
	for _, test := range tests {
		h := test.host
		h.t = t
		err := Cache{Run: h.run}.Install(t.Context(), []string{"gcc", "make"}, io.Discard)
		if (err != nil) != (test.fail != "") || err != nil && !strings.HasPrefix(err.Error(), test.fail) {
			t.Errorf("%s: error %v, want %q", test.name, err, test.fail)
		}
		if got := strings.Join(h.ran, ","); got != test.ran {
			t.Errorf("%s: ran %s, want %s", test.name, got, test.ran)
		}
	}
}

// TestInstallOnRPMHostsUsesTheirNames has scripts in the place of dnf and rpm, which keep a list of what is installed; the
// real ones are not to be had everywhere.
func TestInstallOnRPMHostsUsesTheirNames(t *testing.T) {
	for _, manager := range []string{"dnf", "yum"} {
		bin := t.TempDir()
		list, ran := filepath.Join(bin, "list"), filepath.Join(bin, "ran")
		write(t, filepath.Join(bin, "rpm"), "#!/bin/sh\nwhile read -r p; do [ \"$p\" = \"$3\" ] && exit 0; done < "+list+"\nexit 1\n")
		write(t, filepath.Join(bin, manager), "#!/bin/sh\necho \"$*\" >> "+ran+"\nshift 2\nfor p; do echo \"$p\" >> "+list+"; done\n")
		write(t, filepath.Join(bin, "sudo"), "#!/bin/sh\nshift\n\"$@\"\n")
		write(t, filepath.Join(bin, "env"), "#!/bin/sh\nshift\n\"$@\"\n")
		write(t, filepath.Join(bin, "true"), "#!/bin/sh\n")
		write(t, list, "gcc\nmake\n")
		t.Setenv("PATH", bin)
		asked := []string{
			"gcc", "g++", "clang", "make", "patch", "git", "xz-utils", "cmake", "libssl-dev", "libpcre2-dev", "libpcre3-dev", "zlib1g-dev", "libxslt1-dev",
			"libgd-dev", "libgeoip-dev", "libprotobuf-dev", "protobuf-compiler", "libgflags-dev", "libleveldb-dev", "golang-go",
		}
		want := "install -y gcc-c++ clang patch git xz cmake openssl-devel pcre2-devel pcre-devel zlib-devel libxslt-devel gd-devel GeoIP-devel " +
			"protobuf-devel protobuf-compiler gflags-devel leveldb-devel golang\n"
		for range 2 { // the second time nothing is missing
			if err := (Cache{}).Install(t.Context(), asked, testLog{t}); err != nil {
				t.Fatal(err)
			}
			if got, err := os.ReadFile(ran); string(got) != want {
				t.Errorf("%s ran %s, want %s; %v", manager, got, want, err)
			}
		}
	}
}

func TestInstallWithoutAPackageManagerNamesThePackages(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	err := Cache{}.Install(t.Context(), []string{"wrk", "gcc"}, io.Discard)
	if err == nil || err.Error() != "install wrk gcc: no apt-get, dnf or yum on this host; install them by hand" {
		t.Errorf("error: %v", err)
	}
}

func TestInstallWithoutPrivilegeNamesThePackages(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("SKIPPED: runs as root")
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		t.Skip("SKIPPED: no apt-get here")
	}
	run := func(_ context.Context, c lab.Command, _ io.Writer) error { return errors.New("exit 1") }
	err := Cache{Run: run}.Install(t.Context(), []string{"wrk"}, io.Discard)
	if err == nil || !strings.HasPrefix(err.Error(), "install wrk: not root, and sudo without a password is not to be had") {
		t.Errorf("error: %v", err)
	}
}

func TestRealPackagesOfThisHostAreSeen(t *testing.T) {
	if _, err := exec.LookPath("dpkg-query"); err != nil {
		t.Skip("SKIPPED: no dpkg here")
	}
	missing := Cache{}.aptMissing(t.Context(), []string{"dpkg", "no-such-package-" + fmt.Sprint(os.Getpid())})
	if len(missing) != 1 || !strings.HasPrefix(missing[0], "no-such-package-") {
		t.Errorf("missing: %v", missing)
	}
}
