package experiments

import (
	"fmt"
	"math"

	"github.com/goccy/go-yaml/ast"

	"ngxlab/lab"
)

// maxElements bounds an axis; more than this could not be measured in a year.
const maxElements = 1000

// list is a YAML list; one value alone is a list of one.
func list[T any](v value[T]) value[[]T] {
	return value[[]T]{schema{"anyOf": []schema{v.schema, {"type": "array", "items": v.schema, "minItems": 1}}},
		func(d *decoding, path string, n ast.Node) ([]T, bool) {
			if s, ok := n.(*ast.SequenceNode); ok {
				return elements(d, path, s, v)
			}
			one, ok := v.read(d, path, n)
			return []T{one}, ok
		}}
}

// listOnly is a YAML list and nothing else.
func listOnly[T any](v value[T]) value[[]T] {
	return value[[]T]{schema{"type": "array", "items": v.schema, "minItems": 1},
		func(d *decoding, path string, n ast.Node) ([]T, bool) {
			if s, ok := n.(*ast.SequenceNode); ok {
				return elements(d, path, s, v)
			}
			d.wrong(n, "a list", "")
			return nil, false
		}}
}

func elements[T any](d *decoding, path string, s *ast.SequenceNode, v value[T]) ([]T, bool) {
	switch {
	case len(s.Values) == 0:
		d.add(position(s), "the list is empty", "")
		return nil, false
	case len(s.Values) > maxElements:
		d.add(position(s), fmt.Sprintf("the list has %d elements, at most %d are possible", len(s.Values), maxElements), "")
		return nil, false
	}
	out, all := make([]T, 0, len(s.Values)), true
	for i, n := range s.Values {
		at := fmt.Sprintf("%s[%d]", path, i)
		d.where[at] = position(n)
		one, ok := v.read(d, at, n)
		out, all = append(out, one), all && ok
	}
	return out, all
}

// span is {from, to, step} or {from, to, factor}.
type span struct {
	from, to, step int
	factor         float64
}

func (s span) ints() []int {
	var out []int
	for x := float64(s.from); x <= float64(s.to) && len(out) <= maxElements; {
		out = append(out, int(math.Round(x)))
		if s.step > 0 {
			x += float64(s.step)
		} else {
			x *= s.factor
		}
	}
	return out
}

func (s span) valid() bool {
	byStep, byFactor := s.step > 0, s.factor > 1
	return s.from <= s.to && byStep != byFactor && (byStep || s.factor == 0 || s.from > 0) && len(s.ints()) <= maxElements
}

// axis is whole numbers: one, a list, or a span of them.
func axis(low, high int) value[[]int] {
	each := list(integer(low, high))
	spans := object(func() span { return span{} },
		has("from", "the first value", integer(low, high), func(s *span) *int { return &s.from }).must(),
		has("to", "the largest value", integer(low, high), func(s *span) *int { return &s.to }).must(),
		has("step", "distance of the values", integer(1, high), func(s *span) *int { return &s.step }),
		has("factor", "ratio of the values, above 1", number, func(s *span) *float64 { return &s.factor }))
	return value[[]int]{schema{"anyOf": append(each.schema["anyOf"].([]schema), spans.schema)},
		func(d *decoding, path string, n ast.Node) ([]int, bool) {
			if n.Type() != ast.MappingType {
				return each.read(d, path, n)
			}
			s, ok := spans.read(d, path, n)
			if ok && !s.valid() {
				d.wrong(n, "from not above to, and either step or a factor above 1, in at most 1000 values", "")
				return nil, false
			}
			return s.ints(), ok
		}}
}

// ladder is one word, or a list of lists of step names.
var ladder = value[lab.Ladder]{
	schema{"anyOf": []schema{ladderKind.schema, ladderLists.schema}},
	func(d *decoding, path string, n ast.Node) (lab.Ladder, bool) {
		if n.Type() == ast.SequenceType {
			lists, ok := ladderLists.read(d, path, n)
			return lab.Ladder{Kind: lab.Listed, Lists: lists}, ok
		}
		kind, ok := ladderKind.read(d, path, n)
		return lab.Ladder{Kind: kind}, ok
	}}

var (
	ladderKind  = oneOf(lab.Cumulative, lab.Isolated, lab.LeaveOneOut)
	ladderLists = listOnly(listOnly(text))
)
