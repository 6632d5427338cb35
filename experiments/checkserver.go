package experiments

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"ngxlab/lab"
)

func (d *decoding) checkServer(e lab.Experiment) {
	s := e.Server
	d.checkServed("server", s, e)
	if s.Count != nil {
		d.checkCount("server.count", *s.Count)
	}
	if s.Command != nil {
		d.checkOwnCommand(e)
	}
	for name, r := range e.Builds {
		if r.Command != nil {
			d.checkCommand("builds."+name+".command", *r.Command, s.TLS != nil && onTargets(e, name))
		}
	}
	d.checkUpstream(e)
}

// onTargets reports whether targets serve a build, and not an upstream alone.
func onTargets(e lab.Experiment, build string) bool {
	return e.Server.Build == build || slices.ContainsFunc(e.Steps, func(s lab.Step) bool { return s.Build == build })
}

// checkServed holds the keys of one server against each other.
func (d *decoding) checkServed(at string, s lab.ServerSpec, e lab.Experiment) {
	if s.Port == s.StatusPort || s.StatusPort > 65535 {
		d.problem(at+".port", "set "+at+".status_port to a free one", "port %d leaves status_port %d, which cannot be", s.Port, s.StatusPort)
	}
	for _, k := range []struct {
		key, site string
		set       bool
	}{
		{"body", "file", s.BodyBytes > 0}, {"bodies", "file", s.Bodies != nil}, {"sleep", "sleep", s.SleepS > 0},
		{"template", "template", s.Template != nil}, {"upstream", "proxy", s.Upstream != nil},
	} {
		if k.set && s.Site != k.site {
			d.problem(at+"."+k.key, "site: "+k.site, "%s belongs to the site %s, this is %s", k.key, k.site, s.Site)
		}
	}
	if s.Site == "template" && s.Template == nil {
		d.problem(at+".site", "template: site/nginx.conf", "the site template needs the key template")
	}
	d.checkTemplate(at+".template", s.Template)
	d.checkBodies(at+".bodies", s.Bodies)
	d.checkNginx(at+".nginx", slices.Collect(maps.Keys(s.Nginx)))
	if _, named := s.Nginx["user"]; s.User != "" && (named || s.Nginx["main.user"] != "") {
		d.problem(at+".user", "leave one of them out", "user stands here and among the directives")
	}
	build, known := e.Builds[s.Build]
	echoes := slices.Contains(build.Modules, "echo") || build.Installed != "" || len(build.Added) > 0 || len(build.Configure) > 0
	if (s.Site == "echo" || s.Site == "sleep") && known && build.IsNginx() && !echoes {
		d.problem(at+".site", "add echo to the modules of the build", "the site %s needs the module echo, which build %q lacks", s.Site, s.Build)
	}
}

// checkTemplate holds the placeholders of a template, as far as its braces can be told from those of blocks.
func (d *decoding) checkTemplate(at string, template map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(template)) {
		d.checkPlaceholders(at+"."+name, template[name], 1)
	}
}

// checkBodies refuses two paths of one file.
func (d *decoding) checkBodies(at string, bodies map[string]int64) {
	first := map[string]string{}
	for _, url := range slices.Sorted(maps.Keys(bodies)) {
		file := path.Clean(url)
		if strings.HasSuffix(url, "/") {
			file = path.Join(file, "index.html")
		}
		if other, taken := first[file]; taken {
			d.problem(at+"."+url, "leave one of them out", "%s and %s are one file", other, url)
		}
		first[file] = url
	}
}

// checkOwnCommand holds the command of the server section.
func (d *decoding) checkOwnCommand(e lab.Experiment) {
	s := e.Server
	d.checkCommand("server.command", *s.Command, s.TLS != nil)
	if len(s.Command.Start) > 0 && !d.given("builds") && !strings.HasPrefix(s.Command.Start[0], "/") {
		d.problem("server.command.start", "write its absolute path; or name a build, and start with {binary}",
			"%q is no absolute path, and there are no builds that it could be", s.Command.Start[0])
	}
	if d.servesNginx(e) {
		return
	}
	for _, k := range []string{"site", "nginx", "body", "bodies", "sleep", "template", "upstream"} {
		if d.given("server." + k) {
			d.problem("server."+k, "leave it out, or let a step use a build of nginx", "%s is nginx's, and the server is started by a command", k)
		}
	}
}

// servesNginx reports whether the server of some state is nginx.
func (d *decoding) servesNginx(e lab.Experiment) bool {
	used := []string{e.Server.Build}
	for _, s := range e.Steps {
		used = append(used, s.Build)
	}
	return slices.ContainsFunc(used, func(name string) bool {
		r, known := e.Builds[name]
		return known && r.IsNginx() && e.CommandOf(r) == nil
	})
}

func (d *decoding) checkUpstream(e lab.Experiment) {
	const at = "server.upstream"
	u := e.Server.Upstream
	if u == nil {
		if e.Server.Site == "proxy" {
			d.problem("server.site", "upstream: {host: NAME, server: {site: hello}}", "the site proxy needs the key upstream")
		}
		return
	}
	d.checkServed(at+".server", u.Server, e)
	d.checkBuild(at+".server.build", u.Server.Build, e.Builds)
	if c := u.Server.Command; c != nil {
		d.checkCommand(at+".server.command", *c, false)
		if !d.given(at + ".server.build") {
			d.problem(at+".server.command", "builds: {back: {flavor: custom, installed: /usr/sbin/NAME}}, and here build: back", "an upstream with a command needs a build of its own")
		}
	}
	switch {
	case u.Server.Site == "proxy", strings.Contains(strings.Join(slices.Collect(maps.Values(u.Server.Template)), "\n"), "proxy_pass"):
		d.problem(at+".server.site", "serve something there: site: hello", "the upstream passes requests on itself, and a chain of proxies is not what is measured")
	case u.Server.CPUs == "auto":
		d.problem(at+".server.cpus", "list the CPUs: 0-3", "auto is for the server of a target")
	}
	d.checkUpstreamHost(at, e)
}

// checkUpstreamHost holds that the host is there, has the role, and has ports for both servers when it is a target itself.
func (d *decoding) checkUpstreamHost(at string, e lab.Experiment) {
	u := e.Server.Upstream
	var all []string
	for _, h := range e.Hosts {
		all = append(all, string(h.Name))
		if h.Name != u.Host {
			continue
		}
		if !h.Has(lab.RoleUpstream) {
			d.problem(at+".host", fmt.Sprintf("add it to the roles of %s: roles: [upstream]", h.Name), "host %q does not have the role upstream", h.Name)
		}
		for _, port := range []int{u.Server.Port, u.Server.StatusPort} {
			if h.Has(lab.RoleTarget) && (port == e.Server.Port || port == e.Server.StatusPort) {
				d.problem(at+".server.port", "set server.upstream.server.port to another", "port %d is one of the target's, which is the same host", port)
			}
		}
	}
	if !slices.Contains(all, string(u.Host)) {
		d.problem(at+".host", suggestion(string(u.Host), all), "there is no host %q", u.Host)
	}
}
