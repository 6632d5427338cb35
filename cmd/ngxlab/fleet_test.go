package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ngxlab/agent/wire"
	"ngxlab/lab"
	"ngxlab/store"
)

// threeHosts is the study on three hosts over SSH.
var threeHosts = strings.Replace(study, "  here: {local: true, roles: [target, load]}",
	"  web: {address: 10.0.0.1, roles: [target]}\n  load1: {address: 10.0.0.2, roles: [load]}\n  load2: {address: 10.0.0.3, roles: [load]}", 1)

// fakes attaches each host by its name; the others cannot be reached.
func fakes(hosts map[lab.HostName]*fakeHost) func(context.Context, string, lab.Host) (*machine, error) {
	return func(ctx context.Context, inLab string, x lab.Host) (*machine, error) {
		h := hosts[x.Name]
		if h == nil {
			return nil, fmt.Errorf("%s: no route to host", x.Name)
		}
		return fakeAttach(h)(ctx, inLab, lab.Host{Name: x.Name, Local: true})
	}
}

func TestEveryHostThatFailsIsNamedWithItsLine(t *testing.T) {
	c := newCommand(t)
	web := &fakeHost{facts: testFacts()}
	c.attach = fakes(map[lab.HostName]*fakeHost{"web": web})
	c.write("three.yaml", threeHosts)
	for _, command := range []string{"plan", "run"} {
		code := c.run(command, "DIR/three.yaml")
		for _, want := range []string{"three.yaml:5:3: load1: no route to host\n", "three.yaml:6:3: load2: no route to host\n"} {
			if code != exitFailed || !strings.Contains(c.err.String(), want) {
				t.Errorf("%s: exit code %d, %q is missing: %s", command, code, want, c.err)
			}
		}
	}
	if web.closed != 2 || len(web.claimed) > 0 {
		t.Errorf("the host that answers was let go %d times, want each time, and claimed %v", web.closed, web.claimed)
	}
}

func TestHostsAreTakenAllOrNone(t *testing.T) {
	c := newCommand(t)
	held := wire.Locked(wire.Lock{Owner: "ana@desk", Campaign: "other-1", Since: at})
	hosts := map[lab.HostName]*fakeHost{"web": {facts: testFacts()}, "load1": {facts: testFacts(), claimErr: held}, "load2": {facts: testFacts(), claimErr: held}}
	c.attach = fakes(hosts)
	c.write("three.yaml", threeHosts)
	code := c.run("run", "DIR/three.yaml")
	if code != exitFailed || strings.Count(c.err.String(), "in use by ana@desk, campaign other-1, since 2026-11-30T17:15:02Z\nhint: wait") != 2 {
		t.Errorf("exit code %d: %s", code, c.err)
	}
	for name, h := range hosts {
		if len(h.claimed) != 1 || h.closed != 1 {
			t.Errorf("%s was asked %d times and let go %d times, want once each", name, len(h.claimed), h.closed)
		}
	}
}

func TestOneMachineUnderTwoNamesIsTold(t *testing.T) {
	c := newCommand(t)
	own := wire.Locked(wire.Lock{Owner: owner(), Campaign: "small-1", Since: at})
	c.attach = fakes(map[lab.HostName]*fakeHost{"web": {facts: testFacts()}, "load1": {facts: testFacts(), claimErr: own}, "load2": {facts: testFacts()}})
	c.write("three.yaml", threeHosts)
	code := c.run("run", "DIR/three.yaml")
	if code != exitFailed || !strings.Contains(c.err.String(), "load1: another host of the experiment is the same machine\nhint: one host may have both roles") {
		t.Errorf("exit code %d: %s", code, c.err)
	}
}

func TestPendingHostsArePutBackTogetherBeforeTheyAreRead(t *testing.T) {
	c := newCommand(t)
	left := []lab.Pending{{Knob: lab.KnobID{Kind: lab.KnobSysctl, Name: "a"}, Campaign: "old-1"}}
	hosts := map[lab.HostName]*fakeHost{
		"web": {facts: testFacts(), pending: left}, "load1": {facts: testFacts(), pending: left, restoreErr: errors.New("load1: read-only file system")}, "load2": {facts: testFacts()},
	}
	c.attach = fakes(hosts)
	c.write("three.yaml", threeHosts)
	code := c.run("run", "DIR/three.yaml")
	for _, want := range []string{"web: campaign old-1 left 1 knob changed", "three.yaml:5:3: load1: read-only", "not put back as it was: load1\n", "three.yaml load1\""} {
		if code != exitUnrestored || !strings.Contains(c.err.String(), want) {
			t.Errorf("exit code %d, %q is missing: %s", code, want, c.err)
		}
	}
	if len(hosts["web"].pending) > 0 {
		t.Error("web was not put back")
	}
	if _, bad := c.touched.left(); len(bad) != 1 || bad[0] != "load1" {
		t.Errorf("who leaves at once is told of %v", bad)
	}
}

