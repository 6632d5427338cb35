package docker_test

import (
	"context"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/client"

	"ngxlab/internal/testlab"
)

// raw is the engine of the tests as others use it.
type raw struct {
	*client.Client
	t *testing.T
}

func newRaw(t *testing.T) raw {
	t.Helper()
	c, err := client.NewClientWithOpts(client.WithHost(testlab.Docker(t)), client.WithAPIVersionNegotiation())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return raw{c, t}
}

// ctx outlives the test's own, for its clean-up.
func (r raw) ctx() context.Context { return context.WithoutCancel(r.t.Context()) }

// network makes a network that goes with the test.
func (r raw) network(name, subnet string, labels map[string]string) string {
	r.t.Helper()
	o := network.CreateOptions{Labels: labels}
	if subnet != "" {
		o.IPAM = &network.IPAM{Config: []network.IPAMConfig{{Subnet: subnet}}}
	}
	n, err := r.NetworkCreate(r.ctx(), name, o)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = r.NetworkRemove(r.ctx(), n.ID) })
	return n.ID
}

// container makes a container that goes with the test; it sleeps when started.
func (r raw) container(name, image, network string, labels map[string]string) string {
	r.t.Helper()
	c, err := r.ContainerCreate(r.ctx(), &container.Config{Image: image, Entrypoint: []string{"sleep", "1000"}, Labels: labels},
		&container.HostConfig{NetworkMode: container.NetworkMode(network)}, nil, nil, name)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = r.ContainerRemove(r.ctx(), c.ID, container.RemoveOptions{Force: true}) })
	return c.ID
}

// start starts it, too.
func (r raw) start(id string) string {
	r.t.Helper()
	if err := r.ContainerStart(r.ctx(), id, container.StartOptions{}); err != nil {
		r.t.Fatal(err)
	}
	return id
}

// labelled returns the ids of the containers and networks that carry the label of a lab.
func (r raw) labelled(lab string) []string {
	r.t.Helper()
	with := filters.NewArgs(filters.Arg("label", "ngxlab.lab="+lab))
	containers, err := r.ContainerList(r.ctx(), container.ListOptions{All: true, Filters: with})
	if err != nil {
		r.t.Fatal(err)
	}
	networks, err := r.NetworkList(r.ctx(), network.ListOptions{Filters: with})
	if err != nil {
		r.t.Fatal(err)
	}
	var ids []string
	for _, c := range containers {
		ids = append(ids, c.ID)
	}
	for _, n := range networks {
		ids = append(ids, n.ID)
	}
	return ids
}

func (r raw) hasContainer(id string) bool {
	_, err := r.ContainerInspect(r.ctx(), id)
	return err == nil
}

func (r raw) hasNetwork(id string) bool {
	_, err := r.NetworkInspect(r.ctx(), id, network.InspectOptions{})
	return err == nil
}

func TestOnlyTheFilesOfTheAPIUseTheDockerClient(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	users := 0
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), e.Name(), nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		var paths []string
		for _, i := range file.Imports {
			paths = append(paths, strings.Trim(i.Path.Value, `"`))
		}
		uses := slices.ContainsFunc(paths, func(p string) bool { return strings.HasPrefix(p, "github.com/docker/") })
		if uses && !strings.HasPrefix(e.Name(), "api") {
			t.Errorf("%s imports the Docker client: %v", e.Name(), paths)
		}
		if uses {
			users++
		}
	}
	if users == 0 {
		t.Error("no file uses the Docker client: this test looks in the wrong place")
	}
}

// removeGuests removes the containers in a network but for one, so that the network can go.
func (r raw) removeGuests(name, but string) {
	r.t.Helper()
	n, err := r.NetworkInspect(r.ctx(), name, network.InspectOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	for id := range n.Containers {
		if id != but {
			_ = r.ContainerRemove(r.ctx(), id, container.RemoveOptions{Force: true})
		}
	}
}
