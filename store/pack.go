package store

import (
	"encoding/json"
	"fmt"
	"time"
)

// timeLayout is RFC 3339 in UTC of one width, so that times sort as text.
const timeLayout = "2006-01-02T15:04:05.000000Z"

func formatTime(t time.Time) string { return t.UTC().Format(timeLayout) }

func parseTime(text string) (time.Time, error) { return time.Parse(timeLayout, text) }

// pack compresses b; nil stays nil.
func (s *Store) pack(b []byte) []byte {
	if b == nil {
		return nil
	}
	return s.enc.EncodeAll(b, nil)
}

// unpack is the inverse of pack.
func (s *Store) unpack(b []byte) ([]byte, error) {
	if b == nil {
		return nil, nil
	}
	return s.dec.DecodeAll(b, []byte{})
}

// packJSON marshals and compresses v.
func (s *Store) packJSON(v any) ([]byte, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return s.pack(text), nil
}

// unpackJSON is the inverse of packJSON.
func (s *Store) unpackJSON(b []byte, v any) error {
	text, err := s.unpack(b)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, v)
}

// jsonText marshals v for a text column.
func jsonText(v any) (string, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("as JSON: %w", err)
	}
	return string(text), nil
}
