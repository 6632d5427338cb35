package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"ngxlab/lab"
	"ngxlab/store"
)

// answering is what answered in a run beside what was read back of it: the build, and what the plan says of the server.
type answering struct {
	Campaign  lab.CampaignID `json:"campaign"`
	Build     *lab.Build     `json:"build,omitempty"`
	Flavor    string         `json:"flavor,omitempty"`
	CountedBy string         `json:"counted_by,omitempty"` // where the server tells its requests
	DelayS    float64        `json:"delay_s,omitempty"`    // that each request waits by design
	AtOnce    int            `json:"at_once,omitempty"`    // that can wait at the same time
	BoundPerS float64        `json:"bound_per_s,omitempty"`

	behind *lab.Build // of the upstream
}

// servedBy finds what answered in a run among the builds and servings of its campaign.
func servedBy(ctx context.Context, s *store.Store, c lab.CampaignID, r lab.Run) (answering, error) {
	plan, err := s.Plan(ctx, c)
	if err != nil {
		return answering{}, err
	}
	builds, err := s.Builds(ctx, c)
	if err != nil {
		return answering{}, err
	}
	v := answering{Campaign: c, Build: buildOf(builds, r.Server.Build)}
	for _, serving := range plan.Servings {
		if serving.Target == r.Cell.Target && serving.State == r.Cell.State {
			v.CountedBy, v.DelayS, v.AtOnce = serving.CountedBy(), serving.DelayS, serving.AtOnce
		}
	}
	if v.Build != nil {
		v.Flavor = flavorOf(plan, v.Build.Recipe)
	}
	if r.Server.Upstream != nil {
		v.behind = buildOf(builds, r.Server.Upstream.Build)
	}
	if load, known := plan.Load(r.Cell.Load); known {
		v.BoundPerS = lab.DelayBound(load.Connections, v.AtOnce, v.DelayS)
	}
	return v, nil
}

// buildOf is the build of that ID, nil when the campaign has none.
func buildOf(all []lab.Build, id string) *lab.Build {
	i := slices.IndexFunc(all, func(b lab.Build) bool { return b.ID == id })
	if id == "" || i < 0 {
		return nil
	}
	return &all[i]
}

func flavorOf(p lab.Plan, recipe string) string {
	i := slices.IndexFunc(p.Builds, func(r lab.Recipe) bool { return r.Name == recipe })
	if i < 0 {
		return p.Experiment.Builds[recipe].Flavor
	}
	return p.Builds[i].Flavor
}

// printServer tells what answered: its build, and what was read from the running server.
func printServer(p *page, r lab.Run, v answering, config bool) {
	rows := append(buildRows(v.Build, v.Flavor), serverRows(r.Server, v)...)
	if len(rows) == 0 {
		return // a campaign of a time before any of it was kept
	}
	p.heading("Server")
	t := newTable(nil)
	for _, row := range rows {
		for i, line := range folded(row[1]) {
			if i > 0 {
				row[0] = ""
			}
			t.row(row[0], line)
		}
	}
	p.table("  ", t)
	if !config {
		return
	}
	printConfig(p, "Configuration in force", r.Server)
	if r.Server.Upstream != nil {
		printConfig(p, "Configuration of the upstream", *r.Server.Upstream)
	}
}

// foldAt is the length, in bytes, at which lists of modules and libraries are broken.
const foldAt = 110

// folded breaks a text at its blanks into lines; a word that is longer stays whole.
func folded(text string) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > foldAt {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimSpace(line + " " + word)
	}
	return append(lines, line)
}

func printConfig(p *page, title string, s lab.Server) {
	p.heading("%s", title)
	p.line("%s", orNone(strings.TrimRight(s.Effective, "\n")))
}

