package watch

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
)

const (
	maxLogLines = 20      // of one sample
	maxLogRead  = 1 << 16 // bytes of one sample: twenty lines of the length nginx allows (2 KB), and some
)

// follower gives the new lines of a log, one log at a time.
type follower struct {
	path   string
	offset int64
}

// lines returns at most the first twenty whole lines that were added since the last call, without their newline, and
// goes on at the end of the log when there are more. A log seen for the first time is read from its start.
func (f *follower) lines(path string) []string {
	if path != f.path {
		f.path, f.offset = path, 0
	}
	if path == "" {
		return nil
	}
	file, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer file.Close() //nolint:errcheck // opened for reading
	st, err := file.Stat()
	if err != nil {
		return nil
	}
	if st.Size() < f.offset {
		f.offset = 0 // emptied or rotated
	}
	if st.Size() == f.offset {
		return nil
	}
	text := make([]byte, min(st.Size()-f.offset, maxLogRead))
	n, err := file.ReadAt(text, f.offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil
	}
	return f.take(text[:n], st.Size())
}

func (f *follower) take(text []byte, size int64) []string {
	end := bytes.LastIndexByte(text, '\n') + 1
	if end == 0 && len(text) < maxLogRead {
		return nil // a line being written
	}
	if end == 0 {
		end = len(text)
	}
	all := strings.Split(strings.TrimSuffix(string(text[:end]), "\n"), "\n")
	f.offset += int64(end)
	if len(all) > maxLogLines || len(text) == maxLogRead {
		f.offset = size
	}
	return all[:min(len(all), maxLogLines)]
}
