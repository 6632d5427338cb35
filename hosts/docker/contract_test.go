package docker_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"ngxlab/hosts"
	"ngxlab/hosts/docker"
	"ngxlab/internal/testlab"
	"ngxlab/internal/testlab/dockerlab"
	"ngxlab/lab"
)

func TestHostsKeepTheContract(t *testing.T) {
	e, l, _ := dockerlab.Lab(t, "web")
	agent := testlab.Agent(t)
	testlab.HostContract(t, func(t testing.TB) testlab.Host {
		d, err := e.Enter(t.Context(), l.Name, "web")
		if err != nil {
			t.Fatal(err)
		}
		h, err := hosts.Enter(t.Context(), d, hosts.Options{Name: "web", Agent: agent})
		if err != nil {
			t.Fatal(err)
		}
		return h
	})
}

// attach is a session with the only host of a lab.
func attach(t *testing.T, e *docker.Engine, l docker.Lab) *hosts.Host {
	t.Helper()
	d, err := e.Enter(t.Context(), l.Name, "web")
	if err != nil {
		t.Fatal(err)
	}
	h, err := hosts.Enter(t.Context(), d, hosts.Options{Name: "web", Agent: testlab.Agent(t)})
	if err != nil {
		t.Fatal(err)
	}
	if h.Address() == "" || h.Address() != d.Address() {
		t.Errorf("its address is %q, the door's %q", h.Address(), d.Address())
	}
	return h
}

// TestHostThatIsLostIsPutBackAfterwards loses a host that is tuned and runs something, in two ways.
func TestHostThatIsLostIsPutBackAfterwards(t *testing.T) {
	t.Parallel()
	t.Run("connection cut", func(t *testing.T) {
		t.Parallel()
		e, l, _ := dockerlab.Lab(t, "web")
		proxy := newProxy(t)
		far, err := open(t, "tcp://"+proxy.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		lose(t, attach(t, far, l), proxy.cut)
		putBack(t, e, l)
	})
	t.Run("paused", func(t *testing.T) {
		t.Parallel()
		e, l, containers := dockerlab.Lab(t, "web")
		r := newRaw(t)
		lose(t, attach(t, e, l), func() {
			if err := r.ContainerPause(t.Context(), containers[0].ID); err != nil {
				t.Error(err)
			}
		})
		if err := r.ContainerUnpause(t.Context(), containers[0].ID); err != nil {
			t.Fatal(err)
		}
		putBack(t, e, l)
	})
}

const knob, original, tuned = "net.core.somaxconn", "4096", "1234"

// lose tunes a host, runs something there, and loses it.
func lose(t *testing.T, h *hosts.Host, how func()) {
	t.Helper()
	ctx := t.Context()
	if err := h.Claim(ctx, "c1", "ana@desk"); err != nil {
		t.Fatal(err)
	}
	change := lab.Change{Knob: lab.KnobID{Kind: lab.KnobSysctl, Name: knob}, From: lab.Value{Text: original}, To: lab.Value{Text: tuned}}
	if _, err := h.Apply(ctx, "c1", []lab.Change{change}); err != nil {
		t.Fatal(err)
	}
	armed, err := h.Arm(ctx, []lab.Command{{Argv: []string{"sleep", "1234"}, Deadline: lab.Seconds(600)}})
	if err != nil {
		t.Fatal(err)
	}
	fired := make(chan error, 1)
	go func() {
		_, err := h.Fire(ctx, armed, 0)
		fired <- err
	}()
	testlab.Eventually(t, "the command runs", func() bool { return sleeping(t, h) })
	begin := time.Now()
	how()
	if err := <-fired; !errors.Is(err, lab.ErrLost) {
		t.Errorf("the command ended with %v, want that the host is lost", err)
	}
	if took := time.Since(begin); took > 7*time.Second {
		t.Errorf("it was noticed after %v", took)
	}
	_ = h.Close() // an error, whose words are tested elsewhere
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("it was given up after %v", took)
	}
}

// sleeping reports whether the command of lose runs on a host.
func sleeping(t *testing.T, h *hosts.Host) bool {
	t.Helper()
	armed, err := h.Arm(t.Context(), []lab.Command{{Argv: []string{"pgrep", "-xf", "sleep 1234"}, Deadline: lab.Seconds(10)}})
	if err != nil {
		t.Fatal(err)
	}
	ps, err := h.Fire(t.Context(), armed, 0)
	return err == nil && len(ps) == 1 && ps[0].Exit == 0
}

// putBack holds that nothing runs on a host that was lost, that it is free, and that it can be put back.
func putBack(t *testing.T, e *docker.Engine, l docker.Lab) {
	t.Helper()
	testlab.Eventually(t, "what ran there is gone", func() bool {
		return lines(t, e, l.Name, "web", "pgrep -xfc [s]leep.1234; true")[0] == "0"
	})
	h := attach(t, e, l)
	defer h.Close() //nolint:errcheck // the test is over
	testlab.Eventually(t, "the host is free", func() bool { return h.Claim(context.WithoutCancel(t.Context()), "c2", "bo@desk") == nil })
	restored, err := h.Restore(t.Context())
	if err != nil || len(restored) != 1 || restored[0].Outcome != lab.RestoreDone {
		t.Errorf("restored %+v, %v", restored, err)
	}
	if now := lines(t, e, l.Name, "web", fmt.Sprintf("sysctl -n %s", knob)); now[0] != original {
		t.Errorf("%s is %s", knob, now[0])
	}
}
