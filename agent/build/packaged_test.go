package build

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ngxlab/internal/testlab/fingerprint"
	"ngxlab/lab"
)

// hostFiles are where a package manager writes.
var hostFiles = []string{"/etc", "/usr/sbin", "/usr/lib/systemd", "/var/lib/dpkg", "/var/lib/apt", "/var/cache/apt", "/var/log/apt"}

// installedState is the files of the host's package manager and what it configures.
func installedState(t *testing.T) fingerprint.Fingerprint {
	t.Helper()
	f, err := fingerprint.Take(t.Context(), fingerprint.Options{Prefixes: hostFiles})
	if err != nil {
		t.Fatal(err)
	}
	for fact := range f {
		if !strings.HasPrefix(fact, "file ") && !strings.HasPrefix(fact, "process nginx: master process /usr/sbin/nginx") {
			delete(f, fact) // of others on this machine: the package would start its own
		}
	}
	return f
}

// TestPackageIsTakenApartAndTheHostIsLeftAlone takes the real nginx of the distribution, and modules of which one needs
// another and a library that the host lacks.
func TestPackageIsTakenApartAndTheHostIsLeftAlone(t *testing.T) {
	if _, err := exec.LookPath("apt-get"); err != nil {
		t.Skip("SKIPPED: no apt-get here")
	}
	before := installedState(t)
	if len(before) < 100 {
		t.Fatalf("only %d files are looked at", len(before))
	}
	var ran []string
	c := Cache{Dir: stateDir(t), Run: func(ctx context.Context, cmd lab.Command, out io.Writer) error {
		ran = append(ran, strings.Join(cmd.Argv, " "))
		return child(ctx, cmd, out)
	}}
	r := lab.Recipe{Name: "dist", Flavor: lab.FlavorNginx, Package: []string{"nginx", "libnginx-mod-http-lua", "libnginx-mod-http-ndk"}, Binary: "usr/sbin/nginx"}
	b, err := c.Build(t.Context(), r, testLog{t})
	if err != nil {
		t.Fatal(err)
	}
	dynamic := []string{"usr/lib/nginx/modules/ndk_http_module.so", "usr/lib/nginx/modules/ngx_http_lua_module.so"}
	if b.Version == "" || !slices.Contains(b.Modules, "ngx_http_stub_status_module") || !slices.Equal(b.Dynamic, dynamic) || len(b.Sources) < 4 {
		t.Errorf("%+v", b)
	}
	mustHaveItsOwn(t, b, "libluajit-5.1.so.2")
	r.Package = []string{"nginx"}
	ran = nil
	if plain, err := c.Build(t.Context(), r, testLog{t}); err != nil || plain.ID == b.ID || len(plain.Dynamic) > 0 || len(plain.Env) > 0 {
		t.Errorf("without modules: %+v, %v", plain, err)
	}
	if slices.ContainsFunc(ran, func(command string) bool { return strings.HasSuffix(command, " update") }) {
		t.Errorf("the lists were fetched twice on one day: %q", ran)
	}
	if changed := fingerprint.Diff(before, installedState(t)); len(changed) > 0 {
		t.Errorf("the host changed: %q", changed)
	}
	var stream bytes.Buffer
	if err := c.Export(t.Context(), b, &stream); err != nil {
		t.Fatal(err)
	}
	there := Cache{Dir: stateDir(t)}
	taken, err := there.Import(t.Context(), b, &stream)
	if err != nil || !strings.HasPrefix(taken.Binary, there.Dir) {
		t.Errorf("copied: %+v, %v", taken, err)
	}
	if again, err := there.Build(t.Context(), lab.Recipe{Name: "x", Flavor: b.Flavor, Package: []string{"nginx", "libnginx-mod-http-lua", "libnginx-mod-http-ndk"}, Binary: "usr/sbin/nginx"}, testLog{t}); err != nil || !again.Cached {
		t.Errorf("the recipe there: %+v, %v", again, err)
	} else {
		mustHaveItsOwn(t, again, "libluajit-5.1.so.2")
	}
	mustLoad(t, taken)
}

// mustHaveItsOwn looks for a library that came with the build.
func mustHaveItsOwn(t *testing.T, b lab.Build, name string) {
	t.Helper()
	for _, l := range b.Libraries {
		if l.Name == name {
			if l.Version == "" || !strings.HasPrefix(l.Path, b.Dir+"/") {
				t.Errorf("%+v", l)
			}
			return
		}
	}
	t.Errorf("%s is none of the libraries %+v of %+v", name, b.Libraries, b.Env)
}

