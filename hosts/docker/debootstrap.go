package docker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"ngxlab/hosts"
)

// distribution is where this machine takes its packages from.
type distribution struct {
	suite   string // the code name of its release
	mirror  string // of that suite; "" = debootstrap's own choice
	entries []source
}

// source is a suite of an archive with its components.
type source struct {
	uri, suite string
	components []string
}

// list is the distribution as a sources.list.
func (d distribution) list() []byte {
	var text bytes.Buffer
	for _, s := range d.entries {
		fmt.Fprintf(&text, "deb %s %s %s\n", s.uri, s.suite, strings.Join(s.components, " "))
	}
	return text.Bytes()
}

// readDistribution asks apt for this machine's sources.
func readDistribution(ctx context.Context) (distribution, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, "apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT)", "Created-By: Packages").Output()
	if err != nil {
		return distribution{}, fmt.Errorf("ask apt-get where packages come from: %w", err)
	}
	release, err := os.ReadFile("/etc/os-release")
	if err != nil {
		return distribution{}, err
	}
	return parseDistribution(bytes.NewReader(out), release)
}

// parseDistribution reads lines of an archive's address, a suite and a component (apt-get indextargets, apt 2.6), and
// takes those of the release that os-release(5) names, and of its updates.
func parseDistribution(r io.Reader, release []byte) (distribution, error) {
	var d distribution
	for line := range strings.Lines(string(release)) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), "VERSION_CODENAME="); ok {
			d.suite = strings.Trim(v, `"`)
		}
	}
	if d.suite == "" {
		return d, errors.New("/etc/os-release has no VERSION_CODENAME")
	}
	text, err := io.ReadAll(r)
	if err != nil {
		return d, err
	}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) != 3 || f[1] != d.suite && !strings.HasPrefix(f[1], d.suite+"-") {
			continue
		}
		d.add(f[0], f[1], f[2])
	}
	return d, nil
}

func (d *distribution) add(uri, suite, component string) {
	if suite == d.suite && component == "main" && d.mirror == "" {
		d.mirror = uri
	}
	i := slices.IndexFunc(d.entries, func(s source) bool { return s.uri == uri && s.suite == suite })
	if i < 0 {
		d.entries = append(d.entries, source{uri: uri, suite: suite})
		i = len(d.entries) - 1
	}
	if !slices.Contains(d.entries[i].components, component) {
		d.entries[i].components = append(d.entries[i].components, component)
	}
}

// components are those of the release itself, for debootstrap.
func (d distribution) components() string {
	for _, s := range d.entries {
		if s.uri == d.mirror && s.suite == d.suite {
			return strings.Join(s.components, ",")
		}
	}
	return "main"
}

// machineNames are Go's architectures as uname -m, and so Docker, has them.
var machineNames = map[string]string{"amd64": "x86_64", "arm64": "aarch64"}

// debootstrapMost bounds debootstrap, which takes 75 to 150 s near a mirror.
const debootstrapMost = 20 * time.Minute

// debootstrap makes the image from this machine's packages, with this machine's debootstrap.
func (e *Engine) debootstrap(ctx context.Context, ref string) error {
	if _, err := exec.LookPath("debootstrap"); err != nil {
		return fmt.Errorf("debootstrap: %w", err)
	}
	if os.Geteuid() != 0 {
		return errors.New("debootstrap: only root can run it")
	}
	if here := machineNames[runtime.GOARCH]; here != e.facts.architecture {
		return fmt.Errorf("debootstrap: this machine is %s, the engine's is %s", here, e.facts.architecture)
	}
	d, err := readDistribution(ctx)
	if err != nil {
		d = distribution{suite: "bookworm"}
	}
	dir, err := os.MkdirTemp("/var/tmp", "ngxlab-rootfs-")
	if err != nil {
		return fmt.Errorf("debootstrap: %w", err)
	}
	return errors.Join(e.strap(ctx, dir, ref, d), removeTree(dir))
}

func (e *Engine) strap(ctx context.Context, dir, ref string, d distribution) error {
	ctx, cancel := context.WithTimeoutCause(ctx, debootstrapMost, fmt.Errorf("debootstrap took more than %v", debootstrapMost))
	defer cancel()
	args := []string{"--variant=minbase", "--components=" + d.components(), "--include=" + strings.Join(packages, ","), d.suite, dir}
	if d.mirror != "" {
		args = append(args, d.mirror)
	}
	e.say("no registry can be reached: making the image of the hosts with debootstrap (about two minutes; once)")
	if err := runApart(ctx, nil, "debootstrap", args...); err != nil {
		return err
	}
	if list := d.list(); len(list) > 0 {
		if err := os.WriteFile(filepath.Join(dir, "etc/apt/sources.list"), list, 0o644); err != nil {
			return err
		}
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	packed := make(chan error, 1)
	go func() {
		packed <- errors.Join(runApart(ctx, w, "tar", "-C", dir, "--numeric-owner", "--one-file-system", "--exclude=./var/cache/apt/archives/*.deb",
			"--exclude=./etc/ssh/ssh_host_*", "--exclude=./etc/hostname", "--exclude=./etc/resolv.conf", "-cf", "-", "."), w.Close())
	}()
	err = e.during("giving the image to the engine", func() error {
		return e.api.load(ctx, r, ref, map[string]string{labelImage: "made with debootstrap, " + d.suite})
	})
	err = errors.Join(err, r.Close(), <-packed)
	if err == nil {
		err = e.complete(ctx, ref)
	}
	if err != nil { // a part of an image is none
		ctx, cancel := detached(ctx)
		defer cancel()
		return errors.Join(err, e.api.removeImage(ctx, ref))
	}
	return nil
}

// runApart runs a command as a process group of its own in a mount namespace of its own: what it mounts ends with it. An
// end of the context ends the group. Output goes to stdout, if there is one; else its end is in the error.
func runApart(ctx context.Context, stdout *os.File, name string, args ...string) error {
	var printed hosts.Tail
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = &printed, &printed
	if stdout != nil {
		cmd.Stdout = stdout
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Unshareflags: unix.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	runtime.LockOSThread() // Pdeathsig is the death of the thread
	defer runtime.UnlockOSThread()
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w%s", name, errors.Join(context.Cause(ctx), err), lastLines(printed.String()))
	}
	return nil
}

// removeTree removes a directory below which nothing is mounted.
func removeTree(dir string) error {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(mounts)) {
		if f := strings.Fields(line); len(f) > 4 && strings.HasPrefix(f[4], dir+"/") { // proc_pid_mountinfo(5): the fifth is the mount point
			return fmt.Errorf("%s is kept: something is mounted at %s", dir, f[4])
		}
	}
	return os.RemoveAll(dir)
}
