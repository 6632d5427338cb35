package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"ngxlab/lab"
	"ngxlab/lab/server"
)

func (p *planner) nginxObstacle(f lab.Facts, step lab.Step, s lab.Setting) obstacle {
	_, bare, _ := strings.Cut(p.directivePlace(s.Knob.Name), ".")
	recipes := p.recipesWith(f.Host, step)
	if o := p.notNginx(recipes); o.reason != "" {
		return o
	}
	if err := server.Known(s.Knob.Name); err != nil {
		return obstacle{reason: err.Error(), cure: "correct the name, or leave it out"}
	}
	if o := buildObstacles(recipes, s, bare); o.reason != "" && !s.Absent {
		return o
	}
	if text := server.Unfit(s.Knob.Name, s.Value); text != "" && !s.Absent {
		return obstacle{reason: text, cure: "correct the value", mistake: true}
	}
	switch {
	case s.Absent:
	case bare == "worker_rlimit_nofile":
		return p.nofileObstacle(f, step, bare, lab.Unquoted(s.Value))
	case bare == "worker_cpu_affinity":
		return p.affinityObstacle(f, s)
	}
	return obstacle{}
}

// notNginx: a server that a command starts has no directives.
func (p *planner) notNginx(recipes []lab.Recipe) obstacle {
	for _, r := range recipes {
		if !r.IsNginx() || p.e.CommandOf(r) != nil {
			return obstacle{reason: fmt.Sprintf("build %q is not nginx: it has no directives", r.Name),
				cure: "its settings go into the start, env or files of its command; what all builds of nginx shall have goes into server.nginx"}
		}
	}
	return obstacle{}
}

// affinityObstacle: masks with CPUs that the server may not use would not be in force.
func (p *planner) affinityObstacle(f lab.Facts, s lab.Setting) obstacle {
	_, err := server.Affinity(s.Value, 0, p.usable(f))
	if err == nil || s.BestEffort {
		return obstacle{}
	}
	text, _, _ := strings.Cut(err.Error(), "\n") // of several masks, the first will do
	return obstacle{reason: fmt.Sprintf("%s: %s", f.Host, text), cure: "give a mask for each CPU that the server may use, or leave it to nginx: worker_cpu_affinity auto"}
}

// usable are the CPUs that a server may use.
func (p *planner) usable(f lab.Facts) []int {
	if cpus := p.cpus[f.Host]; len(cpus) > 0 {
		return cpus
	}
	return f.CPUs
}

// optional are the modules of nginx that a build has only when its recipe names them, and the beginnings of the
// directives that they bring (nginx 1.26, auto/options and the ngx_command_t tables; auto/modules).
var optional = []struct {
	module     string
	directives []string
}{
	{"gzip_static", []string{"gzip_static"}},
	{"gunzip", []string{"gunzip"}},
	{"ssl", []string{"ssl", "proxy_ssl_", "uwsgi_ssl_", "grpc_ssl_"}},
	{"v2", []string{"http2"}},
	{"v3", []string{"http3", "quic_"}},
	{"realip", []string{"real_ip_", "set_real_ip_from"}},
	{"addition", []string{"add_before_body", "add_after_body", "addition_types"}},
	{"auth_request", []string{"auth_request"}},
	{"sub", []string{"sub_filter"}},
	{"dav", []string{"dav_", "create_full_put_path", "min_delete_depth"}},
	{"flv", []string{"flv"}},
	{"mp4", []string{"mp4"}},
	{"random_index", []string{"random_index"}},
	{"secure_link", []string{"secure_link"}},
	{"slice", []string{"slice"}},
	{"xslt", []string{"xslt_", "xml_entities"}},
	{"image_filter", []string{"image_filter"}},
	{"geoip", []string{"geoip_"}},
	{"perl", []string{"perl"}},
	{"threads", []string{"thread_pool"}},
	{"echo", []string{"echo"}},
}

// buildObstacles: a directive that a build lacks the module for, or that its version does not know, would not start.
func buildObstacles(recipes []lab.Recipe, s lab.Setting, bare string) obstacle {
	for _, r := range recipes {
		if o := moduleObstacle(r, bare); o.reason != "" {
			return o
		}
		if reason, cure := server.Unsupported(r, s.Knob.Name, s.Value); reason != "" {
			return obstacle{reason: reason, cure: cure}
		}
	}
	return obstacle{}
}

func moduleObstacle(r lab.Recipe, bare string) obstacle {
	for _, o := range optional {
		brings := func(begin string) bool { return strings.HasPrefix(bare, begin) }
		if slices.ContainsFunc(o.directives, brings) && server.Lacks(r, o.module) {
			return obstacle{reason: fmt.Sprintf("build %q lacks the module %s, which brings the directive %s", r.Name, o.module, bare),
				cure: fmt.Sprintf("add %s to the modules of the build, or leave the directive out", o.module)}
		}
	}
	return obstacle{}
}

// recipesWith are the builds of the states that have a step, by name; for the server section, which holds for builds of nginx
// alone, those of all states that are nginx, when there are any.
func (p *planner) recipesWith(host lab.HostName, step lab.Step) []lab.Recipe {
	var names []string
	for _, s := range p.asked {
		if step.Name == "" || slices.Contains(s.Steps, step.Name) {
			names = append(names, value(s, host, lab.KnobBuild, ""))
		}
	}
	if len(names) == 0 {
		names = append(names, p.e.Server.Build)
	}
	var all, ours []lab.Recipe
	for _, name := range sorted(names) {
		if _, known := p.e.Builds[name]; !known {
			continue
		}
		r := p.recipe(name)
		all = append(all, r)
		if r.IsNginx() && p.e.CommandOf(r) == nil {
			ours = append(ours, r)
		}
	}
	if step.Name == "" && len(ours) > 0 {
		return ours
	}
	return all
}

// upstreamKnobs refuses directives that the build of the upstream does not know.
func (p *planner) upstreamKnobs() {
	u := p.e.Server.Upstream
	if u == nil {
		return
	}
	recipes := []lab.Recipe{p.recipe(u.Server.Build)}
	for _, name := range slices.Sorted(maps.Keys(u.Server.Nginx)) {
		s := lab.Setting{Knob: directive(name), Value: u.Server.Nginx[name]}
		_, bare, _ := strings.Cut(p.directivePlace(name), ".")
		if o := buildObstacles(recipes, s, bare); o.reason != "" {
			p.refuse(lab.Refusal{Host: u.Host, Knob: s.Knob, Path: knobPath("server.upstream.server", s.Knob), Reason: o.reason, Cure: o.cure, Fatal: true})
		}
	}
}
