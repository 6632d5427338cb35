package plan

import (
	"fmt"
	"slices"
	"strings"

	"ngxlab/lab"
)

// The files that keep over a boot what a step with `persist: true` sets, until they are restored.
const (
	sysctlFile = "/etc/sysctl.d/99-ngxlab.conf"
	limitsFile = "/etc/security/limits.d/99-ngxlab.conf"
)

// The fence by which such a file is known as the lab's own.
const (
	fenceBegin = "# ngxlab: begin"
	fenceEnd   = "# ngxlab: end"
)

// fenceNote says in the file what it is and how to be rid of it; it is the same in every campaign.
const fenceNote = "# Kept by ngxlab, which runs a tuning study on this host; to remove this file: ngxlab restore"

// persistFile is one of the files and the kinds of knobs that it keeps.
type persistFile struct {
	path  string
	kinds []string
	lines func(lab.Setting) []string
}

func persistFiles() []persistFile {
	return []persistFile{
		{path: sysctlFile, kinds: []string{lab.KnobSysctl}, lines: sysctlLines},
		{path: limitsFile, kinds: []string{lab.KnobNofile, lab.KnobNproc}, lines: limitLines},
	}
}

func sysctlLines(s lab.Setting) []string {
	return []string{s.Knob.Name + " = " + strings.Join(strings.Fields(s.Value), " ")}
}

// limitLines: "*" does not stand for root (limits.conf(5)).
func limitLines(s lab.Setting) []string {
	return []string{"* - " + s.Knob.Kind + " " + s.Value, "root - " + s.Knob.Kind + " " + s.Value}
}

func fileKnob(path string) lab.KnobID { return lab.KnobID{Kind: lab.KnobFile, Name: path} }

// blank asks a host for a file of ours: its mode and owner there. The content comes with each state.
func blank(path string) lab.Setting {
	value := lab.FileValue{Mode: "0644", Owner: "root:root"}.WithContent(nil)
	return lab.Setting{Knob: fileKnob(path), Value: value.String()}
}

// persisted are the files of ours that a step needs on a host.
func persisted(step lab.Step, host lab.Host) []lab.Setting {
	if !step.Persist {
		return nil
	}
	var files []lab.Setting
	for _, file := range persistFiles() {
		kept := func(s lab.Setting) bool { return slices.Contains(file.kinds, s.Knob.Kind) }
		if slices.ContainsFunc(lab.StepSettings(step, host), kept) {
			files = append(files, blank(file.path))
		}
	}
	return files
}

// persistObstacle finds why a host cannot keep what a step sets in a file of ours.
func (p *planner) persistObstacle(host lab.Host, step lab.Step, file lab.Setting) obstacle {
	f, path := p.facts[host.Name], file.Knob.Name
	if others := p.written(host, file); len(others) > 0 {
		return obstacle{reason: fmt.Sprintf("%s is written twice: by `persist` of step %q and by `files` of step %q%s", path, step.Name, others[0].Step, alias(file, others[0])),
			cure: "leave one of them out", mistake: true, persist: true}
	}
	o := factObstacle(f, file)
	for _, fact := range said(f, file) {
		if o.reason == "" && !fact.Now.Absent && !ours(fact.Now.Text) {
			o.reason = fmt.Sprintf("%s has a file %s that is not the lab's; persist would replace it", f.Host, path)
			o.cure = "give that file another name on the host, or leave `persist` out"
		}
	}
	o.persist = true
	return o
}

// ours reports whether the value of a file is fenced as the lab's own.
func ours(text string) bool {
	value, err := lab.ParseFileValue(text)
	content, encoded := value.Bytes()
	return err == nil && encoded == nil && strings.HasPrefix(string(content), fenceBegin+"\n")
}

// persist adds to a state's settings on a host the files that keep what its steps persist.
func (p *planner) persist(s lab.State, host lab.HostName, settings []lab.Setting) []lab.Setting {
	keeps := func(name string) bool {
		return slices.ContainsFunc(p.e.Steps, func(step lab.Step) bool { return step.Name == name && step.Persist })
	}
	var files []lab.Setting
	for _, file := range persistFiles() {
		lines, last := []string{}, -1
		for _, setting := range settings {
			if keeps(setting.Step) && slices.Contains(file.kinds, setting.Knob.Kind) && !taken(s, settings, setting) {
				lines = append(lines, file.lines(setting)...)
				last = max(last, slices.Index(s.Steps, setting.Step))
			}
		}
		for _, fact := range said(p.facts[host], blank(file.path)) {
			if len(lines) > 0 {
				files = append(files, lab.Setting{Knob: fact.Knob, Value: fenced(fact.To.Text, lines), Step: s.Steps[last]})
			}
		}
	}
	return append(settings, files...)
}

// fenced is the value of a file of ours with these lines.
func fenced(value string, lines []string) string {
	file, err := lab.ParseFileValue(value)
	if err != nil {
		file = lab.FileValue{Mode: "0644"}
	}
	text := strings.Join(slices.Concat([]string{fenceBegin, fenceNote}, lines, []string{fenceEnd, ""}), "\n")
	return file.WithContent([]byte(text)).String()
}
