package ssh

import (
	"os/user"
	"strings"
)

// verdict says whether a block of a configuration applies.
type verdict int

const (
	applies   verdict = iota
	doesNot           // some criterion speaks against it
	uncertain         // a criterion is not understood, and the others fit
)

// judge tells whether a Match block applies, as ssh_config(5) says, with what the files have said so far. Not understood are
// exec, canonical, final, localnetwork, tagged and others: one of those counts only where the rest fits.
func (c *configuration) judge(criteria string) verdict {
	words := fields(strings.ReplaceAll(criteria, "=", " "))
	result := applies
	if len(words) == 0 {
		return uncertain
	}
	for len(words) > 0 {
		if strings.HasPrefix(words[0], "#") {
			break
		}
		name, negated := strings.CutPrefix(strings.ToLower(words[0]), "!")
		words = words[1:]
		if name == "all" {
			if negated {
				return doesNot
			}
			continue
		}
		subject, foldsPattern, known := c.subject(name)
		if !known {
			result = uncertain
			if withoutValue[name] {
				continue
			}
		}
		if len(words) == 0 {
			return uncertain
		}
		patterns := words[0]
		words = words[1:]
		if foldsPattern {
			patterns = strings.ToLower(patterns)
		}
		if known && matchesList(patterns, subject) == negated {
			return doesNot
		}
	}
	return result
}

// withoutValue are the criteria that nothing follows.
var withoutValue = map[string]bool{"canonical": true, "final": true}

// subject is what the patterns of a criterion are held against. OpenSSH puts those for hosts into lower case.
func (c *configuration) subject(criterion string) (text string, foldsPattern, known bool) {
	switch criterion {
	case "host":
		return c.hostSoFar(), true, true
	case "originalhost":
		return c.alias, true, true
	case "user":
		if set := c.fixed.first("user"); set != "" {
			return set, false, true
		}
		if set := c.values.first("user"); set != "" {
			return set, false, true
		}
		return localUser(), false, true
	case "localuser":
		return localUser(), false, true
	}
	return "", false, false
}

// hostSoFar is the host's name after a HostName that came before.
func (c *configuration) hostSoFar() string {
	name := c.values.first("hostname")
	if name == "" {
		return c.alias
	}
	return strings.NewReplacer("%%", "%", "%h", c.alias, "%n", c.alias).Replace(name)
}

func localUser() string {
	me, err := user.Current()
	if err != nil {
		return ""
	}
	return me.Username
}

// matchesList tells whether a text fits one of some patterns with commas between, and none that is negated.
func matchesList(patterns, text string) bool {
	found := false
	for pattern := range strings.SplitSeq(patterns, ",") {
		pattern, negated := strings.CutPrefix(pattern, "!")
		if !fits(pattern, text) {
			continue
		}
		if negated {
			return false
		}
		found = true
	}
	return found
}
