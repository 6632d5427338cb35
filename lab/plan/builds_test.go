package plan_test

import (
	"slices"
	"strings"
	"testing"

	"ngxlab/lab"
	"ngxlab/lab/plan"
)

// withBuilds is the quick study of two steps whose second may have another build.
func withBuilds(builds map[string]lab.Recipe, second lab.Step) lab.Experiment {
	e := quick()
	for name, r := range builds {
		r.Name = name
		builds[name] = r
	}
	second.Name = "second"
	e.Builds, e.Server.Build, e.Capacity, e.Claims = builds, "first", nil, nil
	e.Ladder, e.Steps = lab.Ladder{Kind: lab.Isolated}, []lab.Step{{Name: "default"}, second}
	return e
}

func nginxOf(version string, modules ...string) lab.Recipe {
	return lab.Recipe{Flavor: lab.FlavorNginx, Version: version, Modules: append([]string{"stub_status", "echo"}, modules...), Sources: []lab.BuildSource{{Debian: "nginx"}}}
}

var apache = lab.Recipe{Flavor: lab.FlavorCustom, Package: []string{"apache2-bin"}, Binary: "usr/sbin/apache2", Command: &lab.ServerCommand{Start: []string{"{binary}"}, Ready: "/hello"}}

// bookworm is a machine that can take packages apart.
func bookworm() lab.Facts {
	f := machine("here")
	f.Commands["apt-get"], f.Commands["dpkg-deb"] = "/usr/bin/apt-get", "/usr/bin/dpkg-deb"
	return f
}

func TestDirectiveThatABuildDoesNotKnowIsRefusedBeforeItIsBuilt(t *testing.T) {
	tengine := lab.Recipe{Flavor: lab.FlavorTengine, Version: "2.1.0", Modules: []string{"stub_status", "echo"}, Sources: []lab.BuildSource{{Path: "/src/tengine.tar.gz"}}}
	newer := tengine
	newer.Version = "2.3.3"
	for name, c := range map[string]struct {
		first, second lab.Recipe
		nginx         string
		value         string
		want          string // "" = planned
	}{
		"reuse_port of nginx":      {nginxOf("1.22.1"), nginxOf("1.6.2"), "events.reuse_port", "on", `unknown directive "reuse_port" in build "second"`},
		"reuse_port of Tengine":    {nginxOf("1.22.1"), tengine, "events.reuse_port", "on", ""},
		"reuse_port no longer":     {nginxOf("1.22.1"), newer, "events.reuse_port", "on", "Tengine 2.3.3 (nginx 1.18.0)"},
		"reuseport of an old one":  {nginxOf("1.22.1"), nginxOf("1.8.1"), "listen.reuseport", "true", "nginx has it since 1.9.1"},
		"directive http2":          {nginxOf("1.22.1"), nginxOf("1.24.0", "v2"), "server.http2", "on", "nginx has it since 1.25.1"},
		"http2 with its module":    {nginxOf("1.22.1"), nginxOf("1.26.3", "v2"), "server.http2", "on", ""},
		"http3 without its module": {nginxOf("1.22.1"), nginxOf("1.26.3", "v2"), "server.http3", "on", "lacks the module v3"},
		"directives of a command":  {nginxOf("1.22.1"), apache, "sendfile", "on", `build "second" is not nginx`},
		"of a package":             {nginxOf("1.22.1"), lab.Recipe{Flavor: lab.FlavorNginx, Package: []string{"nginx"}, Modules: []string{"stub_status", "echo"}}, "http.gzip_static", "on", ""},
	} {
		t.Run(name, func(t *testing.T) {
			e := withBuilds(map[string]lab.Recipe{"first": c.first, "second": c.second}, lab.Step{Build: "second", Nginx: map[string]string{c.nginx: c.value}})
			p := make1(t, e, bookworm())
			if c.want == "" {
				if len(p.Refused) > 0 {
					t.Errorf("refused: %+v", p.Refused)
				}
				return
			}
			if r := refusal(t, p, c.want, "steps[1].nginx."+c.nginx, true); r.Cure == "" || r.Step != "second" {
				t.Errorf("refusal %+v", r)
			}
		})
	}
}

