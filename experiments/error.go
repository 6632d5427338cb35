package experiments

import (
	"fmt"
	"sort"
	"strings"

	"ngxlab/lab"
)

// Problem is one thing wrong with an experiment file.
type Problem struct {
	Position lab.Position // where it stands
	Line     string       // the source line, without its end
	Message  string       // what is wrong
	Hint     string       // what to do, "" when the message says it all
}

// Error lists everything wrong with an experiment file, in the order of the file.
type Error struct {
	File     string // as given to Decode
	Problems []Problem
}

// Error prints each problem as "file:line:col: message", the source line, a caret under the place, and the hint.
func (e *Error) Error() string {
	parts := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		parts[i] = p.text(e.File)
	}
	return strings.Join(parts, "\n")
}

func (p Problem) text(file string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s:%d:%d: %s", file, p.Position.Line, p.Position.Column, p.Message)
	if strings.TrimSpace(p.Line) != "" {
		fmt.Fprintf(&b, "\n    %s\n    %s^", p.Line, indent(p.Line, p.Position.Column))
	}
	if p.Hint != "" {
		fmt.Fprintf(&b, "\nhint: %s", p.Hint)
	}
	return b.String()
}

// indent returns what stands before the column, with everything but tabs turned into spaces.
func indent(line string, column int) string {
	var b strings.Builder
	for i, r := range []rune(line) {
		if i >= column-1 {
			break
		}
		if r == '\t' {
			b.WriteRune(r)
		} else {
			b.WriteByte(' ')
		}
	}
	return b.String()
}

func sorted(problems []Problem) []Problem {
	sort.SliceStable(problems, func(i, j int) bool {
		a, b := problems[i].Position, problems[j].Position
		if a.Line != b.Line {
			return a.Line < b.Line
		}
		return a.Column < b.Column
	})
	return problems
}
