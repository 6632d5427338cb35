package experiments

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"ngxlab/lab"
)

// schema is a JSON Schema.
type schema map[string]any

// value is one kind of value: how a JSON Schema states it, and how a node is read. read reports false after it has added
// a problem.
type value[T any] struct {
	schema schema
	read   func(d *decoding, path string, n ast.Node) (T, bool)
}

// scalar returns what was written, without quotes, and the kind of scalar; false for anything else.
func scalar(n ast.Node) (text string, kind ast.NodeType, ok bool) {
	switch s := n.(type) {
	case *ast.StringNode:
		return s.Value, ast.StringType, true
	case *ast.LiteralNode:
		return strings.TrimRight(s.Value.Value, "\n"), ast.StringType, true
	case *ast.IntegerNode:
		return s.Token.Value, ast.IntegerType, true
	case *ast.FloatNode:
		return s.Token.Value, ast.FloatType, true
	case *ast.BoolNode:
		return strconv.FormatBool(s.Value), ast.BoolType, true
	}
	return "", n.Type(), false
}

// described says what a node is, for "expected …, found …".
func described(n ast.Node) string {
	text, kind, ok := scalar(n)
	switch {
	case ok && kind == ast.StringType:
		return strconv.Quote(text)
	case ok:
		return text
	}
	switch n.Type() {
	case ast.MappingType, ast.MappingValueType:
		return "a mapping"
	case ast.SequenceType:
		return "a list"
	case ast.NullType:
		return "nothing"
	case ast.AnchorType, ast.AliasType, ast.MergeKeyType, ast.TagType:
		return "an anchor, alias or tag, which this file does not have"
	}
	return strings.ToLower(n.Type().String())
}

// wrong adds the problem that a node is not what is expected.
func (d *decoding) wrong(n ast.Node, expected, hint string) {
	d.add(position(n), "expected "+expected+", found "+described(n), hint)
}

var boolean = value[bool]{schema{"type": "boolean"}, func(d *decoding, _ string, n ast.Node) (bool, bool) {
	if b, ok := n.(*ast.BoolNode); ok {
		return b.Value, true
	}
	d.wrong(n, "true or false", "")
	return false, false
}}

// text takes numbers too, as they are written: a version such as 1.20 is text.
var text = value[string]{schema{"type": []string{"string", "number"}}, func(d *decoding, _ string, n ast.Node) (string, bool) {
	s, kind, ok := scalar(n)
	if ok && kind == ast.StringType && strings.TrimSpace(s) == "" {
		d.add(position(n), "the text is empty", "write something, or leave the key out")
		return "", false
	}
	if !ok || kind == ast.BoolType {
		d.wrong(n, "text", "")
		return "", false
	}
	return s, true
}}

func matching(what, pattern string) value[string] {
	re := regexp.MustCompile(pattern)
	return value[string]{schema{"type": []string{"string", "integer"}, "pattern": pattern},
		func(d *decoding, path string, n ast.Node) (string, bool) {
			s, ok := text.read(d, path, n)
			if ok && !re.MatchString(s) {
				d.wrong(n, what, "")
				return "", false
			}
			return s, ok
		}}
}

func oneOf[T ~string](words ...T) value[T] {
	names := make([]string, len(words))
	for i, w := range words {
		names[i] = string(w)
	}
	return value[T]{schema{"enum": names}, func(d *decoding, _ string, n ast.Node) (T, bool) {
		s, _, ok := scalar(n)
		for _, w := range words {
			if ok && s == string(w) {
				return w, true
			}
		}
		d.wrong(n, "one of "+strings.Join(names, ", "), suggested(s, names))
		return "", false
	}}
}

func integer(low, high int) value[int] {
	return value[int]{schema{"type": "integer", "minimum": low, "maximum": high},
		func(d *decoding, _ string, n ast.Node) (int, bool) {
			expected := fmt.Sprintf("a whole number from %d to %d", low, high)
			if n.Type() != ast.IntegerType {
				d.wrong(n, expected, "")
				return 0, false
			}
			s, _, _ := scalar(n)
			i, err := strconv.ParseInt(s, 10, 64)
			if err != nil || i < int64(low) || i > int64(high) {
				d.wrong(n, expected, "")
				return 0, false
			}
			return int(i), true
		}}
}

