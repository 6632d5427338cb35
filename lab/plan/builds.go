package plan

import (
	"fmt"
	"slices"
	"strings"

	"ngxlab/lab"
	"ngxlab/lab/server"
)

// recipe is a build of the experiment, complete, under its name there.
func (p *planner) recipe(name string) lab.Recipe {
	recipe := p.e.Builds[name]
	recipe.Name = name
	return server.Recipe(recipe)
}

// buildNames are the builds of all states on all targets, and that of the upstream, sorted.
func (p *planner) buildNames() []string {
	var names []string
	for _, s := range p.plan.States {
		for _, target := range p.targets {
			names = append(names, value(s, target.Name, lab.KnobBuild, ""))
		}
	}
	if u := p.e.Server.Upstream; u != nil {
		names = append(names, u.Server.Build)
	}
	return slices.DeleteFunc(sorted(names), func(name string) bool { _, known := p.e.Builds[name]; return !known })
}

// hostsWith are the hosts whose servers are of a build, in the order of the file.
func (p *planner) hostsWith(build string) []lab.HostName {
	var hosts []lab.HostName
	for _, h := range p.e.Hosts {
		uses := func(s lab.State) bool { return value(s, h.Name, lab.KnobBuild, "") == build }
		u := p.e.Server.Upstream
		behind := u != nil && u.Host == h.Name && u.Server.Build == build
		if behind || h.Has(lab.RoleTarget) && slices.ContainsFunc(p.plan.States, uses) {
			hosts = append(hosts, h.Name)
		}
	}
	return hosts
}

// refuseFaults refuses a recipe that cannot be built anywhere.
func (p *planner) refuseFaults(r lab.Recipe) {
	for _, f := range server.Faults(r) {
		path := "builds." + r.Name
		if f.Key != "" {
			path += "." + f.Key
		}
		p.refuse(lab.Refusal{Path: path, Reason: fmt.Sprintf("build %q: %s", r.Name, f.Reason), Cure: f.Cure, Fatal: true})
	}
}

// forPackages are the commands that take packages apart (apt, dpkg).
var forPackages = []string{"apt-get", "dpkg-deb"}

// refuseMissing refuses packages of Debian on another distribution. Whether a server is installed, its host finds out when
// it is asked for the build.
func (p *planner) refuseMissing(host lab.HostName, r lab.Recipe) {
	var missing []string
	for _, command := range forPackages {
		if len(r.Package) > 0 && p.facts[host].Commands[command] == "" {
			missing = append(missing, command)
		}
	}
	if len(missing) > 0 {
		p.refuse(lab.Refusal{
			Host: host, Path: "builds." + r.Name + ".package", Fatal: true,
			Reason: fmt.Sprintf("%s lacks %s, which packages are fetched and unpacked with", host, strings.Join(missing, " and ")),
			Cure:   "install the server there and use it where it is, installed: /usr/sbin/nginx; or build it from a source",
		})
	}
}

// upstreamApart refuses an upstream on the host of a target: a host runs one server at a time.
func (p *planner) upstreamApart() {
	u := p.e.Server.Upstream
	for _, target := range p.targets {
		if u != nil && u.Host == target.Name {
			p.refuse(lab.Refusal{
				Host: u.Host, Path: "server.upstream.host", Fatal: true,
				Reason: fmt.Sprintf("%s is a target, and a host runs one server at a time", u.Host),
				Cure:   "give the upstream a host of its own: another machine, or a container (docker: {}, roles: [upstream])",
			})
		}
	}
}

// users refuses users that a host does not have, or that a server there cannot become.
func (p *planner) users() {
	for _, h := range p.e.Hosts {
		if h.Has(lab.RoleTarget) {
			p.refuseUser(h, p.e.Server.User, "server.user")
		}
		if u := p.e.Server.Upstream; u != nil && u.Host == h.Name {
			p.refuseUser(h, u.Server.User, "server.upstream.server.user")
		}
	}
}

func (p *planner) refuseUser(h lab.Host, user, path string) {
	f := p.facts[h.Name]
	_, known := f.Users[user]
	switch {
	case user == "":
	case !known:
		p.refuse(lab.Refusal{Host: h.Name, Path: path, Fatal: true, Reason: fmt.Sprintf("%s has no user %q", h.Name, user), Cure: "name a user that it has, or leave it out"})
	case !f.Root && user != h.User:
		p.refuse(lab.Refusal{
			Host: h.Name, Path: path, Fatal: true, Reason: fmt.Sprintf("only root can start a server of user %q on %s", user, h.Name),
			Cure: "log in as root, or with sudo: true; or leave user out: the server is then of the user that logs in",
		})
	}
}
