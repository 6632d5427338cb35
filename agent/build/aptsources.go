package build

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
)

// aptSources returns the host's own deb entries as entries of a kind (deb or deb-src) in one-line form, sorted by file, the suite
// replaced when one is named (bookworm-updates becomes trixie-updates; an archive that has no such suite is told in
// apt's output and does no harm).
// Format: sources.list(5) of apt 2.6.
func aptSources(dir, kind, suite string) ([]string, error) {
	if dir == "" {
		dir = "/etc/apt"
	}
	files, err := filepath.Glob(filepath.Join(dir, "sources.list.d", "*"))
	if err != nil {
		return nil, err
	}
	sort.Strings(files)
	var entries []string
	for _, file := range append([]string{filepath.Join(dir, "sources.list")}, files...) {
		parse := map[string]func(string) []aptEntry{".list": parseOneLine, ".sources": parseDeb822}[filepath.Ext(file)]
		text, err := os.ReadFile(file)
		if parse == nil || err != nil { // sources.list itself may be absent
			continue
		}
		for _, e := range parse(string(text)) {
			entries = append(entries, e.lines(kind, suite)...)
		}
	}
	if len(entries) == 0 {
		return nil, fmt.Errorf("no deb entry in %s: apt cannot be asked for sources", dir)
	}
	return unique(entries), nil
}

// aptEntry is one entry of a sources file.
type aptEntry struct {
	options    string // "[signed-by=… …]" without what binds to binary packages
	uris       []string
	suites     []string
	components []string
}

// lines writes the entry as one line of a kind per URI and suite.
func (e aptEntry) lines(kind, suite string) []string {
	var lines []string
	for _, uri := range e.uris {
		for _, s := range e.suites {
			if suite != "" && !strings.HasSuffix(s, "/") {
				_, pocket, _ := strings.Cut(s, "-") // bookworm-security, noble-updates
				s = strings.TrimSuffix(suite+"-"+pocket, "-")
			}
			lines = append(lines, strings.Join(nonEmpty(kind, e.options, uri, s, strings.Join(e.components, " ")), " "))
		}
	}
	return lines
}

// parseOneLine reads the one-line style; deb-src lines are left to the deb lines beside them.
func parseOneLine(text string) []aptEntry {
	var entries []aptEntry
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		kind, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if kind != "deb" {
			continue
		}
		var options []string
		if rest = strings.TrimSpace(rest); strings.HasPrefix(rest, "[") {
			inner, after, closed := strings.Cut(rest[1:], "]")
			if !closed {
				continue
			}
			options, rest = strings.Fields(inner), after
		}
		fields := strings.Fields(rest)
		if len(fields) < 2 {
			continue
		}
		entries = append(entries, aptEntry{
			options: aptOptions(options), uris: fields[:1], suites: fields[1:2], components: fields[2:],
		})
	}
	return entries
}

// aptOptions keeps the options that say whom to trust; architectures and languages are of binary packages.
func aptOptions(options []string) string {
	var kept []string
	for _, o := range options {
		key, _, _ := strings.Cut(o, "=")
		switch strings.ToLower(strings.TrimRight(key, "+-")) {
		case "signed-by", "trusted", "check-valid-until", "valid-until-min", "valid-until-max", "allow-insecure", "allow-weak":
			kept = append(kept, o)
		}
	}
	if len(kept) == 0 {
		return ""
	}
	return "[" + strings.Join(kept, " ") + "]"
}

// parseDeb822 reads stanzas of "Field: value" with continuation lines. An entry with an embedded key
// (Signed-By: with a block of text) keeps no signed-by; apt then trusts the host's own keyring only.
func parseDeb822(text string) []aptEntry {
	var entries []aptEntry
	for _, stanza := range stanzas(text) {
		if strings.EqualFold(stanza["enabled"], "no") || !slices.Contains(strings.Fields(stanza["types"]), "deb") {
			continue
		}
		var options []string
		for _, name := range []string{"signed-by", "trusted", "check-valid-until", "valid-until-min", "valid-until-max", "allow-insecure", "allow-weak"} {
			if value := stanza[name]; value != "" && !strings.Contains(value, "\n") {
				options = append(options, name+"="+strings.Join(strings.Fields(value), ","))
			}
		}
		entries = append(entries, aptEntry{
			options: aptOptions(options), uris: strings.Fields(stanza["uris"]),
			suites: strings.Fields(stanza["suites"]), components: strings.Fields(stanza["components"]),
		})
	}
	return entries
}

// stanzas reads RFC 822 like stanzas separated by empty lines: field in lower case → value, continuation lines
// kept with their line ends. Lines that begin with # are comments.
func stanzas(text string) []map[string]string {
	var all []map[string]string
	current, field := map[string]string{}, ""
	end := func() {
		if len(current) > 0 {
			all = append(all, current)
		}
		current, field = map[string]string{}, ""
	}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		switch {
		case strings.HasPrefix(line, "#"):
		case strings.TrimSpace(line) == "":
			end()
		case line[0] == ' ' || line[0] == '\t':
			if field != "" {
				current[field] = strings.TrimPrefix(current[field]+"\n"+strings.TrimSpace(line), "\n")
			}
		default:
			name, value, _ := strings.Cut(line, ":")
			field = strings.ToLower(strings.TrimSpace(name))
			current[field] = strings.TrimSpace(value)
		}
	}
	end()
	return all
}

func nonEmpty(parts ...string) []string {
	var kept []string
	for _, p := range parts {
		if p != "" {
			kept = append(kept, p)
		}
	}
	return kept
}

// unique keeps the first of equal lines; a suite replaced in several entries makes them equal.
func unique(lines []string) []string {
	seen := map[string]bool{}
	var kept []string
	for _, l := range lines {
		if !seen[l] {
			kept = append(kept, l)
		}
		seen[l] = true
	}
	return kept
}
