package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ngxlab/internal/testlab"
)

// block returns what the README has between a fence of a language and the next fence.
func block(t *testing.T, language string) string {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	must(t, err)
	_, rest, ok := strings.Cut(string(text), "```"+language+"\n")
	code, _, closed := strings.Cut(rest, "```")
	if !ok || !closed {
		t.Fatalf("the README has no block of %s", language)
	}
	return code
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
