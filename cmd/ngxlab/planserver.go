package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ngxlab/lab"
)

// planServer prints what is started: one server for each build, as it is in the first of its states.
func planServer(p *page, pl lab.Plan) {
	seen, behind := map[string]bool{}, map[string]bool{}
	for _, s := range pl.Servings {
		if seen[s.Recipe] {
			continue
		}
		if len(seen) == 0 {
			p.heading("Server")
		}
		seen[s.Recipe] = true
		p.line("  %s: %s", s.Recipe, servedAs(pl.Experiment.Server, s))
		planServing(p, "    ", s)
		if delays := delaysOf(pl, s.Recipe); len(delays) > 0 {
			p.line("    each request waits %s by design%s", strings.Join(delays, " or "), atOnceText(s))
		}
		if s.Upstream == nil || pl.Experiment.Server.Upstream == nil {
			continue
		}
		planUpstream(p, *pl.Experiment.Server.Upstream, *s.Upstream, behind[s.Upstream.Recipe])
		behind[s.Upstream.Recipe] = true
	}
}

// planUpstream prints what a server passes its requests to, in full when it was not before.
func planUpstream(p *page, spec lab.Upstream, up lab.Serving, told bool) {
	if told {
		p.line("    passes requests to %s on %s, as above", up.Recipe, up.Target)
		return
	}
	p.line("    passes requests to %s on %s: %s; %s", up.Recipe, up.Target, servedAs(spec.Server, up), kept(spec.KeepAlive))
	planServing(p, "      ", up)
}

// servedAs says what a server answers, and where.
func servedAs(spec lab.ServerSpec, s lab.Serving) string {
	parts := []string{fmt.Sprintf("port %d", s.Port)}
	if s.StatusPort != 0 {
		parts[0] += fmt.Sprintf(", stub_status on port %d", s.StatusPort)
	}
	switch {
	case s.Command != nil:
		parts = append(parts, "started by a command")
	case s.Template:
		parts = append(parts, "a template of "+count(len(spec.Template), "file"))
	default:
		parts = append(parts, strings.TrimSpace("site "+spec.Site+bodies(spec)))
	}
	if s.User != "" {
		parts = append(parts, "user "+s.User)
	}
	return joined(append(parts, tlsPlan(s.TLS)...))
}

// bodies are the generated bodies of a site, smallest first.
func bodies(spec lab.ServerSpec) string {
	if len(spec.Bodies) == 0 {
		return ""
	}
	paths := slices.SortedFunc(maps.Keys(spec.Bodies), func(a, b string) int {
		return cmp.Or(cmp.Compare(spec.Bodies[a], spec.Bodies[b]), strings.Compare(a, b))
	})
	for i, path := range paths {
		paths[i] += " of " + size(float64(spec.Bodies[path]))
	}
	return " with " + joined(paths)
}

// tlsPlan says how a server speaks TLS; nothing of one that does not.
func tlsPlan(t *lab.TLS) []string {
	if t == nil {
		return nil
	}
	parts := []string{fmt.Sprintf("TLS with an %s key", strings.ToUpper(t.Key))}
	if t.HTTP2 {
		parts = append(parts, "HTTP/2")
	}
	if t.HTTP3 {
		parts = append(parts, "HTTP/3")
	}
	return parts
}

// kept says what a proxy does with its connections to the upstream.
func kept(connections int) string {
	if connections == 0 {
		return "a new connection for each request"
	}
	return fmt.Sprintf("each worker keeps %s to it", count(connections, "idle connection"))
}

// planServing prints how a command runs a server, and where its requests are counted.
func planServing(p *page, indent string, s lab.Serving) {
	if c := s.Command; c != nil {
		p.line("%sstart: %s", indent, commandLine(c.Start))
		p.line("%sstop: %s", indent, stopping(*c))
		if len(c.Env) > 0 {
			p.line("%senvironment: %s", indent, environment(c.Env))
		}
	}
	by := s.CountedBy()
	if by == "" {
		by = "nobody: whether the tool's count is right cannot be told"
	}
	p.line("%srequests are counted by %s", indent, by)
}

// delaysOf are the times that requests wait by design in the states of a build, in their order.
func delaysOf(pl lab.Plan, recipe string) []string {
	var all []string
	for _, s := range pl.Servings {
		if text := seconds(s.DelayS); s.Recipe == recipe && s.DelayS > 0 && !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return all
}

func atOnceText(s lab.Serving) string {
	if s.AtOnce == 0 {
		return ""
	}
	return fmt.Sprintf(", %d at once", s.AtOnce)
}

// stopping says how a command's server is ended.
func stopping(c lab.ServerCommand) string {
	if len(c.Stop) > 0 {
		return commandLine(c.Stop)
	}
	if c.Signal == "" {
		return "signal TERM"
	}
	return "signal " + c.Signal
}

func environment(env map[string]string) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(env)) {
		all = append(all, name+"="+env[name])
	}
	return strings.Join(all, " ")
}
