package experiments

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"ngxlab/lab"
)

// studyOf is a file with such a server section, and hosts for an upstream.
func studyOf(head string) string {
	return "name: small\nhosts:\n  here: {local: true, roles: [target, load]}\n  back: {docker: {}, roles: [upstream]}\n" + head +
		"\nsteps:\n  - name: baseline\nload:\n  - {tool: wrk, connections: 10}\n"
}

func TestServersOfEveryKindAreRead(t *testing.T) {
	e := decode(t, studyOf(`builds: {a: {modules: [stub_status, ssl, v2]}}
server:
  site: proxy
  user: www-data
  tls: {key: rsa, http2: true}
  upstream:
    host: back
    keepalive: 32
    server: {site: file, bodies: {/0: 0, /big: 10MiB}, nginx: {access_log: "off"}}`))
	s := e.Server
	want := lab.Upstream{Host: "back", KeepAlive: 32, Server: lab.ServerSpec{
		Build: "a", Port: 8181, StatusPort: 8182, Site: "file", BodyBytes: 1 << 10, Restart: lab.RestartAlways,
		Bodies: map[string]int64{"/0": 0, "/big": 10 << 20}, Nginx: map[string]string{"access_log": "off"},
	}}
	if s.Upstream == nil || !reflect.DeepEqual(*s.Upstream, want) {
		t.Errorf("upstream %+v, want %+v", s.Upstream, want)
	}
	if s.User != "www-data" || s.TLS == nil || *s.TLS != (lab.TLS{Key: lab.KeyRSA, HTTP2: true}) || e.Load[0].URL != "/file" {
		t.Errorf("server %+v, URL %s", s, e.Load[0].URL)
	}
	if e := decode(t, studyOf("server: {tls: true}")); e.Server.TLS == nil || e.Server.TLS.Key != lab.KeyECDSA {
		t.Errorf("TLS %+v", e.Server.TLS)
	}
	if e := decode(t, studyOf("server: {tls: false}")); e.Server.TLS != nil {
		t.Errorf("TLS %+v, want none", e.Server.TLS)
	}
}

func TestCommandWithoutBuildsIsTheOneBuild(t *testing.T) {
	e := decode(t, studyOf(`server:
  count: {log: served.log, pattern: "GET"}
  command:
    start: [/usr/sbin/httpd, -p, "{port}", 8]
    signal: QUIT
    grace: 3s
    ready: /ready
    within: 20s
    env: {A_B: "{prefix}"}
    files: {conf/httpd.conf: "Listen {port}\n"}
    delay: 1s
    at_once: 9`))
	b := e.Builds["server"]
	if len(e.Builds) != 1 || b.Flavor != lab.FlavorCustom || b.Installed != "/usr/sbin/httpd" || e.Server.Build != "server" || e.CommandOf(b) == nil {
		t.Errorf("builds %+v, server %q", e.Builds, e.Server.Build)
	}
	want := lab.ServerCommand{
		Start: []string{"/usr/sbin/httpd", "-p", "{port}", "8"}, Signal: "QUIT", Grace: lab.Seconds(3), Ready: "/ready", Within: lab.Seconds(20),
		Env: map[string]string{"A_B": "{prefix}"}, Files: map[string]string{"conf/httpd.conf": "Listen {port}\n"}, Delay: lab.Seconds(1), AtOnce: 9,
	}
	if !reflect.DeepEqual(*e.Server.Command, want) || e.Server.Count.Log != "served.log" || e.Load[0].URL != "/ready" {
		t.Errorf("command %+v, count %+v, URL %s", e.Server.Command, e.Server.Count, e.Load[0].URL)
	}
}