// buildRows are the properties of a build that are known.
func buildRows(b *lab.Build, flavor string) [][2]string {
	if b == nil {
		return nil
	}
	return filled([][2]string{
		{"build", joined(said(b.Recipe, strings.TrimSpace(flavor+" "+b.Version), "ID "+b.ID))},
		{"from", sourceWords(*b)},
		{"compiler", b.Compiler},
		{"made", joined(said(prefixed("by ", b.MadeBy), placeWords(*b)))},
		{"notes", strings.Join(b.Notes, "; ")},
	})
}

// serverRows are what was read from the running server, as far as it was.
func serverRows(s lab.Server, v answering) [][2]string {
	rows := [][2]string{
		{"modules", strings.Join(s.Modules, " ")}, {"libraries", libraryWords(s.Libraries)}, {"TLS", tlsWords(s.TLS)}, {"user", s.User},
		{"upstream", upstreamWords(s.Upstream, v.behind)}, {"counted by", v.CountedBy}, {"configuration", prefixed("SHA-256 ", s.EffectiveSHA)},
	}
	if s.QUIC {
		rows = append(rows, [2]string{"QUIC", "listens"})
	}
	if v.DelayS > 0 {
		rows = append(rows, [2]string{"delay", fmt.Sprintf("%s; bound %s/s", seconds(v.DelayS), number(v.BoundPerS))})
	}
	return filled(rows)
}

// filled leaves out rows without a value.
func filled(rows [][2]string) [][2]string {
	return slices.DeleteFunc(rows, func(row [2]string) bool { return row[1] == "" })
}

// said leaves out what is empty.
func said(all ...string) []string {
	return slices.DeleteFunc(all, func(w string) bool { return w == "" })
}

// prefixed is text behind a prefix; nothing stays nothing.
func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

// sourceWords names what a build was made from, with the hashes.
func sourceWords(b lab.Build) string {
	var all []string
	for name, sum := range b.Sources {
		all = append(all, name+" "+sum)
	}
	slices.Sort(all)
	return strings.Join(all, "; ")
}

// placeWords is where a build was made, and whether it was copied from there.
func placeWords(b lab.Build) string {
	return joined(said(prefixed("on ", strings.TrimSpace(b.Distribution+" "+b.Architecture)), prefixed("copied from ", string(b.From))))
}

func libraryWords(all []lab.Library) string {
	var names []string
	for _, l := range all {
		names = append(names, strings.TrimSpace(l.Name+" "+l.Version))
	}
	return joined(names)
}

func tlsWords(t *lab.TLSState) string {
	if t == nil {
		return ""
	}
	return joined(said(t.Version, t.Cipher, t.Protocol, t.Key+" key", fmt.Sprintf("certificate %.12s…", t.CertificateSHA256)))
}

func upstreamWords(s *lab.Server, b *lab.Build) string {
	switch {
	case s == nil:
		return ""
	case b == nil:
		return joined(said(prefixed("build ", s.Build), prefixed("configuration ", s.EffectiveSHA)))
	}
	return joined(said(b.Recipe+" "+b.Version, prefixed("configuration ", s.EffectiveSHA)))
}

// buildTable has one row per build of a campaign, with where it comes from.
func buildTable(p *page, r lab.Results) {
	if len(r.Builds) == 0 {
		return
	}
	p.heading("Builds")
	t := newTable(nil, "build", "version", "flavor", "from", "compiler", "made", "ID")
	for _, b := range r.Builds {
		t.row(b.Recipe, orDash(b.Version), orDash(flavorOf(r.Plan, b.Recipe)), orDash(shortSources(b)), orDash(b.Compiler), orDash(placeWords(b)), b.ID)
	}
	p.table("  ", t)
}

// orDash is the text, "–" when there is none.
func orDash(text string) string {
	if text == "" {
		return lab.Unknown
	}
	return text
}

// shortSources are the names of what a build was made from, each with the beginning of its hash.
func shortSources(b lab.Build) string {
	var all []string
	for name, sum := range b.Sources {
		all = append(all, fmt.Sprintf("%s %.12s", name, sum))
	}
	slices.Sort(all)
	return strings.Join(all, "; ")
}
