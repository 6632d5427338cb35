package experiments

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"ngxlab/lab"
)

// serverCommand is how a server that is not nginx is run.
var serverCommand = object(func() lab.ServerCommand { return lab.ServerCommand{} },
	has("start", "argument list that starts it; {binary}, {build}, {prefix}, {port}, {status_port}, {user} and with tls {cert} and {key} are replaced, here and in all texts below", argv,
		func(c *lab.ServerCommand) *[]string { return &c.Start }).must(),
	has("stop", "argument list that stops it; default signal", argv, func(c *lab.ServerCommand) *[]string { return &c.Stop }),
	has("signal", "for its first process to stop, default TERM", oneOf("TERM", "INT", "QUIT", "HUP", "WINCH", "USR1", "USR2", "KILL"), func(c *lab.ServerCommand) *string { return &c.Signal }),
	has("grace", "time to stop, after which what is left is killed; default 10s", duration, func(c *lab.ServerCommand) *lab.Duration { return &c.Grace }),
	has("ready", "path that is answered with a status below 400 once it is ready, default the first of the load", urlPath, func(c *lab.ServerCommand) *string { return &c.Ready }),
	has("within", "time to become ready, default 10s", duration, func(c *lab.ServerCommand) *lab.Duration { return &c.Within }),
	has("pid_file", "file with the number of its first process, when start ends and leaves it running", text, func(c *lab.ServerCommand) *string { return &c.PIDFile }),
	has("env", "environment variables", mapping("the name of a variable", `^[A-Za-z_][A-Za-z0-9_]*$`, content), func(c *lab.ServerCommand) *map[string]string { return &c.Env }),
	has("files", "files by their path below {prefix}, the fresh directory of each start", relativeFiles, func(c *lab.ServerCommand) *map[string]string { return &c.Files }),
	has("version", "argument list that prints its version", argv, func(c *lab.ServerCommand) *[]string { return &c.Version }),
	has("count", "where it tells how many requests it has served", pointer(count), func(c *lab.ServerCommand) **lab.Count { return &c.Count }),
	has("delay", "how long each request waits by design, for the bound in the report", duration, func(c *lab.ServerCommand) *lab.Duration { return &c.Delay }),
	has("at_once", "how many requests can wait at once, default all", integer(1, maxConnections), func(c *lab.ServerCommand) *int { return &c.AtOnce }),
)

// count is where a server tells its requests.
var count = object(func() lab.Count { return lab.Count{} },
	has("url", "path of a page that tells the number", urlPath, func(c *lab.Count) *string { return &c.URL }),
	has("log", "file that gets a line for each request, relative to {prefix}", text, func(c *lab.Count) *string { return &c.Log }),
	has("pattern", "regular expression: of url its first group is the number, default the first number; of log it tells the lines that count, default all", text,
		func(c *lab.Count) *string { return &c.Pattern }),
)

// argv is an argument list.
var argv = value[[]string]{listOnly(content).schema, func(d *decoding, path string, n ast.Node) ([]string, bool) {
	if n.Type() != ast.SequenceType {
		d.wrong(n, "a list of arguments", `a line of the shell is [sh, -c, "…"]`)
		return nil, false
	}
	return listOnly(content).read(d, path, n)
}}

// relativeFiles are texts by a relative path.
var relativeFiles = anyKeys(names{what: "the path of a file", pattern: `^[^/\s][^\n]*$`, refuse: refuseRelative}, content,
	func() map[string]string { return map[string]string{} },
	func(m map[string]string, name, text string) map[string]string {
		m[name] = text
		return m
	})

func refuseRelative(name string) (message, hint string) {
	switch {
	case strings.HasPrefix(name, "/"), name == "..", strings.HasPrefix(name, "../"), strings.HasPrefix(path.Clean(name), ".."):
		return fmt.Sprintf("%q lies outside: the path is relative", name), "write it without / at its beginning and without .."
	case path.Clean(name) != name || name == ".":
		return fmt.Sprintf("%q is not the plain path of a file", name), "write " + path.Clean(name)
	}
	return "", ""
}

// checkCommand holds a command against what the agent can do with it; tls says that the server shall speak it.
func (d *decoding) checkCommand(at string, c lab.ServerCommand, tls bool) {
	if len(c.Start) > 0 && strings.TrimSpace(c.Start[0]) == "" {
		d.problem(at+".start", "its first element is the program", "start names no program")
	}
	for _, list := range []struct {
		key   string
		words []string
	}{{"start", c.Start}, {"stop", c.Stop}, {"version", c.Version}} {
		for i, word := range list.words {
			d.checkPlaceholders(fmt.Sprintf("%s.%s[%d]", at, list.key, i), word, 2)
		}
	}
	d.checkPlaceholders(at+".pid_file", c.PIDFile, 2)
	all := strings.Join(c.Start, "\n")
	for _, texts := range []struct {
		key   string
		named map[string]string
	}{{"env", c.Env}, {"files", c.Files}} {
		for _, name := range slices.Sorted(maps.Keys(texts.named)) {
			d.checkPlaceholders(at+"."+texts.key+"."+name, texts.named[name], 1)
			all += "\n" + texts.named[name]
		}
	}
	if tls && !strings.Contains(all, "{cert}") {
		d.problem(at, "name {cert} and {key} in start, env or files, or leave out tls", "the server shall speak TLS, and its command does not name the certificate {cert}")
	}
	if c.Count != nil {
		d.checkCount(at+".count", *c.Count)
	}
}

// placeholders are the words in braces that are replaced.
var placeholders = []string{"prefix", "build", "binary", "port", "status_port", "user", "cert", "key"}

var bracedRE = regexp.MustCompile(`[$%]?\{[A-Za-z_]+\}`)

// checkPlaceholders refuses a word in braces that is all but one that is replaced: within so many letters. Any other is left
// to the server, whose texts may have braces of their own.
func (d *decoding) checkPlaceholders(at, text string, within int) {
	for _, found := range bracedRE.FindAllString(text, -1) {
		word := strings.Trim(found, "{}")
		near, ok := lab.Nearest(word, placeholders)
		if strings.ContainsAny(found[:1], "$%") || slices.Contains(placeholders, word) || !ok || lab.Distance(word, near) > within {
			continue
		}
		d.problem(at, fmt.Sprintf("did you mean {%s}?", near), "unknown placeholder %s", found)
	}
}

func (d *decoding) checkCount(at string, c lab.Count) {
	if (c.URL == "") == (c.Log == "") {
		d.problem(at, "count: {url: /vars} or count: {log: access.log}", "count is exactly one of url and log")
	}
	if message, _ := refuseRelative(c.Log); c.Log != "" && message != "" {
		d.problem(at+".log", "it is relative to {prefix}", "%s", message)
	}
	re, err := regexp.Compile(c.Pattern)
	switch {
	case err != nil:
		d.problem(at+".pattern", "it is one of RE2: github.com/google/re2/wiki/Syntax", "%s", err)
	case c.Pattern != "" && c.URL != "" && re.NumSubexp() == 0:
		d.problem(at+".pattern", `put the number into brackets: requests (\d+)`, "pattern %q has no group, which would be the number", c.Pattern)
	}
}
