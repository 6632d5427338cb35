package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"ngxlab/hosts"
)

// packages are what a host needs: to be one, to build servers, and to drive load without a way out. Debian's names.
var packages = []string{
	"openssh-server", "sudo", "iproute2", "procps", "ca-certificates", "gcc", "libc6-dev", "make", "patch", "xz-utils",
	"libpcre2-dev", "zlib1g-dev", "libssl-dev", "dpkg-dev", "wrk", "apache2-utils",
}

// base is what the image is built on where a registry can be reached.
const base = "debian:bookworm-slim"

// registryQuiet is how long a registry may be silent, buildMost how long the builder may take.
const (
	registryQuiet = 20 * time.Second
	buildMost     = 15 * time.Minute
)

// dockerfile builds the image on base. apt does not wait long for a mirror that is not there.
func dockerfile() string {
	apt := "apt-get -q -o Acquire::Retries=1 -o Acquire::http::Timeout=20"
	return "FROM " + base + "\n" +
		"RUN if [ -s /ngxlab-sources ]; then rm -rf /etc/apt/sources.list.d/*; mv /ngxlab-sources /etc/apt/sources.list; fi; true\n" +
		"RUN export DEBIAN_FRONTEND=noninteractive; " + apt + " update && " + apt + " -y install --no-install-recommends " +
		strings.Join(packages, " ") + " && rm -rf /var/lib/apt/lists/* /etc/ssh/ssh_host_*\n" +
		"CMD [\"/usr/sbin/sshd\", \"-D\", \"-e\"]\n"
}

// imagesLock keeps two from making images at the same time. No lab can have this name.
const imagesLock = "+images"

// image finds or makes the image for a host that asks for one, or for none, and returns its name.
func (e *Engine) image(ctx context.Context, asked string) (string, error) {
	unlock, err := e.lock(ctx, imagesLock)
	if err != nil {
		return "", err
	}
	defer unlock()
	switch {
	case asked != "":
		return asked, e.named(ctx, asked)
	case e.rootfs != "":
		return e.fromRootfs(ctx)
	}
	sum := sha256.Sum256([]byte(dockerfile()))
	ref := "ngxlab-host:" + hex.EncodeToString(sum[:6])
	if has, err := e.api.hasImage(ctx, ref); err != nil || has {
		return ref, err
	}
	return ref, e.makeImage(ctx, ref)
}

// named fetches an image that the person named, unless it is there.
func (e *Engine) named(ctx context.Context, ref string) error {
	has, err := e.api.hasImage(ctx, ref)
	if err != nil {
		return fmt.Errorf("look for the image %s: %w", ref, err)
	}
	if !has {
		if err := e.during("fetching the image "+ref, func() error { return e.api.pull(ctx, ref, registryQuiet) }); err != nil {
			return &Problem{Kind: NoImage, What: "fetch the image " + ref, Err: err, Cure: "the engine does not have it: name one that it has (docker images), or none"}
		}
	}
	return e.complete(ctx, ref)
}

// makeImage makes the image in the first way that works here.
func (e *Engine) makeImage(ctx context.Context, ref string) error {
	built := e.buildImage(ctx, ref)
	if built == nil || ctx.Err() != nil {
		return built
	}
	strapped := e.debootstrap(ctx, ref)
	if strapped == nil || ctx.Err() != nil {
		return strapped
	}
	return &Problem{Kind: NoImage, What: "make the image of the hosts", Err: errors.Join(built, strapped),
		Cure: "let the engine reach a registry, or give a root file system with --rootfs TAR, or run this as root where debootstrap is installed"}
}

// buildImage builds on an image from a registry.
func (e *Engine) buildImage(ctx context.Context, ref string) error {
	has, err := e.api.hasImage(ctx, base)
	if err != nil {
		return fmt.Errorf("look for the image %s: %w", base, err)
	}
	if !has {
		if err := e.during("fetching the image "+base, func() error { return e.api.pull(ctx, base, registryQuiet) }); err != nil {
			return fmt.Errorf("fetch %s: %w", base, err)
		}
	}
	files, err := buildContext(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, buildMost, fmt.Errorf("it took more than %v", buildMost))
	defer cancel()
	var printed hosts.Tail
	err = e.during("building the image of the hosts on "+base+" (some minutes; once)", func() error {
		return e.api.build(ctx, files, ref, map[string]string{labelImage: "built on " + base}, proxies(), func(text string) { _, _ = printed.Write([]byte(text)) })
	})
	if err != nil {
		return fmt.Errorf("build on %s: %w%s", base, errors.Join(context.Cause(ctx), err), lastLines(printed.String()))
	}
	return e.complete(ctx, ref)
}

