package watch

import (
	"bytes"
	"fmt"
	"io"
	"iter"
	"strconv"

	"golang.org/x/sys/unix"
)

// maxFile bounds what is read of one file; the largest read here, vmstat, smaps_rollup and netstat, have 4 to 6 KB,
// slabinfo and /proc/stat some tens.
const maxFile = 1 << 20

// reader reads small files of proc with as few system calls as can be, into a buffer that the next read overwrites.
type reader struct{ buf []byte }

func (r *reader) read(path string) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	defer unix.Close(fd) //nolint:errcheck // opened for reading
	if r.buf == nil {
		r.buf = make([]byte, 1<<15)
	}
	n := 0
	for {
		m, err := unix.Read(fd, r.buf[n:])
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		if n += m; m == 0 {
			return r.buf[:n], nil
		}
		if n == len(r.buf) && n >= maxFile {
			return nil, fmt.Errorf("read %s: longer than %d bytes: %w", path, maxFile, io.ErrShortBuffer)
		}
		if n == len(r.buf) {
			r.buf = append(r.buf, make([]byte, n)...)
		}
	}
}

// fields are the words of a line, without allocating.
func fields(line []byte) iter.Seq[[]byte] { return bytes.FieldsSeq(line) }

func number(text []byte) (uint64, error) { return strconv.ParseUint(string(text), 10, 64) }
