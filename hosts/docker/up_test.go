package docker_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"ngxlab/hosts/docker"
	"ngxlab/internal/testlab"
	"ngxlab/internal/testlab/dockerlab"
	"ngxlab/lab"
)

func host(name lab.HostName, d lab.DockerHost) lab.Host {
	return lab.Host{Name: name, Docker: &d, Roles: []lab.Role{lab.RoleLoad}}
}

func TestUpTwiceIsTheSameLab(t *testing.T) {
	t.Parallel()
	e, l, first := dockerlab.Lab(t, "web", "gen1", "gen2", "gen3")
	again, err := e.Up(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(first, again) {
		t.Errorf("the second time: %+v\nfirst: %+v", again, first)
	}
	labs, err := e.Labs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(labs, func(s docker.LabStatus) bool { return s.Name == l.Name })
	if i < 0 || len(labs[i].Hosts) != 4 || labs[i].Subnet == "" || time.Since(labs[i].Created) > time.Hour {
		t.Errorf("the lab is not listed as it is: %+v", labs)
	}
	addresses := map[string]bool{}
	for i, c := range first {
		addresses[c.Address] = true
		if c.State != "running" || c.Host != l.Hosts[i].Name || net.ParseIP(c.Address) == nil {
			t.Errorf("%+v: want it running, with an address, in the order of the hosts", c)
		}
	}
	if len(addresses) != 4 {
		t.Errorf("the addresses are %v", addresses)
	}
}

// TestHostsLetTheLabsKeyIn is also what a person does with the ssh command.
func TestHostsLetTheLabsKeyIn(t *testing.T) {
	t.Parallel()
	_, _, containers := dockerlab.Lab(t, "web")
	c := containers[0]
	info, err := os.Stat(c.Key)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the key: %v %v", info, err)
	}
	content, err := os.ReadFile(c.Key)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.ParsePrivateKey(content)
	if err != nil {
		t.Fatal(err)
	}
	known, err := knownhosts.New(c.KnownHosts)
	if err != nil {
		t.Fatal(err)
	}
	for user, command := range map[string]string{docker.RootUser: "id -u", docker.User: "sudo -n id -u"} {
		config := &ssh.ClientConfig{User: user, Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)}, HostKeyCallback: known, Timeout: 10 * time.Second}
		client, err := ssh.Dial("tcp", net.JoinHostPort(c.Address, "22"), config)
		if err != nil {
			t.Fatalf("%s: %v", user, err)
		}
		session, err := client.NewSession()
		if err != nil {
			t.Fatal(err)
		}
		if out, err := session.CombinedOutput(command); err != nil || string(out) != "0\n" {
			t.Errorf("%s: %s: %q, %v", user, command, out, err)
		}
		_ = client.Close()
	}
}

// said keeps what an engine says.
type said struct {
	mu    sync.Mutex
	texts []string
}

func (s *said) say(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.texts = append(s.texts, text)
}

func (s *said) has(parts ...string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.texts, func(text string) bool {
		return !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(text, p) })
	})
}

func engineThatTells(t *testing.T) (*docker.Engine, *said) {
	t.Helper()
	var s said
	e, err := docker.Open(t.Context(), docker.Options{Host: testlab.Docker(t), State: t.TempDir(), Say: s.say})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e, &s
}

