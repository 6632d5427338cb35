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
	Listen []string // of the site, one at least: a port, or address:port
	Status string   // of stub_status
	Site   string   // empty-gif, hello, echo, sleep or file
	Sleep  string   // of site sleep, in seconds as echo_sleep takes them
	Hold   bool     // with the location /hold, whose requests stay in progress for an hour
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
