package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/containerd/errdefs"

	"ngxlab/hosts"
	"ngxlab/lab"
)

// setup is where a container keeps what makes a host of it.
const setup = "/etc/ngxlab/"

// startScript runs as a container's first process and becomes its sshd. It ends with an error where it could write to
// the machine's own sysctls.
//
//go:embed start.sh
var startScript string

//go:embed sshd_config
var sshdConfig string

// pidFile is written by sshd once it listens (sshd_config(5), PidFile).
const pidFile = "/run/ngxlab-sshd.pid"

// startup bounds how long a host takes from its start until its sshd listens.
const startup = 30 * time.Second

// swap is a container that a host got and, when it was made anew, the one that it is to take the place of.
type swap struct {
	id, name string
	old      string // id; "" = none
}

// host sees to one host: its container as it should be runs when it returns.
func (m *making) host(ctx context.Context, h lab.Host) (swap, error) {
	s := swap{name: containerName(m.lab.Name, h.Name)}
	b, there, err := m.api.inspect(ctx, s.name)
	if err != nil {
		return s, fmt.Errorf("look for the container %s: %w", s.name, err)
	}
	made := m.made(h)
	switch {
	case !there || b.name != s.name:
		s.id, err = m.new(ctx, h, s.name)
	case b.labels[labelLab] != m.lab.Name || b.labels[labelHost] != string(h.Name):
		err = inUse("container", s.name)
	case m.asShould(h, b):
		s.id = b.id
		err = m.wake(ctx, h, b)
	default:
		m.say(fmt.Sprintf("%s: made again with %s; it had %s%s", h.Name, made, b.labels[labelMade], otherwise(b)))
		s.old = b.id
		s.id, err = m.new(ctx, h, s.name+".new")
	}
	return s, err
}

// asShould reports whether a container is made as its host should be.
func (m *making) asShould(h lab.Host, b box) bool {
	return b.labels[labelMade] == m.made(h) && b.labels[labelSetup] == setupHash()
}

// replaced are the containers that take others' places: those that are there and made otherwise than they should be.
func (m *making) replaced() []box {
	var all []box
	for _, h := range m.lab.Hosts {
		if b, there := m.there[h.Name]; there && !m.asShould(h, b) {
			all = append(all, b)
		}
	}
	return all
}

// setupHash names what makes a host of a container, in this version of the program.
func setupHash() string {
	sum := sha256.Sum256([]byte(startScript + sshdConfig + strings.Join(readonlyPaths(), " ")))
	return hex.EncodeToString(sum[:6])
}

func otherwise(b box) string {
	if b.labels[labelSetup] == setupHash() {
		return ""
	}
	return ", set up by another version of this program"
}

// settle puts a new container in the place of the old one.
func (m *making) settle(ctx context.Context, s *swap) error {
	if s.old == "" {
		return nil
	}
	if err := m.api.remove(ctx, s.old); err != nil {
		return fmt.Errorf("remove its container as it was: %w", err)
	}
	if err := m.api.rename(ctx, s.id, s.name); err != nil {
		return fmt.Errorf("rename its container: %w", err)
	}
	return nil
}

// wake starts or continues a container that is as it should be, and lets the lab's key in.
func (m *making) wake(ctx context.Context, h lab.Host, b box) error {
	var err error
	switch b.state {
	case "running":
	case "paused":
		m.say(fmt.Sprintf("%s: it was paused, and goes on", h.Name))
		err = m.api.unpause(ctx, b.id)
	default:
		m.say(fmt.Sprintf("%s: it was %s, and is started again", h.Name, b.state))
		if err = m.api.start(ctx, b.id); err == nil {
			err = m.ready(ctx, b.id)
		}
	}
	if err != nil {
		return m.refused("start it", h, err)
	}
	return m.authorize(ctx, b)
}

// authorizeScript adds a public key to a file that lacks it.
const authorizeScript = `grep -qxF -e "$1" "$2" || printf '%s\n' "$1" >>"$2"`