func TestServerSectionIsHeldAgainstBuildsOfNginxAlone(t *testing.T) {
	e := withBuilds(map[string]lab.Recipe{"first": apache, "second": nginxOf("1.26.3")}, lab.Step{Build: "second"})
	e.Server.Nginx = map[string]string{"sendfile": "on"}
	if p := make1(t, e, bookworm()); len(p.Refused) > 0 {
		t.Errorf("refused: %+v", p.Refused)
	}
	e.Server.Nginx = map[string]string{"keepalive_min_timeout": "1s"}
	refusal(t, make1(t, e, bookworm()), "nginx has it since 1.27.4", "server.nginx.keepalive_min_timeout", true)
	e = withBuilds(map[string]lab.Recipe{"first": apache}, lab.Step{Nofile: 5000})
	e.Server.Nginx = map[string]string{"sendfile": "on"}
	refusal(t, make1(t, e, bookworm()), `build "first" is not nginx`, "server.nginx.sendfile", true)
}

func TestBuildThatCannotBeIsRefusedAtItsKey(t *testing.T) {
	e := withBuilds(map[string]lab.Recipe{"first": nginxOf("1.24.0", "v3"), "unused": nginxOf("1.2.0")}, lab.Step{Nofile: 5000})
	p := make1(t, e)
	refusal(t, p, "nginx has the module v3 since 1.25.0", "builds.first.modules[2]", true)
	if len(p.Fatal()) != 1 {
		t.Errorf("refused: %+v", p.Refused)
	}
}

func TestPackagesNeedADistributionThatHasThem(t *testing.T) {
	e := withBuilds(map[string]lab.Recipe{"first": nginxOf("1.22.1"), "second": apache}, lab.Step{Build: "second"})
	r := refusal(t, make1(t, e), "here lacks apt-get and dpkg-deb", "builds.second.package", true)
	if !strings.Contains(r.Cure, "installed:") {
		t.Errorf("cure %q", r.Cure)
	}
}

func TestSoftwareIsMissingOnlyWhereABuildIsCompiled(t *testing.T) {
	bare := bookworm()
	bare.Packages, bare.Compiler = nil, ""
	for _, c := range []lab.Recipe{apache, {Flavor: lab.FlavorNginx, Package: []string{"nginx"}, Modules: []string{"stub_status", "echo"}}, {Flavor: lab.FlavorNginx, Installed: "/usr/sbin/nginx"}} {
		e := withBuilds(map[string]lab.Recipe{"first": c}, lab.Step{Nofile: 5000})
		if p := make1(t, e, bare); len(p.Packages["here"]) > 0 || len(p.Builds) != 1 {
			t.Errorf("%v %s: to be installed %v, %d builds", c.Package, c.Installed, p.Packages, len(p.Builds))
		}
	}
	gcc := nginxOf("1.26.3", "xslt")
	gcc.Compiler, gcc.Sources = "gcc-11", []lab.BuildSource{{Path: "/src/nginx.tar.xz"}}
	e := withBuilds(map[string]lab.Recipe{"first": gcc}, lab.Step{Nofile: 5000})
	if p := make1(t, e, machine("here")); !slices.Equal(p.Packages["here"], []string{"gcc-11", "libxslt1-dev", "xz-utils"}) {
		t.Errorf("to be installed %v", p.Packages)
	}
	has := machine("here")
	has.Commands["gcc-11"], has.Commands["xz"] = "/usr/bin/gcc-11", "/usr/bin/xz"
	if p := make1(t, e, has); !slices.Equal(p.Packages["here"], []string{"libxslt1-dev"}) {
		t.Errorf("to be installed %v", p.Packages)
	}
	q := plan.Query(e, e.Hosts[0])
	for _, command := range []string{"gcc-11", "xz", "cc"} {
		if !slices.Contains(q.Commands, command) {
			t.Errorf("%s is not asked for: %v", command, q.Commands)
		}
	}
}

