package lab

import "strings"

// At returns the place of a path in the experiment file, or that of the nearest part of the file around it when the
// path itself is a default that the file leaves out; false when nothing around it is in the file either.
func (e Experiment) At(path string) (Position, bool) {
	for path != "" {
		if at, found := e.Where[path]; found {
			return at, true
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	return Position{}, false
}
