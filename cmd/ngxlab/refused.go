package main

import (
	"fmt"
	"strings"

	"ngxlab/lab"
)

// refusedError is a plan that must not be carried out: each refusal with its place in the experiment file.
type refusedError struct{ plan lab.Plan }

// Error prints each fatal refusal as "file:line:col: reason", the source line and the cure.
func (e *refusedError) Error() string {
	var parts []string
	for _, r := range e.plan.Fatal() {
		parts = append(parts, refusalText(e.plan.Experiment, r))
	}
	return strings.Join(parts, "\n")
}

func refusalText(x lab.Experiment, r lab.Refusal) string {
	var b strings.Builder
	at, known := position(x, r.Path)
	fmt.Fprintf(&b, "%s%s", place(x.File, at, known), r.Reason)
	if lines := strings.Split(x.Text, "\n"); known && at.Line <= len(lines) {
		fmt.Fprintf(&b, "\n    %s", lines[at.Line-1])
	}
	if r.Cure != "" {
		fmt.Fprintf(&b, "\nhint: %s", r.Cure)
	}
	return b.String()
}

// place is "file:line:col: ", as far as it is known.
func place(file string, at lab.Position, known bool) string {
	switch {
	case known && file != "":
		return fmt.Sprintf("%s:%d:%d: ", file, at.Line, at.Column)
	case known:
		return fmt.Sprintf("line %d: ", at.Line)
	case file != "":
		return file + ": "
	}
	return ""
}

// position looks a path up in the experiment; when the file has no such place, its nearest ancestor's.
func position(x lab.Experiment, path string) (lab.Position, bool) {
	for path != "" {
		if at, ok := x.Where[path]; ok {
			return at, true
		}
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
	}
	return lab.Position{}, false
}
