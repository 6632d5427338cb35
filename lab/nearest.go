package lab

import "strings"

// Nearest returns the known word with the smallest Distance to word, the first of equals, upper and lower case being
// the same; false when none is near: when more than a third of the letters (two are always allowed) or all of them would
// have to change.
func Nearest(word string, known []string) (string, bool) {
	nearest, below := "", min(max(2, len(word)/3)+1, len(word))
	for _, k := range known {
		if d := Distance(strings.ToLower(word), strings.ToLower(k)); d < below {
			nearest, below = k, d
		}
	}
	return nearest, nearest != ""
}

// Distance is how many bytes must be inserted, removed or replaced to turn a into b (Levenshtein).
func Distance(a, b string) int {
	row := make([]int, len(b)+1) // of a's first i bytes to each beginning of b
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