// mustLoad lets the server read a configuration that loads its modules.
func mustLoad(t *testing.T, b lab.Build) {
	t.Helper()
	dir := t.TempDir()
	conf := "pid " + dir + "/pid;\nerror_log stderr;\n"
	for _, object := range b.Dynamic {
		conf += "load_module " + filepath.Join(b.Dir, object) + ";\n"
	}
	write(t, filepath.Join(dir, "nginx.conf"), conf+"events {}\n")
	cmd := exec.Command(b.Binary, "-p", dir, "-c", filepath.Join(dir, "nginx.conf"), "-t")
	cmd.Env = append(os.Environ(), placedEnv(b.Env, b.Dir)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

func TestPackagesThatAreNotToBeHadAreErrorsAndLeaveNothing(t *testing.T) {
	if _, err := exec.LookPath("apt-get"); err != nil {
		t.Skip("SKIPPED: no apt-get here")
	}
	c := Cache{Dir: stateDir(t)}
	for name, want := range map[string]string{"no-such-package-at-all": "Unable to locate package no-such-package-at-all", "nginx-common": `hold no server "usr/sbin/nginx"; they hold`} {
		_, err := c.Build(t.Context(), lab.Recipe{Name: "dist", Flavor: lab.FlavorNginx, Package: []string{name}, Binary: "usr/sbin/nginx"}, testLog{t})
		if err == nil || !strings.Contains(err.Error(), want) || len(finished(t, c)) > 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	t.Setenv("PATH", t.TempDir())
	_, err := c.Build(t.Context(), lab.Recipe{Name: "dist", Flavor: lab.FlavorNginx, Package: []string{"nginx"}, Binary: "usr/sbin/nginx"}, testLog{t})
	if err == nil || !strings.Contains(err.Error(), "install the server yourself and name it with installed") {
		t.Errorf("without apt: %v", err)
	}
}

// TestListsOfPackagesServeForADay lets a function stand for apt, which fails while the lists name files that are gone.
func TestListsOfPackagesServeForADay(t *testing.T) {
	bin := t.TempDir()
	write(t, filepath.Join(bin, "apt-get"), "#!/bin/sh\n")
	t.Setenv("PATH", bin)
	etc := t.TempDir()
	write(t, filepath.Join(etc, "sources.list"), "deb http://192.0.2.1/debian bookworm main\n")
	var ran []string
	gone := false
	c := Cache{Dir: stateDir(t), AptDir: etc, Run: func(_ context.Context, cmd lab.Command, _ io.Writer) error {
		what := "install"
		if cmd.Argv[len(cmd.Argv)-1] == "update" {
			what, gone = "update", false
		}
		if ran = append(ran, what); gone {
			return errors.New("404")
		}
		return nil
	}}
	download := func(suite string) string {
		ran = nil
		a := apt{cache: c, job: job{log: io.Discard}, dir: filepath.Join(t.TempDir(), "apt")}
		if err := errors.Join(a.prepare("deb", suite), a.download(t.Context(), []string{"nginx"})); err != nil {
			t.Error(err)
		}
		return strings.Join(ran, " ")
	}
	lists := func() []string {
		found, err := filepath.Glob(filepath.Join(c.fetched(), listsPrefix+"*.updated"))
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	for i, want := range []string{"update install", "install", "install update install", "install"} {
		gone = i == 2
		if got := download(""); got != want {
			t.Errorf("time %d: ran %s, want %s", i+1, got, want)
		}
	}
	if kept := lists(); len(kept) != 1 {
		t.Fatalf("kept %v", kept)
	}
	yesterday := time.Now().Add(-25 * time.Hour)
	if err := os.Chtimes(lists()[0], yesterday, yesterday); err != nil {
		t.Fatal(err)
	}
	old := strings.TrimSuffix(lists()[0], ".updated")
	if got := download("trixie"); got != "update install" {
		t.Errorf("another suite: ran %s", got)
	}
	if _, err := os.Stat(old); err == nil || len(lists()) != 1 {
		t.Errorf("the lists of yesterday are still there: %v", lists())
	}
}
