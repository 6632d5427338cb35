package watch

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"ngxlab/lab"
)

// sayTimeout bounds a command that is asked what it is.
const sayTimeout = 10 * time.Second

// folders are searched for commands after $PATH, which a session without a login often lacks parts of.
const folders = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// versionOptions are how load tools are asked for their version. wrk answers with exit code 1.
var versionOptions = map[string]string{"wrk": "-v", "h2load": "--version", "siege": "--version", "nginx": "-v"}

// toolPackages are the packages of load tools that do not say their version: ab's banner gives that of a source file.
var toolPackages = map[string]string{"ab": "apache2-utils"}

func (w *Watcher) softwareFacts(ctx context.Context, q lab.FactsQuery, f *lab.Facts) {
	f.Commands, f.Packages, f.ToolVersions = map[string]string{}, packages(ctx, q.Packages), map[string]string{}
	for _, name := range q.Commands {
		path := find(name)
		if path == "" {
			continue
		}
		f.Commands[name] = path
		if version := toolVersion(ctx, name, path); version != "" {
			f.ToolVersions[name] = version
		}
	}
	f.CanInstall, f.Users = canInstall(ctx, f.Root), users(q.Users)
	if cc := find("cc"); cc != "" {
		text, _ := say(ctx, cc, "--version")
		f.Compiler = firstLine(text)
	}
}

// users are those asked for that the host's own files have, with their numbers.
func users(names []string) map[string]int {
	known := map[string]int{}
	for _, name := range names {
		u, err := user.Lookup(name)
		if err != nil {
			continue // there is none of that name
		}
		if uid, err := strconv.Atoi(u.Uid); err == nil {
			known[name] = uid
		}
	}
	return known
}

// find is the absolute path of a command; "" when there is none.
func find(name string) string {
	if name == "" || strings.Contains(name, "/") {
		return ""
	}
	for _, dir := range filepath.SplitList(os.Getenv("PATH") + ":" + folders) {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && filepath.IsAbs(dir) && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0 {
			return path
		}
	}
	return ""
}

// toolVersion is what a load tool says of itself, or the package it comes from and its version; "" when neither is known.
func toolVersion(ctx context.Context, name, path string) string {
	if option, ok := versionOptions[name]; ok {
		text, _ := say(ctx, path, option)
		return firstLine(text)
	}
	pkg := toolPackages[name]
	if pkg == "" || !shipped(ctx, pkg, path) {
		return ""
	}
	if version := packages(ctx, []string{pkg})[pkg]; version != "" {
		return pkg + " " + version
	}
	return ""
}

// shipped reports whether a file is from a Debian package. To ask for the package of a file (dpkg-query -S) reads the lists
// of all packages, which takes as long as all other facts.
func shipped(ctx context.Context, pkg, path string) bool {
	files, err := say(ctx, "dpkg-query", "-L", pkg)
	if err != nil {
		return false
	}
	if real, err := filepath.EvalSymlinks(path); err == nil { // /bin may be a link
		path = real
	}
	return slices.Contains(strings.Split(files, "\n"), path)
}

// packages are the installed ones of the names with their versions, from dpkg or rpm.
func packages(ctx context.Context, names []string) map[string]string {
	m := map[string]string{}
	if len(names) == 0 {
		return m
	}
	ask := []string{"dpkg-query", "-W", "-f", "${Package}\t${Version}\t${db:Status-Status}\n", "--"}
	if find("dpkg-query") == "" {
		ask = []string{"rpm", "-q", "--qf", "%{NAME}\t%{VERSION}-%{RELEASE}\tinstalled\n", "--"}
	}
	text, _ := say(ctx, ask[0], append(ask[1:], names...)...) // fails when one is missing, and tells of the others
	for line := range strings.Lines(text) {
		f := strings.Split(strings.TrimSpace(line), "\t")
		if len(f) == 3 && f[2] == "installed" && slices.Contains(names, f[0]) {
			m[f[0]] = f[1]
		}
	}
	return m
}

func canInstall(ctx context.Context, root bool) bool {
	if find("apt-get") == "" && find("dnf") == "" && find("yum") == "" {
		return false
	}
	if root {
		return true
	}
	sudo := find("sudo")
	if sudo == "" {
		return false
	}
	_, err := say(ctx, sudo, "-n", "true")
	return err == nil
}

// say runs a command and returns its standard output, followed by its standard error where that is empty. A non-zero
// exit is an error, with the text all the same.
func say(ctx context.Context, name string, args ...string) (string, error) {
	if !filepath.IsAbs(name) {
		if name = find(name); name == "" {
			return "", exec.ErrNotFound
		}
	}
	ctx, cancel := context.WithTimeout(ctx, sayTimeout)
	defer cancel()
	var out, problems strings.Builder
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &problems, time.Second
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	err := cmd.Run()
	if out.Len() == 0 {
		return problems.String(), err
	}
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return "", err
	}
	return out.String(), err
}

func firstLine(text string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(first)
}