// buildContext is a TAR with the Dockerfile and, where this machine has the release of base, this machine's sources of
// packages.
func buildContext(ctx context.Context) (io.Reader, error) {
	sources := []byte{}
	if d, err := readDistribution(ctx); err == nil && d.suite == "bookworm" {
		sources = d.list()
	}
	text := strings.Replace(dockerfile(), "\n", "\nCOPY ngxlab-sources /ngxlab-sources\n", 1)
	var buffer bytes.Buffer
	w := tar.NewWriter(&buffer)
	var err error
	for name, content := range map[string][]byte{"Dockerfile": []byte(text), "ngxlab-sources": sources} {
		err = errors.Join(err, w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(content))}))
		_, wrote := w.Write(content)
		err = errors.Join(err, wrote)
	}
	return &buffer, errors.Join(err, w.Close())
}

// proxies are this machine's, for the builder: it takes them without declaring them.
func proxies() map[string]*string {
	args := map[string]*string{}
	for _, name := range []string{"http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"} {
		if v, set := os.LookupEnv(name); set {
			args[name] = &v
		}
	}
	return args
}

// lastLines is the end of a log, for an error message.
func lastLines(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if text = strings.Join(lines[max(0, len(lines)-5):], "\n"); text == "" {
		return ""
	}
	return "; its last lines:\n" + text
}

// fromRootfs makes an image of the TAR that the person gave; its name carries the hash of the file.
func (e *Engine) fromRootfs(ctx context.Context) (string, error) {
	bad := func(err error) error {
		return &Problem{Kind: BadImage, What: "make an image of " + e.rootfs, Err: err,
			Cure: "give the TAR of a root file system that has sshd and a shell, e.g. of docker export or of debootstrap"}
	}
	file, err := os.Open(e.rootfs)
	if err != nil {
		return "", bad(err)
	}
	defer file.Close() //nolint:errcheck // only read
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return "", bad(err)
	}
	ref := "ngxlab-host:rootfs-" + hex.EncodeToString(sum.Sum(nil)[:6])
	if has, err := e.api.hasImage(ctx, ref); err != nil || has {
		return ref, err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return "", bad(err)
	}
	err = e.during("making the image of the hosts of "+e.rootfs, func() error {
		return e.api.load(ctx, file, ref, map[string]string{labelImage: "of a root file system"})
	})
	if err != nil {
		return "", bad(err)
	}
	if err := e.complete(ctx, ref); err != nil {
		return "", bad(errors.Join(err, e.api.removeImage(ctx, ref)))
	}
	return ref, nil
}

// needed are the programs without which a container is no host. Where sshd lies is told by the first that is there.
var needed = [][]string{{"/bin/sh"}, {"/usr/sbin/sshd", "/usr/bin/sshd", "/usr/local/sbin/sshd"}}

// complete looks into an image, in a container of it that never runs, for what a host needs.
func (e *Engine) complete(ctx context.Context, ref string) error {
	id, _, err := e.api.make(ctx, spec{image: ref, command: []string{"/bin/sh"}, network: "none", labels: map[string]string{labelImage: "looked into"}})
	if err != nil {
		return fmt.Errorf("look into the image %s: %w", ref, err)
	}
	defer func() {
		ctx, cancel := detached(ctx)
		defer cancel()
		if err := e.api.remove(ctx, id); err != nil {
			e.say(fmt.Sprintf("a container of %s that never ran could not be removed: %v", ref, err))
		}
	}()
	for _, places := range needed {
		if err := e.oneOf(ctx, id, places); err != nil {
			return &Problem{Kind: BadImage, What: "look into the image " + ref, Err: err, Cure: "name an image with sshd and a shell, or none"}
		}
	}
	return nil
}

func (e *Engine) oneOf(ctx context.Context, id string, places []string) error {
	for _, path := range places {
		if _, there, err := e.api.modified(ctx, id, path); err != nil || there {
			return err
		}
	}
	return fmt.Errorf("it has no %s", strings.Join(places, " or "))
}
