package hold

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// maxHead bounds the header of an answer, and a line of a chunked body.
const maxHead = 1 << 15

// answer finds the end of one HTTP/1.1 response that comes in parts (RFC 9112 §6). Body bytes are not kept.
type answer struct {
	text    []byte // what came and is not understood yet
	inBody  bool
	chunked bool
	left    int64 // bytes of the body, or of the chunk and its line end, that are to come
	last    bool  // the last chunk was seen; what follows is its trailer
}

// feed takes the next part and reports whether the response is complete. A status of 400 or more, a response whose
// end only the closing would tell, and bytes after its end are errors.
func (a *answer) feed(part []byte) (done bool, err error) {
	a.text = append(a.text, part...)
	if !a.inBody {
		head, rest, ok := bytes.Cut(a.text, []byte("\r\n\r\n"))
		if !ok && len(a.text) > maxHead {
			return false, errors.New("response: header is too long")
		}
		if !ok {
			return false, nil
		}
		if err := a.head(string(head)); err != nil {
			return false, err
		}
		a.text = rest
	}
	for a.chunked && a.left == 0 || a.left > 0 && len(a.text) > 0 {
		if a.left > 0 {
			n := min(a.left, int64(len(a.text)))
			a.left -= n
			a.text = a.text[n:]
			continue
		}
		if done, err := a.chunk(); done || err != nil {
			return done, err
		}
		if a.left == 0 {
			return false, nil // an incomplete line
		}
	}
	if a.left > 0 {
		a.text = nil
		return false, nil
	}
	return true, a.end()
}

// head reads the status line and the fields that tell where the body ends.
func (a *answer) head(text string) error {
	lines := strings.Split(text, "\r\n")
	status, err := strconv.Atoi(field(lines[0], 1))
	if err != nil || !strings.HasPrefix(lines[0], "HTTP/1.") {
		return fmt.Errorf("response: %.40q is not a status line", lines[0])
	}
	if status < 200 || status >= 400 {
		return fmt.Errorf("response: status %d", status)
	}
	a.inBody = true
	known := status == 204 || status == 304
	for _, l := range lines[1:] {
		name, value, _ := strings.Cut(l, ":")
		value = strings.TrimSpace(value)
		switch strings.ToLower(name) {
		case "content-length":
			if a.left, err = strconv.ParseInt(value, 10, 64); err != nil || a.left < 0 {
				return fmt.Errorf("response: length %q", value)
			}
			known = true
		case "transfer-encoding":
			a.chunked = strings.EqualFold(value, "chunked")
		}
	}
	if status == 204 || status == 304 || a.chunked {
		a.left, a.chunked = 0, a.chunked && status != 204 && status != 304
	} else if !known {
		return errors.New("response: neither a length nor chunked")
	}
	return nil
}

func field(line string, i int) string {
	f := strings.Fields(line)
	if i >= len(f) {
		return ""
	}
	return f[i]
}

// chunk reads the line with the size of the next chunk, or the lines after the last one.
func (a *answer) chunk() (done bool, err error) {
	for {
		line, rest, ok := bytes.Cut(a.text, []byte("\r\n"))
		if !ok && len(a.text) > maxHead {
			return false, errors.New("response: line of a chunk is too long")
		}
		if !ok {
			return false, nil
		}
		a.text = rest
		if a.last && len(line) == 0 {
			return true, a.end()
		}
		if a.last {
			continue // a trailer field
		}
		size, _, _ := strings.Cut(string(line), ";")
		n, err := strconv.ParseUint(strings.TrimSpace(size), 16, 62)
		if err != nil {
			return false, fmt.Errorf("response: size of a chunk: %w", err)
		}
		if n > 0 {
			a.left = int64(n) + 2 // with the line end after it
			return false, nil
		}
		a.last = true
	}
}

// end is called behind the response.
func (a *answer) end() error {
	if len(a.text) > 0 {
		return fmt.Errorf("response: %d bytes after its end", len(a.text))
	}
	return nil
}