var badServers = []struct{ name, head, want, hint string }{
	{"upstream of another site", "server: {site: hello, upstream: {host: back, server: {site: hello}}}", "x.yaml:5:23: upstream belongs to the site proxy, this is hello", "site: proxy"},
	{"proxy without upstream", "server: {site: proxy}", "the site proxy needs the key upstream", "host: NAME"},
	{"upstream on no host", "server: {site: proxy, upstream: {host: bak, server: {site: hello}}}", `x.yaml:5:34: there is no host "bak"`, `"back"`},
	{"upstream without the role", "server: {site: proxy, upstream: {host: here, server: {site: hello}}}", `host "here" does not have the role upstream`, "roles: [upstream]"},
	{"chain of proxies", "server: {site: proxy, upstream: {host: back, server: {site: proxy}}}", "passes requests on itself", "site: hello"},
	{"chain of a template", "server: {site: proxy, upstream: {host: back, server: {site: template, template: {nginx.conf: \"proxy_pass x;\"}}}}", "passes requests on itself", ""},
	{"upstream of an upstream", "server: {site: proxy, upstream: {host: back, server: {site: hello, upstream: {}}}}", `unknown key "upstream"`, ""},
	{"no build of the upstream", "server: {site: proxy, upstream: {host: back, server: {site: hello, build: b}}}", `there is no build "b"`, "nginx"},
	{"automatic CPUs of the upstream", "server: {site: proxy, upstream: {host: back, server: {site: hello, cpus: auto}}}", "auto is for the server of a target", "list"},
	{"bodies of another site", "server: {site: hello, bodies: {/a: 1KiB}}", "bodies belongs to the site file", "site: file"},
	{"body without a slash", "server: {site: file, bodies: {a: 1KiB}}", `"a" cannot be a path that begins with "/"`, ""},
	{"two bodies of one file", "server: {site: file, bodies: {/a: 1KiB, //a: 2KiB}}", "//a and /a are one file", ""},
	{"kind of key", "server: {tls: {key: dsa}}", "expected one of ecdsa, rsa", ""},
	{"TLS of a number", "server: {tls: 1}", "expected true or false", ""},
	{"template without nginx.conf", "server: {site: template, template: {a.conf: x}}", "no text of the template is called nginx.conf", ""},
	{"template of another site", "server: {template: {nginx.conf: x}}", "template belongs to the site template", ""},
	{"no template", "server: {site: template}", "the site template needs the key template", ""},
	{"template outside", "server: {site: template, template: ../nginx.conf}", "template: \"../nginx.conf\" lies outside", "beside the experiment file"},
	{"placeholder of a template", "server: {site: template, template: {nginx.conf: \"listen {prot};\"}}", "", ""},
	{"user twice", "server: {user: a, nginx: {user: b}}", "user stands here and among the directives", "leave one"},
	{"start of nothing", "server: {command: {start: []}}", "the list is empty", ""},
	{"start as a line", "server: {command: {start: httpd -X}}", "expected a list of arguments", "[sh, -c"},
	{"relative program", "server: {command: {start: [httpd]}}", `"httpd" is no absolute path`, "{binary}"},
	{"placeholder", "server: {command: {start: [/x, \"{prefx}/a\"]}}", "x.yaml:5:32: unknown placeholder {prefx}", "{prefix}"},
	{"placeholder in a file", "server: {command: {start: [/x], files: {a: \"Listen {porto}\"}}}", "unknown placeholder {porto}", "{port}"},
	{"file outside", "server: {command: {start: [/x], files: {../a: x}}}", `"../a" lies outside`, ""},
	{"count of both", "server: {command: {start: [/x], count: {url: /a, log: b}}}", "exactly one of url and log", ""},
	{"count of none", "server: {count: {pattern: b}}", "exactly one of url and log", ""},
	{"pattern", "server: {count: {url: /a, pattern: \"(\"}}", "missing closing )", "RE2"},
	{"pattern without a group", "server: {count: {url: /a, pattern: \"[0-9]+\"}}", "has no group", "brackets"},
	{"log outside", "server: {count: {log: /var/log/x}}", "lies outside", "relative to {prefix}"},
	{"site of a command", "server: {site: hello, command: {start: [/x]}}", "site is nginx's, and the server is started by a command", "leave it out"},
	{"directives of a command", "server: {nginx: {sendfile: \"on\"}, command: {start: [/x]}}", "nginx is nginx's", "leave it out"},
	{"no TLS of an upstream's command", "builds: {a: {modules: [stub_status, ssl]}, b: {flavor: custom, installed: /x, command: {start: [/x]}}}\n" +
		"server: {build: a, tls: true, site: proxy, upstream: {host: back, server: {build: b}}}", "", ""},
	{"TLS of a command", "server: {tls: true, command: {start: [/x]}}", "does not name the certificate {cert}", "{key}"},
	{"command of the upstream without a build", "server: {site: proxy, upstream: {host: back, server: {command: {start: [/x]}}}}", "needs a build of its own", "installed:"},
}

