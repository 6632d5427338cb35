package ssh

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/kevinburke/ssh_config"
)

// settings are the values of keywords, in lower case, for one host, in the order of the files. The first counts, as in
// OpenSSH; those of IdentityFile add up.
type settings map[string][]string

func (s settings) first(keyword string) string {
	if len(s[keyword]) == 0 {
		return ""
	}
	return s[keyword][0]
}

// read are the keywords of ssh_config(5) that matter here. All others are passed over.
var read = []string{
	"hostname", "user", "port", "identityfile", "identitiesonly", "identityagent", "proxyjump", "proxycommand",
	"userknownhostsfile", "globalknownhostsfile", "hostkeyalias", "connecttimeout", "hashknownhosts",
}

// maxIncludes bounds how deep files include each other, as OpenSSH does.
const maxIncludes = 16

// configuration reads ssh_config(5) files for one host. ssh_config takes the files apart; which values apply is decided
// here, because its own look-up passes over errors in included files, takes "?" for none or one character, and reads
// "Match host a user b" as three hosts.
type configuration struct {
	alias  string // the host as the person named it
	home   string
	values settings
	fixed  settings // what the destination itself says: it wins
}

// file reads one file. within is the Match block that includes it, if it is not certain whether that applies; else "".
func (c *configuration) file(path, within string, depth int) error {
	if depth > maxIncludes {
		return fmt.Errorf("%s: files include each other more than %d deep", path, maxIncludes)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	prepared, criteria, err := prepare(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	config, err := ssh_config.DecodeBytes([]byte(prepared))
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for _, host := range config.Hosts {
		block, taken := within, matches(host.Patterns, c.alias)
		if line, isMatch := matchLine(host.Patterns); isMatch {
			judged := c.judge(criteria[line])
			taken = judged != doesNot
			if judged == uncertain {
				block = path + ":" + line
			}
		}
		if !taken {
			continue
		}
		if err := c.nodes(host.Nodes, path, block, depth); err != nil {
			return err
		}
	}
	return nil
}

// nodes takes the values of a block that applies.
func (c *configuration) nodes(nodes []ssh_config.Node, path, block string, depth int) error {
	for _, node := range nodes {
		pair, ok := node.(*ssh_config.KV)
		if !ok {
			continue
		}
		keyword := strings.ToLower(pair.Key)
		if keyword == includeKey {
			if err := c.include(pair.Value, path, block, depth); err != nil {
				return err
			}
			continue
		}
		if err := c.take(keyword, pair.Value, block); err != nil {
			return err
		}
	}
	return nil
}

// take keeps a value. One in a Match block of which it is not certain whether it applies is an error unless it would not
// count.
func (c *configuration) take(keyword, value, block string) error {
	several := keyword == "identityfile"
	decided := len(c.fixed[keyword]) > 0 || len(c.values[keyword]) > 0 && !several
	if !slices.Contains(read, keyword) || decided {
		return nil
	}
	if block != "" {
		return fmt.Errorf("%s: this Match block sets %s under a criterion that is not understood (those that are: all, host, originalhost, user, localuser): put it into a Host block, or name it in the experiment's file", block, keyword)
	}
	c.values[keyword] = append(c.values[keyword], value)
	return nil
}

func (c *configuration) include(globs, path, block string, depth int) error {
	for _, glob := range fields(globs) {
		switch {
		case strings.HasPrefix(glob, "~/"):
			glob = filepath.Join(c.home, glob[2:])
		case !filepath.IsAbs(glob) && strings.HasPrefix(path, "/etc/ssh/"):
			glob = filepath.Join("/etc/ssh", glob)
		case !filepath.IsAbs(glob):
			glob = filepath.Join(c.home, ".ssh", glob)
		}
		paths, err := filepath.Glob(glob)
		if err != nil {
			return fmt.Errorf("%s: Include %s: %w", path, glob, err)
		}
		for _, included := range paths {
			if err := c.file(included, block, depth+1); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

// What stands for lines that ssh_config must not interpret itself.
const (
	includeKey  = "%include"
	matchPrefix = "%match:"
)

// prepare rewrites, line by line, what ssh_config would read differently than OpenSSH. criteria are those of the Match
// blocks, by the number of their line.
func prepare(text string) (prepared string, criteria map[string]string, err error) {
	var b strings.Builder
	criteria = map[string]string{}
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(strings.ReplaceAll(line, "\t", " "))
		end := strings.IndexAny(line, " =#")
		if end < 0 {
			end = len(line)
		}
		keyword, rest := line[:end], strings.Trim(line[end:], " =")
		switch strings.ToLower(keyword) {
		case "":
			if strings.HasPrefix(line, "=") {
				return "", nil, fmt.Errorf("line %d: no keyword before \"=\"", i+1)
			}
		case "include":
			line = includeKey + " " + rest
		case "host":
			line = "Host " + strings.ReplaceAll(rest, `"`, "")
		case "match":
			number := strconv.Itoa(i + 1)
			criteria[number], line = rest, "Host "+matchPrefix+number
		}
		b.WriteString(line + "\n")
	}
	return b.String(), criteria, nil
}

func matchLine(patterns []*ssh_config.Pattern) (line string, isMatch bool) {
	if len(patterns) != 1 {
		return "", false
	}
	return strings.CutPrefix(patterns[0].String(), matchPrefix)
}

// matches tells whether a Host block is for a name: one pattern fits, and none that is negated.
func matches(patterns []*ssh_config.Pattern, name string) bool {
	found := false
	for _, p := range patterns {
		pattern, negated := strings.CutPrefix(p.String(), "!")
		if fits(pattern, name) {
			if negated {
				return false
			}
			found = true
		}
	}
	return found
}

// fits tells whether a pattern of *, ? and other characters is a name's.
func fits(pattern, name string) bool {
	for i := range len(pattern) {
		switch {
		case pattern[i] == '*':
			for j := i; j <= len(name); j++ {
				if fits(pattern[i+1:], name[j:]) {
					return true
				}
			}
			return false
		case i >= len(name) || pattern[i] != '?' && pattern[i] != name[i]:
			return false
		}
	}
	return len(pattern) == len(name)
}

// fields splits a value at spaces; double quotes hold one together.
func fields(value string) []string {
	var found []string
	for value = strings.TrimSpace(value); value != ""; value = strings.TrimSpace(value) {
		var one string
		if rest, quoted := strings.CutPrefix(value, `"`); quoted {
			one, value, _ = strings.Cut(rest, `"`)
		} else {
			one, value, _ = strings.Cut(value, " ")
		}
		found = append(found, one)
	}
	return found
}
