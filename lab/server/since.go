package server

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"ngxlab/lab"
)

//go:embed since.txt
var sinceTable string

// span is the versions of nginx that have something.
type span struct {
	name, word   string // directive or listen.parameter; word of its value, "" = whatever the value
	since, until string // the first with it, the first without it any more; "" = no such bound
}

// spans reads the table.
func spans() []span {
	var all []span
	for line := range strings.Lines(sinceTable) {
		fields := strings.Fields(line)
		if fields[0] == "#" {
			continue
		}
		s := span{since: strings.TrimPrefix(fields[1], "-")}
		s.name, s.word, _ = strings.Cut(fields[0], "=")
		if len(fields) > 2 {
			s.until = fields[2]
		}
		all = append(all, s)
	}
	return all
}

// reusePortUntil is the first Tengine without the directive reuse_port (announcement of 2.3.0).
const reusePortUntil = "2.3.0"

// inTengine are the directives and parameters by which Tengine is judged, with the first of its own versions that has them;
// "" is none so far. Of all others it took over from later versions of nginx what it pleased: HTTP/2 and reuseport with
// 2.2.0, a directive http2 of its own with 2.3.0; HTTP/3 is a module with a source of its own (release notes).
var inTengine = map[string]string{
	"listen.reuseport": "2.2.0", "listen.http2": "2.2.0", "http2": "2.3.0", "http3": "", "http3_hq": "", "http3_max_concurrent_streams": "",
	"http3_stream_buffer_size": "", "quic_retry": "", "quic_gso": "", "quic_bpf": "", "quic_host_key": "", "quic_active_connection_id_limit": "",
}

// Unsupported says why a build, by its version, does not know a directive with that value, and what would help; "" when
// it does, or when its recipe does not tell its version. The words are nginx's own where it has some.
func Unsupported(r lab.Recipe, directive, value string) (reason, cure string) {
	p := locate(directive)
	name := p.name
	if p.parameter != "" {
		name = "listen." + p.parameter
	}
	switch {
	case p.problem != nil || !r.IsNginx() || p.parameter != "" && lab.Switched(value) == "off":
		return "", ""
	case name == "reuse_port":
		return reusePort(r)
	}
	i := slices.IndexFunc(spans(), func(s span) bool { return s.name == name && s.holds(value) })
	if i < 0 {
		return "", ""
	}
	s := spans()[i]
	if r.Flavor == lab.FlavorTengine {
		return tengineLacks(r, s)
	}
	return s.missed(r)
}

// holds reports whether a value has the word.
func (s span) holds(value string) bool {
	return s.word == "" || slices.ContainsFunc(strings.Fields(lab.Unquoted(value)), func(w string) bool { return w == s.word || strings.HasPrefix(w, s.word+"=") })
}

// missed is the reason of a build that is out of the span.
func (s span) missed(r lab.Recipe) (reason, cure string) {
	version := NginxVersion(r)
	switch {
	case below(version, s.since):
		return s.words() + fmt.Sprintf(" in build %q, %s: nginx has it since %s", r.Name, described(r), s.since), "leave it out, or use a build of " + s.since + " or newer"
	case s.until != "" && version != "" && !below(version, s.until):
		return s.words() + fmt.Sprintf(" in build %q, %s: nginx has it no more since %s", r.Name, described(r), s.until), "leave it out, or use a build older than " + s.until
	}
	return "", ""
}

// words are those of nginx for what it does not know.
func (s span) words() string {
	if parameter, is := strings.CutPrefix(s.name, "listen."); is {
		return fmt.Sprintf("invalid parameter %q", parameter)
	}
	if s.word != "" {
		return fmt.Sprintf("invalid value %q in %q directive", s.word, s.name)
	}
	return fmt.Sprintf("unknown directive %q", s.name)
}

func tengineLacks(r lab.Recipe, s span) (reason, cure string) {
	first, judged := inTengine[s.name]
	switch {
	case !judged || r.Version == "" || first != "" && !below(r.Version, first):
		return "", ""
	case first == "":
		return s.words() + fmt.Sprintf(" in build %q, %s: Tengine does not have it", r.Name, described(r)), "leave it out, or use a build of nginx " + s.since + " or newer"
	}
	return s.words() + fmt.Sprintf(" in build %q, %s: Tengine has it since %s", r.Name, described(r), first), "leave it out, or use Tengine " + first + " or newer"
}

// reusePort is about the directive of Tengine's own.
func reusePort(r lab.Recipe) (reason, cure string) {
	if r.Flavor == lab.FlavorTengine && (r.Version == "" || below(r.Version, reusePortUntil)) {
		return "", ""
	}
	return fmt.Sprintf("unknown directive \"reuse_port\" in build %q, %s: nginx has no directive reuse_port; Tengine had it until 2.2, and nginx has it as a parameter of listen since 1.9.1",
		r.Name, described(r)), "write listen.reuseport: true, or use a build of Tengine older than " + reusePortUntil
}
