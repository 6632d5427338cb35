package experiments

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"ngxlab/lab"
)

// checkKnobs refuses what a step says twice, or in two ways that exclude each other.
func (d *decoding) checkKnobs(path string, s lab.Step) {
	d.checkNginx(path+".nginx", slices.AppendSeq(slices.Clone(s.Remove), maps.Keys(s.Nginx)))
	d.checkCoupled(path+".sysctl", s.Sysctl)
	d.checkControls(path, s)
	if s.Persist && len(s.Sysctl)+s.Nofile+s.Nproc == 0 {
		d.problem(path+".persist", "leave it out", "persist keeps sysctls and limits, and step %q has none", s.Name)
	}
}

// checkControls refuses control characters in names and values of knobs, which no host takes and a terminal may obey. What is
// in a file, and what a shell is given, is the study's own.
func (d *decoding) checkControls(path string, s lab.Step) {
	hold := func(key, text string) {
		if strings.ContainsFunc(text, lab.Steers) {
			d.problem(path+"."+key, "leave it out", "a control character in %q", text)
		}
	}
	for name, value := range s.Nginx {
		hold("nginx."+name, value)
	}
	for name, value := range s.Sysctl {
		hold("sysctl."+name, value)
	}
	for _, k := range s.Knobs {
		hold(k.Knob.Kind+"s", k.Knob.Name)
		if k.Knob.Kind != lab.KnobFile && k.Knob.Kind != lab.KnobCommand {
			hold(k.Knob.Kind, k.Value)
		}
	}
}

// checkNginx refuses one directive under two names: a name without its context is that of the outermost one. Of names
// that stand in server or location only, the plan knows.
func (d *decoding) checkNginx(path string, names []string) {
	d.checkTwice(path, names, directiveOf)
}

// checkTwice refuses names below a path that are one and the same.
func (d *decoding) checkTwice(path string, names []string, whole func(name string) string) {
	first := map[string]string{}
	for _, name := range d.inOrder(path, names) {
		if other, twice := first[whole(name)]; twice {
			d.problem(path+"."+name, "leave one of them out", "%s is %s, which is on line %d already", name, other, d.at(path+"."+other).Line)
			continue
		}
		first[whole(name)] = name
	}
}

// directiveOf leaves out a context that says no more than the name alone. include may stand anywhere.
func directiveOf(name string) string {
	context, rest, qualified := strings.Cut(name, ".")
	if qualified && slices.Contains([]string{"main", "events", "http"}, context) && (context == "main" || rest != "include") {
		return rest
	}
	return name
}

// coupled are pairs of sysctls of which the kernel sets one to 0 when the other is written (mm/page-writeback.c,
// mm/util.c).
var coupled = [][2]string{
	{"vm.dirty_bytes", "vm.dirty_ratio"}, {"vm.dirty_background_bytes", "vm.dirty_background_ratio"}, {"vm.overcommit_kbytes", "vm.overcommit_ratio"},
}

func (d *decoding) checkCoupled(path string, values map[string]string) {
	for _, pair := range coupled {
		_, a := values[pair[0]]
		_, b := values[pair[1]]
		if !a || !b {
			continue
		}
		names := d.inOrder(path, pair[:])
		d.problem(path+"."+names[1], "leave one of them out", "%s excludes %s, which is on line %d: the kernel sets one to 0 when the other is written",
			names[1], names[0], d.at(path+"."+names[0]).Line)
	}
}

// checkFiles refuses a step that leaves out a part of a file which a step before it in some state gives. Parts left out
// are those that the host had before any step: the earlier step would be undone unseen.
func (d *decoding) checkFiles(e lab.Experiment, states []lab.State) {
	said := map[string]bool{}
	for _, state := range states {
		given := map[string]lab.Setting{}
		for i, step := range e.Steps {
			if slices.Contains(state.Steps, step.Name) {
				d.checkFilesOf(fmt.Sprintf("steps[%d].files.", i), step, given, said)
			}
		}
	}
}

// checkFilesOf holds the files of a step against those given before it, and adds them. What is said is said once.
func (d *decoding) checkFilesOf(path string, step lab.Step, given map[string]lab.Setting, said map[string]bool) {
	for _, s := range step.Knobs {
		if s.Knob.Kind != lab.KnobFile {
			continue
		}
		name := s.Knob.Name
		if part := leftOut(s, given[name]); part != "" && !said[path+name] {
			said[path+name] = true
			d.problem(path+name, "give it here, too", "step %q leaves out the %s of %s, which step %q gives: it would be as it was before both",
				step.Name, part, name, given[name].Step)
		}
		s.Step = step.Name
		given[name] = s
	}
}

// checkCommands refuses one name for two commands: what one step applied could not be told from what another did.
func (d *decoding) checkCommands(e lab.Experiment) {
	type place struct{ value, path string }
	first := map[string]place{}
	for i, step := range e.Steps {
		for _, s := range step.Knobs {
			here := place{s.Value, fmt.Sprintf("steps[%d].commands.%s", i, s.Knob.Name)}
			before, known := first[s.Knob.Name]
			switch {
			case s.Knob.Kind != lab.KnobCommand:
			case !known:
				first[s.Knob.Name] = here
			case before.value != here.value:
				d.problem(here.path, "give it another name, or write the same", "command %q is another one on line %d", s.Knob.Name, d.at(before.path).Line)
			}
		}
	}
}

// leftOut is the part of a file that one setting gives and a later one does not; "" when there is none.
func leftOut(later, earlier lab.Setting) string {
	now, err := lab.ParseFileValue(later.Value)
	before, unread := lab.ParseFileValue(earlier.Value)
	switch {
	case err != nil || unread != nil: // there is no earlier one, or there shall be none
	case now.Content == nil && before.Content != nil:
		return "content"
	case now.Mode == "" && before.Mode != "":
		return "mode"
	case now.Owner == "" && before.Owner != "":
		return "owner"
	}
	return ""
}

// inOrder sorts keys of a mapping by their places in the file.
func (d *decoding) inOrder(path string, names []string) []string {
	all := slices.Clone(names)
	slices.SortFunc(all, func(a, b string) int {
		p, q := d.at(path+"."+a), d.at(path+"."+b)
		if p.Line != q.Line {
			return p.Line - q.Line
		}
		return p.Column - q.Column
	})
	return all
}

// spelling refuses a sysctl that a step has in two spellings, and then adds to the places of knobs those by which a plan
// names them: the kind, and the name as the step keeps it.
func (d *decoding) spelling() {
	sysctls, places := map[string][]string{}, map[string]lab.Position{}
	for path, at := range d.where {
		section, rest, ok := cutStep(path)
		key, name, named := strings.Cut(rest, ".")
		if !ok || !named {
			continue
		}
		if kind := sections[key]; kind != "" {
			places[section+"."+kind+"."+name] = at
		}
		if key == lab.KnobSysctl && !strings.HasSuffix(name, "]") {
			sysctls[section+".sysctl"] = append(sysctls[section+".sysctl"], name)
			places[section+".sysctl."+dotted(name)] = at
		}
	}
	for path, names := range sysctls {
		d.checkTwice(path, names, dotted)
	}
	maps.Copy(d.where, places)
}

// cutStep cuts "steps[2].files.x" into "steps[2]" and "files.x".
func cutStep(path string) (section, rest string, ok bool) {
	section, rest, ok = strings.Cut(path, "].")
	return section + "]", rest, ok && strings.HasPrefix(path, "steps[")
}
