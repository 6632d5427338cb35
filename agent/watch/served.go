package watch

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"ngxlab/lab"
)

const (
	maxCount   = 1 << 20 // bytes of a page with a count that are read
	maxPattern = 16      // patterns kept: one a server
)

// anyNumber is the pattern of a count on a page when there is none.
const anyNumber = `(\d+)`

// counter reads how many requests a server without stub_status says that it has served.
type counter struct {
	master   int    // of the server that the rest is about
	polls    uint64 // of its page
	perPoll  uint64 // by how many each raises the count
	tuned    bool   // perPoll is known
	lines    uint64 // of its log that count
	offset   int64  // up to which the log is read
	inode    uint64 // of the log
	lost     bool   // the log was rotated or emptied: how many lines it had is not known any more
	patterns map[string]*regexp.Regexp
}

// count is one reading, nil when it could not be had.
func (c *counter) count(ctx context.Context, s lab.Server, what lab.Watch) *lab.Served {
	if c.master != s.Master {
		*c = counter{master: s.Master, patterns: c.patterns}
	}
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	if what.ServedBy.Log != "" {
		return c.byLog(s, *what.ServedBy)
	}
	n, err := c.byPage(ctx, what)
	if err != nil {
		return nil
	}
	return &lab.Served{Requests: n, Polls: c.polls, PerPoll: c.perPoll}
}

// byPage asks a page. The first time it asks twice: the difference says whether the server counts these requests too. It is
// asked before the load begins, and more than one in between is somebody else's.
func (c *counter) byPage(ctx context.Context, what lab.Watch) (uint64, error) {
	n, err := c.page(ctx, what)
	if err != nil || c.tuned {
		return n, err
	}
	second, err := c.page(ctx, what)
	if err == nil {
		c.tuned = true
		c.perPoll = min(second-min(n, second), 1)
	}
	return second, err
}

func (c *counter) page(ctx context.Context, what lab.Watch) (uint64, error) {
	text, connected, err := page(ctx, what)
	if connected {
		c.polls++
	}
	if err != nil {
		return 0, err
	}
	pattern := what.ServedBy.Pattern
	if pattern == "" {
		pattern = anyNumber
	}
	re, err := c.pattern(pattern)
	if err != nil {
		return 0, err
	}
	found := re.FindSubmatch(text)
	if found == nil {
		return 0, fmt.Errorf("count of %s: nothing fits %s", what.ServedBy.URL, pattern)
	}
	return strconv.ParseUint(strings.ReplaceAll(string(found[min(1, len(found)-1)]), ",", ""), 10, 64)
}

// page asks for a path of the site on a connection of its own.
func page(ctx context.Context, what lab.Watch) (text []byte, connected bool, err error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(lab.Loopback, strconv.Itoa(what.Port)))
	if err != nil {
		return nil, false, err
	}
	defer conn.Close() //nolint:errcheck // answered or given up
	end, _ := ctx.Deadline()
	if err := conn.SetDeadline(end); err != nil {
		return nil, true, err
	}
	if what.TLS {
		conn = tls.Client(conn, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}}) //nolint:gosec // this host's own server
	}
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", what.ServedBy.URL); err != nil {
		return nil, true, err
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return nil, true, err
	}
	defer resp.Body.Close() //nolint:errcheck // only read
	if resp.StatusCode != http.StatusOK {
		return nil, true, fmt.Errorf("count of %s: status %s", what.ServedBy.URL, resp.Status)
	}
	text, err = io.ReadAll(io.LimitReader(resp.Body, maxCount))
	return text, true, err
}

// byLog counts the lines that were added to a log since the server started, reading each once.
func (c *counter) byLog(s lab.Server, by lab.Count) *lab.Served {
	var re *regexp.Regexp // nil: all lines count
	var err error
	if by.Pattern != "" {
		if re, err = c.pattern(by.Pattern); err != nil {
			return nil
		}
	}
	f, err := os.Open(filepath.Join(s.Prefix, by.Log))
	if err != nil {
		return nil
	}
	defer f.Close() //nolint:errcheck // opened for reading
	var info unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &info); err != nil {
		return nil
	}
	if c.inode == 0 {
		c.inode = info.Ino
	}
	if c.lost = c.lost || info.Ino != c.inode || info.Size < c.offset; c.lost {
		return nil
	}
	if err := c.read(io.NewSectionReader(f, c.offset, info.Size-c.offset), re); err != nil {
		return nil
	}
	return &lab.Served{Requests: c.lines}
}

// read counts whole lines; one that is being written is left for the next time. Of a line longer than the buffer, its
// beginning is held against the pattern.
func (c *counter) read(r io.Reader, re *regexp.Regexp) error {
	for lines := bufio.NewReaderSize(r, 1<<16); ; {
		line, err := lines.ReadSlice('\n')
		counts, size := re == nil || re.Match(bytes.TrimSuffix(line, []byte("\n"))), len(line)
		for errors.Is(err, bufio.ErrBufferFull) {
			line, err = lines.ReadSlice('\n')
			size += len(line)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		c.offset += int64(size)
		if counts {
			c.lines++
		}
	}
}

// pattern compiles a pattern once.
func (c *counter) pattern(text string) (*regexp.Regexp, error) {
	if re := c.patterns[text]; re != nil {
		return re, nil
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, err
	}
	if c.patterns == nil || len(c.patterns) >= maxPattern {
		c.patterns = map[string]*regexp.Regexp{}
	}
	c.patterns[text] = re
	return re, nil
}
