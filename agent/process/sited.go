package process

import (
	"slices"
	"strconv"
	"strings"

	"ngxlab/lab"
)

// sited is the dump with the server of the site before the other servers and, of a configuration of the user's, the
// location of its first path before the other locations: context reads the first. Which they are is told apart from
// lab/server, whose choice is held against this.
func (d dump) sited(s lab.Serving) dump {
	return d.within("http", func(list []statement) []statement {
		list = fronted(list, "server", func(v statement) bool { return v.listens(s.Port) })
		if !s.Template || len(s.URLs) == 0 {
			return list
		}
		url, _, _ := strings.Cut(s.URLs[0], "?")
		return dump(list).within("server", func(inner []statement) []statement {
			best := locationOf(inner, url)
			return fronted(inner, "location", func(v statement) bool { return slices.Equal(v.words, best) })
		})
	})
}

// within changes what the first block of a name holds.
func (d dump) within(name string, change func([]statement) []statement) dump {
	at := slices.IndexFunc(d, func(v statement) bool { return v.block && v.words[0] == name })
	if at < 0 {
		return d
	}
	d = slices.Clone(d)
	d[at].inner = change(d[at].inner)
	return d
}

// fronted puts the first block of a name that is chosen before the other blocks of that name.
func fronted(list []statement, name string, chosen func(statement) bool) []statement {
	is := func(v statement) bool { return v.block && v.words[0] == name }
	first := slices.IndexFunc(list, is)
	at := slices.IndexFunc(list, func(v statement) bool { return is(v) && chosen(v) })
	if at <= first {
		return list
	}
	moved := list[at]
	return slices.Insert(slices.Delete(slices.Clone(list), at, at+1), first, moved)
}

// listens reports whether a server has the port.
func (s statement) listens(port int) bool {
	for _, l := range s.inner {
		if l.words[0] != "listen" || len(l.words) < 2 {
			continue
		}
		at := l.words[1][strings.LastIndexByte(l.words[1], ':')+1:]
		if at == strconv.Itoa(port) {
			return true
		}
	}
	return false
}

// locationOf is the words of the location that serves a path: exactly, or by the longest beginning.
func locationOf(list []statement, url string) []string {
	var best []string
	longest := -1
	for _, l := range list {
		if !l.block || l.words[0] != "location" || len(l.words) < 2 {
			continue
		}
		kind, prefix := "", l.words[len(l.words)-1]
		if len(l.words) == 3 {
			kind = l.words[1]
		} else if rest, exact := strings.CutPrefix(prefix, "="); exact {
			kind, prefix = "=", rest
		}
		switch {
		case kind == "=" && prefix == url:
			return l.words
		case (kind == "" || kind == "^~") && strings.HasPrefix(url, prefix) && len(prefix) > longest:
			best, longest = l.words, len(prefix)
		}
	}
	return best
}
