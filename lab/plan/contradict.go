package plan

import (
	"fmt"
	"slices"
	"strings"

	"ngxlab/lab"
	"ngxlab/lab/server"
)

// claimed is a value that a step gives to something on a host, by the knob that the file names.
type claimed struct {
	what  string // "sysfs /sys/…", "directive events.worker_connections"
	by    lab.KnobID
	value lab.Value // compared with that of another claim to the same
	shown string
}

// contradictions finds knobs of one step that give one thing two values: two patterns that match it, two names of one
// directive, both halves of coupled sysctls. Between steps the later wins, and nothing contradicts.
func (p *planner) contradictions(f lab.Facts, settings []lab.Setting) map[lab.KnobID]obstacle {
	first := map[string]claimed{}
	clashes := map[lab.KnobID]obstacle{}
	for _, s := range settings {
		for _, c := range p.claims(f, s) {
			other, again := first[c.what]
			if !again {
				first[c.what] = c
				continue
			}
			if other.by != c.by && !same(c.by, other.value, c.value) {
				clashes[c.by] = contradiction(c, other)
			}
		}
	}
	return clashes
}

func contradiction(c, other claimed) obstacle {
	return obstacle{mistake: true, cure: "leave one of them out",
		reason: fmt.Sprintf("%s = %s contradicts %s = %s of the same step: both are %s",
			c.by, c.shown, other.by, other.shown, c.what)}
}

// claims are what a setting gives values to.
func (p *planner) claims(f lab.Facts, s lab.Setting) []claimed {
	text := lab.Value{Text: s.Value, Absent: s.Absent}
	shown := lab.Shown(s.Knob, text)
	switch {
	case s.Knob.Kind == lab.KnobNginx:
		return []claimed{{what: "directive " + p.directivePlace(s.Knob.Name), by: s.Knob, value: text, shown: shown}}
	case partner(s.Knob) != "" && !isZero(s.Value):
		pair := []string{s.Knob.Name, partner(s.Knob)}
		slices.Sort(pair)
		return []claimed{{what: "one value to the kernel, which keeps " + strings.Join(pair, " or ") + " at 0", by: s.Knob, value: lab.Value{Text: s.Knob.Name}, shown: shown}}
	case !asksHost(s.Knob.Kind):
		return nil
	}
	var all []claimed
	for _, fact := range said(f, s) {
		all = append(all, claimed{what: fact.Knob.String(), by: s.Knob, value: fact.To, shown: shown})
	}
	return all
}

// directivePlace is the dotted name of a directive with its context: the outermost that nginx allows when it says none.
func (p *planner) directivePlace(name string) string {
	if strings.Contains(name, ".") {
		return name
	}
	if place, known := p.places[name]; known {
		return place
	}
	place := name
	for _, context := range []string{"main", "events", "http", "server", "location"} {
		if server.Known(context+"."+name) == nil {
			place = context + "." + name
			break
		}
	}
	p.places[name] = place
	return place
}
