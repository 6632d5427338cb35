package knob

// faults lets tests kill a keeper at a named point or in the middle of a line, and make what it does to its journal
// fail. The zero value does nothing.
type faults struct {
	at   func(point string)
	torn func(text []byte) []byte
	err  func(operation string) error
}

func (f faults) fail(operation string) error {
	if f.err == nil {
		return nil
	}
	return f.err(operation)
}

func (f faults) reach(point string) {
	if f.at != nil {
		f.at(point)
	}
}

func (f faults) tear(text []byte) []byte {
	if f.torn == nil {
		return text
	}
	return f.torn(text)
}
