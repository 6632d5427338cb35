package report

import (
	"fmt"
	"slices"
	"strings"

	"ngxlab/lab"
	"ngxlab/templates"
)

// builds are all builds: a table to compare them by, then each with what it was made of and what it says of itself.
func (s *study) builds() []templates.Block {
	all := s.distinctBuilds()
	if len(all) == 0 {
		return []templates.Block{paragraph(plain("No build was recorded."))}
	}
	blocks := []templates.Block{s.buildTable(all)}
	for _, text := range s.unequalBuilds(all) {
		blocks = append(blocks, paragraph(styled("⚠ "+text, templates.Doubt)))
	}
	for _, b := range all {
		blocks = append(blocks, templates.Block{List: s.buildDetails(b)})
		if b.Configured != "" {
			blocks = append(blocks, templates.Block{Code: &templates.Code{Text: ended(b.Configured)}})
		}
	}
	return blocks
}

// distinctBuilds are the builds in the order in which they were had, each once.
func (s *study) distinctBuilds() []lab.Build {
	var all []lab.Build
	for _, b := range s.Builds {
		if !slices.ContainsFunc(all, func(had lab.Build) bool { return had.ID == b.ID && had.Recipe == b.Recipe }) {
			all = append(all, b)
		}
	}
	return all
}

func (s *study) buildTable(all []lab.Build) templates.Block {
	t := newTable("build", "version", "flavor", "made from", "compiler", "made by", "on", "ID")
	for _, b := range all {
		t.row(styled(b.Recipe, templates.Strong), plain(orUnknown(b.Version)), plain(orUnknown(s.recipe(b.Recipe).Flavor)), madeFrom(b, s.recipe(b.Recipe)),
			plain(orUnknown(b.Compiler)), plain(s.madeBy(b)), plain(orUnknown(s.madeOn(b))), mono(orUnknown(b.ID)))
	}
	return t.block()
}

// recipe is the plan's recipe of that name; the zero value when it has none.
func (s *study) recipe(name string) lab.Recipe {
	for _, r := range s.Plan.Builds {
		if r.Name == name {
			return r
		}
	}
	return s.Plan.Experiment.Builds[name]
}

// shortHash is how many digits of a hash a table shows.
const shortHash = 12

// madeFrom names the sources, each with the beginning of its hash.
func madeFrom(b lab.Build, r lab.Recipe) templates.Text {
	var parts []templates.Text
	for _, source := range sortedKeys(b.Sources) {
		parts = append(parts, join(plain(source+" "), styled(fmt.Sprintf("%.*s", shortHash, b.Sources[source]), templates.Mono)))
	}
	switch {
	case len(parts) > 0:
		return listed(parts, "; ")
	case r.Installed != "":
		return join(plain("installed: "), mono(r.Installed))
	case len(r.Package) > 0:
		return join(plain("packages "), codes(r.Package))
	}
	return plain(lab.Unknown)
}

// madeBy is who compiled a build, or how else it was had.
func (s *study) madeBy(b lab.Build) string {
	r := s.recipe(b.Recipe)
	switch {
	case r.Installed != "":
		return "the host has it"
	case len(r.Package) > 0:
		return "the distribution; unpacked, not installed"
	case b.MadeBy != "" && b.TookS > 0:
		return fmt.Sprintf("%s, in %s", b.MadeBy, duration.print(b.TookS))
	case b.MadeBy != "":
		return b.MadeBy
	}
	return lab.Unknown
}

// madeOn is where a build was made, as far as that is known.
func (s *study) madeOn(b lab.Build) string {
	text := strings.TrimSpace(b.Distribution + " " + b.Architecture)
	if b.From != "" {
		if text != "" {
			text += ", "
		}
		text += s.maker(b.From) + ", copied to the target"
	}
	return text
}

// buildDetails are what the table has no room for.
func (s *study) buildDetails(b lab.Build) []templates.Text {
	lines := []templates.Text{join(styled(b.Recipe, templates.Strong), plain(": version "+orUnknown(b.Version)+", build "), mono(orUnknown(b.ID)))}
	if b.From != "" { // of the first record of a build: no target made it
		lines = append(lines, plain("made on "+s.maker(b.From)+", and copied to the target"))
	}
	for _, source := range sortedKeys(b.Sources) {
		lines = append(lines, join(plain("source: "+source+", SHA-256 "), mono(orUnknown(b.Sources[source]))))
	}
	if len(b.Modules) > 0 {
		lines = append(lines, join(plain(plural(len(b.Modules), "module")+" compiled in: "), codes(b.Modules)))
	}
	if len(b.Dynamic) > 0 {
		lines = append(lines, join(plain("modules loaded: "), codes(b.Dynamic)))
	}
	if len(b.Libraries) > 0 {
		lines = append(lines, join(plain("libraries: "), plain(libraryWords(b.Libraries))))
	}
	for _, note := range b.Notes {
		lines = append(lines, plain(note))
	}
	return lines
}

func libraryWords(all []lab.Library) string {
	var words []string
	for _, l := range all {
		words = append(words, strings.TrimSpace(l.Name+" "+l.Version))
	}
	return strings.Join(words, ", ")
}

// maker is the host that a build was copied from, in words that hold elsewhere, too: one that the experiment does not have
// is where ngxlab ran.
func (s *study) maker(from lab.HostName) string {
	if slices.ContainsFunc(s.Plan.Experiment.Hosts, func(h lab.Host) bool { return h.Name == from }) {
		return string(from)
	}
	return "the machine that ngxlab ran on"
}

// unequalBuilds says which recipes gave targets different builds: what differs between these targets may come from that.
func (s *study) unequalBuilds(all []lab.Build) []string {
	var texts []string
	for i, b := range all {
		for _, other := range all[i+1:] {
			if other.Recipe != b.Recipe {
				continue
			}
			text := fmt.Sprintf("%s is two builds, %s and %s", b.Recipe, s.whose(b), s.whose(other))
			if differ := differences(b, other); len(differ) > 0 {
				text += ": " + strings.Join(differ, "; ")
			}
			texts = append(texts, text+".")
		}
	}
	return texts
}

// whose names a build by the targets whose servers were it.
func (s *study) whose(b lab.Build) string {
	var targets []string
	for _, r := range s.Runs {
		if r.Server.Build == b.ID {
			targets = append(targets, string(r.Cell.Target))
		}
	}
	if len(targets) == 0 {
		return b.ID
	}
	return b.ID + " on " + strings.Join(union(targets), ", ")
}