func TestHostWithOtherBoundsIsMadeAgainAndTheOthersStay(t *testing.T) {
	t.Parallel()
	e, said := engineThatTells(t)
	l := docker.Lab{Name: dockerlab.Name(), Hosts: []lab.Host{host("web", lab.DockerHost{MemoryBytes: 256 << 20}), host("gen", lab.DockerHost{})}}
	first := dockerlab.Up(t, e, l)
	l.Hosts[0] = host("web", lab.DockerHost{MemoryBytes: 512 << 20})
	second, err := e.Up(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	if first[0].ID == second[0].ID || first[1].ID != second[1].ID {
		t.Errorf("made again: web %v, gen %v; want web alone", first[0].ID != second[0].ID, first[1].ID != second[1].ID)
	}
	if second[0].Name != first[0].Name || !said.has("web", "256 MiB", "512 MiB") {
		t.Errorf("it is named %s, was %s; said: %q", second[0].Name, first[0].Name, said.texts)
	}
	l.Hosts = l.Hosts[:1]
	if _, err := e.Up(t.Context(), l); err != nil || !said.has("gen", "not asked for any more") {
		t.Errorf("without gen: %v, said: %q", err, said.texts)
	}
}

// TestUpGoesOnAfterACrashHalfWay has what an Up leaves that was killed while it made a host again.
func TestUpGoesOnAfterACrashHalfWay(t *testing.T) {
	t.Parallel()
	e, l, first := dockerlab.Lab(t, "web")
	r := newRaw(t)
	labels := map[string]string{"ngxlab.lab": l.Name, "ngxlab.host": "web"}
	left := r.container(first[0].Name+".new", imageOf(t, l), "none", labels)
	l.Hosts[0] = host("web", lab.DockerHost{MemoryBytes: 256 << 20})
	second, err := e.Up(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	if r.hasContainer(left) || r.hasContainer(first[0].ID) || second[0].Name != first[0].Name {
		t.Errorf("the leftover is there: %v, the old one: %v; the host is %+v", r.hasContainer(left), r.hasContainer(first[0].ID), second[0])
	}
	if err := r.ContainerRename(t.Context(), second[0].ID, first[0].Name+".new"); err != nil { // killed a moment later
		t.Fatal(err)
	}
	third, err := e.Up(t.Context(), l)
	if err != nil || third[0].Name != first[0].Name || len(r.labelled(l.Name)) != 2 {
		t.Errorf("%+v, %v; of the lab there is %v", third, err, r.labelled(l.Name))
	}
}

func TestHostThatStoppedOrIsPausedGoesOn(t *testing.T) {
	t.Parallel()
	e, said := engineThatTells(t)
	l := docker.Lab{Name: dockerlab.Name(), Hosts: []lab.Host{host("web", lab.DockerHost{}), host("gen", lab.DockerHost{})}}
	first := dockerlab.Up(t, e, l)
	r := newRaw(t)
	if err := r.ContainerPause(t.Context(), first[0].ID); err != nil {
		t.Fatal(err)
	}
	if err := r.ContainerKill(t.Context(), first[1].ID, "KILL"); err != nil {
		t.Fatal(err)
	}
	for i, state := range []string{"paused", "exited"} {
		_, err := e.Enter(t.Context(), l.Name, string(l.Hosts[i].Name))
		problem(t, err, docker.NotRunning, state)
	}
	again, err := e.Up(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range again {
		if c.State != "running" || c.ID != first[i].ID {
			t.Errorf("%+v; want %s running", c, first[i].ID)
		}
		if _, err := e.Enter(t.Context(), l.Name, string(c.Host)); err != nil {
			t.Error(err)
		}
	}
	if !said.has("web", "paused") || !said.has("gen", "started again") {
		t.Errorf("said: %q", said.texts)
	}
}

// TestLabIsMadeWholeOrNotAtAll has one host of two that cannot be had.
func TestLabIsMadeWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	r, state := newRaw(t), t.TempDir()
	e, err := docker.Open(t.Context(), docker.Options{Host: testlab.Docker(t), State: state})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close() //nolint:errcheck // the test is over
	for name, c := range map[string]struct {
		bounds lab.DockerHost
		words  []string
	}{
		"open files": {lab.DockerHost{Nofile: 1 << 30}, []string{"1073741824 open files", "no more open files than the engine"}},
		"cpuset":     {lab.DockerHost{CPUSet: "900"}, []string{"on CPUs 900"}},
		"cpus":       {lab.DockerHost{CPUs: 5000}, []string{"5000 CPUs"}},
		"memory":     {lab.DockerHost{MemoryBytes: 1 << 20}, []string{"1 MiB of memory"}},
		"image":      {lab.DockerHost{Image: "ngxlab.invalid/none:none"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			l := docker.Lab{Name: dockerlab.Name(), Hosts: []lab.Host{host("good", lab.DockerHost{}), host("bad", c.bounds)}}
			dockerlab.Down(t, e, l.Name)
			_, err := e.Up(t.Context(), l)
			if name == "image" {
				problem(t, err, docker.NoImage, "bad", c.bounds.Image)
			} else {
				problem(t, err, docker.BadHost, append(c.words, "host bad", l.Name)...)
			}
			if left := r.labelled(l.Name); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
			if kept, _ := filepath.Glob(filepath.Join(state, "*", l.Name)); len(kept) > 0 {
				t.Errorf("left: %v", kept)
			}
		})
	}
}

func TestLabThatFailsToGrowStaysAsItWas(t *testing.T) {
	t.Parallel()
	e, l, first := dockerlab.Lab(t, "web")
	before := newRaw(t).labelled(l.Name)
	grown := l
	grown.Hosts = append([]lab.Host{host("web", lab.DockerHost{MemoryBytes: 128 << 20})}, host("gen", lab.DockerHost{CPUSet: "900"}))
	_, err := e.Up(t.Context(), grown)
	problem(t, err, docker.BadHost, "host gen")
	if after := newRaw(t).labelled(l.Name); !slices.Equal(before, after) {
		t.Errorf("there are %v, there were %v", after, before)
	}
	again, err := e.Up(t.Context(), l)
	if err != nil || !slices.Equal(first, again) {
		t.Errorf("it is %+v, was %+v, %v", again, first, err)
	}
}

func TestCancelledUpLeavesNothing(t *testing.T) {
	t.Parallel()
	e := dockerlab.Open(t)
	l := docker.Lab{Name: dockerlab.Name(), Hosts: []lab.Host{host("web", lab.DockerHost{}), host("gen", lab.DockerHost{})}}
	dockerlab.Down(t, e, l.Name)
	r := newRaw(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := e.Up(ctx, l)
		done <- err
	}()
	testlab.Eventually(t, "something of the lab", func() bool { return len(r.labelled(l.Name)) > 1 })
	cancel()
	if err := <-done; err == nil {
		t.Error("it succeeded")
	}
	if left := r.labelled(l.Name); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestNamesOfOthersAreNotTouched(t *testing.T) {
	t.Parallel()
	e, used, _ := dockerlab.Lab(t, "web") // for its image
	image := imageOf(t, used)
	r := newRaw(t)

	l := docker.Lab{Name: dockerlab.Name(), Hosts: []lab.Host{host("web", lab.DockerHost{})}}
	dockerlab.Down(t, e, l.Name)
	foreign := r.network("ngxlab-"+l.Name, "", nil)
	_, err := e.Up(t.Context(), l)
	problem(t, err, docker.NameInUse, "network ngxlab-"+l.Name)
	if !r.hasNetwork(foreign) {
		t.Error("the network of somebody else is gone")
	}

	l.Name = dockerlab.Name()
	dockerlab.Down(t, e, l.Name)
	other := r.container("ngxlab-"+l.Name+"-web", image, "none", nil)
	_, err = e.Up(t.Context(), l)
	problem(t, err, docker.NameInUse, "container ngxlab-"+l.Name+"-web")
	if !r.hasContainer(other) || len(r.labelled(l.Name)) > 0 {
		t.Errorf("the container of somebody else is there: %v; of the lab there is %v", r.hasContainer(other), r.labelled(l.Name))
	}
}

// imageOf is the image that the hosts of a lab were made from.
func imageOf(t *testing.T, l docker.Lab) string {
	t.Helper()
	c, err := newRaw(t).ContainerInspect(t.Context(), "ngxlab-"+l.Name+"-"+string(l.Hosts[0].Name))
	if err != nil {
		t.Fatal(err)
	}
	return c.Config.Image
}

func TestSubnetInUseIsToldWithWhoHasIt(t *testing.T) {
	t.Parallel()
	e, r := dockerlab.Open(t), newRaw(t)
	taken := dockerlab.Name() + "-taken"
	r.network(taken, "10.211.55.0/24", nil)
	l := docker.Lab{Name: dockerlab.Name(), Subnet: "10.211.55.128/25", Hosts: []lab.Host{host("web", lab.DockerHost{})}}
	dockerlab.Down(t, e, l.Name)
	_, err := e.Up(t.Context(), l)
	problem(t, err, docker.AddressClash, "10.211.55.128/25", taken, "10.211.55.0/24")
	l.Subnet = "10.211.56.0/24"
	containers, err := e.Up(t.Context(), l)
	if err != nil || !strings.HasPrefix(containers[0].Address, "10.211.56.") {
		t.Fatalf("with another subnet: %+v, %v", containers, err)
	}
	l.Subnet = "10.211.57.0/24"
	_, err = e.Up(t.Context(), l)
	problem(t, err, docker.AddressClash, "10.211.56.0/24", "take the lab down")
}

func TestNamesThatDockerCannotHaveAreRefused(t *testing.T) {
	t.Parallel()
	e := dockerlab.Open(t)
	for _, l := range []docker.Lab{
		{Name: "a b", Hosts: []lab.Host{host("web", lab.DockerHost{})}}, {Name: "", Hosts: []lab.Host{host("web", lab.DockerHost{})}},
		{Name: "..", Hosts: []lab.Host{host("web", lab.DockerHost{})}},
		{Name: "ok", Hosts: []lab.Host{host("../x", lab.DockerHost{})}},
	} {
		_, err := e.Up(t.Context(), l)
		problem(t, err, docker.BadHost, "cannot be named")
	}
	if _, err := e.Up(t.Context(), docker.Lab{Name: "none", Hosts: []lab.Host{{Name: "here", Local: true}}}); err == nil {
		t.Error("a lab without throwaway hosts was brought up")
	}
}
