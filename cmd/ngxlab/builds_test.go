package main

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"ngxlab/agent/wire"
	"ngxlab/lab"
)

// keeps is what a fake host has of builds, and what it was asked to remove.
type keeps struct {
	builds  []lab.KeptBuild
	err     error // of removing
	removed []string
}

func (k *keeps) unbuild(_ context.Context, ids []string) (lab.Cleaned, error) {
	if k.err != nil {
		return lab.Cleaned{}, k.err
	}
	var done lab.Cleaned
	for _, id := range ids {
		k.removed = append(k.removed, id)
		done.Removed, done.FreedBytes = append(done.Removed, "/var/lib/ngxlab/builds/"+id), done.FreedBytes+10<<20
	}
	return done, nil
}

// keeping attaches hosts that keep builds; the others cannot be reached.
func keeping(hosts map[lab.HostName]*keeps) func(context.Context, string, lab.Host) (*machine, error) {
	return func(ctx context.Context, inLab string, x lab.Host) (*machine, error) {
		k := hosts[x.Name]
		if k == nil {
			return nil, errors.New(string(x.Name) + ": no route to host")
		}
		m, err := fakeAttach(&fakeHost{facts: testFacts()})(ctx, inLab, lab.Host{Name: x.Name, Local: true})
		if err == nil {
			m.builds, m.unbuild = func(context.Context) ([]lab.KeptBuild, error) { return k.builds, nil }, k.unbuild
		}
		return m, err
	}
}

// testBuilds are one compiled build and one out of packages, which was used two days ago.
func testBuilds() []lab.KeptBuild {
	compiled := lab.Build{
		ID: "1f0c5a7b9d3e2f41", Recipe: "nginx-1.26", Flavor: lab.FlavorNginx, Dir: "/var/lib/ngxlab/builds/1f0c5a7b9d3e2f41",
		Binary: "/var/lib/ngxlab/builds/1f0c5a7b9d3e2f41/nginx", Version: "1.26.3", Configured: "nginx version: nginx/1.26.3\nbuilt by gcc 12.2.0",
		Compiler: "gcc (Debian 12.2.0-14) 12.2.0", Sources: map[string]string{"nginx_1.26.3.orig.tar.gz": strings.Repeat("ab", 32), "echo": strings.Repeat("cd", 32)},
		Notes: []string{"remedy: the salt"}, TookS: 61.5, Log: "/var/lib/ngxlab/builds/1f0c5a7b9d3e2f41/build.log", SizeBytes: 9 << 20,
		Modules: []string{"ngx_core_module", "ngx_http_module"}, Dynamic: []string{"modules/ngx_http_echo_module.so"}, MadeBy: "nobody",
		Libraries:    []lab.Library{{Name: "libc.so.6", Path: "/usr/lib/libc.so.6", Version: "2.36-9"}, {Name: "libx.so.1", Path: "/opt/libx.so.1"}},
		Distribution: "debian 12", Architecture: "amd64", From: "web",
	}
	packaged := lab.Build{
		ID: "1f77c0ffee00abcd", Recipe: "dist", Flavor: lab.FlavorNginx, Binary: "/var/lib/ngxlab/builds/1f77c0ffee00abcd/usr/sbin/nginx",
		Version: "1.22.1", SizeBytes: 1 << 20, Sources: map[string]string{"nginx_1.22.1_amd64.deb": strings.Repeat("ef", 32)}, Env: []string{"LD_LIBRARY_PATH={build}/usr/lib"},
		Distribution: "debian 12", Architecture: "amd64",
	}
	return []lab.KeptBuild{
		{Build: compiled, DiskBytes: 10 << 20, Made: at.Add(-30 * time.Hour), Used: at.Add(-time.Hour)},
		{Build: packaged, DiskBytes: 3 << 20, Made: at.Add(-50 * time.Hour), Used: at.Add(-48 * time.Hour)},
	}
}