func TestCampaignIsDoneOnceEveryHostIsPutBack(t *testing.T) {
	c := newCommand(t)
	c.filled("small-1", 1.2)
	c.db = filepath.Join(c.dir, "lab.db")
	web, load := &fakeHost{}, &fakeHost{restoreErr: errors.New("load1: read-only file system")}
	c.attach = fakes(map[lab.HostName]*fakeHost{"web": web, "load1": load})
	x := lab.Experiment{Hosts: []lab.Host{{Name: "web", Address: "10.0.0.1"}, {Name: "load1", Address: "10.0.0.2"}}}
	for _, want := range []lab.CampaignStatus{lab.StatusUnrestored, lab.StatusDone} {
		f, errs := c.attachAll(t.Context(), x)
		must(t, errors.Join(errs...))
		out := lab.Outcome{Campaign: "small-1", Status: lab.StatusUnrestored, Unrestored: map[lab.HostName][]lab.Restored{"web": {}, "load1": {}}}
		must(t, c.writing(t.Context(), func(s *store.Store) error { return c.mend(t.Context(), s, f, &out) }))
		if code := c.run("show", "small-1", "--json"); code != exitDone || out.Status != want || !strings.Contains(c.out.String(), fmt.Sprintf(`"status": %q`, want)) {
			t.Errorf("exit code %d, outcome %+v, want %s: %.300s", code, out, want, c.out)
		}
		load.restoreErr = nil
	}
}

func TestCommandsForHostsNameThemAsTheyAreReached(t *testing.T) {
	c := newCommand(t)
	file := c.write("three.yaml", threeHosts)
	x, err := loadExperiment(file)
	must(t, err)
	spaced := x
	spaced.File = c.write("my study's.yaml", threeHosts)
	gone := x
	gone.File = file + ".gone.yaml"
	gone.Hosts = []lab.Host{
		{Name: "web", Address: "10.0.0.1", User: "root", Port: 2222}, {Name: "load1", Address: "10.0.0.2", Sudo: true, Key: "k"},
		{Name: "load2", Address: "fd00::1", Port: 22, Sudo: true, Key: "k", Jump: "j"}, {Name: "here", Local: true},
	}
	for _, tc := range []struct {
		x     lab.Experiment
		names []lab.HostName
		want  string
	}{
		{x, hostNames(x), "ngxlab restore " + file},
		{x, []lab.HostName{"web", "load2"}, "ngxlab restore " + file + " web load2"},
		{spaced, hostNames(x), "ngxlab restore '" + c.dir + `/my study'\''s.yaml'`},
		{gone, []lab.HostName{"here"}, "ngxlab restore"},
		{gone, hostNames(gone), "ngxlab restore root@10.0.0.1:2222 local; ngxlab restore --sudo --key k 10.0.0.2; ngxlab restore --sudo --key k --jump j [fd00::1]:22"},
	} {
		if got := c.restoreCommand(tc.x, tc.names); got != tc.want {
			t.Errorf("got %q, want %q", got, tc.want)
		}
	}
}

// TestCommandsOfAQueryHaveTheirTime: each is verified before anything is planned, one after the other.
func TestCommandsOfAQueryHaveTheirTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := lab.CommandValue{Apply: []string{"a"}, Verify: []string{"b"}, Revert: []string{"c"}, Timeout: lab.Seconds(600), Applied: true}
		x := lab.Experiment{Hosts: []lab.Host{{Name: "here", Local: true, Roles: []lab.Role{lab.RoleTarget}}}}
		for _, name := range []string{"one", "two"} {
			set := lab.Setting{Knob: lab.KnobID{Kind: lab.KnobCommand, Name: name}, Value: slow.String()}
			x.Steps = append(x.Steps, lab.Step{Name: name, Knobs: []lab.Setting{set}})
		}
		answers := func(ctx context.Context, _ lab.FactsQuery) (lab.Facts, error) {
			select {
			case <-ctx.Done():
				return lab.Facts{}, context.Cause(ctx)
			case <-time.After(20 * time.Minute):
				return testFacts(), nil
			}
		}
		f := &fleet{x: x, machines: []*machine{{facts: answers}}}
		if _, err := f.facts(t.Context(), x, false); err != nil {
			t.Error(err)
		}
	})
}
