package docker_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"ngxlab/hosts"
	"ngxlab/hosts/docker"
	"ngxlab/internal/testlab"
	"ngxlab/internal/testlab/dockerlab"
	"ngxlab/lab"
)

// asUser is the engine as a user has it who keeps keys in state, and who asks holders for who holds a host.
func asUser(t *testing.T, owner, state string, holder func(context.Context, *docker.Door, lab.HostName) (lab.Holder, error)) (*docker.Engine, *said) {
	t.Helper()
	var s said
	e, err := docker.Open(t.Context(), docker.Options{Host: testlab.Docker(t), State: state, Owner: owner, Holder: holder, Say: s.say})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e, &s
}

func oneHost() docker.Lab {
	return docker.Lab{Name: dockerlab.Name(), Hosts: []lab.Host{host("web", lab.DockerHost{})}}
}

func TestLabOfAnotherUserIsLeftAlone(t *testing.T) {
	t.Parallel()
	ana, _ := asUser(t, "ana@desk", t.TempDir(), nil)
	ben, _ := asUser(t, "ben@desk", t.TempDir(), nil)
	l := oneHost()
	first := dockerlab.Up(t, ana, l)
	_, err := ben.Up(t.Context(), l)
	problem(t, err, docker.Foreign, "lab "+l.Name+" of ana@desk is there on this engine", "name the experiment otherwise")
	l.Hosts[0].Docker.MemoryBytes = 256 << 20
	_, err = ben.Up(t.Context(), l)
	problem(t, err, docker.Foreign, "ana@desk")
	_, err = ben.Down(t.Context(), l.Name)
	problem(t, err, docker.Foreign, "ana@desk")
	problem(t, ben.Own(t.Context(), l.Name), docker.Foreign, "ana@desk")
	if err := ana.Own(t.Context(), l.Name); err != nil {
		t.Error(err)
	}
	labs, err := ben.Labs(t.Context())
	i := slices.IndexFunc(labs, func(s docker.LabStatus) bool { return s.Name == l.Name })
	if err != nil || i < 0 || labs[i].Owner != "ana@desk" || len(labs[i].Hosts) != 1 || labs[i].Hosts[0].ID != first[0].ID {
		t.Errorf("the labs are %+v, %v", labs, err)
	}
	if removed, err := ben.ForceDown(t.Context(), l.Name); err != nil || len(removed.Containers) != 1 {
		t.Errorf("by force: %+v, %v", removed, err)
	}
}

// TestOwnerIsWhoHasTheKeyOrTheName loses the key, and moves with it to another machine.
func TestOwnerIsWhoHasTheKeyOrTheName(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	ana, _ := asUser(t, "ana@desk", state, nil)
	l := oneHost()
	first := dockerlab.Up(t, ana, l)
	moved, _ := asUser(t, "ana@laptop", state, nil)
	if again, err := moved.Up(t.Context(), l); err != nil || again[0].ID != first[0].ID {
		t.Errorf("with the key: %+v, %v", again, err)
	}
	lost, _ := asUser(t, "ana@desk", t.TempDir(), nil)
	for range 2 { // the key is let in once
		again, err := lost.Up(t.Context(), l)
		if err != nil || again[0].ID != first[0].ID || again[0].Key == first[0].Key {
			t.Fatalf("without the key: %+v, %v", again, err)
		}
	}
	if n := len(lines(t, lost, l.Name, "web", "cat /etc/ngxlab/authorized_keys")); n != 2 {
		t.Errorf("%d keys are let in, want 2", n)
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(first[0].Key), "known_hosts")); err != nil {
		t.Error(err)
	}
	if removed, err := lost.Down(t.Context(), l.Name); err != nil || len(removed.Containers) != 1 {
		t.Errorf("%+v, %v", removed, err)
	}
}

