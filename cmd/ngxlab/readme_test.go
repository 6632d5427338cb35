package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ngxlab/experiments"
	"ngxlab/internal/testlab"
	"ngxlab/lab"
	"ngxlab/lab/tune"
)

// blocks are what the README has between the fences of a language.
func blocks(t *testing.T, language string) []string {
	t.Helper()
	return fenced(t, "../../README.md", language)
}

// fenced are the blocks of a language in a file of Markdown.
func fenced(t *testing.T, path, language string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	var all []string
	for _, rest := range strings.Split(string(text), "```"+language+"\n")[1:] {
		code, _, closed := strings.Cut(rest, "```")
		if !closed {
			t.Fatalf("a block of %s is not closed in %s", language, path)
		}
		all = append(all, code)
	}
	if len(all) == 0 {
		t.Fatalf("%s has no block of %s", path, language)
	}
	return all
}

const knobsPage = "../../docs/knobs.md"

// block is the README's first block of a language.
func block(t *testing.T, language string) string {
	t.Helper()
	return blocks(t, language)[0]
}

var word = regexp.MustCompile(`"[^"]*"|\S+`)

// TestReadmesStudyAndCommandsRunAsTheyStandThere runs the commands of the README, in their order, on its study with
// fewer rounds.
func TestReadmesStudyAndCommandsRunAsTheyStandThere(t *testing.T) {
	c := newCommand(t)
	c.onThisMachine()
	port := fmt.Sprintf("port: %d,", testlab.FreePort(t)) // the README's own may be in use here
	c.write("study.yaml", strings.NewReplacer("port: 8090,", port, "min: 6, max: 6", "min: 2, max: 2").Replace(block(t, "yaml")))
	shared := []string{"--db", filepath.Join(c.dir, "lab.db"), "--state-dir", c.stateDir, "--agent", c.agent}
	for _, line := range strings.Split(strings.TrimSpace(block(t, "sh")), "\n") {
		words := word.FindAllString(line, -1)
		if words[0] != "ngxlab" {
			t.Fatalf("%q is not a command of ngxlab", line)
		}
		for i, w := range words {
			switch w = strings.Trim(w, `"`); w {
			case "study.yaml", "report":
				if i > 1 { // in the test's own folder; the command of that name stays
					w = filepath.Join(c.dir, w)
				}
				words[i] = w
			default:
				words[i] = w
			}
		}
		if words[1] == "run" {
			words = append(words, "--out", filepath.Join(c.dir, "out"))
		}
		want := []int{exitDone}
		if words[1] == "run" {
			want = append(want, exitDoubtful) // every run is invalid when other programs take the CPU
		}
		c.out.Reset()
		c.err.Reset()
		if code := c.execute(t.Context(), append(slices.Clone(shared), words[1:]...)); !slices.Contains(want, code) {
			t.Fatalf("%s: exit code %d, want %v\n%s%s", line, code, want, c.out, c.err)
		}
	}
}

// TestReadmesHostsAreThoseOfAValidStudy puts each of the README's sections of hosts into its study.
func TestReadmesHostsAreThoseOfAValidStudy(t *testing.T) {
	study, here := block(t, "yaml"), "hosts:\n  here: {local: true, roles: [target, load]}\n"
	if !strings.Contains(study, here) {
		t.Fatalf("the study has other hosts:\n%s", study)
	}
	sections := slices.DeleteFunc(blocks(t, "yaml")[1:], func(section string) bool {
		return strings.HasPrefix(section, "steps:") || strings.HasPrefix(section, "builds:") // held elsewhere
	})
	if len(sections) != 2 {
		t.Errorf("%d sections of hosts, want those over SSH and those of a lab", len(sections))
	}
	for _, hosts := range sections {
		if _, err := experiments.Decode("study.yaml", strings.NewReader(strings.Replace(study, here, hosts, 1))); err != nil {
			t.Errorf("%v in\n%s", err, hosts)
		}
	}
}

// TestEveryStepOfThePageOfKnobsIsValid puts the steps of docs/knobs.md into one study; together they have every kind.
func TestEveryStepOfThePageOfKnobsIsValid(t *testing.T) {
	rest := "name: knobs\nhosts:\n  here: {local: true, roles: [target, load]}\nload:\n  - {tool: wrk, connections: 10}\n"
	for _, section := range blocks(t, "yaml") {
		if strings.HasPrefix(section, "steps:") {
			_, err := experiments.Decode("README.yaml", strings.NewReader(rest+section))
			must(t, err)
		}
	}
	study := rest + "steps:\n- name: baseline\n" + strings.Join(fenced(t, knobsPage, "yaml"), "")
	x, err := experiments.Decode("knobs.yaml", strings.NewReader(study))
	must(t, err)
	kinds := map[string]bool{}
	for _, step := range x.Steps {
		for _, s := range lab.StepSettings(step, x.Hosts[0]) {
			kinds[s.Knob.Kind] = true
			if err := tune.CheckSetting(s); err != nil {
				t.Errorf("step %q: %v", step.Name, err)
			}
		}
	}
	for _, k := range tune.Kinds() {
		if !kinds[k.Name] && k.Name != lab.KnobBuild {
			t.Errorf("no step sets a knob of kind %s", k.Name)
		}
	}
}

// TestReadmesCommandsExist holds the command lines that need other machines against the commands, flags and arguments
// that there are.
func TestReadmesCommandsExist(t *testing.T) {
	for _, line := range strings.Split(strings.Join(slices.Concat(blocks(t, "console"), fenced(t, knobsPage, "console"), fenced(t, aboutServers[0], "console")), ""), "\n") {
		line, _, _ = strings.Cut(line, " #")
		words := word.FindAllString(line, -1)
		if len(words) == 0 {
			continue
		}
		if len(words) < 3 || words[0] != "$" || words[1] != "ngxlab" {
			t.Errorf("%q is not a command of ngxlab", line)
			continue
		}
		cmd, rest, err := newRoot(newCommand(t).app).Find(words[2:])
		must(t, err)
		if err := errors.Join(cmd.ParseFlags(rest), cmd.ValidateArgs(cmd.Flags().Args())); err != nil || !cmd.Runnable() || cmd.HasSubCommands() {
			t.Errorf("%s: %v", line, err)
		}
	}
}
