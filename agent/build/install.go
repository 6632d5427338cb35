package build

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"ngxlab/lab"
)

// Install installs what is missing of packages, named as Debian names them, by the host's package manager (apt-get,
// dnf or yum), with sudo -n when not root. It never touches the host's source lists; the package lists are fetched
// anew only when they do not know a package or are out of date. What the package manager prints goes to log, when it is
// not nil. Errors name the packages that are missing.
func (c Cache) Install(ctx context.Context, packages []string, log io.Writer) error {
	if log == nil {
		log = io.Discard
	}
	manager, err := c.manager()
	if err != nil {
		return fmt.Errorf("install %s: %w", strings.Join(packages, " "), err)
	}
	missing := manager.missing(ctx, packages)
	if len(missing) == 0 {
		return nil
	}
	if err := c.mayInstall(ctx); err != nil {
		return fmt.Errorf("install %s: %w", strings.Join(missing, " "), err)
	}
	if err := manager.install(ctx, missing, log); err != nil {
		return fmt.Errorf("install %s: %w", strings.Join(missing, " "), err)
	}
	if left := manager.missing(ctx, missing); len(left) > 0 {
		return fmt.Errorf("install %s: still missing after it was installed", strings.Join(left, " "))
	}
	return nil
}

// mayInstall says why this user cannot install: not root, and no sudo that asks for nothing.
func (c Cache) mayInstall(ctx context.Context) error {
	if os.Geteuid() == 0 {
		return nil
	}
	if err := c.run(ctx, lab.Command{Argv: []string{"sudo", "-n", "true"}, Deadline: brief}, io.Discard); err != nil {
		return fmt.Errorf("not root, and sudo without a password is not to be had (%w); install them by hand", err)
	}
	return nil
}

// manager is a package manager.
type manager struct {
	missing func(ctx context.Context, packages []string) []string
	install func(ctx context.Context, packages []string, log io.Writer) error
}

// manager returns the host's own.
func (c Cache) manager() (manager, error) {
	if _, err := exec.LookPath("apt-get"); err == nil {
		return manager{c.aptMissing, c.aptInstall}, nil
	}
	for _, name := range []string{"dnf", "yum"} {
		if _, err := exec.LookPath(name); err == nil {
			return manager{c.rpmMissing, c.rpmInstall(name)}, nil
		}
	}
	return manager{}, errors.New("no apt-get, dnf or yum on this host; install them by hand")
}

// aptMissing asks dpkg-query(1); a name with "unknown" or "not-installed" is missing.
func (c Cache) aptMissing(ctx context.Context, packages []string) []string {
	var missing []string
	for _, p := range packages {
		var out bytes.Buffer
		err := c.run(ctx, lab.Command{Argv: []string{"dpkg-query", "-W", "-f=${db:Status-Status}\n", p}, Deadline: brief}, &out)
		if err != nil || !strings.Contains(out.String(), "installed\n") || strings.HasPrefix(out.String(), "not-") {
			missing = append(missing, p)
		}
	}
	return missing
}

var brief = lab.Duration{Duration: time.Minute}

// aptInstall fetches the lists first when they do not know every package, and once more when an install fails: lists
// older than the mirror name files that are gone.
func (c Cache) aptInstall(ctx context.Context, packages []string, log io.Writer) error {
	install := append([]string{"apt-get", "install", "-y", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=120"}, packages...)
	update := []string{"apt-get", "update", "-o", "DPkg::Lock::Timeout=120"}
	known := append([]string{"apt-cache", "show", "--no-all-versions"}, packages...)
	if c.run(ctx, lab.Command{Argv: known, Deadline: brief}, io.Discard) == nil {
		if err := c.privileged(ctx, install, log); err == nil || ctx.Err() != nil {
			return err
		}
	}
	if err := c.privileged(ctx, update, log); err != nil {
		return err
	}
	return c.privileged(ctx, install, log)
}

// privileged runs a command as root and shows the end of its output when it does not succeed.
func (c Cache) privileged(ctx context.Context, argv []string, log io.Writer) error {
	argv = append([]string{"env", "DEBIAN_FRONTEND=noninteractive"}, argv...)
	if os.Geteuid() != 0 {
		argv = append([]string{"sudo", "-n"}, argv...)
	}
	var out bytes.Buffer
	err := c.run(ctx, lab.Command{Argv: argv, Deadline: lab.Duration{Duration: 20 * time.Minute}}, io.MultiWriter(&out, log))
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(argv, " "), err, tail(out.String(), logLines))
	}
	return nil
}

// rpmNames are the names that differ on Fedora, RHEL and their like.
var rpmNames = map[string]string{
	"apache2-utils": "httpd-tools", "nghttp2-client": "nghttp2", "xz-utils": "xz", "golang-go": "golang", "g++": "gcc-c++",
	"libc6-dev": "glibc-devel", "libcrypt-dev": "libxcrypt-devel", "libpcre2-dev": "pcre2-devel", "libpcre3-dev": "pcre-devel",
	"zlib1g-dev": "zlib-devel", "libssl-dev": "openssl-devel", "libxslt1-dev": "libxslt-devel", "libgd-dev": "gd-devel",
	"libgeoip-dev": "GeoIP-devel", "libperl-dev": "perl-ExtUtils-Embed", "libgflags-dev": "gflags-devel", "libleveldb-dev": "leveldb-devel",
	"libprotobuf-dev": "protobuf-devel", "libprotoc-dev": "protobuf-devel",
}

func rpmName(p string) string {
	if name, ok := rpmNames[p]; ok {
		return name
	}
	return p
}

func (c Cache) rpmMissing(ctx context.Context, packages []string) []string {
	var missing []string
	for _, p := range packages {
		if c.run(ctx, lab.Command{Argv: []string{"rpm", "-q", "--quiet", rpmName(p)}, Deadline: brief}, io.Discard) != nil {
			missing = append(missing, p)
		}
	}
	return missing
}

func (c Cache) rpmInstall(name string) func(context.Context, []string, io.Writer) error {
	return func(ctx context.Context, packages []string, log io.Writer) error {
		argv := []string{name, "install", "-y"}
		for _, p := range packages {
			argv = append(argv, rpmName(p))
		}
		return c.privileged(ctx, argv, log)
	}
}
