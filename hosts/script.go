package hosts

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"ngxlab/agent/wire"
)

// places are the directories for an agent as the host's shell writes them, the best first. Those that others may write
// to get a directory per user.
var places = []string{`"$HOME/.cache/ngxlab"`, `"/var/tmp/ngxlab-$(id -u)"`, `"/dev/shm/ngxlab-$(id -u)"`}

// The parts of the script, in POSIX shell without ' ! and backslash. Its answers are lines that begin with told.
const (
	// own: a directory and no link, of this user, that nobody else may write to.
	shellOwn = `own() { [ -O "$1" ] && case $(ls -ld "$1") in d????-??-*) ;; *) false;; esac; }; `

	// try starts the agent in a directory when it is there.
	shellTry = `try() { f=$1/$a; [ -n "$a" ] && [ -f "$f" ] && [ -x "$f" ] && own "$1" || return 0; %s; }; `

	// why makes a directory when missing, and says what keeps an agent from being kept and started there. An empty file is
	// a program to every shell, but not on a file system mounted noexec.
	shellWhy = `why() { [ "$1" = /.cache/ngxlab ] && echo "HOME is not set" && return 1; (umask 077; mkdir -p "$1") || return 1; ` +
		`own "$1" || { echo "not a directory that only this user may write to"; return 1; }; ` +
		`t=$1/` + wire.TemporaryPrefix + `$$; (: >"$t") && chmod 700 "$t" && "$t"; x=$?; rm -f "$t"; ` +
		`[ $x = 0 ] || echo "no program can be kept and started there"; return $x; }; `

	// look tells what the agent in a directory is, and ends with the first directory that is usable. What unfinished uploads
	// left there an hour ago goes.
	shellLook = `look() { f=$2/$a; [ -n "$a" ] && [ -x "$f" ] && own "$2" && echo "` + told + `has $("$f" version 2>&1 </dev/null)"; ` +
		`if r=$(why "$2" 2>&1); then find "$2" -name "` + wire.TemporaryPrefix + `*" -mmin +60 -exec rm -f {} + 2>/dev/null; ` +
		`echo "` + told + `use $1 $2"; exit 0; fi; echo "` + told + `no $2:" $r; }; `

	told = "ngxlab-host/1 "
)

// shell is what the script is made for.
type shell struct {
	names  map[string]string // architecture, as Go names it → file name of its agent
	places []string
	dir    string // the agent's state directory; "" = its own choice
	sudo   bool
}

// start is a script that starts the agent in the first of some places that has it, and else looks at all of them.
func (s shell) start(at []string, tty bool) string {
	raw := ""
	if tty {
		raw = "stty raw -echo 2>/dev/null; "
	}
	return raw + s.prelude() + fmt.Sprintf(shellTry, s.exec()) + "try " + strings.Join(at, "; try ") + "; " + s.looks(0)
}

// look is a script that only looks, at the places from one on.
func (s shell) look(from int) string { return s.prelude() + s.looks(from) }

func (s shell) prelude() string {
	var b strings.Builder
	b.WriteString("set -f; m=$(uname -m); case $m in ")
	for _, m := range machines {
		if name := s.names[m.arch]; name != "" {
			fmt.Fprintf(&b, "%s) a=%s;; ", strings.Join(m.uname, "|"), name)
		}
	}
	b.WriteString("*) a=;; esac; " + shellOwn)
	return b.String()
}

func (s shell) exec() string {
	agent := `"$f" serve`
	if s.dir != "" {
		agent += ` --dir "` + s.dir + `"`
	}
	if !s.sudo {
		return "exec " + agent
	}
	return `[ "$(id -u)" = 0 ] && exec ` + agent + "; export LC_ALL=C; exec sudo -n -- " + agent
}

func (s shell) looks(from int) string {
	b := shellWhy + shellLook + `echo; echo "` + told + `machine $m"; echo "` + told + `user $(id -un)"; `
	for i, place := range s.places[from:] {
		b += fmt.Sprintf("look %d %s; ", from+i, place)
	}
	return b + `echo "` + told + `end"`
}

// quotable says whether a path can stand in the script between double quotes.
func quotable(path string) bool {
	return !strings.ContainsFunc(path, func(r rune) bool { return r < ' ' || strings.ContainsRune("'!\\\"$`\x7f", r) })
}

// machine is an architecture that there are agents for.
type machine struct {
	arch  string   // as Go names it
	uname []string // as uname -m does
}

var machines = []machine{{"amd64", []string{"x86_64", "amd64"}}, {"arm64", []string{"aarch64", "arm64"}}}

// archOf is what Go calls a machine of uname -m; "" when there are no agents for it.
func archOf(uname string) string {
	for _, m := range machines {
		for _, name := range m.uname {
			if name == uname {
				return m.arch
			}
		}
	}
	return ""
}

// seen is what the script found on a host that it started no agent on.
type seen struct {
	machine, user string
	place         int    // index of the usable place; -1 = none
	dir           string // of it
	has           string // what the agent there says of itself
	reasons       []string
}

var answered = regexp.MustCompile(`(?m)` + regexp.QuoteMeta(told) + `([a-z]+) ?(.*?)\r?\n`)

// parseSeen finds the script's answers in what came from a host, which may hold other things before and between.
func parseSeen(text []byte) (s seen, whole bool) {
	s.place = -1
	for _, line := range answered.FindAllSubmatch(text, -1) {
		rest := string(line[2])
		switch string(line[1]) {
		case "machine":
			s.machine = rest
		case "user":
			s.user = rest
		case "has":
			s.has = rest
		case "no":
			s.reasons = append(s.reasons, rest)
		case "use":
			index, dir, _ := strings.Cut(rest, " ")
			if i, err := strconv.Atoi(index); err == nil && i >= 0 {
				s.place, s.dir, whole = i, dir, true
			}
		case "end":
			whole = true
		}
	}
	return s, whole && s.machine != ""
}