func TestBadServersNamePlaceAndCure(t *testing.T) {
	for _, c := range badServers {
		t.Run(c.name, func(t *testing.T) {
			if c.want == "" { // what is no fault
				decode(t, studyOf(c.head))
				return
			}
			got := problems(t, studyOf(c.head)).Error()
			if !strings.Contains(got, c.want) {
				t.Errorf("got:\n%s\nwant: %s", got, c.want)
			}
			if _, hint, _ := strings.Cut(got, "hint: "); !strings.Contains(hint, c.hint) {
				t.Errorf("hint %q, want %q", hint, c.hint)
			}
		})
	}
}

// templated writes an experiment with a template below its folder, and decodes it.
func templated(t *testing.T, files map[string]string) (lab.Experiment, string, error) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	e, err := Decode(filepath.Join(dir, "x.yaml"), strings.NewReader(studyOf("server: {site: template, template: site/own.conf}")))
	return e, dir, err
}

func TestTemplateIsReadWithAllBelowItsFolderAndIsInTheHash(t *testing.T) {
	files := map[string]string{"site/own.conf": "events {}\n", "site/conf.d/a.conf": "a 1;\n", "site/.git/x": "\x00", "site/.a.swp": "\x00", "outside.conf": "b 1;\n"}
	e, dir, err := templated(t, files)
	if err != nil {
		t.Fatal(err)
	}
	if want := map[string]string{"nginx.conf": "events {}\n", "conf.d/a.conf": "a 1;\n"}; !reflect.DeepEqual(e.Server.Template, want) || e.Load[0].URL != "/" {
		t.Errorf("template %v, want %v; URL %s", e.Server.Template, want, e.Load[0].URL)
	}
	again, _, err := templated(t, files)
	if err != nil || again.Hash != e.Hash {
		t.Errorf("the same files have hashes %s and %s, %v", e.Hash, again.Hash, err)
	}
	files["site/conf.d/a.conf"] = "a 2;\n"
	other, _, err := templated(t, files)
	if err != nil || other.Hash == e.Hash || other.Text != e.Text {
		t.Errorf("other files have the hash %s, %v", other.Hash, err)
	}
	e, err = Decode(filepath.Join(dir, "x.yaml"), strings.NewReader(studyOf("server: {site: template, template: outside.conf}")))
	if err != nil || len(e.Server.Template) != 1 {
		t.Errorf("beside the experiment it is alone: %v, %v", e.Server.Template, err)
	}
}

func TestTemplatesThatCannotBeReadAreToldByTheirPath(t *testing.T) {
	for name, tc := range map[string]struct {
		files map[string]string
		link  string
		want  string
	}{
		"missing":    {files: map[string]string{}, want: "site/own.conf"},
		"no text":    {files: map[string]string{"site/own.conf": "", "site/a.gz": "\x1f\x8b\x00"}, want: "site/a.gz is not a text"},
		"too large":  {files: map[string]string{"site/own.conf": "", "site/big": strings.Repeat("x", maxTemplateBytes+1)}, want: "site/big: the files are larger than 1048576 bytes"},
		"two roots":  {files: map[string]string{"site/own.conf": "", "site/nginx.conf": ""}, want: "site/nginx.conf would be nginx.conf, which another file is already"},
		"a link out": {files: map[string]string{"site/own.conf": ""}, link: "/etc/hostname", want: "path escapes from parent"},
		"a folder":   {files: map[string]string{"site/own.conf/a": ""}, want: "site/own.conf is not a regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			_, dir, err := templated(t, tc.files)
			if tc.link != "" {
				if err := os.Symlink(tc.link, filepath.Join(dir, "site", "z.conf")); err != nil {
					t.Fatal(err)
				}
				_, err = Decode(filepath.Join(dir, "x.yaml"), strings.NewReader(studyOf("server: {site: template, template: site/own.conf}")))
			}
			var refused *Error
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), tc.want) || refused.Problems[0].Position.Line != 5 {
				t.Errorf("error %v, want %s on line 5", err, tc.want)
			}
		})
	}
}
