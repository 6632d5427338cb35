package experiments

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	var b bytes.Buffer
	if err := Schema(&b); err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(&b)
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("experiment.json", document); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("experiment.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// asJSON is the file as an editor's YAML server sees it.
func asJSON(t *testing.T, text string) any {
	t.Helper()
	encoded, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(encoded))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestEveryLibraryFileAndTheScaffoldFitTheSchema(t *testing.T) {
	s := compiled(t)
	texts := map[string]string{"scaffold": strings.Replace(scaffold, "NAME", "x", 1), "small": small}
	for _, entry := range Library() {
		text, err := Open(entry.Name)
		if err != nil {
			t.Fatal(err)
		}
		texts[entry.Name] = string(text)
	}
	for name, text := range texts {
		if err := s.Validate(asJSON(t, text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSchemaRefusesWhatDecodeRefusesOfOneKey(t *testing.T) {
	s := compiled(t)
	for _, name := range []string{"unknown key", "missing key", "unknown tool", "wrong type", "zero", "no unit of time", "wrong unit of time",
		"no unit of size", "percent without sign", "percent of text", "yes is no boolean", "list for text", "docker without a mapping", "unknown bound", "CPUs of a container", "count of none", "short checksum",
		"flavor", "no such port", "sysctl name", "directive name", "url without slash", "claim's figure"} {
		found := false
		for _, c := range bad {
			if c.name != name {
				continue
			}
			found = true
			if s.Validate(asJSON(t, strings.Replace(small, c.old, c.new, 1))) == nil {
				t.Errorf("the schema takes: %s", name)
			}
		}
		if !found {
			t.Errorf("no bad input %q", name)
		}
	}
}

func TestSchemaDescribesEveryKey(t *testing.T) {
	var b bytes.Buffer
	if err := Schema(&b); err != nil {
		t.Fatal(err)
	}
	var root map[string]any
	if err := json.Unmarshal(b.Bytes(), &root); err != nil {
		t.Fatal(err)
	}
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			if properties, ok := v["properties"].(map[string]any); ok {
				for name, p := range properties {
					if doc, _ := p.(map[string]any)["description"].(string); doc == "" {
						t.Errorf("%s.%s has no description", path, name)
					}
				}
			}
			for name, inner := range v {
				walk(path+"."+name, inner)
			}
		case []any:
			for _, inner := range v {
				walk(path, inner)
			}
		}
	}
	walk("", root)
}
