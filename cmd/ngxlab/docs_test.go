package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ngxlab/experiments"
	"ngxlab/lab"
	"ngxlab/lab/plan"
)

// aboutServers are the pages whose examples are sections of an experiment file.
var aboutServers = []string{"../../docs/builds.md", "../../docs/servers.md"}

// aStudyOf makes an experiment of the sections of an example: hosts, server, steps and load are added where it has none, a step
// for each of its builds, so that each is a server.
func aStudyOf(t *testing.T, sections string) lab.Experiment {
	t.Helper()
	has := func(section string) bool { return regexp.MustCompile(`(?m)^` + section + `:`).MatchString(sections) }
	text := "name: page\nload:\n  - {tool: wrk, connections: 10}\n" + sections
	if !has("hosts") {
		text += "hosts:\n  here: {local: true, roles: [target, load]}\n"
	}
	if !has("steps") {
		text += "ladder: isolated\nsteps:\n  - {name: baseline}\n"
	}
	names := regexp.MustCompile(`(?m)^  ([\w.-]+):`).FindAllStringSubmatch(namedBuilds(sections), -1)
	if has("builds") && !has("server") {
		text += fmt.Sprintf("server: {build: %s, site: empty-gif}\n", names[0][1])
		for _, name := range names[1:] {
			text = strings.Replace(text, "  - {name: baseline}\n", fmt.Sprintf("  - {name: baseline}\n  - {name: with %[1]s, build: %[1]s}\n", name[1]), 1)
		}
	}
	x, err := experiments.Decode("page.yaml", strings.NewReader(text))
	if err != nil {
		t.Errorf("%v\n%s", err, text)
	}
	return x
}

// namedBuilds is the section builds of an example.
func namedBuilds(sections string) string {
	_, section, _ := strings.Cut("\n"+sections, "\nbuilds:\n")
	if at := regexp.MustCompile(`(?m)^[a-z]`).FindStringIndex(section); at != nil {
		section = section[:at[0]]
	}
	return section
}

// TestEveryExampleOfBuildsAndServersIsAStudyThatCanBePlanned decodes each and plans it, as check and plan do.
func TestEveryExampleOfBuildsAndServersIsAStudyThatCanBePlanned(t *testing.T) {
	for _, page := range append([]string{"../../README.md"}, aboutServers...) {
		for i, example := range fenced(t, page, "yaml") {
			if page == "../../README.md" && !strings.HasPrefix(example, "builds:") {
				continue // held by tests of their own
			}
			t.Run(fmt.Sprintf("%s %d", filepath.Base(page), i+1), func(t *testing.T) {
				x := aStudyOf(t, example)
				facts := map[lab.HostName]lab.Facts{}
				for n, h := range x.Hosts {
					f := testFacts()
					f.Host, f.Root, f.BootID, f.Address = h.Name, true, fmt.Sprint("b", n), h.Address
					f.Users, f.Commands = map[string]int{"nobody": 65534, "root": 0, "www-data": 33}, map[string]string{"apt-get": "/usr/bin/apt-get", "dpkg-deb": "/usr/bin/dpkg-deb", "wrk": "/usr/bin/wrk"}
					facts[h.Name] = f
				}
				p, err := plan.New(x, facts, 7)
				must(t, err)
				for _, r := range p.Fatal() {
					t.Errorf("%s %s: %s; %s\n%s", r.Host, r.Path, r.Reason, r.Cure, example)
				}
			})
		}
	}
}

// TestExamplesHaveEveryKindOfBuildAndSite: what a person can write is shown once.
func TestExamplesHaveEveryKindOfBuildAndSite(t *testing.T) {
	seen := map[string]bool{}
	for _, page := range aboutServers {
		for _, example := range fenced(t, page, "yaml") {
			x := aStudyOf(t, example)
			seen["site "+x.Server.Site] = true
			for _, r := range x.Builds {
				seen["flavor "+r.Flavor] = true
				seen["installed"] = seen["installed"] || r.Installed != ""
				seen["package"] = seen["package"] || len(r.Package) > 0
				for _, s := range r.Sources {
					seen["path"], seen["url"], seen["git"] = seen["path"] || s.Path != "", seen["url"] || s.URL != "", seen["git"] || s.Git != ""
					seen["debian"], seen["text"] = seen["debian"] || s.Debian != "", seen["text"] || s.Text != nil
				}
			}
		}
	}
	for _, kind := range []string{"flavor nginx", "flavor tengine", "flavor brpc", "flavor custom", "installed", "package", "path", "url", "git", "debian", "text",
		"site empty-gif", "site hello", "site sleep", "site file", "site proxy", "site template"} {
		if !seen[kind] {
			t.Errorf("no example has %s; there are %v", kind, slices.Sorted(maps.Keys(seen)))
		}
	}
}

// TestPagesLinkToWhatIsThere follows the links of README and pages to files of the project.
func TestPagesLinkToWhatIsThere(t *testing.T) {
	for _, page := range append([]string{"../../README.md", knobsPage}, aboutServers...) {
		text, err := os.ReadFile(page)
		must(t, err)
		for _, m := range regexp.MustCompile(`\]\(([^)#:]+)[^):]*\)`).FindAllSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), string(m[1]))); err != nil {
				t.Errorf("%s: %v", page, err)
			}
		}
	}
}

// TestReadmeNamesEveryStudyOfTheLibrary and every page.
func TestReadmeNamesEveryStudyOfTheLibrary(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	must(t, err)
	for _, study := range experiments.Library() {
		if !strings.Contains(string(text), "`"+study.Name+"`") {
			t.Errorf("the README does not name the study %s", study.Name)
		}
	}
}
