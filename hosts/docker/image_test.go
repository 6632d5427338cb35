package docker_test

import (
	"archive/tar"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"

	"ngxlab/hosts/docker"
	"ngxlab/internal/testlab"
	"ngxlab/internal/testlab/dockerlab"
	"ngxlab/lab"
)

// rootfs writes a compressed TAR of files.
func rootfs(t *testing.T, names ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rootfs.tar.gz")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	z := gzip.NewWriter(file)
	w := tar.NewWriter(z)
	for _, name := range names {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o755, Size: int64(len(name))}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, name); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []io.Closer{w, z, file} {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

func (r raw) images(label string) []string {
	r.t.Helper()
	list, err := r.ImageList(r.ctx(), image.ListOptions{Filters: filters.NewArgs(filters.Arg("label", label))})
	if err != nil {
		r.t.Fatal(err)
	}
	var refs []string
	for _, i := range list {
		refs = append(refs, i.RepoTags...)
	}
	return refs
}

func TestRootFileSystemWithoutWhatAHostNeedsIsRefused(t *testing.T) {
	r := newRaw(t)
	before := len(r.images("ngxlab.image"))
	noSSHD, noShell := rootfs(t, "bin/sh", "etc/passwd", t.Name()), rootfs(t, "usr/sbin/sshd", t.Name())
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte(strings.Repeat("no archive\n", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, word := range map[string]string{noSSHD: "sshd", noShell: "/bin/sh", text: "tar", filepath.Join(t.TempDir(), "absent"): "no such file"} {
		e, err := docker.Open(t.Context(), docker.Options{Host: testlab.Docker(t), State: t.TempDir(), Rootfs: path})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close() //nolint:errcheck // the test is over
		l := docker.Lab{Name: dockerlab.Name(), Hosts: []lab.Host{host("web", lab.DockerHost{})}}
		dockerlab.Down(t, e, l.Name)
		_, err = e.Up(t.Context(), l)
		problem(t, err, docker.BadImage, word, path, "host web")
	}
	if after := r.images("ngxlab.image"); len(after) != before {
		t.Errorf("there are the images %v, there were %d", after, before)
	}
}

// TestHostWhoseImageDoesNotStartIsTold has a shell that is no program.
func TestHostWhoseImageDoesNotStartIsTold(t *testing.T) {
	t.Parallel()
	path := rootfs(t, "bin/sh", "usr/sbin/sshd", t.Name())
	e, err := docker.Open(t.Context(), docker.Options{Host: testlab.Docker(t), State: t.TempDir(), Rootfs: path})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close() //nolint:errcheck // the test is over
	l := docker.Lab{Name: dockerlab.Name(), Hosts: []lab.Host{host("web", lab.DockerHost{})}}
	dockerlab.Down(t, e, l.Name)
	_, err = e.Up(t.Context(), l)
	problem(t, err, docker.BadHost, "host web", "ngxlab-host:rootfs-")
	r := newRaw(t)
	for _, ref := range r.images("ngxlab.image=of a root file system") {
		if _, err := r.ImageRemove(r.ctx(), ref, image.RemoveOptions{}); err != nil {
			t.Error(err)
		}
	}
}

func TestImageThatTheExperimentNames(t *testing.T) {
	t.Parallel()
	e, l, _ := dockerlab.Lab(t, "web")
	named := docker.Lab{Name: dockerlab.Name(), Hosts: []lab.Host{host("web", lab.DockerHost{Image: imageOf(t, l)})}}
	containers := dockerlab.Up(t, e, named)
	if !strings.Contains(containers[0].Made, imageOf(t, l)) {
		t.Errorf("made with %s", containers[0].Made)
	}
}
