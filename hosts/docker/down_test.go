package docker_test

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"

	"ngxlab/hosts/docker"
	"ngxlab/internal/testlab/dockerlab"
	"ngxlab/lab"
)

func TestDownRemovesWhatIsTheLabsAndNothingElse(t *testing.T) {
	t.Parallel()
	e, l, containers := dockerlab.Lab(t, "web", "gen")
	image, r := imageOf(t, l), newRaw(t)
	// What others have: without a label, with another lab's, with names like this lab's.
	kept := []string{
		r.container(dockerlab.Name()+"-stopped", image, "none", nil), r.start(r.container(dockerlab.Name()+"-running", image, "none", nil)),
		r.container("ngxlab-"+l.Name+"-gen9", image, "none", map[string]string{"ngxlab.lab": l.Name + "0"}),
	}
	net := r.network("ngxlab-"+l.Name+"0", "", map[string]string{"ngxlab.lab": l.Name + "0"})
	plain := r.network(dockerlab.Name()+"-plain", "", nil)
	d, err := e.Enter(t.Context(), l.Name, "web")
	if err != nil {
		t.Fatal(err)
	}
	running, err := d.Open(t.Context(), "sleep 1000", false)
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	removed, err := e.Down(t.Context(), l.Name)
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
	want := []string{containers[1].Name, containers[0].Name} // by name
	if !slices.Equal(removed.Containers, want) || !slices.Equal(removed.Networks, []string{"ngxlab-" + l.Name}) || len(removed.Keys) != 1 {
		t.Errorf("removed %+v", removed)
	}
	if left := r.labelled(l.Name); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if _, err := os.Stat(containers[0].Key); err == nil {
		t.Error("the key is kept")
	}
	for _, id := range kept {
		if !r.hasContainer(id) {
			t.Errorf("the container %s of others is gone", id)
		}
	}
	if !r.hasNetwork(net) || !r.hasNetwork(plain) {
		t.Error("a network of others is gone")
	}
	if _, err := r.ImageInspect(t.Context(), image); err != nil {
		t.Errorf("the image: %v", err)
	}
	if err := running.Close(); err == nil {
		t.Error("a process ended well though its container was removed")
	}
	if again, err := e.Down(t.Context(), l.Name); err != nil || len(again.Containers)+len(again.Networks)+len(again.Keys) > 0 {
		t.Errorf("the second time: %+v, %v", again, err)
	}
}

func TestDownAfterACrashHalfWay(t *testing.T) {
	t.Parallel()
	e, used, _ := dockerlab.Lab(t, "web")
	image, r := imageOf(t, used), newRaw(t)
	name := dockerlab.Name()
	labels := map[string]string{"ngxlab.lab": name, "ngxlab.host": "web"}
	for what, leave := range map[string]func(){
		"containers without a network": func() {
			r.container("ngxlab-"+name+"-web", image, "none", labels)
			r.start(r.container("ngxlab-"+name+"-gen.new", image, "none", labels))
		},
		"a network without containers": func() { r.network("ngxlab-"+name, "", labels) },
	} {
		leave()
		labs, err := e.Labs(t.Context())
		if err != nil || !slices.ContainsFunc(labs, func(s docker.LabStatus) bool { return s.Name == name }) {
			t.Errorf("%s: not listed: %+v, %v", what, labs, err)
		}
		if _, err := e.Down(t.Context(), name); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if left := r.labelled(name); len(left) > 0 {
			t.Errorf("%s: left: %v", what, left)
		}
	}
}

// TestDownTellsOfAGuestInTheNetwork puts a container of somebody else into the lab's network.
func TestDownTellsOfAGuestInTheNetwork(t *testing.T) {
	t.Parallel()
	e, l, containers := dockerlab.Lab(t, "web")
	r := newRaw(t)
	guest := dockerlab.Name() + "-guest"
	id := r.start(r.container(guest, imageOf(t, l), "ngxlab-"+l.Name, nil))
	_, err := e.Down(t.Context(), l.Name)
	if err == nil || !contains(err, guest) || !r.hasContainer(id) {
		t.Fatalf("%v; want an error that names %s, which stays", err, guest)
	}
	if _, err := os.Stat(containers[0].Key); err != nil {
		t.Errorf("the key, while a part of the lab is there: %v", err)
	}
	if err := r.ContainerRemove(t.Context(), id, container.RemoveOptions{Force: true}); err != nil {
		t.Fatal(err)
	}
	if removed, err := e.Down(t.Context(), l.Name); err != nil || len(removed.Networks) != 1 {
		t.Errorf("afterwards: %+v, %v", removed, err)
	}
}

func TestDownRemovesHostsThatArePaused(t *testing.T) {
	t.Parallel()
	e, l, containers := dockerlab.Lab(t, "web")
	r := newRaw(t)
	if err := r.ContainerPause(t.Context(), containers[0].ID); err != nil {
		t.Fatal(err)
	}
	if removed, err := e.Down(t.Context(), l.Name); err != nil || len(removed.Containers) != 1 {
		t.Errorf("%+v, %v", removed, err)
	}
}

func TestTwoAtOnceAgree(t *testing.T) {
	t.Parallel()
	e := dockerlab.Open(t)
	l := docker.Lab{Name: dockerlab.Name(), Hosts: []lab.Host{host("web", lab.DockerHost{})}}
	dockerlab.Down(t, e, l.Name)
	type result struct {
		containers []docker.Container
		err        error
	}
	results := make(chan result, 2)
	for range 2 {
		go func() {
			c, err := e.Up(t.Context(), l)
			results <- result{c, err}
		}()
	}
	a, b := <-results, <-results
	if a.err != nil || b.err != nil || !slices.Equal(a.containers, b.containers) {
		t.Errorf("%+v\n%+v", a, b)
	}
}

func TestAddressIsReadAgainAtEachEntry(t *testing.T) {
	t.Parallel()
	e, l, containers := dockerlab.Lab(t, "web")
	r, name := newRaw(t), "ngxlab-"+l.Name
	if err := r.NetworkDisconnect(t.Context(), name, containers[0].ID, false); err != nil {
		t.Fatal(err)
	}
	// Somebody else has the address meanwhile.
	r.start(r.container(dockerlab.Name()+"-guest", imageOf(t, l), name, nil))
	if err := r.NetworkConnect(context.WithoutCancel(t.Context()), name, containers[0].ID, &network.EndpointSettings{}); err != nil {
		t.Fatal(err)
	}
	d, err := e.Enter(t.Context(), l.Name, "web")
	if err != nil {
		t.Fatal(err)
	}
	if d.Address() == "" || d.Address() == containers[0].Address {
		t.Errorf("the address is %q, was %q", d.Address(), containers[0].Address)
	}
	r.removeGuests(name, containers[0].ID)
}
