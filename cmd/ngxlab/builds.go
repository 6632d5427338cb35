package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"ngxlab/lab"
)

func newBuilds(a *app) *cobra.Command {
	builds := group(&cobra.Command{
		Use:   "builds",
		Short: "Look at the builds that hosts keep, and remove them",
		Long: "A build is kept on the host that made it, under a name of all that went into it, and used again by every study.\n" +
			"A HOST is [user@]host[:port], a name of ~/.ssh/config, or local (this machine, the default). After an experiment\n" +
			"FILE it is a name from there (default: all of its hosts). An ID may be cut short while it fits one build.",
		Example: "  ngxlab builds list\n  ngxlab builds show 1f0c study.yaml\n  ngxlab builds rm --unused 30d root@web1",
	})
	for _, command := range []func(*app) *cobra.Command{newBuildsList, newBuildsShow, newBuildsRm} {
		builds.AddCommand(command(a))
	}
	return builds
}

// keptOn are the builds of one host.
type keptOn struct {
	Host   lab.HostName    `json:"host"`
	Builds []lab.KeptBuild `json:"builds"`
}

func newBuildsList(a *app) *cobra.Command {
	var asJSON bool
	var o access
	cmd := &cobra.Command{
		Use:     "list [FILE] [HOST…]",
		Short:   "List the builds that hosts keep (default: this machine)",
		Example: "  ngxlab builds list\n  ngxlab builds list study.yaml\n  ngxlab builds list --json root@web1 | jq '.[].builds[].id'",
		RunE: func(cmd *cobra.Command, given []string) error {
			x, err := chosen(given, o)
			if err != nil {
				return err
			}
			return listBuilds(cmd.Context(), a, x, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print an array, one element per host")
	o.flags(cmd)
	return cmd
}

// kept asks every host for its builds. A container that is not there has none.
func (a *app) kept(ctx context.Context, x lab.Experiment) []asked[keptOn] {
	all := askHosts(ctx, a, x, func(ctx context.Context, i int, m *machine) (keptOn, error) {
		list, err := m.builds(ctx)
		return keptOn{x.Hosts[i].Name, list}, err
	})
	for i := range all {
		if isGone(all[i].err) {
			all[i] = asked[keptOn]{answer: keptOn{Host: x.Hosts[i].Name}}
		}
		if all[i].answer.Builds == nil {
			all[i].answer.Builds = []lab.KeptBuild{}
		}
	}
	return all
}

func listBuilds(ctx context.Context, a *app, x lab.Experiment, asJSON bool) error {
	all := a.kept(ctx, x)
	var err error
	if asJSON {
		err = writeJSON(a.out, answersJSON(x, all))
	} else {
		err = printKept(a, all)
	}
	return errors.Join(err, failures(x, all))
}

func printKept(a *app, all []asked[keptOn]) error {
	p, t := &page{w: a.out}, newTable([]int{4}, "HOST", "ID", "BUILD", "VERSION", "SIZE", "USED", "FROM")
	for _, one := range all {
		for _, b := range one.answer.Builds {
			t.row(string(one.answer.Host), b.ID, b.Recipe, b.Version, size(float64(b.DiskBytes)), b.Used.UTC().Format("2006-01-02 15:04"), cameFrom(b.Build))
		}
	}
	if len(t.rows) == 1 {
		p.line("no builds are kept")
		return p.err
	}
	p.table("", t)
	return p.err
}

// cameFrom is where a build was made.
func cameFrom(b lab.Build) string {
	switch {
	case b.From != "":
		return "copied from " + string(b.From)
	case b.Compiler == "" && b.MadeBy == "":
		return "out of packages"
	}
	return "compiled here"
}

func newBuildsShow(a *app) *cobra.Command {
	var asJSON bool
	var o access
	cmd := &cobra.Command{
		Use:     "show ID[,ID…] [FILE] [HOST…]",
		Short:   "Print all that went into builds",
		Example: "  ngxlab builds show 1f0c\n  ngxlab builds show --json 1f0c study.yaml web",
		Args:    args(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			x, err := chosen(given[1:], o)
			if err != nil {
				return err
			}
			return showBuilds(cmd.Context(), a, x, strings.Split(given[0], ","), asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print an array, one element per host that has it")
	o.flags(cmd)
	return cmd
}

// hostBuild is a build on a host.
type hostBuild struct {
	Host lab.HostName `json:"host"`
	lab.KeptBuild
}

// showBuilds prints builds on every host that has them.
func showBuilds(ctx context.Context, a *app, x lab.Experiment, ids []string, asJSON bool) error {
	all := a.kept(ctx, x)
	found, failed := []hostBuild{}, failures(x, all)
	for _, id := range ids {
		before := len(found)
		for _, one := range all {
			for _, b := range one.answer.Builds {
				if id != "" && strings.HasPrefix(b.ID, id) {
					found = append(found, hostBuild{one.answer.Host, b})
				}
			}
		}
		if len(found) == before {
			return errors.Join(failed, noBuild(id))
		}
	}
	if asJSON {
		return errors.Join(writeJSON(a.out, found), failed)
	}
	p := &page{w: a.out}
	for i, b := range found {
		if i > 0 {
			p.line("")
		}
		printBuild(p, b)
	}
	return errors.Join(p.err, failed)
}

func noBuild(id string) error {
	return &hinted{err: fmt.Errorf("no host has a build %q", id), hint: "\"ngxlab builds list\" shows those that there are"}
}

func printBuild(p *page, b hostBuild) {
	p.line("%s on %s: %s %s", b.ID, b.Host, b.Recipe, b.Version)
	t := newTable(nil)
	row := func(name, value string) {
		if value != "" {
			t.row(name, value)
		}
	}
	row("flavor", b.Flavor)
	row("binary", b.Binary)
	row("size", size(float64(b.DiskBytes))+", the binary "+size(float64(b.SizeBytes)))
	row("made", b.Made.UTC().Format("2006-01-02 15:04:05")+" UTC, "+cameFrom(b.Build)+madeBy(b.Build))
	row("used", b.Used.UTC().Format("2006-01-02 15:04:05")+" UTC")
	row("compiler", b.Compiler)
	row("made for", b.Distribution+", "+b.Architecture)
	for _, name := range slices.Sorted(maps.Keys(b.Sources)) {
		row("source", name+" sha256 "+b.Sources[name])
	}
	for _, note := range b.Notes {
		row("note", note)
	}
	for i, line := range wrapped(b.Modules, 100) {
		t.row([]string{"modules", ""}[min(i, 1)], line)
	}
	row("loaded", strings.Join(b.Dynamic, " "))
	for _, l := range b.Libraries {
		row("library", strings.TrimSpace(l.Name+" "+l.Version)+" ("+l.Path+")")
	}
	row("environment", strings.Join(b.Env, " "))
	row("log", b.Log)
	p.table("  ", t)
	for line := range strings.Lines(b.Configured) {
		p.line("  | %s", strings.TrimRight(line, "\n"))
	}
}

// wrapped is words in lines of at most so many characters, but for longer words.
func wrapped(words []string, width int) []string {
	var lines []string
	for _, word := range words {
		if last := len(lines) - 1; last >= 0 && len(lines[last])+1+len(word) <= width {
			lines[last] += " " + word
			continue
		}
		lines = append(lines, word)
	}
	return lines
}

func madeBy(b lab.Build) string {
	switch {
	case b.MadeBy == "":
		return ""
	case b.From != "":
		return fmt.Sprintf(", compiled there by %s in %.1f s", b.MadeBy, b.TookS)
	}
	return fmt.Sprintf(" by %s in %.1f s", b.MadeBy, b.TookS)
}