func TestBuildsAreListedAndShown(t *testing.T) {
	for name, line := range map[string][]string{
		"builds-list": {"builds", "list"}, "builds-list-json": {"builds", "list", "--json"}, "builds-show": {"builds", "show", "1f0c,1f77"},
		"builds-rm": {"builds", "rm", "1f0c"},
	} {
		c := newCommand(t)
		c.attach = keeping(map[lab.HostName]*keeps{"local": {builds: testBuilds()}})
		c.run(line...)
		c.golden(name, exitDone)
	}
	c := newCommand(t)
	c.attach = keeping(map[lab.HostName]*keeps{"local": {}})
	if code := c.run("builds", "list"); code != exitDone || c.out.String() != "no builds are kept\n" {
		t.Errorf("exit code %d: %s%s", code, c.out, c.err)
	}
	if code := c.run("builds", "list", "--json"); code != exitDone || !strings.Contains(c.out.String(), `"builds": []`) {
		t.Errorf("exit code %d: %s%s", code, c.out, c.err)
	}
	var shown []map[string]any
	c.attach = keeping(map[lab.HostName]*keeps{"local": {builds: testBuilds()}})
	code := c.run("builds", "show", "--json", "1f77")
	if err := json.Unmarshal(c.out.Bytes(), &shown); err != nil || code != exitDone || len(shown) != 1 || shown[0]["host"] != "local" || shown[0]["id"] != "1f77c0ffee00abcd" {
		t.Errorf("exit code %d, %v: %s%s", code, err, c.out, c.err)
	}
}

func TestBuildsAreRemovedWhereTheyAre(t *testing.T) {
	for _, tc := range []struct {
		line  []string
		local []string
	}{
		{[]string{"1f0c"}, []string{"1f0c5a7b9d3e2f41"}},
		{[]string{"1f0c,1f77"}, []string{"1f0c5a7b9d3e2f41", "1f77c0ffee00abcd"}},
		{[]string{"--unused", "1d"}, []string{"1f77c0ffee00abcd"}},
		{[]string{"--unused", "30d"}, nil},
		{[]string{"--unused", "30m"}, []string{"1f0c5a7b9d3e2f41", "1f77c0ffee00abcd"}},
		{[]string{"--all"}, []string{"1f0c5a7b9d3e2f41", "1f77c0ffee00abcd"}},
	} {
		c, has, other := newCommand(t), &keeps{builds: testBuilds()}, &keeps{}
		c.attach = keeping(map[lab.HostName]*keeps{"web": has, "load1": other, "load2": other})
		c.write("three.yaml", threeHosts)
		code := c.run(append(append([]string{"builds", "rm"}, tc.line...), "DIR/three.yaml")...)
		if code != exitDone || !slices.Equal(has.removed, tc.local) || len(other.removed) > 0 {
			t.Errorf("%v: exit code %d, removed %v and %v: %s%s", tc.line, code, has.removed, other.removed, c.out, c.err)
		}
		if !strings.Contains(c.out.String(), "load1: nothing to remove") || len(tc.local) > 0 != strings.Contains(c.out.String(), "MiB freed") {
			t.Errorf("%v: %s", tc.line, c.out)
		}
	}
}

func TestBuildsThatCannotBeRemovedAreTold(t *testing.T) {
	held := wire.Locked(wire.Lock{Owner: "ana@desk", Campaign: "other-1", Since: at})
	for _, tc := range []struct {
		line []string
		code int
		said string
		host keeps
	}{
		{[]string{"rm"}, exitUsage, "no ID of a build is given", keeps{}},
		{[]string{"rm", "--unused", "soon"}, exitUsage, "as in 30d or 12h", keeps{}},
		{[]string{"rm", "--unused", "-1d"}, exitUsage, "as in 30d or 12h", keeps{}},
		{[]string{"rm", "1f"}, exitUsage, "several builds begin with 1f: 1f0c5a7b9d3e2f41, 1f77c0ffee00abcd", keeps{}},
		{[]string{"rm", "1f0c,beef"}, exitFailed, `no host has a build "beef"`, keeps{}},
		{[]string{"show", "beef"}, exitFailed, `no host has a build "beef"`, keeps{}},
		{[]string{"rm", "1f0c"}, exitFailed, "in use by ana@desk, campaign other-1", keeps{err: held}},
	} {
		c, host := newCommand(t), tc.host
		host.builds = testBuilds()
		c.attach = keeping(map[lab.HostName]*keeps{"local": &host})
		code := c.run(append([]string{"builds"}, tc.line...)...)
		if code != tc.code || !strings.Contains(c.err.String(), tc.said) || len(host.removed) > 0 {
			t.Errorf("%v: exit code %d, removed %v: %s%s", tc.line, code, host.removed, c.out, c.err)
		}
	}
}
