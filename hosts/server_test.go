package hosts

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"ngxlab/internal/testlab"
	"ngxlab/lab"
	"ngxlab/lab/server"
)

// site is nginx serving a small file, its binary among the builds of the state directory, where agents have it.
func site(t *testing.T, dir string) lab.Serving {
	t.Helper()
	s, err := server.Serving(server.Input{
		Spec:   lab.ServerSpec{Port: testlab.FreePort(t), Site: "file", BodyBytes: 1 << 10},
		State:  lab.State{Name: "baseline"},
		Target: lab.Host{Name: "here", Local: true}, Recipe: testlab.Recipe(),
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Build = testlab.Nginx(t)
	binary, err := os.ReadFile(s.Build.Binary)
	if err != nil {
		t.Fatal(err)
	}
	s.Build.Binary = filepath.Join(dir, "builds", "test", "nginx")
	if err := os.MkdirAll(filepath.Dir(s.Build.Binary), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.Build.Binary, binary, 0o755); err != nil {
		t.Fatal(err)
	}
	return s
}

func answers(s lab.Serving) bool {
	answer, err := (&http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}).
		Get(fmt.Sprintf("http://127.0.0.1:%d%s", s.Port, s.URLs[0]))
	if err != nil {
		return false
	}
	_ = answer.Body.Close() // only read
	return answer.StatusCode == http.StatusOK
}

func TestServerRunsUntilItsContextEndsAndTheNextWaitsForThat(t *testing.T) {
	dir := testlab.StateDir(t)
	h := claimed(t, local(t, dir))
	s := site(t, dir)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	first, err := h.Serve(ctx, s)
	if err != nil {
		t.Fatal(err)
	}
	if !answers(s) || first.Master == 0 || first.Probes[s.URLs[0]].BodyBytes != 1<<10 {
		t.Errorf("server %+v", first)
	}
	held, err := h.Hold(t.Context(), lab.Hold{
		Kind: lab.HoldIdle, Address: fmt.Sprintf("127.0.0.1:%d", s.Port), URL: s.URLs[0], Connections: 50, Processes: 2,
	})
	if err != nil || held.Open != 50 {
		t.Errorf("held %+v, %v", held, err)
	}
	var sample lab.Sample
	err = h.Watch(t.Context(), lab.Watch{Once: true, Server: true, StatusPort: s.StatusPort}, func(got lab.Sample) { sample = got })
	if err != nil || sample.Status == nil || sample.Status.Active < 50 || len(sample.Processes) < 2 {
		t.Errorf("sample %+v, %v", sample, err)
	}
	if _, err := h.Hold(t.Context(), lab.Hold{}); err != nil {
		t.Error(err)
	}
	cancel()
	second, err := h.Serve(t.Context(), s) // the same ports
	if err != nil || second.Master == first.Master || testlab.Alive(first.Master) {
		t.Errorf("second server %d after %d, %v", second.Master, first.Master, err)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	if testlab.Alive(second.Master) || answers(s) {
		t.Error("the server outlives its agent")
	}
}

func TestServerThatCannotStartSaysWhy(t *testing.T) {
	dir := testlab.StateDir(t)
	h := claimed(t, local(t, dir))
	s := site(t, dir)
	s.Config = "nonsense;"
	if _, err := h.Serve(t.Context(), s); err == nil {
		t.Error("served nonsense")
	} else {
		t.Log(err)
	}
}

func TestNginxThatSurvivedGuardAndWorkerIsEndedAtTheNextContact(t *testing.T) {
	for name, also := range map[string]func(lab.Server) []int{
		"whole":          func(lab.Server) []int { return nil },
		"its master not": func(s lab.Server) []int { return []int{s.Master} }, // and its workers may be another user's
	} {
		t.Run(name, func(t *testing.T) { nginxSurvives(t, also) })
	}
}

// nginxSurvives kills the agent of a running nginx, and of it what also names.
func nginxSurvives(t *testing.T, also func(lab.Server) []int) {
	dir := testlab.StateDir(t)
	h := claimed(t, local(t, dir))
	s := site(t, dir)
	running, err := h.Serve(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	guard := h.conn.pipe.(*localPipe).cmd.Process.Pid
	worker := parent(t, running.Master)
	if err := syscall.Kill(guard, syscall.SIGSTOP); err != nil { // so that it cannot act before it is killed
		t.Fatal(err)
	}
	killed := append([]int{worker, guard}, also(running)...)
	kill(t, killed...)
	testlab.Eventually(t, "the agent is gone", func() bool { return !slices.ContainsFunc(killed, testlab.Alive) })
	if !answers(s) {
		t.Fatal("the server did not survive: the test shows nothing")
	}
	gone(t, dir)
	for _, pid := range append(running.Workers, running.Master) {
		if testlab.Alive(pid) {
			t.Errorf("process %d survived the next contact", pid)
		}
	}
}
