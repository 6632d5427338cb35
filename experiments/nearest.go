package experiments

import (
	"slices"
	"strings"

	"ngxlab/lab"
)

// suggestion is a hint that names the nearest of the known names, or all of them.
func suggestion(word string, known []string) string {
	if near := suggested(word, known); near != "" || len(known) == 0 {
		return near
	}
	return "known are: " + strings.Join(slices.Sorted(slices.Values(known)), ", ")
}

// suggested is a hint that names the nearest of the known names, "" when none is near.
func suggested(word string, known []string) string {
	near, ok := lab.Nearest(word, known)
	if !ok {
		return ""
	}
	return `did you mean "` + near + `"?`
}
