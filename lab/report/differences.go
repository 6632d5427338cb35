package report

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"ngxlab/lab"
	"ngxlab/templates"
)

// differences says in what two builds differ but for their version, which differs anyhow: compiler, libraries, flags,
// place. What is unknown of either is left out.
func differences(a, b lab.Build) []string {
	var all []string
	add := func(what, of, over string) {
		if of != over && of != "" && over != "" {
			all = append(all, fmt.Sprintf("%s: %s and %s", what, of, over))
		}
	}
	add("compiler", a.Compiler, b.Compiler)
	add("distribution", a.Distribution, b.Distribution)
	add("architecture", a.Architecture, b.Architecture)
	all = append(all, libraryDifferences(a.Libraries, b.Libraries)...)
	if !slices.ContainsFunc(slices.Concat(a.Libraries, b.Libraries), func(l lab.Library) bool { return libraryName(l) == "libssl" }) {
		add("OpenSSL", openSSL(a.Configured), openSSL(b.Configured)) // linked in, or the libraries were not read
	}
	only, other := apart(arguments(a.Configured), arguments(b.Configured))
	if len(only)+len(other) > 0 {
		add("flags", orNothing(only), orNothing(other))
	}
	only, other = apart(a.Dynamic, b.Dynamic)
	if len(only)+len(other) > 0 {
		add("modules loaded", orNothing(only), orNothing(other))
	}
	return all
}

func orNothing(words []string) string {
	if len(words) == 0 {
		return "nothing"
	}
	return strings.Join(words, " ")
}

// apart are the words of a that b lacks, and those of b that a lacks, in their order.
func apart(a, b []string) (only, other []string) {
	for _, w := range a {
		if !slices.Contains(b, w) {
			only = append(only, w)
		}
	}
	for _, w := range b {
		if !slices.Contains(a, w) {
			other = append(other, w)
		}
	}
	return only, other
}

// libraryDifferences compares libraries by their name without the number behind it: another libpcre is said, too.
func libraryDifferences(a, b []lab.Library) []string {
	if len(a) == 0 || len(b) == 0 {
		return nil
	}
	names := map[string][2]string{}
	for i, list := range [][]lab.Library{a, b} {
		for _, l := range list {
			pair := names[libraryName(l)]
			pair[i] = strings.TrimSpace(l.Name + " " + l.Version)
			names[libraryName(l)] = pair
		}
	}
	var all []string
	for _, name := range sortedKeys(names) {
		if pair := names[name]; pair[0] != pair[1] {
			all = append(all, fmt.Sprintf("%s: %s and %s", name, orNot(pair[0]), orNot(pair[1])))
		}
	}
	return all
}

func orNot(library string) string {
	if library == "" {
		return "not linked"
	}
	return library
}

func libraryName(l lab.Library) string {
	name, _, _ := strings.Cut(l.Name, ".so")
	return name
}

var openSSLText = regexp.MustCompile(`built with (\w*SSL \S+)`)

// openSSL is the TLS library that -V names; "" when it names none.
func openSSL(configured string) string {
	if m := openSSLText.FindStringSubmatch(configured); m != nil {
		return m[1]
	}
	return ""
}

var (
	argumentsText = regexp.MustCompile(`(?m)^configure arguments:(.*)$`)
	argument      = regexp.MustCompile(`(?:'[^']*'|"[^"]*"|[^\s'"])+`) // quotes hold blanks together, wherever they begin
)

// arguments are the configure arguments that -V prints, as they stand there.
func arguments(configured string) []string {
	m := argumentsText.FindStringSubmatch(configured)
	if m == nil {
		return nil
	}
	return argument.FindAllString(m[1], -1)
}

// buildOf is the build that answered in a state on a target: as its running server says, else as the plan has it.
func (s *study) buildOf(target lab.HostName, state string) (lab.Build, bool) {
	for _, r := range s.Runs {
		if r.Part != s.lastPart() || r.Cell.Target != target || r.Cell.State != state || r.Server.Build == "" {
			continue
		}
		for _, b := range s.Builds {
			if b.ID == r.Server.Build {
				return b, true
			}
		}
	}
	recipe := s.serving(target, state).Recipe
	for _, b := range s.Builds {
		if b.Recipe == recipe {
			return b, true
		}
	}
	return lab.Build{}, false
}

// serving is what the plan has of a state on a target; the zero value when it has nothing.
func (s *study) serving(target lab.HostName, state string) lab.Serving {
	for _, v := range s.Plan.Servings {
		if v.Target == target && v.State == state {
			return v
		}
	}
	return lab.Serving{}
}

// mixedBuilds are the comparisons of the ladder between two versions whose builds differ in more than that, one sentence
// each, so that nobody takes the difference of a compiler for one of versions. Different programs differ in everything,
// and a comparison of two builds of one version is about how they were made.
func (s *study) mixedBuilds(target lab.HostName) []string {
	var texts []string
	for _, r := range s.rungs(target) {
		of, known := s.buildOf(target, r.with)
		over, knownToo := s.buildOf(target, r.over)
		if !known || !knownToo || of.ID == over.ID || of.Version == over.Version || !s.recipe(of.Recipe).IsNginx() || !s.recipe(over.Recipe).IsNginx() {
			continue
		}
		if differ := differences(of, over); len(differ) > 0 {
			texts = append(texts, fmt.Sprintf("%s and %s differ in more than their version (%s and %s): %s.", quoted(r.name), quoted(r.over), of.Version, over.Version, strings.Join(differ, "; ")))
		}
	}
	return texts
}

// mixedBlocks are the warnings of mixedBuilds.
func (s *study) mixedBlocks(target lab.HostName) []templates.Block {
	texts := s.mixedBuilds(target)
	if len(texts) == 0 {
		return nil
	}
	var list []templates.Text
	for _, text := range texts {
		list = append(list, styled("⚠ "+text, templates.Doubt))
	}
	return []templates.Block{paragraph(plain("What these comparisons show need not come from the version alone:")), {List: list}}
}
