package nginxconf_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"ngxlab/lab/server/nginxconf"
)

// generator writes configurations that nginx accepts, in every manner that its grammar allows.
type generator struct {
	*rand.Rand
	nl    string // how lines end
	lua   bool   // with Lua blocks, which the build under test does not know
	files map[string][]byte
	n     int // names given
}

// generate makes the configuration of a seed: nginx.conf and what it includes.
func generate(seed uint64, lua bool) nginxconf.Files {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 4)), nl: "\n", lua: lua, files: map[string][]byte{}}
	if g.IntN(3) == 0 {
		g.nl = "\r\n"
	}
	text := g.body(0, g.main())
	if g.IntN(4) == 0 {
		text = strings.TrimRight(text, " \t\r\n")
		if strings.HasSuffix(text, "# behind it }") {
			text += "{ no line end"
		}
	}
	g.files["nginx.conf"] = []byte(text)
	return nginxconf.Files{Root: "nginx.conf", Text: g.files}
}

func (g *generator) main() []string {
	list := g.some(
		g.stmt("worker_processes", g.one("1", "2", "auto")), g.stmt("worker_rlimit_nofile", "1000"), g.stmt("timer_resolution", "100ms"),
		g.stmt("env", "A=b;{c} 'd'"), g.stmt("env", "OTHER"), g.stmt("pcre_jit", "on"),
	)
	list = append(list, g.block(1, []string{"events"}, g.some(
		g.stmt("worker_connections", "64"), g.stmt("accept_mutex", "off"), g.stmt("multi_accept", "on"),
	)))
	return g.parted(0, g.shuffled(append(list, g.block(1, []string{"http"}, g.http()))))
}

func (g *generator) http() []string {
	list := g.some(append(g.anywhere(),
		g.stmt("log_format", "one", `$remote_addr; {"$request"} # 'x' \ ${status}`),
		g.stmt("limit_req_zone", "$binary_remote_addr", "zone=z:1m", "rate=1r/s"),
		g.block(2, []string{"types"}, []string{g.stmt("text/html", "html", "htm"), g.stmt("image/gif", "gif")}),
		g.block(2, []string{"map", "$uri", "$name"}, g.parted(2, []string{g.stmt("default", "a;b{}"), g.stmt("~^/x{2}$", "}"), g.stmt("", "none"), g.stmt(`\include`, "x")})),
		g.block(2, []string{"geo", "$near"}, []string{g.stmt("default", "0"), g.stmt("127.0.0.0/8", "1")}),
		g.block(2, []string{"upstream", "back"}, []string{g.stmt("server", "127.0.0.1:1", "max_fails=0"), g.stmt("server", "127.0.0.1:2"), g.stmt("keepalive", "4")}),
		g.block(2, []string{"split_clients", "$remote_addr", "$half"}, []string{g.stmt("50%", "a b"), g.stmt("*", `c\d`)}),
	)...)
	list = g.shuffled(list)
	for range 1 + g.IntN(2) {
		list = append(list, g.block(2, []string{"server"}, g.server()))
	}
	return g.parted(1, list)
}

func (g *generator) server() []string {
	g.n++
	list := append(g.some(g.anywhere()...), g.stmt("listen", fmt.Sprintf("unix:s%d.sock", g.n), "backlog=5"))
	list = append(list, g.some(
		g.stmt("server_name", "a.example", "*.b.example", `~^w{2}\d+;.*$`),
		"if ($http_x ~* \"a{2};\\\"}\")"+g.open()+"return 403;"+g.nl+"}",
		g.block(3, []string{"if", "($request_method", "=", "POST)"}, []string{g.stmt("set", "$a", `x"y`), g.stmt("return", "405")}),
	)...)
	list = append(list, g.block(3, []string{"location", "/"}, g.location()))
	list = append(list, g.some(
		g.block(3, []string{"location", "~", `\.(gif|png)$`}, g.location()), g.block(3, []string{"location", "~*", `^/[a-z]{2};"\d'`}, g.location()),
		g.block(3, []string{"location", "=", "/it's"}, g.location()), g.block(3, []string{"location", "@named"}, g.location()),
	)...)
	return g.parted(2, g.shuffled(list))
}

func (g *generator) location() []string {
	list := append(g.anywhere(), g.stmt("return", "200", "hello\n"), g.stmt("expires", "1h"), g.stmt("set", "$b", "${uri}x{}"),
		g.block(4, []string{"limit_except", "GET"}, []string{g.stmt("deny", "all")}),
		g.block(4, []string{"if", "($arg_x)"}, []string{g.stmt("add_header", "X-If", "}; #")}),
	)
	if g.lua {
		list = append(list, g.one("content", "log", "access")+"_by_lua_block"+g.one("", " ")+"{"+g.one(luaBodies...)+"}")
	}
	return g.parted(3, g.shuffled(g.some(list...)))
}

