package experiments

import (
	"slices"

	"github.com/goccy/go-yaml/ast"

	"ngxlab/lab"
)

// maxBody bounds a generated body; every host makes it anew.
const maxBody = 1 << 40

var serverSpec = object(newServer, slices.Concat(servedKeys, []key[lab.ServerSpec]{
	has("restart", "always (default): a fresh server for each state and round; needed: only when something differs that a server takes over at its start",
		oneOf(lab.RestartAlways, lab.RestartNeeded), func(s *lab.ServerSpec) *lab.Restart { return &s.Restart }),
	has("tls", "true: TLS with a certificate that the lab makes; or {key, http2, http3}", tls, func(s *lab.ServerSpec) **lab.TLS { return &s.TLS }),
	has("upstream", "of the site proxy: the server that requests are passed to", pointer(upstream), func(s *lab.ServerSpec) **lab.Upstream { return &s.Upstream }),
	has("count", "where a server without stub_status tells how many requests it has served", pointer(count), func(s *lab.ServerSpec) **lab.Count { return &s.Count }),
})...)

// upstreamSpec is the server of an upstream, which has none of its own.
var upstreamSpec = object(newServer, servedKeys...)

func newServer() lab.ServerSpec { return lab.ServerSpec{} }

// servedKeys are what every server has.
var servedKeys = []key[lab.ServerSpec]{
	has("build", "name of a build; default the only one, of an upstream that of the target", nameText, func(s *lab.ServerSpec) *string { return &s.Build }),
	has("port", "of the site, default 8081, of an upstream 8181", port, func(s *lab.ServerSpec) *int { return &s.Port }),
	has("status_port", "of stub_status, default port + 1", port, func(s *lab.ServerSpec) *int { return &s.StatusPort }),
	has("site", "empty-gif (default), hello, echo, sleep, file, proxy or template",
		oneOf("empty-gif", "hello", "echo", "sleep", "file", "proxy", "template"), func(s *lab.ServerSpec) *string { return &s.Site }),
	has("body", "size of the site file, default 1KiB", size, func(s *lab.ServerSpec) *int64 { return &s.BodyBytes }),
	has("bodies", "of the site file: further bodies, by path, with their sizes", bodies, func(s *lab.ServerSpec) *map[string]int64 { return &s.Bodies }),
	{name: "sleep", doc: "delay of the site sleep, default 100ms", schema: duration.schema,
		read: func(d *decoding, path string, n ast.Node, s *lab.ServerSpec) {
			if t, ok := duration.read(d, path, n); ok {
				s.SleepS = t.Seconds()
			}
		}},
	has("template", "of the site template: a configuration of your own, as the path of a file beside this one, with all files below its folder, or as texts by name, nginx.conf among them",
		template, func(s *lab.ServerSpec) *map[string]string { return &s.Template }),
	has("command", "starts a server that is not nginx", pointer(serverCommand), func(s *lab.ServerSpec) **lab.ServerCommand { return &s.Command }),
	has("user", "that the workers run as, of a command the whole server; default the server's own choice", login, func(s *lab.ServerSpec) *string { return &s.User }),
	has("cpus", "CPUs of the server: a list such as 0-3, or auto: half of them when load shares the host; default not pinned", cpus,
		func(s *lab.ServerSpec) *string { return &s.CPUs }),
	has("nofile", "open-file limit of the server, default the host's", nofile, func(s *lab.ServerSpec) *int { return &s.Nofile }),
	has("nproc", "process limit of the server's user, default the host's", nproc, func(s *lab.ServerSpec) *int { return &s.Nproc }),
	has("nginx", "directives, with their context: events.worker_connections", directives, func(s *lab.ServerSpec) *map[string]string { return &s.Nginx }),
}

// bodies are sizes by the path that they are served at.
var bodies = mapping(`a path that begins with "/"`, `^/[^\s?#]*$`, value[int64]{schema{"anyOf": []schema{size.schema, {"const": 0}}}, func(d *decoding, path string, n ast.Node) (int64, bool) {
	if s, kind, _ := scalar(n); kind == ast.IntegerType && s == "0" {
		return 0, true
	}
	bytes, ok := size.read(d, path, n)
	if ok && bytes > maxBody {
		d.wrong(n, "a size up to 1024GiB", "every host makes the body anew")
	}
	return bytes, ok && bytes <= maxBody
}})

var upstream = object(func() lab.Upstream { return lab.Upstream{} },
	has("host", "where it runs: a host with the role upstream", nameText, func(u *lab.Upstream) *string { return (*string)(&u.Host) }).must(),
	has("keepalive", "idle connections to it that each worker keeps; default 0: a new connection for each request", integer(0, maxConnections), func(u *lab.Upstream) *int { return &u.KeepAlive }),
	has("server", "what it serves", upstreamSpec, func(u *lab.Upstream) *lab.ServerSpec { return &u.Server }).must(),
)

var tlsParts = object(newTLS,
	has("key", "of the certificate: ecdsa (default, P-256) or rsa (2048 bits)", oneOf(lab.KeyECDSA, lab.KeyRSA), func(t *lab.TLS) *string { return &t.Key }),
	has("http2", "true: also HTTP/2; the build needs the module v2", boolean, func(t *lab.TLS) *bool { return &t.HTTP2 }),
	has("http3", "true: also HTTP/3, over UDP at the same port; the build needs the module v3", boolean, func(t *lab.TLS) *bool { return &t.HTTP3 }),
)

func newTLS() lab.TLS { return lab.TLS{Key: lab.KeyECDSA} }

// tls is true or false, or what of TLS is wanted.
var tls = value[*lab.TLS]{schema{"anyOf": []schema{boolean.schema, tlsParts.schema}}, func(d *decoding, path string, n ast.Node) (*lab.TLS, bool) {
	if n.Type() == ast.MappingType {
		return pointer(tlsParts).read(d, path, n)
	}
	is, ok := boolean.read(d, path, n)
	if !ok || !is {
		return nil, ok
	}
	made := newTLS()
	return &made, true
}}
