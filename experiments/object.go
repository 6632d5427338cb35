package experiments

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"ngxlab/lab"
)

// key is one key of a mapping that becomes a T.
type key[T any] struct {
	name, doc string
	required  bool
	schema    schema
	read      func(d *decoding, path string, n ast.Node, into *T)
}

// must makes a key compulsory.
func (k key[T]) must() key[T] {
	k.required = true
	return k
}

// has is a key whose value goes into a field.
func has[T, V any](name, doc string, v value[V], field func(*T) *V) key[T] {
	read := func(d *decoding, path string, n ast.Node, into *T) {
		if got, ok := v.read(d, path, n); ok {
			*field(into) = got
		}
	}
	return key[T]{name: name, doc: doc, schema: v.schema, read: read}
}

// object is a mapping with known keys, begun with defaults.
func object[T any](defaults func() T, keys ...key[T]) value[T] {
	return value[T]{objectSchema(keys), func(d *decoding, path string, n ast.Node) (T, bool) {
		into := defaults()
		before := len(d.problems)
		found := map[string]bool{}
		all := d.entries(path, n, false, func(at string, e entry) {
			found[e.name] = true
			i := slices.IndexFunc(keys, func(k key[T]) bool { return k.name == e.name })
			if i < 0 {
				d.add(e.at, fmt.Sprintf("unknown key %q", e.name), suggestion(e.name, keyNames(keys)))
				return
			}
			keys[i].read(d, at, e.value, &into)
		})
		for _, k := range keys {
			if all && k.required && !found[k.name] {
				d.add(position(n), fmt.Sprintf("the key %q is missing", k.name), k.doc)
			}
		}
		return into, len(d.problems) == before
	}}
}

func keyNames[T any](keys []key[T]) []string {
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = k.name
	}
	return names
}

func objectSchema[T any](keys []key[T]) schema {
	properties, required := schema{}, []string{}
	for _, k := range keys {
		described := schema{"description": k.doc}
		for name, v := range k.schema {
			described[name] = v
		}
		properties[k.name] = described
		if k.required {
			required = append(required, k.name)
		}
	}
	s := schema{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

// entry is one key of a mapping in the file.
type entry struct {
	name  string
	at    lab.Position
	value ast.Node // of type null only where nulls are taken
}

// entries calls each for every key once, notes its place, and reports what is wrong with the mapping itself; it
// reports false when n is not a mapping. nulls says that a key without a value means something.
func (d *decoding) entries(path string, n ast.Node, nulls bool, each func(path string, e entry)) bool {
	m, ok := n.(*ast.MappingNode)
	if !ok {
		d.wrong(n, "a mapping of keys to values", "")
		return false
	}
	seen := map[string]lab.Position{}
	for _, v := range m.Values {
		e := entry{name: keyText(v.Key), at: position(v.Key), value: v.Value}
		at := strings.TrimPrefix(path+"."+e.name, ".")
		first, twice := seen[e.name]
		switch {
		case v.Key.IsMergeKey():
			d.add(e.at, "merging with << is not supported", "every value stands where it is used")
		case twice:
			d.add(e.at, fmt.Sprintf("the key %q stands here a second time", e.name), fmt.Sprintf("it is on line %d already", first.Line))
		case isNull(v.Value) && !nulls:
			seen[e.name], d.where[at] = e.at, e.at
			d.add(e.at, fmt.Sprintf("the key %q has no value", e.name), "leave the key out to have the default")
		default:
			seen[e.name], d.where[at] = e.at, e.at
			each(at, e)
		}
	}
	return true
}

func keyText(k ast.MapKeyNode) string {
	if s, _, ok := scalar(k); ok {
		return s
	}
	return k.String()
}

func isNull(n ast.Node) bool { return n == nil || n.Type() == ast.NullType }

// names are the keys that a file chooses.
type names struct {
	what, pattern string
	like          string                                   // what a right one looks like; "" = the pattern says it
	refuse        func(name string) (message, hint string) // what is wrong with a name that matches; nil or "" when nothing is
}

// wrong says what is wrong with a name, "" when nothing is.
func (of names) wrong(re *regexp.Regexp, name string) (message, hint string) {
	if of.refuse != nil {
		if message, hint = of.refuse(name); message != "" {
			return message, hint
		}
	}
	if !re.MatchString(name) {
		return fmt.Sprintf("%q cannot be %s", name, of.what), cmp.Or(of.like, "it must match "+of.pattern)
	}
	return "", ""
}

// anyKeys is a mapping whose keys the file chooses; add puts each into the result.
func anyKeys[M, T any](of names, v value[T], empty func() M, add func(m M, name string, one T) M) value[M] {
	return keysAndNulls(of, v, empty, add, nil)
}

// keysAndNulls is anyKeys where a key may be without a value: null puts it into the result.
func keysAndNulls[M, T any](of names, v value[T], empty func() M, add func(m M, name string, one T) M, null func(m M, name string) M) value[M] {
	re := regexp.MustCompile(of.pattern)
	each := v.schema
	if null != nil {
		each = schema{"anyOf": []schema{v.schema, {"type": "null"}}}
	}
	s := schema{"type": "object", "additionalProperties": each, "propertyNames": schema{"pattern": of.pattern}}
	return value[M]{s, func(d *decoding, path string, n ast.Node) (M, bool) {
		into := empty()
		before := len(d.problems)
		d.entries(path, n, null != nil, func(at string, e entry) {
			if message, hint := of.wrong(re, e.name); message != "" {
				d.add(e.at, message, hint)
			} else if isNull(e.value) {
				into = null(into, e.name)
			} else if one, ok := v.read(d, at, e.value); ok {
				into = add(into, e.name, one)
			}
		})
		return into, len(d.problems) == before
	}}
}

// mapping is a mapping with keys that the file chooses, as a map.
func mapping[T any](what, pattern string, v value[T]) value[map[string]T] {
	return anyKeys(names{what: what, pattern: pattern}, v, func() map[string]T { return map[string]T{} },
		func(m map[string]T, name string, one T) map[string]T {
			m[name] = one
			return m
		})
}
