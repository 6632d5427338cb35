package outputs

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// maxLine bounds one line of output; longer lines (bodies in verbose output) are cut.
const maxLine = 4 << 20

// maxLines bounds the lines kept of one text output; a report of ab or wrk has fewer than 100.
const maxLines = 200_000

// escapes matches terminal colours and cursor moves.
var escapes = regexp.MustCompile("\x1b\\[[0-9;?]*[a-zA-Z]")

// eachLine calls f for every line without its end; CRLF counts as one end, and of a line that a progress display
// rewrote with carriage returns, only the last text is given.
func eachLine(r io.Reader, f func(line string) error) error {
	br := bufio.NewReaderSize(r, 64<<10)
	for {
		line, err := readLine(br)
		if line != "" || err == nil {
			if ferr := f(line); ferr != nil {
				return ferr
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read output: %w", err)
		}
	}
}

func readLine(br *bufio.Reader) (string, error) {
	var line []byte
	for {
		part, err := br.ReadSlice('\n')
		if len(line) < maxLine {
			line = append(line, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		return cleanLine(string(line)), err
	}
}

func cleanLine(line string) string {
	line = strings.TrimRight(line, "\r\n")
	if i := strings.LastIndexByte(line, '\r'); i >= 0 {
		line = line[i+1:]
	}
	if strings.IndexByte(line, 0x1b) >= 0 {
		line = escapes.ReplaceAllString(line, "")
	}
	return line
}

// allLines returns every line of a text output.
func allLines(r io.Reader) ([]string, error) {
	var lines []string
	err := eachLine(r, func(line string) error {
		if len(lines) == maxLines {
			return fmt.Errorf("output has more than %d lines", maxLines)
		}
		lines = append(lines, line)
		return nil
	})
	return lines, err
}

// number reads a finite decimal number; "-nan" and "inf" are no numbers.
func number(s string) (float64, bool) {
	if s == "" || strings.ContainsAny(s, "nNiIxX_") {
		return 0, false
	}
	v, err := strconv.ParseFloat(s, 64)
	return v, err == nil
}

// count reads a whole number of at least 0.
func count(s string) (float64, bool) {
	v, err := strconv.ParseInt(s, 10, 64)
	return float64(v), err == nil && v >= 0
}

// unit is a suffix and what it multiplies by.
type unit struct {
	suffix string
	factor float64
}

// withUnit reads a number that carries one of the units; longer suffixes first in the list.
func withUnit(s string, units []unit) (float64, bool) {
	for _, u := range units {
		if digits, found := strings.CutSuffix(s, u.suffix); found {
			v, ok := number(digits)
			if u.factor < 1 {
				return v / math.Round(1/u.factor), ok // keeps 9.3 ms the float nearest to 0.0093
			}
			return v * u.factor, ok
		}
	}
	return 0, false
}
