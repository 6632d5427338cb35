package build

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"ngxlab/lab"
)

// logLines is how many lines of the build log an error shows.
const logLines = 20

// modulesDir is where the shared objects of a build are kept.
const modulesDir = "modules"

// compile makes work/server; afterwards work/out holds the binary, what it needs and the log.
func (c Cache) compile(ctx context.Context, j job, work string, b *lab.Build) error {
	out, dir := filepath.Join(work, "out"), filepath.Join(work, "server")
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	flags, err := remedied(j.recipe, dir, b)
	if err != nil {
		return err
	}
	for _, p := range parts(j.recipe, work) {
		if err := j.maker.gets(p.into); err != nil {
			return err
		}
	}
	j.recipe.Flags, b.MadeBy = flags, j.maker.name
	if err := c.logged(ctx, j, work, b); err != nil {
		return err
	}
	if err := j.collect(work, b); err != nil {
		return err
	}
	if err := published(out); err != nil {
		return err
	}
	return c.examined(ctx, j, out, b)
}

// logged runs the commands that make the build, with a log.
func (c Cache) logged(ctx context.Context, j job, work string, b *lab.Build) error {
	file, err := os.Create(filepath.Join(work, "out", buildLog))
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // closed below, where it matters
	lines := &buildLogger{file: file, also: j.log}
	if err := c.steps(ctx, j, filepath.Join(work, "server"), lines, b); err != nil {
		return c.keepLog(ctx, j, lines, err)
	}
	if err := cmp.Or(lines.err, file.Close()); err != nil {
		return fmt.Errorf("write the log: %w", err)
	}
	return nil
}

// steps runs what the recipe says, or configure and make.
func (c Cache) steps(ctx context.Context, j job, dir string, lines *buildLogger, b *lab.Build) error {
	if len(j.recipe.Make) > 0 || !j.recipe.IsNginx() {
		for _, argv := range j.recipe.Make {
			if err := c.step(ctx, j, lab.Command{Argv: argv, Dir: dir, Env: compilerEnv(j.recipe)}, lines); err != nil {
				return fmt.Errorf("%.200s: %w", strings.Join(argv, " "), err)
			}
		}
		return nil
	}
	configure := "./configure"
	if _, err := os.Stat(filepath.Join(dir, "configure")); err != nil {
		configure = "auto/configure" // as in nginx's repository
	}
	if err := c.step(ctx, j, lab.Command{Argv: append([]string{"sh", configure}, j.recipe.Flags...), Dir: dir}, lines); err != nil {
		return fmt.Errorf("configure: %w", err)
	}
	if err := c.compiled(ctx, j, dir, lines, b); err != nil {
		return fmt.Errorf("compile: %w", err)
	}
	return nil
}

// compiled runs make over all cores; where the memory does not last for that, it goes on with one compiler at a time.
func (c Cache) compiled(ctx context.Context, j job, dir string, lines *buildLogger, b *lab.Build) error {
	err := c.step(ctx, j, lab.Command{Argv: []string{"make", "-j" + strconv.Itoa(runtime.NumCPU())}, Dir: dir}, lines)
	if err == nil || ctx.Err() != nil || !outOfMemory.Match(lines.last) {
		return err
	}
	const note = "the compiler was ended for want of memory; compiled again one file at a time"
	b.Notes = append(b.Notes, note)
	fmt.Fprintln(lines, note) //nolint:errcheck // a log that cannot be written is told by keepLog
	return c.step(ctx, j, lab.Command{Argv: []string{"make", "-j1"}, Dir: dir}, lines)
}

// compilerEnv is what commands that make a build find of the recipe's compiler and flags.
func compilerEnv(r lab.Recipe) []string {
	var env []string
	for _, v := range []struct{ name, value string }{{"CC", r.Compiler}, {"CFLAGS", r.CFlags}, {"CXXFLAGS", r.CFlags}, {"LDFLAGS", r.LDFlags}} {
		if v.value != "" {
			env = append(env, v.name+"="+v.value)
		}
	}
	return env
}

// defaultTimeout is what one command of a build may take.
const defaultTimeout = time.Hour

// step runs one command as the maker, within the time of the recipe.
func (c Cache) step(ctx context.Context, j job, command lab.Command, log io.Writer) error {
	limit := j.recipe.Timeout.Duration
	if limit <= 0 {
		limit = defaultTimeout
	}
	command.Deadline = lab.Duration{Duration: limit}
	began := time.Now()
	err := c.run(ctx, j.maker.of(command), log)
	switch {
	case err != nil && ctx.Err() == nil && time.Since(began) >= limit:
		return fmt.Errorf("stopped after %v, which is all that it may take; raise timeout: of the build (%w)", limit, err)
	case errors.Is(err, errNotFound) && len(j.recipe.Packages) > 0:
		return fmt.Errorf("%w; install the packages %s", err, strings.Join(j.recipe.Packages, " "))
	case errors.Is(err, errNotFound):
		return fmt.Errorf("%w; name its package under packages: of the build", err)
	}
	return err
}