// TestLabThatACampaignHoldsIsNeitherTakenDownNorMadeAgain claims a host as a campaign does.
func TestLabThatACampaignHoldsIsNeitherTakenDownNorMadeAgain(t *testing.T) {
	t.Parallel()
	agent := testlab.Agent(t)
	enter := func(ctx context.Context, d *docker.Door, name lab.HostName) (*hosts.Host, error) {
		return hosts.Enter(ctx, d, hosts.Options{Name: name, Agent: agent})
	}
	e, _ := asUser(t, "ana@desk", t.TempDir(), func(ctx context.Context, d *docker.Door, name lab.HostName) (lab.Holder, error) {
		h, err := enter(ctx, d, name)
		if err != nil {
			return lab.Holder{}, err
		}
		holder, err := h.Holder(ctx)
		return holder, errors.Join(err, h.Close())
	})
	l := docker.Lab{Name: dockerlab.Name(), Hosts: []lab.Host{host("web", lab.DockerHost{}), host("gen", lab.DockerHost{})}}
	first := dockerlab.Up(t, e, l)
	d, err := e.Enter(t.Context(), l.Name, "web")
	if err != nil {
		t.Fatal(err)
	}
	campaign, err := enter(t.Context(), d, "web")
	if err != nil {
		t.Fatal(err)
	}
	if err := campaign.Claim(t.Context(), "study-1", "ana@desk, process 7"); err != nil {
		t.Fatal(err)
	}
	_, err = e.Down(t.Context(), l.Name)
	problem(t, err, docker.Held, "lab "+l.Name+": in use by ana@desk, process 7, campaign study-1, since 2", "(web)")
	l.Hosts[0] = host("web", lab.DockerHost{MemoryBytes: 512 << 20})
	_, err = e.Up(t.Context(), l)
	problem(t, err, docker.Held, "in use by ana@desk, process 7, campaign study-1, since 2", "(web)")
	free := l
	free.Hosts = []lab.Host{host("web", lab.DockerHost{}), host("gen", lab.DockerHost{MemoryBytes: 512 << 20})}
	if again, err := e.Up(t.Context(), free); err != nil || again[0].ID != first[0].ID || again[1].ID == first[1].ID {
		t.Errorf("a host that nobody holds: %+v, %v", again, err)
	}
	if _, err := campaign.Pending(t.Context()); err != nil {
		t.Errorf("the campaign: %v", err)
	}
	if err := campaign.Close(); err != nil {
		t.Fatal(err)
	}
	if removed, err := e.Down(t.Context(), l.Name); err != nil || len(removed.Containers) != 2 {
		t.Errorf("after the campaign: %+v, %v", removed, err)
	}
}

func TestHeldLabIsTakenDownByForce(t *testing.T) {
	t.Parallel()
	e, _ := asUser(t, "ana@desk", t.TempDir(), func(context.Context, *docker.Door, lab.HostName) (lab.Holder, error) {
		return lab.Holder{Owner: "ana@desk, process 7", Campaign: "study-1", Since: time.Now()}, nil
	})
	l := oneHost()
	dockerlab.Up(t, e, l)
	_, err := e.Down(t.Context(), l.Name)
	problem(t, err, docker.Held, "study-1")
	if removed, err := e.ForceDown(t.Context(), l.Name); err != nil || len(removed.Containers) != 1 {
		t.Errorf("%+v, %v", removed, err)
	}
}

// TestHostThatDoesNotSayWhoHoldsItStandsInNobodysWay has one that fails, one that is paused and one that ended.
func TestHostThatDoesNotSayWhoHoldsItStandsInNobodysWay(t *testing.T) {
	t.Parallel()
	e, said := asUser(t, "ana@desk", t.TempDir(), func(_ context.Context, _ *docker.Door, name lab.HostName) (lab.Holder, error) {
		if name == "ended" {
			t.Error("a container that does not run was asked")
		}
		return lab.Holder{}, errors.New("no space left on device")
	})
	l := docker.Lab{Name: dockerlab.Name(), Hosts: []lab.Host{host("full", lab.DockerHost{}), host("paused", lab.DockerHost{}), host("ended", lab.DockerHost{})}}
	containers := dockerlab.Up(t, e, l)
	r := newRaw(t)
	if err := r.ContainerPause(t.Context(), containers[1].ID); err != nil {
		t.Fatal(err)
	}
	if err := r.ContainerKill(t.Context(), containers[2].ID, "KILL"); err != nil {
		t.Fatal(err)
	}
	if removed, err := e.Down(t.Context(), l.Name); err != nil || len(removed.Containers) != 3 {
		t.Errorf("%+v, %v", removed, err)
	}
	if !said.has("full cannot be asked", "no space left") || !said.has("paused cannot be asked", "it is paused") || said.has("ended cannot") {
		t.Errorf("said: %q", said.texts)
	}
}

func TestSubnetThatCannotBeTheLabs(t *testing.T) {
	t.Parallel()
	e := dockerlab.Open(t)
	for subnet, want := range map[string][]string{
		"10.99.0.5/24": {"names one host", "ask for 10.99.0.0/24"},
		"10.99.0.0/31": {"is too small: it has 2 of the 4 addresses", "ask for 10.99.0.0/30"},
		"10.99.0.9/32": {"is too small", "ask for 10.99.0.8/30"},
		"10.99.0.0":    {"10.99.0.0/24"},
		"fd00::/64":    {"IPv6"},
		"many":         {"is none"},
	} {
		l := oneHost()
		l.Subnet = subnet
		_, err := e.Up(t.Context(), l)
		problem(t, err, docker.BadSubnet, append(want, subnet)...)
	}
}