// authorize lets the lab's key in where the one that the container was made with is lost.
func (m *making) authorize(ctx context.Context, b box) error {
	if b.labels[labelKey] == m.keys.public {
		return nil
	}
	var out hosts.Tail
	code, err := m.run(ctx, b.id, []string{"/bin/sh", "-c", authorizeScript, "sh", m.keys.public, setup + "authorized_keys"}, nil, &out)
	if err == nil && code != 0 {
		err = fmt.Errorf("exit code %d: %s", code, out.String())
	}
	if err != nil {
		return fmt.Errorf("let the lab's key in: %w", err)
	}
	return nil
}

// new makes a container for a host, and starts it.
func (m *making) new(ctx context.Context, h lab.Host, name string) (string, error) {
	files, hostKey, err := m.files()
	if err != nil {
		return "", err
	}
	labels := m.labels()
	maps.Copy(labels, map[string]string{labelHost: string(h.Name), labelMade: m.made(h), labelSetup: setupHash(), labelHostKey: hostKey})
	id, warnings, err := m.api.make(ctx, spec{
		name: name, hostname: string(h.Name), image: m.images[h.Docker.Image], command: []string{"/bin/sh", setup + "start"},
		network: networkName(m.lab.Name), labels: labels, bounds: *h.Docker, readonly: readonlyPaths(), unconfined: m.facts.appArmor,
	})
	if errdefs.IsConflict(err) {
		return "", inUse("container", name)
	}
	if err != nil {
		return "", m.refused("make its container", h, err)
	}
	for _, w := range warnings {
		if _, told := m.warned.LoadOrStore(w, true); !told {
			m.say("the Docker engine warns: " + w)
		}
	}
	if err := ctx.Err(); err != nil {
		return "", err
	}
	if err := m.api.unpack(ctx, id, "/", files); err != nil {
		return "", fmt.Errorf("put its configuration into the container: %w", err)
	}
	if err := m.api.start(ctx, id); err != nil {
		return "", m.refused("start its container", h, err)
	}
	if err := m.ready(ctx, id); err != nil {
		return "", m.refused("start it", h, err)
	}
	return id, nil
}

func (m *making) refused(what string, h lab.Host, err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	return &Problem{Kind: BadHost, What: fmt.Sprintf("%s (%s)", what, m.made(h)), Err: err,
		Cure: fmt.Sprintf("ask for what the engine's machine can give: %d CPUs, %.1f GiB of memory, no more open files than the engine itself may have", m.facts.cores, float64(m.facts.memoryBytes)/(1<<30))}
}

