package server

import (
	"bytes"
	"fmt"
	"net"
	"path"
	"slices"
	"strconv"
	"strings"

	"ngxlab/lab/server/nginxconf"
)

// templateCheck holds a template of the user's against what the lab needs of it.
type templateCheck struct {
	in      Input
	files   nginxconf.Files
	list    []nginxconf.Directive
	counted bool // it has stub_status where the lab asks for it
}

func (c *templateCheck) all() error {
	if err := c.directives(c.list); err != nil {
		return err
	}
	for _, name := range []string{"events", "http"} {
		if len(blocks(c.list, name)) == 0 {
			return fmt.Errorf("it has no block %s", name)
		}
	}
	for _, s := range c.servers() {
		if len(listens(s)) == 0 {
			return fmt.Errorf("%s: a server without listen opens port 80: write listen {port}", c.line(s))
		}
	}
	_, server := c.server(c.in.Spec.Port)
	switch ssl := secure(server, c.in.Spec.Port); {
	case server == nil:
		return fmt.Errorf("no server listens on port %d: write listen {port}", c.in.Spec.Port)
	case ssl && c.in.Spec.TLS == nil:
		return fmt.Errorf("%s: the server speaks TLS: add tls: true to the server section", c.line(*server))
	case !ssl && c.in.Spec.TLS != nil:
		return fmt.Errorf("%s: the server speaks no TLS: write listen {port} ssl, ssl_certificate {cert} and ssl_certificate_key {key}, or leave out tls", c.line(*server))
	}
	return c.status()
}

// directives refuses what would open other ports or read other files, in every block.
func (c *templateCheck) directives(list []nginxconf.Directive) error {
	for _, d := range list {
		switch {
		case d.Name == "listen" && !d.Block && len(d.Args) > 0:
			if port := portOf(d.Args[0]); port != c.in.Spec.Port && port != statusPort(c.in.Spec) {
				return fmt.Errorf("%s: listen %s would open another port than the site's {port} and {status_port}", c.line(d), d.Args[0])
			}
		case d.Name == "include" && len(d.Args) == 1 && path.IsAbs(d.Args[0]) && !strings.HasPrefix(d.Args[0], prefixMark+"/"):
			return fmt.Errorf("%s: include %s is not of the template: put the files beside nginx.conf and name them relative to it", c.line(d), d.Args[0])
		}
		if err := c.directives(d.Body); err != nil {
			return err
		}
	}
	return nil
}

// status finds stub_status at its port, or that the port is free for it.
func (c *templateCheck) status() error {
	port := counting(c.in)
	if port == 0 {
		return nil
	}
	_, server := c.server(port)
	if server == nil {
		return nil
	}
	at, found := locationOf(server, "/status")
	has := func(d nginxconf.Directive) bool { return d.Name == "stub_status" }
	if found && slices.ContainsFunc(blocks(server.Body, "location")[at].Body, has) {
		c.counted = true
		return nil
	}
	return fmt.Errorf("%s: the server at the status port %d has no location = /status with stub_status: write one, or leave that port to the lab", c.line(*server), port)
}

// servers are the blocks of that name, in their order.
func (c *templateCheck) servers() []nginxconf.Directive {
	var all []nginxconf.Directive
	for _, http := range blocks(c.list, "http") {
		all = append(all, blocks(http.Body, "server")...)
	}
	return all
}

// server is the first that listens on a port, and its number; nil when there is none.
func (c *templateCheck) server(port int) (number int, server *nginxconf.Directive) {
	for i, s := range c.servers() {
		if slices.ContainsFunc(listens(s), func(d nginxconf.Directive) bool { return portOf(d.Args[0]) == port }) {
			return i, &s
		}
	}
	return 0, nil
}

// line is where a directive stands.
func (c *templateCheck) line(d nginxconf.Directive) string {
	text := c.files.Text[d.File]
	return fmt.Sprintf("%s line %d", d.File, 1+bytes.Count(text[:min(d.Start, len(text))], []byte("\n")))
}

func blocks(list []nginxconf.Directive, name string) []nginxconf.Directive {
	return slices.DeleteFunc(slices.Clone(list), func(d nginxconf.Directive) bool { return d.Name != name || d.Body == nil })
}

func listens(server nginxconf.Directive) []nginxconf.Directive {
	return slices.DeleteFunc(slices.Clone(server.Body), func(d nginxconf.Directive) bool {
		return d.Name != "listen" || d.Block || len(d.Args) == 0
	})
}

// secure reports whether a server speaks TLS on a port.
func secure(server *nginxconf.Directive, port int) bool {
	return server != nil && slices.ContainsFunc(listens(*server), func(d nginxconf.Directive) bool {
		return portOf(d.Args[0]) == port && slices.Contains(d.Args, "ssl")
	})
}

// portOf is the port of the first argument of listen: 80 unless it says, 0 of what is no port of TCP or UDP.
func portOf(listen string) int {
	if strings.HasPrefix(listen, "unix:") {
		return 0
	}
	if n, err := strconv.Atoi(listen); err == nil {
		return n
	}
	_, port, err := net.SplitHostPort(listen)
	if err != nil {
		return 80
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		return 0
	}
	return n
}

// locationOf is the number of the location of a server that serves a path: the one that is equal to it, else the one that
// is its longest beginning. Those of regular expressions are not asked.
func locationOf(server *nginxconf.Directive, url string) (number int, found bool) {
	longest := -1
	for i, l := range blocks(server.Body, "location") {
		kind, prefix := "", strings.Join(l.Args, "")
		if len(l.Args) == 2 {
			kind, prefix = l.Args[0], l.Args[1]
		} else if rest, exact := strings.CutPrefix(prefix, "="); exact {
			kind, prefix = "=", rest
		}
		switch {
		case kind == "=" && prefix == url:
			return i, true
		case (kind == "" || kind == "^~") && strings.HasPrefix(prefix, "/") && strings.HasPrefix(url, prefix) && len(prefix) > longest:
			number, found, longest = i, true, len(prefix)
		}
	}
	return number, found
}
