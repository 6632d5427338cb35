package build

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"

	"ngxlab/lab"
)

// logLines is how many lines of the build log an error shows.
const logLines = 20

// compile configures and makes work/server; afterwards work/out holds the binary and the log.
func (c Cache) compile(ctx context.Context, j job, work string, b *lab.Build) error {
	out := filepath.Join(work, "out")
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	logPath := filepath.Join(out, buildLog)
	file, err := os.Create(logPath)
	if err != nil {
		return err
	}
	lines := &buildLogger{file: file, also: j.log}
	err = c.steps(ctx, j, filepath.Join(work, "server"), lines)
	closed := cmp.Or(lines.err, file.Close())
	if err != nil {
		return c.keepLog(ctx, j, lines, err)
	}
	if closed != nil {
		return fmt.Errorf("write the log: %w", closed)
	}
	path := filepath.Join(out, binary)
	if err := os.Rename(filepath.Join(work, "server", "objs", "nginx"), path); err != nil {
		return fmt.Errorf("the compiled server is not there: %w", err)
	}
	b.Configured, b.Version, err = c.inspect(ctx, path)
	return err
}

// steps runs configure and make.
func (c Cache) steps(ctx context.Context, j job, dir string, log io.Writer) error {
	configure := "./configure"
	if _, err := os.Stat(filepath.Join(dir, "configure")); err != nil {
		configure = "auto/configure" // as in nginx's repository
	}
	configured := lab.Command{
		Argv: append([]string{"sh", configure}, j.recipe.Flags...), Dir: dir, Deadline: lab.Duration{Duration: 15 * time.Minute},
	}
	if err := c.run(ctx, configured, log); err != nil {
		return fmt.Errorf("configure: %w", err)
	}
	made := lab.Command{
		Argv: []string{"make", "-j" + strconv.Itoa(runtime.NumCPU())}, Dir: dir, Deadline: lab.Duration{Duration: time.Hour},
	}
	if err := c.run(ctx, made, log); err != nil {
		return fmt.Errorf("compile: %w", err)
	}
	return nil
}

// buildLogger writes a log to its file and to whoever else wants it. It remembers the end, and goes on when the file
// cannot be written any more: on a full disk the end of the log says what the build lacked.
type buildLogger struct {
	file *os.File
	also io.Writer
	last []byte
	err  error // of the file
}

// remembered is how many bytes of the end of a log are at hand without its file.
const remembered = 16 << 10

func (l *buildLogger) Write(p []byte) (int, error) {
	l.last = append(l.last, p...)
	l.last = l.last[max(0, len(l.last)-remembered):]
	if l.err == nil {
		_, l.err = l.file.Write(p)
	}
	return l.also.Write(p)
}

// keepLog copies the log of a build that stopped to where it stays, and shows its end.
func (c Cache) keepLog(ctx context.Context, j job, l *buildLogger, cause error) error {
	if ctx.Err() != nil {
		return cause
	}
	kept := filepath.Join(c.builds(), "failed-"+j.key+".log")
	where := "the log is " + kept
	text, err := os.ReadFile(l.file.Name())
	if err = cmp.Or(l.err, err); err == nil {
		err = writeFile(kept, text)
	}
	if err != nil {
		where = fmt.Sprintf("the log could not be kept (%v)", err)
	}
	return fmt.Errorf("%w; %s and ends:\n%s", cause, where, tail(string(l.last), logLines))
}

// versionLine is the first line of nginx -V, "nginx version: nginx/1.22.1"; Tengine has its own name there.
var versionLine = regexp.MustCompile(`version: \S+?/(\S+)`)

// inspect returns the whole output of -V and the version in it.
func (c Cache) inspect(ctx context.Context, path string) (configured, version string, err error) {
	var out bytes.Buffer
	if err := c.run(ctx, lab.Command{Argv: []string{path, "-V"}, Deadline: lab.Duration{Duration: time.Minute}}, &out); err != nil {
		return "", "", fmt.Errorf("%w: %.1000s", err, bytes.TrimSpace(out.Bytes()))
	}
	found := versionLine.FindStringSubmatch(out.String())
	if found == nil {
		return "", "", fmt.Errorf("%s -V says no version: %q", filepath.Base(path), out.String())
	}
	return strings.TrimSpace(out.String()), found[1], nil
}