// ready waits until a container that was started has an sshd that listens.
func (m *making) ready(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startup, fmt.Errorf("its sshd did not listen within %v", startup))
	defer cancel()
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	for {
		b, there, err := m.api.inspect(ctx, id)
		switch {
		case err != nil:
			return errors.Join(context.Cause(ctx), err)
		case !there:
			return errors.New("the container was removed")
		case b.state != "running":
			return ended(b, m.api.logs(ctx, id))
		}
		at, written, err := m.api.modified(ctx, id, pidFile)
		if err == nil && written && at.After(b.started.Add(-2*time.Second)) { // not an earlier start's; the engine notes the start late
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// ended tells how a container's first process ended.
func ended(b box, logs string) error {
	text := fmt.Sprintf("it ended at once with exit code %d", b.exit)
	if b.oom {
		text += " for want of memory"
	}
	if logs != "" {
		text += ": " + logs
	}
	return errors.New(text)
}

// made describes how a host's container is made; one that was made otherwise is made again.
func (m *making) made(h lab.Host) string {
	d := h.Docker
	parts := []string{"image " + m.images[d.Image]}
	if d.CPUs > 0 {
		parts = append(parts, cpusText(d.CPUs))
	}
	if d.CPUSet != "" {
		parts = append(parts, "on CPUs "+d.CPUSet)
	}
	if d.MemoryBytes > 0 {
		parts = append(parts, sizeText(d.MemoryBytes)+" of memory")
	}
	if d.Nofile > 0 {
		parts = append(parts, fmt.Sprintf("%d open files", d.Nofile))
	}
	return strings.Join(parts, ", ")
}

func cpusText(n float64) string {
	if n == 1 {
		return "1 CPU"
	}
	return fmt.Sprintf("%g CPUs", n)
}

// sizeText writes a size without rounding it.
func sizeText(bytes int64) string {
	for _, unit := range []struct {
		name string
		size int64
	}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if bytes >= unit.size && bytes%unit.size == 0 {
			return fmt.Sprintf("%d %s", bytes/unit.size, unit.name)
		}
	}
	return fmt.Sprintf("%d bytes", bytes)
}

// canBound tells which bound of a host the engine would ignore.
func (m *making) canBound(h lab.Host) error {
	d, what := h.Docker, ""
	switch {
	case d.MemoryBytes > 0 && !m.facts.memory:
		what = "memory"
	case d.CPUs > 0 && !m.facts.quota:
		what = "CPU time"
	case d.CPUSet != "" && !m.facts.cpus:
		what = "the CPUs to use"
	case d.MemoryBytes > 0 && !m.facts.swap:
		m.say(fmt.Sprintf("%s: its memory is bounded, its swap is not: the kernel of the engine's machine does not account for swap", h.Name))
	}
	if what == "" {
		return nil
	}
	return &Problem{Kind: BadHost, What: fmt.Sprintf("host %s: the engine cannot bound %s: its machine's kernel or control groups lack that", h.Name, what),
		Cure: "leave the bound out, or switch the controller on (for memory on some kernels: cgroup_enable=memory on the kernel's command line)"}
}

// sysctlRoots are the directories below /proc/sys that kernels and their modules have, but for net.
var sysctlRoots = []string{"abi", "bus", "crypto", "debug", "dev", "fs", "fscache", "kernel", "lnet", "lustre", "pm", "sunrpc", "user", "vm", "xen"}

// lwtunnel is a sysctl of the network that is the machine's all the same: one switch for all network namespaces, which
// cannot be switched off again (Linux 6.18, net/netfilter/nf_hooks_lwtunnel.c).
const lwtunnel = "/proc/sys/net/netfilter/nf_hooks_lwtunnel"

// readonlyPaths are Docker's own (moby, oci/defaults.go), with /proc/sys replaced by what is in it but for net: a
// container shares its kernel with the machine, and all other sysctls are the machine's. Paths that are not there are
// passed over; the start script refuses to run where one is writable that was not thought of.
func readonlyPaths() []string {
	roots := slices.Clone(sysctlRoots)
	if here, err := os.ReadDir("/proc/sys"); err == nil { // often the engine's machine
		for _, entry := range here {
			if entry.Name() != "net" && !slices.Contains(roots, entry.Name()) {
				roots = append(roots, entry.Name())
			}
		}
	}
	paths := []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sysrq-trigger", lwtunnel}
	for _, root := range roots {
		paths = append(paths, "/proc/sys/"+root)
	}
	return paths
}

// files are what makes a host of a container, as a TAR, and the host key in it.
func (m *making) files() (io.Reader, string, error) {
	private, public, err := newKey()
	if err != nil {
		return nil, "", err
	}
	var buffer bytes.Buffer
	w := tar.NewWriter(&buffer)
	err = w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: strings.TrimPrefix(setup, "/"), Mode: 0o755})
	for _, f := range []struct {
		name, content string
		mode          int64
	}{
		{"start", startScript, 0o755}, {"sshd_config", sshdConfig, 0o644},
		{"authorized_keys", m.keys.public + "\n", 0o644}, {"host_key", string(private), 0o600},
	} {
		err = errors.Join(err, w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: strings.TrimPrefix(setup, "/") + f.name, Mode: f.mode, Size: int64(len(f.content))}))
		_, wrote := w.Write([]byte(f.content))
		err = errors.Join(err, wrote)
	}
	return &buffer, public, errors.Join(err, w.Close())
}
