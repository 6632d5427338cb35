package server

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"ngxlab/lab"
	"ngxlab/lab/server/nginxconf"
)

//go:embed directives.txt
var directiveTable string

// contexts are the blocks that a dotted name may begin with, from the outside in; server and location are those of
// the site.
var contexts = []string{"main", "events", "http", "server", "location"}

// paths are where the contexts stand in the template.
var paths = map[string]nginxconf.Path{
	"main": nil, "events": {"events"}, "http": {"http"}, "server": {"http", "server"}, "location": {"http", "server", "location"},
}

// parameters of listen, which go by the name "listen." and their own (nginx 1.22, ngx_http_core_listen).
var parameters = []string{
	"backlog", "bind", "deferred", "fastopen", "http2", "ipv6only", "proxy_protocol", "rcvbuf", "reuseport", "sndbuf", "so_keepalive", "ssl",
}

// reserved are the directives that the lab itself needs as they are, and the blocks that hold the site.
var reserved = []string{"daemon", "master_process", "pid", "error_log", "listen", "stub_status", "events", "http", "server"}

// place is where a directive goes.
type place struct {
	context   string
	path      nginxconf.Path
	name      string // of the directive
	parameter string // of listen, then name is "listen"
	form      form
	problem   error
}

// form is how a directive is written.
type form int

const (
	unsaid form = iota // a module's
	simple
	block
)

// key is equal for two names of one place.
func (p place) key() string { return p.context + " " + p.name + " " + p.parameter }

// Known says whether a directive can be placed: "worker_processes" and "access_log" by what nginx allows (the outermost
// context), "events.worker_connections" and "location.sendfile" where the name says, "listen.backlog" as a parameter
// of the site's listen. The error names the nearest known. Names that are like no known one are taken to be a module's
// when they say their context.
func Known(directive string) error { return locate(directive).problem }

// locate resolves a dotted name.
func locate(dotted string) place {
	context, name, qualified := strings.Cut(dotted, ".")
	if !qualified {
		context, name = "", dotted
	}
	if context == "listen" {
		p := place{context: "server", path: paths["server"], name: "listen", parameter: name}
		if !slices.Contains(parameters, name) {
			p.problem = unknown("parameter of listen", dotted, prefixed("listen.", parameters))
		}
		return p
	}
	if slices.Contains(reserved, name) {
		return place{name: name, problem: fmt.Errorf("directive %s is the lab's own and cannot be set; parameters of listen go by listen.backlog and so on", dotted)}
	}
	allowed := allowedIn(name)
	p := place{context: context, path: paths[context], name: name, form: formOf(name)}
	switch {
	case qualified && !slices.Contains(contexts, context):
		p.problem = unknown("context", context, append(slices.Clone(contexts), "listen"))
	case strings.Contains(name, "."):
		p.problem = fmt.Errorf("directive %s has more than one context; write the innermost alone, as in %s", dotted, innermost(dotted))
	case qualified && len(allowed) == 0:
		p.problem = misspelt(context, name)
	case qualified && !slices.Contains(allowed, context):
		p.problem = fmt.Errorf("directive %s cannot stand in %s, only in %s", name, context, strings.Join(allowed, ", "))
	case !qualified && len(allowed) == 0:
		p.problem = unknown("directive", name, known(""))
	case !qualified:
		p.context, p.path = allowed[0], paths[allowed[0]]
	}
	return p
}

// innermost is a dotted name with the last of its contexts.
func innermost(dotted string) string {
	parts := strings.Split(dotted, ".")
	return strings.Join(parts[len(parts)-2:], ".")
}

// misspelt refuses a name that is all but a known one; any other is left to nginx -t, which knows the modules.
func misspelt(context, name string) error {
	near, ok := lab.Nearest(name, known(context))
	if !ok || lab.Distance(name, near) > 2 {
		return nil
	}
	return fmt.Errorf("unknown directive %q; the nearest known is %q", context+"."+name, context+"."+near)
}

// unknown is an error with the nearest known name, if one is near.
func unknown(what, name string, list []string) error {
	if near, ok := lab.Nearest(name, list); ok {
		return fmt.Errorf("unknown %s %q; the nearest known is %q", what, name, near)
	}
	return fmt.Errorf("unknown %s %q", what, name)
}

// formOf is how nginx wants a directive written, as far as it is known.
func formOf(name string) form {
	switch fields := row(name); {
	case len(fields) == 0:
		return unsaid
	case fields[0] == blockSign:
		return block
	}
	return simple
}

// blockSign marks a block in the table.
const blockSign = "{}"

// allowedIn returns the contexts in which nginx allows a directive, outermost first; none when it is unknown.
func allowedIn(name string) []string {
	return slices.DeleteFunc(row(name), func(field string) bool { return field == blockSign })
}

// row is what the table says of a directive; nil when it is unknown.
func row(name string) []string {
	for line := range strings.Lines(directiveTable) {
		if fields := strings.Fields(line); fields[0] == name {
			return fields[1:]
		}
	}
	return nil
}

// known lists the directives of one context, or of all.
func known(context string) []string {
	var names []string
	for line := range strings.Lines(directiveTable) {
		fields := strings.Fields(line)
		if fields[0] != "#" && (context == "" || slices.Contains(fields[1:], context)) {
			names = append(names, fields[0])
		}
	}
	return names
}

func prefixed(prefix string, names []string) []string {
	var list []string
	for _, n := range names {
		list = append(list, prefix+n)
	}
	return list
}
