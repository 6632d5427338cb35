package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
)

// noiseLimit is how much a talking shell may print before the greeting.
const noiseLimit = 64 << 10

var greeting = regexp.MustCompile(`ngxlab-agent/([0-9]{1,9}) ([0-9a-f]{64})$`)

// Greeting is the agent's first line.
type Greeting struct {
	Protocol int
	Hash     string // SHA-256 of the agent's binary, in hexadecimal
}

// WriteGreeting writes the line.
func WriteGreeting(w io.Writer, g Greeting) error {
	_, err := fmt.Fprintf(w, "ngxlab-agent/%d %s\n", g.Protocol, g.Hash)
	return err
}

// ErrNoGreeting is returned for a stream that holds no greeting in its first 64 KiB, or ends before one.
var ErrNoGreeting = errors.New("no greeting of an agent")

// ReadGreeting reads up to and with the greeting, byte by byte so that nothing after it is taken, and returns what stood
// before it (a message of the day, an echo in a start-up file), also with an error.
func ReadGreeting(r io.Reader) (g Greeting, noise []byte, err error) {
	one, line := make([]byte, 1), 0 // line: where the current line begins
	for len(noise) < noiseLimit {
		if _, err := io.ReadFull(r, one); err != nil {
			return g, noise, fmt.Errorf("%w: %w", ErrNoGreeting, err)
		}
		if one[0] != '\n' {
			noise = append(noise, one[0])
			continue
		}
		text := bytes.TrimSuffix(noise[line:], []byte("\r"))
		if found := greeting.FindSubmatchIndex(text); found != nil {
			g.Hash = string(text[found[4]:found[5]])
			g.Protocol, err = strconv.Atoi(string(text[found[2]:found[3]]))
			return g, noise[:line+found[0]], err
		}
		noise = append(noise, '\n')
		line = len(noise)
	}
	return g, noise, fmt.Errorf("%w in %d bytes", ErrNoGreeting, len(noise))
}
