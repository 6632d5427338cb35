package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestEveryCommandsHelpHasAnExampleThatIsRight holds that the words of each example lead to a command, its flags exist,
// and it takes as many arguments.
func TestEveryCommandsHelpHasAnExampleThatIsRight(t *testing.T) {
	root := newRoot(newCommand(t).app)
	var check func(c *cobra.Command)
	check = func(c *cobra.Command) {
		if c.Example == "" || c.Short == "" {
			t.Errorf("%s has no example or no words", c.CommandPath())
		}
		for _, line := range strings.FieldsFunc(c.Example, func(r rune) bool { return r == '\n' || r == '&' }) {
			words := word.FindAllString(line, -1)
			for i, w := range words {
				if w == "|" || w == ">" {
					words = words[:i]
					break
				}
			}
			found, rest, err := root.Find(words[1:])
			if err == nil {
				err = found.ParseFlags(rest)
			}
			if err == nil {
				err = found.ValidateArgs(found.Flags().Args())
			}
			if err != nil || words[0] != "ngxlab" || found != c && c != root && found.Parent() != c {
				t.Errorf("%s: example %q leads to %s: %v", c.CommandPath(), line, found.CommandPath(), err)
			}
		}
		for _, below := range c.Commands() {
			if below.IsAvailableCommand() || below.Name() == "help" {
				check(below)
			}
		}
	}
	check(root)
}

func TestWrongUseNamesTheNearest(t *testing.T) {
	for line, want := range map[string]string{
		"rum":                 `did you mean "run"?`,
		"cap":                 `did you mean "capacity"?`,
		"help chek":           `did you mean "check"?`,
		"help hosts fact":     `did you mean "facts"?`,
		"hosts fact":          `did you mean "facts"?`,
		"list --jsn":          `did you mean "--json"?`,
		"hosts facts --state": `did you mean "--state-dir"?`,
		"list --agnet x":      `run "ngxlab list --help"`, // hidden flags are not named
		"xyzzy":               `run "ngxlab --help"`,
		"run":                 "usage: ngxlab run FILE|NAME",
		"plan a b":            "usage: ngxlab plan FILE",
		"run --seed x y.yaml": `run "ngxlab run --help"`,
	} {
		c := newCommand(t)
		if code := c.run(strings.Fields(line)...); code != exitUsage || !strings.Contains(c.err.String(), "hint: "+want) {
			t.Errorf("%s: exit code %d, want %d with %q:\n%s", line, code, exitUsage, want, c.err)
		}
	}
}
