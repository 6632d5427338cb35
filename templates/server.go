package templates

import (
	_ "embed"
	"fmt"
	"strings"
	"text/template"
)

//go:embed nginx.conf.tmpl
var nginxConf string

// Nginx is what nginx.conf.tmpl needs.
type Nginx struct {
	Modules   []string // shared objects to load, in this order
	Listen    []string // of the site, one at least: a port, or address:port
	Status    string   // of stub_status; "" = there is none
	Site      string   // empty-gif, hello, echo, sleep, file or proxy
	Sleep     string   // of site sleep, in seconds as echo_sleep takes them
	Hold      bool     // with the location /hold, whose requests stay in progress for an hour
	Upstream  string   // of site proxy: address:port
	KeepAlive int      // of site proxy: idle connections to the upstream that each worker keeps; 0 = a connection for each request
	TLS       bool
	HTTP2     string // of TLS: HTTP2Listen or HTTP2Directive; "" = without
	HTTP3     bool   // of TLS: also over UDP
	Port      int    // of HTTP3: that clients are told
}

// How HTTP/2 is turned on: since nginx 1.25.1 by a directive, before by a parameter of listen.
const (
	HTTP2Listen    = "listen"
	HTTP2Directive = "directive"
)

// StatusServer is the server block that tells what stub_status counts, as it stands in the block http.
// stub_status takes no argument since 1.7.5, and one ever since (ngx_http_stub_status_module).
func (n Nginx) StatusServer() string {
	return "    server {\n        listen " + n.Status + ";\n        access_log off;\n\n" +
		"        location = /status {\n            stub_status on;\n        }\n    }"
}

// NginxConf renders the configuration that every state starts from. It is the one nginx ships, with the lab's own
// necessities (process control, logs and pid below the server's prefix, the status listener) and one site.
func NginxConf(n Nginx) (string, error) {
	t, err := template.New("nginx.conf").Option("missingkey=error").Parse(nginxConf)
	if err != nil {
		return "", fmt.Errorf("template nginx.conf: %w", err)
	}
	var out strings.Builder
	if err := t.Execute(&out, n); err != nil {
		return "", fmt.Errorf("template nginx.conf: %w", err)
	}
	return out.String(), nil
}