// number is a positive, finite number.
var number = value[float64]{schema{"type": "number", "exclusiveMinimum": 0}, func(d *decoding, _ string, n ast.Node) (float64, bool) {
	s, kind, ok := scalar(n)
	f, err := strconv.ParseFloat(s, 64)
	if !ok || kind == ast.StringType || err != nil || f <= 0 || math.IsInf(f, 0) {
		d.wrong(n, "a number above 0", "")
		return 0, false
	}
	return f, true
}}

// numberWithin is a number with bounds.
func numberWithin(low, high float64) value[float64] {
	return value[float64]{schema{"type": "number", "minimum": low, "maximum": high},
		func(d *decoding, path string, n ast.Node) (float64, bool) {
			s, kind, ok := scalar(n)
			f, err := strconv.ParseFloat(s, 64)
			if !ok || kind == ast.StringType || err != nil || !(f >= low && f <= high) {
				d.wrong(n, fmt.Sprintf("a number from %g to %g", low, high), "")
				return 0, false
			}
			return f, true
		}}
}

const durationPattern = `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`

var durationRE = regexp.MustCompile(durationPattern)

// duration is a Go duration from 0 to a week.
var duration = value[lab.Duration]{schema{"type": "string", "pattern": durationPattern}, func(d *decoding, _ string, n ast.Node) (lab.Duration, bool) {
	s, kind, ok := scalar(n)
	if ok && (kind == ast.IntegerType || kind == ast.FloatType) {
		d.wrong(n, "a duration with its unit", fmt.Sprintf("write %ss for seconds; units are ns, us, ms, s, m, h", s))
		return lab.Duration{}, false
	}
	t, err := time.ParseDuration(s)
	if !ok || err != nil || !durationRE.MatchString(s) || t > 7*24*time.Hour {
		d.wrong(n, "a duration such as 500ms, 30s or 1h30m", "")
		return lab.Duration{}, false
	}
	return lab.Duration{Duration: t}, true
}}

const sizePattern = `^[0-9]+(\.[0-9]+)? ?(B|KiB|MiB|GiB)$`

var (
	sizeRE    = regexp.MustCompile(sizePattern)
	sizeUnits = map[string]float64{"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
)

// size is a number of bytes, up to 1 PiB.
var size = value[int64]{schema{"type": "string", "pattern": sizePattern}, func(d *decoding, _ string, n ast.Node) (int64, bool) {
	s, _, ok := scalar(n)
	if !ok || !sizeRE.MatchString(s) {
		d.wrong(n, "a size with its unit, such as 1KiB or 8GiB", "units are B, KiB, MiB and GiB, by 1024")
		return 0, false
	}
	digits := strings.TrimRight(s, "BKMGi ")
	f, err := strconv.ParseFloat(digits, 64)
	bytes := f * sizeUnits[strings.TrimSpace(s[len(digits):])]
	if err != nil || bytes > 1<<50 || bytes != math.Trunc(bytes) {
		d.wrong(n, "a whole number of bytes up to 1048576GiB", "")
		return 0, false
	}
	return int64(bytes), true
}}

// sizeFrom is a size of at least low bytes; least is how that is written.
func sizeFrom(low int64, least string) value[int64] {
	return value[int64]{size.schema, func(d *decoding, path string, n ast.Node) (int64, bool) {
		bytes, ok := size.read(d, path, n)
		if ok && bytes < low {
			d.wrong(n, "a size of at least "+least, "")
			return 0, false
		}
		return bytes, ok
	}}
}

// ratio is a percentage, or a number from 0 to 1.
var ratio = value[float64]{
	schema{"anyOf": []schema{{"type": "string", "pattern": `^[0-9]+(\.[0-9]+)?%$`}, {"type": "number", "exclusiveMinimum": 0, "maximum": 1}}},
	func(d *decoding, _ string, n ast.Node) (float64, bool) {
		const expected = "a percentage above 0 and up to 100%, such as 2%"
		s, _, ok := scalar(n)
		f, err := strconv.ParseFloat(strings.TrimSuffix(s, "%"), 64)
		if strings.HasSuffix(s, "%") {
			f /= 100
		}
		switch {
		case !ok || err != nil || f <= 0 || f > 100:
			d.wrong(n, expected, "")
			return 0, false
		case f > 1:
			d.wrong(n, expected, "write "+s+"%")
			return 0, false
		}
		return f, true
	}}
