package experiments

import (
	"encoding/json"
	"fmt"
	"io"
)

// Schema writes the JSON Schema (draft 2020-12) of experiment files, for editors that complete and check YAML by one. It
// is made from the tables that Decode reads by; what keys mean together is checked by Decode alone.
func Schema(w io.Writer) error {
	root := schema{
		"$schema": "https://json-schema.org/draft/2020-12/schema",
		"title":   "ngxlab experiment",
	}
	for name, v := range experimentValue.schema {
		root[name] = v
	}
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	out.SetEscapeHTML(false)
	if err := out.Encode(root); err != nil {
		return fmt.Errorf("write schema: %w", err)
	}
	return nil
}
