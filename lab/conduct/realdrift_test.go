package conduct

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"ngxlab/hosts"
	"ngxlab/internal/testlab"
	"ngxlab/lab"
)

const driftStudy = `name: drift
hosts: {here: {local: true, roles: [target, load]}}
builds: {nginx: {flavor: nginx, modules: [stub_status, echo], source: [{debian: nginx}]}}
server: {build: nginx, port: %d, site: file, body: 1KiB}
steps:
  - {name: tuned, sysctl: {net.ipv4.tcp_fin_timeout: 17}}
  - {name: also, nginx: {sendfile: "on"}}
load: [{tool: wrk, connections: 10, keepalive: true, duration: 1s, warmup: 0s}]
repeat: {min: 1, max: 1, cool_down: 0s, control: false}
`

// meddled is a host on which someone does something while load is fired.
type meddled struct {
	*hosts.Host
	do func()
}

func (m meddled) Fire(ctx context.Context, a lab.Armed, at lab.Instant) ([]lab.Process, error) {
	m.do()
	return m.Host.Fire(ctx, a, at)
}

// TestSysctlThatSomeoneElseWritesDuringARunInvalidatesItAndEndsTheCampaign has a real agent, server and load in a network
// namespace of their own.
func TestSysctlThatSomeoneElseWritesDuringARunInvalidatesItAndEndsTheCampaign(t *testing.T) {
	testlab.Require(t, "wrk")
	ownNetwork(t)
	const path = "/proc/sys/net/ipv4/tcp_fin_timeout"
	testlab.RequireWritable(t, path)
	sysctl, err := os.OpenFile(path, os.O_WRONLY, 0) // of this namespace, whoever writes to it
	if err != nil {
		t.Fatal(err)
	}
	defer sysctl.Close() //nolint:errcheck // the writes are checked
	host, p := ownHost(t, fmt.Sprintf(driftStudy, testlab.FreePort(t)))
	takeOver(t, host)
	other := meddled{host, func() {
		if _, err := sysctl.WriteString("33\n"); err != nil {
			t.Error(err)
		}
	}}
	store := &fakeStore{}
	machines := map[lab.HostName]Machine{"here": {Tuner: host, Builder: host, Runner: other, Watcher: host}}
	out, err := Run(t.Context(), "own", p, machines, store, ignore)
	var drifted *DriftError
	if !errors.As(err, &drifted) || len(store.runs) != 2 {
		t.Fatalf("%d runs, outcome %+v, error %v", len(store.runs), out, err)
	}
	for i, when := range []string{"after", "before"} {
		f, invalid := drift(t, store.runs[i])
		want := "here: sysctl net.ipv4.tcp_fin_timeout should be 17, was 33 " + when + " the run"
		if !invalid || f.Evidence != want || (len(store.runs[i].Figures) > 0) != (when == "after") {
			t.Errorf("run %d: %s, evidence %q, want %q; figures %v", i, store.runs[i].Validity, f.Evidence, want, store.runs[i].Figures)
		}
	}
	now, err := os.ReadFile(path)
	if kept := out.Kept["here"]; err != nil || len(kept) != 1 || strings.TrimSpace(string(now)) != "33" || len(out.Unrestored) > 0 {
		t.Errorf("outcome %+v, the sysctl is %s, error %v", out, now, err)
	}
}