func TestForbiddenInstallationNamesPackagesAndFlag(t *testing.T) {
	f := machine("here")
	delete(f.Packages, "zlib1g-dev")
	delete(f.Commands, "wrk")
	f.CanInstall, f.NoInstall = false, true
	p := make1(t, withBuilds(map[string]lab.Recipe{"first": nginxOf("1.26.3")}, lab.Step{Nofile: 5000}), f)
	r := refusal(t, p, "here lacks zlib1g-dev (to build first), and nothing can be installed: --no-install forbids it", "builds.first", true)
	if !strings.Contains(r.Cure, "apt-get install zlib1g-dev") {
		t.Errorf("cure %q", r.Cure)
	}
	refusal(t, p, "here lacks wrk (for load with wrk), and nothing can be installed: --no-install forbids it", "load[0].tool", true)
}

func TestUserThatAServerCannotHaveIsRefused(t *testing.T) {
	e := withBuilds(map[string]lab.Recipe{"first": nginxOf("1.26.3")}, lab.Step{Nofile: 5000})
	e.Server.User = "www-data"
	if q := plan.Query(e, e.Hosts[0]); !slices.Equal(q.Users, []string{"www-data"}) {
		t.Errorf("users asked for: %q", q.Users)
	}
	f := machine("here")
	refusal(t, make1(t, e, f), `here has no user "www-data"`, "server.user", true)
	f.Users = map[string]int{"www-data": 33}
	if p := make1(t, e, f); len(p.Refused) > 0 {
		t.Errorf("refused: %+v", p.Refused)
	}
	f.Root = false
	r := refusal(t, make1(t, e, f), `only root can start a server of user "www-data" on here`, "server.user", true)
	if !strings.Contains(r.Cure, "sudo: true") {
		t.Errorf("cure %q", r.Cure)
	}
}

// proxied is a study of a proxy whose upstream has a build of its own on another host.
func proxied() lab.Experiment {
	e := withBuilds(map[string]lab.Recipe{"first": nginxOf("1.26.3"), "back": nginxOf("1.8.1")}, lab.Step{Nofile: 5000})
	e.Hosts = []lab.Host{{Name: "here", Local: true, Roles: []lab.Role{lab.RoleTarget, lab.RoleLoad}}, {Name: "there", Address: "10.0.0.2", Roles: []lab.Role{lab.RoleUpstream}}}
	e.Server.Site = "proxy"
	e.Server.Upstream = &lab.Upstream{Host: "there", Server: lab.ServerSpec{Build: "back", Port: 8181, StatusPort: 8182, Site: "file", BodyBytes: 1024, User: "www-data"}}
	return e
}

func TestBuildOfAnUpstreamIsNeededOnItsHost(t *testing.T) {
	back := machine("there")
	back.Users = map[string]int{"www-data": 33}
	p := make1(t, proxied(), machine("here"), back)
	if len(p.Builds) != 2 || p.Builds[0].Name != "back" || len(p.Packages["here"]) > 0 || !slices.Equal(p.Packages["there"], []string{"libpcre3-dev"}) {
		t.Errorf("%d builds, to be installed %v, refused %+v", len(p.Builds), p.Packages, p.Refused)
	}
	refusal(t, make1(t, proxied(), machine("here"), machine("there")), `there has no user "www-data"`, "server.upstream.server.user", true)
	e := proxied()
	e.Server.Upstream.Server.Nginx = map[string]string{"listen.reuseport": "true"}
	refusal(t, make1(t, e, machine("here"), back), "nginx has it since 1.9.1", "server.upstream.server.nginx.listen.reuseport", true)
}
