package plan

import (
	"fmt"
	"slices"
	"strings"

	"ngxlab/lab"
	"ngxlab/lab/server"
)

func (p *planner) nginxObstacle(f lab.Facts, step lab.Step, s lab.Setting) obstacle {
	_, bare, _ := strings.Cut(p.directivePlace(s.Knob.Name), ".")
	if bare == "reuse_port" {
		return obstacle{reason: "nginx has no directive reuse_port: Tengine had it until 2.2, and nginx has it as a parameter of listen since 1.9.1",
			cure: "write listen.reuseport: true"}
	}
	if err := server.Known(s.Knob.Name); err != nil {
		return obstacle{reason: err.Error(), cure: "correct the name, or leave it out"}
	}
	if o := p.moduleObstacle(f.Host, step, bare); o.reason != "" && !s.Absent {
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
// directives that they bring (nginx 1.22, auto/options and the ngx_command_t tables; auto/modules).
var optional = []struct {
	module     string
	directives []string
}{
	{"gzip_static", []string{"gzip_static"}},
	{"gunzip", []string{"gunzip"}},
	{"ssl", []string{"ssl", "proxy_ssl_", "uwsgi_ssl_", "grpc_ssl_"}},
	{"v2", []string{"http2"}},
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
	{"echo", []string{"echo"}},
}

// moduleObstacle: a directive of a module that a build of the step's states lacks would not start.
func (p *planner) moduleObstacle(host lab.HostName, step lab.Step, bare string) obstacle {
	for _, o := range optional {
		brings := func(begin string) bool { return strings.HasPrefix(bare, begin) }
		if !slices.ContainsFunc(o.directives, brings) {
			continue
		}
		for _, name := range p.buildsWith(host, step) {
			if recipe, known := p.e.Builds[name]; known && !hasModule(recipe, o.module) {
				return obstacle{reason: fmt.Sprintf("build %q lacks the module %s, which brings the directive %s", name, o.module, bare),
					cure: fmt.Sprintf("add %s to the modules of the build, or leave the directive out", o.module)}
			}
		}
	}
	return obstacle{}
}

// buildsWith are the builds of the states that have a step, sorted; that of the server section for the section itself.
func (p *planner) buildsWith(host lab.HostName, step lab.Step) []string {
	names := []string{}
	for _, s := range p.asked {
		if slices.Contains(s.Steps, step.Name) {
			names = append(names, value(s, host, lab.KnobBuild, ""))
		}
	}
	if len(names) == 0 {
		names = append(names, p.e.Server.Build)
	}
	return sorted(names)
}

// hasModule looks for a module among those of the recipe and in its configure flags.
func hasModule(r lab.Recipe, module string) bool {
	flag := func(f string) bool {
		return strings.HasPrefix(f, "--with-http_"+module+"_module") || module == "echo" && strings.Contains(f, "echo")
	}
	return slices.Contains(r.Modules, module) || slices.ContainsFunc(r.Configure, flag)
}
