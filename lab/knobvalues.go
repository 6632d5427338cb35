package lab

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// FileValue is the value of a file knob. Its text form is JSON.
type FileValue struct {
	Mode    string  `json:"mode,omitempty"`    // octal, "0644"; "" in an experiment = as it is, or 0644 of a new file
	Owner   string  `json:"owner,omitempty"`   // "user:group" in an experiment, numbers on a host; "" = as it is, or the agent's own
	Content *string `json:"content,omitempty"` // nil in an experiment = as it is
	Base64  bool    `json:"base64,omitempty"`  // Content is encoded, for it is not UTF-8
}

// String is the text form.
func (f FileValue) String() string { return jsonText(f) }

// ParseFileValue reads the text form.
func ParseFileValue(text string) (FileValue, error) {
	var f FileValue
	if err := strictJSON(text, &f); err != nil {
		return f, fmt.Errorf("value of a file: %w", err)
	}
	return f, nil
}

// WithContent returns f with the content, encoded when it has to be.
func (f FileValue) WithContent(content []byte) FileValue {
	text := string(content)
	if f.Base64 = !utf8.Valid(content); f.Base64 {
		text = base64.StdEncoding.EncodeToString(content)
	}
	f.Content = &text
	return f
}

// Bytes is the content as it is in the file; nil when f has none.
func (f FileValue) Bytes() ([]byte, error) {
	switch {
	case f.Content == nil:
		return nil, nil
	case f.Base64:
		return base64.StdEncoding.DecodeString(*f.Content)
	}
	return []byte(*f.Content), nil
}

// CommandValue is the value of a command knob: its definition, and whether it is applied. Its text form is JSON. All
// three commands are argument lists.
type CommandValue struct {
	Apply   []string `json:"apply"`  // puts it in force
	Verify  []string `json:"verify"` // exit 0 when it is in force, 1 when it is not; anything else is an error
	Revert  []string `json:"revert"` // takes it back
	Timeout Duration `json:"timeout_s"`
	Applied bool     `json:"applied"`
}

// String is the text form.
func (c CommandValue) String() string { return jsonText(c) }

// ParseCommandValue reads the text form.
func ParseCommandValue(text string) (CommandValue, error) {
	var c CommandValue
	if err := strictJSON(text, &c); err != nil {
		return c, fmt.Errorf("value of a command: %w", err)
	}
	return c, nil
}

func jsonText(v any) string {
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return "" // cannot be: texts, lists of texts and numbers only
	}
	return strings.TrimSuffix(out.String(), "\n")
}

func strictJSON(text string, into any) error {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	return decoder.Decode(into)
}
