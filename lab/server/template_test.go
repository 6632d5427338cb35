package server

import (
	"strings"
	"testing"

	"ngxlab/lab"
)

// own is a template whose site is in a second file, behind another server.
func own(settings ...lab.Setting) Input {
	in := input(siteTemplate, settings...)
	in.Spec.Template = map[string]string{
		"nginx.conf": `# mine
error_log /var/log/nginx/error.log info;
worker_processes auto;
events { worker_connections 512; }
http {
    server { listen 127.0.0.1:{status_port}; server_name a; location = /status { stub_status; } }
    include conf.d/*.conf;
}
`,
		"conf.d/b.conf":  "server {\n    listen {port};\n    root {prefix}/www;\n    location / { root /var/www; }\n    location /api/ { return 200 ${args}; }\n    location ~ \\.php$ { return 403; }\n}\n",
		"www/index.html": "<p>hello</p>\n",
	}
	in.URLs = []string{"/api/x?y=1"}
	return in
}

// mustTemplate makes a serving, whose text has placeholders that no parser takes.
func mustTemplate(t *testing.T, in Input) lab.Serving {
	t.Helper()
	s, err := Serving(in)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestTemplateIsEditedInTheFilesWhereItsDirectivesStand(t *testing.T) {
	in := own(of("one", "events.worker_connections", "4096"), of("one", "location.keepalive_timeout", "0"), of("one", "server.sendfile", "on"),
		of("one", "listen.backlog", "99"), of("two", "gzip", "on"))
	s := mustTemplate(t, in)
	for _, want := range []string{
		"# mine\n", "error_log logs/error.log info;", "daemon off;", "master_process on;", "pid logs/nginx.pid;", "events { worker_connections 4096; }",
		"listen 127.0.0.1:8082; server_name a;", "    gzip on;\n}",
	} {
		if !strings.Contains(s.Config, want) {
			t.Errorf("no %q in\n%s", want, s.Config)
		}
	}
	const site = "server {\n    listen 8081 backlog=99;\n    root {prefix}/www;\n    location / { root /var/www; }\n    location /api/ { return 200 ${args};  keepalive_timeout 0; }\n    location ~ \\.php$ { return 403; }\n    sendfile on;\n}\n"
	if s.Files["conf.d/b.conf"] != site || s.Files["www/index.html"] != "<p>hello</p>\n" || len(s.Files) != 2 {
		t.Errorf("files %v", s.Files)
	}
	if strings.Count(s.Config, "stub_status") != 1 || s.StatusPort != 8082 {
		t.Errorf("its own status is not taken:\n%s", s.Config)
	}
	for name, want := range map[string]string{"worker_connections": "512", "location.return": "200 ${args}", "server.root": "{prefix}/www", "http.gzip": "", "error_log": ""} {
		if got, _ := Present(in, name); got != want {
			t.Errorf("%s is %q before any step, want %q", name, got, want)
		}
	}
}

func TestTemplateGetsStubStatusAndWorkersOfItsCPUs(t *testing.T) {
	in := own()
	in.CPUs = []int{0, 1}
	in.Spec.Template["nginx.conf"] = "worker_processes auto;\nevents {}\nhttp {\n    include conf.d/*.conf;\n}\n"
	s := mustTemplate(t, in)
	for _, want := range []string{"worker_processes 2;", "listen 127.0.0.1:8082;", "stub_status on;", "error_log logs/error.log warn;"} {
		if !strings.Contains(s.Config, want) {
			t.Errorf("no %q in\n%s", want, s.Config)
		}
	}
}

func TestTemplateThatTheLabCannotServeIsRefused(t *testing.T) {
	const rest = "events {}\nhttp {\n    server { listen {port}; location = /a { return 200; } }\n}\n"
	for name, tc := range map[string]struct {
		conf, file string
		tls        *lab.TLS
		settings   []lab.Setting
		want       string
	}{
		"other port":       {conf: strings.Replace(rest, "listen {port};", "listen {port}; listen 9999;", 1), want: "nginx.conf line 3: listen 9999 would open another port"},
		"no listen":        {conf: strings.Replace(rest, "listen {port};", "", 1), want: "nginx.conf line 3: a server without listen opens port 80"},
		"not our port":     {conf: strings.Replace(rest, "{port}", "{status_port}", 1), want: "no server listens on port 8081"},
		"stream":           {conf: rest + "stream { server { listen 127.0.0.1:5432; } }\n", want: "line 5: listen 127.0.0.1:5432 would open"},
		"included outside": {conf: "include /etc/nginx/modules/*.conf;\n" + rest, want: "nginx.conf line 1: include /etc/nginx/modules/*.conf is not of the template"},
		"file outside":     {conf: "include /etc/nginx/x.conf;\n" + rest, want: "there is no file /etc/nginx/x.conf"},
		"file that is not": {conf: "include b.conf;\n" + rest, want: "template: nginx.conf: include b.conf: there is no file b.conf"},
		"syntax":           {conf: rest + "}", want: "template: nginx.conf: line 5: unexpected"},
		"status elsewhere": {conf: strings.Replace(rest, "http {", "http { server { listen {status_port}; }", 1), want: "no location = /status with stub_status"},
		"TLS not asked":    {conf: strings.Replace(rest, "{port};", "{port} ssl;", 1), want: "add tls: true"},
		"no TLS":           {conf: rest, tls: &lab.TLS{}, want: "write listen {port} ssl"},
		"variable":         {conf: strings.Replace(rest, "return 200", "return 200 ${prefix}", 1), want: "nginx.conf: ${prefix} would be taken for the lab's own"},
		"no location":      {conf: rest, settings: []lab.Setting{of("one", "location.sendfile", "on")}, want: "no location of the template serves / exactly or by its beginning"},
		"without http":     {conf: "events {}\n", want: "it has no block http"},
		"root":             {file: "other.conf", conf: rest, want: "there is no nginx.conf"},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(siteTemplate, tc.settings...)
			file := "nginx.conf"
			if tc.file != "" {
				file = tc.file
			}
			in.Spec.Template, in.Spec.TLS = map[string]string{file: tc.conf}, tc.tls
			in.Recipe.Modules = append(in.Recipe.Modules, "ssl")
			if _, err := Serving(in); err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "@") {
				t.Errorf("error %v, want %s", err, tc.want)
			}
		})
	}
}