// examined asks the finished binary what it is, and holds that against what was asked for.
func (c Cache) examined(ctx context.Context, j job, out string, b *lab.Build) error {
	path := filepath.Join(out, b.Binary)
	if !j.recipe.IsNginx() {
		return c.ownVersion(ctx, j, out, b)
	}
	var err error
	if b.Configured, b.Version, err = c.inspect(ctx, path, placedEnv(b.Env, out)); err != nil {
		return err
	}
	b.Modules = modulesOf(path, b.Configured)
	if want := j.recipe.Version; want != "" && want != b.Version && !strings.HasPrefix(b.Version, want+"-") {
		return fmt.Errorf("%w: asked for %s, the server says %s", errVersion, want, b.Version)
	}
	return nil
}

// ownVersion asks a server that is not nginx by its own command.
func (c Cache) ownVersion(ctx context.Context, j job, out string, b *lab.Build) error {
	b.Version = j.recipe.Version
	if j.recipe.Command == nil || len(j.recipe.Command.Version) == 0 {
		if b.Version != "" {
			b.Notes = append(b.Notes, fmt.Sprintf("whether the server is version %s cannot be seen: its command names no version", b.Version))
		}
		return nil
	}
	words := strings.NewReplacer("{binary}", filepath.Join(out, b.Binary), "{build}", out, "{prefix}", out)
	var argv []string
	for _, word := range j.recipe.Command.Version {
		argv = append(argv, words.Replace(word))
	}
	var answer bytes.Buffer
	if err := c.run(ctx, lab.Command{Argv: argv, Env: placedEnv(b.Env, out), Deadline: brief}, &answer); err != nil {
		return fmt.Errorf("ask the server for its version: %w: %.500s", err, bytes.TrimSpace(answer.Bytes()))
	}
	b.Configured = strings.TrimSpace(answer.String())
	said := anyVersion.FindString(b.Configured)
	if want := j.recipe.Version; want != "" && said != "" && !slices.Contains(anyVersion.FindAllString(b.Configured, -1), want) {
		return fmt.Errorf("%w: asked for %s, the server says %s", errVersion, want, said)
	}
	b.Version = cmp.Or(j.recipe.Version, said)
	return nil
}

// anyVersion is the first thing that looks like a version.
var anyVersion = regexp.MustCompile(`\d+(\.\d+)+[\w.-]*`)

// placedEnv is an environment with the directory of the build in its place.
func placedEnv(env []string, dir string) []string {
	var placed []string
	for _, e := range env {
		placed = append(placed, strings.ReplaceAll(e, "{build}", dir))
	}
	return placed
}

// modulesOf are the modules compiled into a binary, as it names them itself, or as its -V does where it was stripped.
func modulesOf(path, configured string) []string {
	f, err := os.Open(path)
	if err != nil {
		return lab.ConfiguredModules(configured)
	}
	defer f.Close() //nolint:errcheck // only read
	names, err := lab.NginxModules(f)
	if err != nil {
		return lab.ConfiguredModules(configured)
	}
	return names
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

// text is all of the file: of the one that was opened, whatever who compiles has put in its place.
func (l *buildLogger) text() ([]byte, error) {
	info, err := l.file.Stat()
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.NewSectionReader(l.file, 0, info.Size()))
}

// keepLog copies the log of a build that stopped to where it stays, and shows its end.
func (c Cache) keepLog(ctx context.Context, j job, l *buildLogger, cause error) error {
	if ctx.Err() != nil {
		return cause
	}
	kept := filepath.Join(c.builds(), "failed-"+j.key+".log")
	if why := reason(string(l.last), c.builds(), cause); why != "" {
		cause = fmt.Errorf("%s (%w)", why, cause)
	}
	where := "the log is " + kept
	text, err := l.text()
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
func (c Cache) inspect(ctx context.Context, path string, env []string) (configured, version string, err error) {
	var out bytes.Buffer
	if err := c.run(ctx, lab.Command{Argv: []string{path, "-V"}, Env: env, Deadline: brief}, &out); err != nil {
		return "", "", fmt.Errorf("%w: %.1000s", err, bytes.TrimSpace(out.Bytes()))
	}
	found := versionLine.FindStringSubmatch(out.String())
	if found == nil {
		return "", "", fmt.Errorf("%s -V says no version: %q", filepath.Base(path), out.String())
	}
	return strings.TrimSpace(out.String()), found[1], nil
}
