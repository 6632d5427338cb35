package experiments

import (
	"sort"
	"strings"
)

// nearest returns the candidate with the smallest edit distance to word, "" when none is near: more than half of
// the word would have to change.
func nearest(word string, candidates []string) string {
	best, least := "", (len(word)+1)/2+1
	for _, c := range candidates {
		if d := distance(strings.ToLower(word), strings.ToLower(c)); d < least {
			best, least = c, d
		}
	}
	return best
}

// distance is the Levenshtein distance in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := diagonal
			if a[i-1] != b[j-1] {
				change++
			}
			diagonal = row[j]
			row[j] = min(change, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}

// suggestion is a hint that names the nearest candidate, or all of them.
func suggestion(word string, candidates []string) string {
	if near := nearest(word, candidates); near != "" {
		return `did you mean "` + near + `"?`
	}
	all := append([]string(nil), candidates...)
	sort.Strings(all)
	if len(all) == 0 {
		return ""
	}
	return "known are: " + strings.Join(all, ", ")
}