// anywhere is what http, server and location may have.
func (g *generator) anywhere() []string {
	return []string{
		g.stmt("sendfile", g.one("on", "off")), g.stmt("keepalive_timeout", "5s", "6s"), g.stmt("access_log", "off"),
		g.stmt("add_header", "X-A", `a; b { "c" } # 'd' \ $uri`), g.stmt("add_header", "X-B", "${uri}b", "always"),
		g.stmt("error_page", "404", "/404;.html"), g.stmt("root", g.one("html", "a b", "it's")),
	}
}

// some keeps each with a chance of two in three.
func (g *generator) some(list ...string) []string {
	var kept []string
	for _, s := range list {
		if g.IntN(3) > 0 {
			kept = append(kept, s)
		}
	}
	return kept
}

func (g *generator) shuffled(list []string) []string {
	g.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

func (g *generator) one(of ...string) string { return of[g.IntN(len(of))] }

// stmt writes a simple directive.
func (g *generator) stmt(words ...string) string {
	return g.words(words) + g.one("", "", " ", g.nl) + ";"
}

func (g *generator) words(words []string) string {
	text := words[0]
	if text == "" || strings.ContainsAny(text, "{") { // an entry of a map
		text = g.word(text)
	}
	for _, w := range words[1:] {
		text += g.one(" ", " ", " ", "  ", "\t", g.nl+"\t", " # comment; { \" '"+g.nl) + g.word(w)
	}
	return text
}

// word writes a word plain where it can be, or in either quotes.
func (g *generator) word(w string) string {
	rest := strings.NewReplacer("${uri}", "", "${status}", "").Replace(w)
	if g.IntN(2) == 0 && w != "" && !strings.ContainsAny(rest, " \t\r\n;{}\"'#") && !strings.HasSuffix(w, "$") && plainly(w) {
		return w
	}
	quote := g.one(`"`, "'")
	w = strings.NewReplacer(`\`, `\\`, quote, `\`+quote, "\n", `\n`).Replace(w)
	return quote + w + quote
}

// plainly reports whether nginx leaves the backslashes of a word alone.
func plainly(w string) bool {
	for i := strings.IndexByte(w, '\\'); i >= 0 && i < len(w); i++ {
		if w[i] == '\\' && (i+1 == len(w) || strings.IndexByte(`"'\trn`, w[i+1]) >= 0) {
			return false
		}
	}
	return true
}

func (g *generator) open() string {
	return g.one("{", " {", g.nl+"{", " # a {"+g.nl+"{") + g.one("", " ", g.nl)
}

func (g *generator) block(depth int, words, body []string) string {
	return g.words(words) + g.open() + g.body(depth, body) + "}"
}

// parted moves some of the directives, now and then, into files that are included.
func (g *generator) parted(depth int, list []string) []string {
	if len(list) < 2 || g.IntN(4) > 0 {
		return list
	}
	from := g.IntN(len(list))
	to := from + 1 + g.IntN(len(list)-from)
	return slices.Concat(list[:from], []string{g.include(depth, list[from:to])}, list[to:])
}

// body puts directives behind each other: in one line, or in lines with comments.
func (g *generator) body(depth int, list []string) string {
	if depth > 0 && g.IntN(4) == 0 {
		return g.one("", " ") + strings.Join(list, g.one("", " ")) + " "
	}
	indent := g.one(strings.Repeat("    ", depth), strings.Repeat("\t", depth))
	text := g.nl
	for _, s := range list {
		if g.IntN(5) == 0 {
			text += g.one("", indent) + "# a comment; { \" " + g.nl
		}
		text += g.one(indent, indent, indent, "") + s + g.one(g.nl, g.nl, g.nl, "  "+g.nl, " # behind it }"+g.nl, " ", g.nl+g.nl)
	}
	return text + g.one("", strings.Repeat("    ", max(0, depth-1)))
}

// include moves directives into a file, which is named or found by a pattern.
func (g *generator) include(depth int, list []string) string {
	g.n++
	name := fmt.Sprintf("conf.d/%d-a.conf", g.n)
	g.files[name] = []byte(g.body(0, list))
	if len(list) > 1 && g.IntN(2) == 0 {
		g.files[name] = []byte(g.body(0, list[:1]))
		g.files[fmt.Sprintf("conf.d/%d-b.conf", g.n)] = []byte(g.body(depth, list[1:]))
		return g.stmt("include", fmt.Sprintf("conf.d/%d-*.conf", g.n))
	}
	return g.stmt("include", name)
}
