package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"ngxlab/agent/wire"
	"ngxlab/lab"
	"ngxlab/store"
)

func TestRefusedPlanRunsNothingAndMakesNoDatabase(t *testing.T) {
	c := newCommand(t)
	c.write("refused.yaml", strings.Replace(study, "    unsupported: skip\n", "", 1))
	if code := c.run("run", "DIR/refused.yaml"); code != 1 || !strings.Contains(c.err.String(), "refused.yaml:12:14:") {
		t.Errorf("exit code %d: %s", code, c.err)
	}
	if _, err := os.Stat(filepath.Join(c.dir, "lab.db")); err == nil {
		t.Error("a database was made")
	}
}

func TestLongCampaignNeedsYes(t *testing.T) {
	c := newCommand(t)
	c.write("long.yaml", strings.Replace(study, "duration: 2s", "duration: 30m", 1))
	if code := c.run("run", "DIR/long.yaml"); code != exitUsage || !strings.Contains(c.err.String(), "add --yes") {
		t.Errorf("exit code %d: %s", code, c.err)
	}
}

func TestHostInUseIsNamedWithItsOwner(t *testing.T) {
	c := newCommand(t)
	host := &fakeHost{facts: testFacts(), claimErr: wire.Locked(wire.Lock{Owner: "ana@desk", Campaign: "other-1", Since: at})}
	c.attach = fakeAttach(host)
	c.write("small.yaml", study)
	code := c.run("run", "DIR/small.yaml")
	for _, want := range []string{"ana@desk", "other-1", "2026-11-30", "hint: "} {
		if code != 1 || !strings.Contains(c.err.String(), want) {
			t.Errorf("exit code %d, %q is missing: %s", code, want, c.err)
		}
	}
	if host.closed != 1 {
		t.Errorf("the host was let go %d times, want once", host.closed)
	}
}

func TestFailedCampaignIsKeptAndSaysHowToGoOn(t *testing.T) {
	c := newCommand(t)
	c.write("small.yaml", study)
	code := c.run("run", "DIR/small.yaml")
	for _, want := range []string{"there is no compiler", "hint: \"ngxlab resume small-20261130-171502\"", "here: as it was before the campaign"} {
		if code != exitFailed || !strings.Contains(c.err.String(), want) {
			t.Errorf("exit code %d, %q is missing: %s", code, want, c.err)
		}
	}
	if code := c.run("list", "--json"); code != 0 || !strings.Contains(c.out.String(), `"status": "failed"`) {
		t.Errorf("list: exit code %d: %s", code, c.out)
	}
	if code := c.run("resume", "small"); code != exitFailed || !strings.Contains(c.err.String(), "there is no compiler") {
		t.Errorf("resume: exit code %d: %s", code, c.err)
	}
}

func TestHostThatCannotBeRestoredEndsTheCampaignWithItsOwnCode(t *testing.T) {
	c := newCommand(t)
	c.attach = fakeAttach(&fakeHost{facts: testFacts(), restoreErr: errors.New("read-only file system")})
	c.write("small.yaml", study)
	if code := c.run("run", "DIR/small.yaml"); code != exitUnrestored || !strings.Contains(c.err.String(), "here: NOT as it was before the campaign") {
		t.Errorf("exit code %d: %s", code, c.err)
	}
	if got := c.leave(); got != exitUnrestored {
		t.Errorf("leaving a host that is not restored: exit code %d", got)
	}
}

func TestRestoreSaysWhatBecameOfEveryKnob(t *testing.T) {
	knob := lab.KnobID{Kind: lab.KnobSysctl, Name: "net.core.somaxconn"}
	for name, tc := range map[string]struct {
		restored lab.Restored
		want     string
	}{
		"restored": {lab.Restored{Knob: knob, Original: lab.Value{Text: "4096"}, Found: lab.Value{Text: "8192"}, Outcome: "restored"}, "put back from 8192 to 4096"},
		"already":  {lab.Restored{Knob: knob, Original: lab.Value{Text: "4096"}, Outcome: "already"}, "already 4096"},
		"foreign":  {lab.Restored{Knob: knob, Original: lab.Value{Text: "4096"}, Found: lab.Value{Text: "1"}, Outcome: "foreign"}, "kept at 1: changed by someone else"},
		"rebooted": {lab.Restored{Knob: knob, Found: lab.Value{Text: "4096"}, Outcome: "rebooted"}, "rebooted"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCommand(t)
			c.attach = fakeAttach(&fakeHost{restored: []lab.Restored{tc.restored}})
			if code := c.run("restore"); code != 0 || !strings.Contains(c.out.String(), tc.want) {
				t.Errorf("exit code %d: %s%s", code, c.out, c.err)
			}
		})
	}
}

func TestUnrestoredHostWinsOverEveryOtherExitCode(t *testing.T) {
	c := newCommand(t)
	c.attach = fakeAttach(&fakeHost{restoreErr: errors.New("write /proc/sys/net/core/somaxconn: permission denied")})
	if code := c.run("restore", "web1", "local"); code != exitUnrestored || !strings.Contains(c.err.String(), "not put back as it was: local\n") || !strings.Contains(c.out.String(), "web1: cannot be asked") {
		t.Errorf("exit code %d: %s", code, c.err)
	}
	all := errors.Join(context.Canceled, &usageError{err: errors.New("x")}, &doubtfulError{}, &unrestoredError{})
	if code := exitCode(all); code != exitUnrestored {
		t.Errorf("exit code %d, want %d", code, exitUnrestored)
	}
}

// TestHostThatCannotBeAskedIsUnrestoredOnlyWhenTheDatabaseSaysSo has a campaign that ended well, one that did not put its
// host back, and one that never ended.
func TestHostThatCannotBeAskedIsUnrestoredOnlyWhenTheDatabaseSaysSo(t *testing.T) {
	change := []lab.Change{{Knob: lab.KnobID{Kind: lab.KnobSysctl, Name: "net.core.somaxconn"}, From: lab.Value{Text: "4096"}, To: lab.Value{Text: "8192"}}}
	for name, tc := range map[string]struct {
		outcome *lab.Outcome
		host    string
		code    int
	}{
		"put back":      {&lab.Outcome{Status: lab.StatusDone}, "10.0.0.1", exitFailed},
		"not put back":  {&lab.Outcome{Status: lab.StatusUnrestored, Unrestored: map[lab.HostName][]lab.Restored{"here": nil}}, "10.0.0.1", exitUnrestored},
		"never ended":   {nil, "10.0.0.1", exitUnrestored},
		"another host":  {nil, "10.0.0.2", exitFailed},
		"no database":   {nil, "", exitFailed},
		"another port":  {nil, "10.0.0.1:2222", exitFailed},
		"another login": {nil, "root@10.0.0.1", exitUnrestored},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCommand(t)
			if tc.host == "" {
				tc.host = "10.0.0.1"
			} else {
				pl := planned(t, study)
				pl.Experiment.Hosts = []lab.Host{{Name: "here", Address: "10.0.0.1"}}
				s, err := store.Open(t.Context(), filepath.Join(c.dir, "lab.db"))
				must(t, err)
				_, err = s.Begin(t.Context(), "small-1", pl)
				must(t, err)
				must(t, s.Originals(t.Context(), "small-1", "here", change))
				if tc.outcome != nil {
					must(t, s.Commit(t.Context(), "small-1", lab.Record{Outcome: tc.outcome}))
				}
				must(t, s.Close())
			}
			for _, line := range [][]string{{"restore", tc.host}, {"restore", "--check", tc.host}} {
				code := c.run(line...)
				if told := strings.Contains(c.err.String(), "not put back as it was"); code != tc.code || told != (tc.code == exitUnrestored) || !strings.Contains(c.out.String(), tc.host+": cannot be asked\n") {
					t.Errorf("%v: exit code %d, want %d: %s%s", line, code, tc.code, c.out, c.err)
				}
			}
		})
	}
}

func TestInterruptedCommandSaysNoMore(t *testing.T) {
	killed := &hostError{err: fmt.Errorf("lab x: debootstrap: %w; its last lines:\nI: Retrieving", errors.Join(context.Canceled, errors.New("signal: killed"))), hint: "let the engine reach a registry"}
	var said strings.Builder
	err := curt(errors.Join(killed, killed, errors.New("remove network x: in use")))
	printError(&said, err)
	if said.String() != "ngxlab: remove network x: in use\nngxlab: interrupted\n" && said.String() != "ngxlab: interrupted\nngxlab: remove network x: in use\n" || exitCode(err) != exitInterrupted {
		t.Errorf("exit code %d: %s", exitCode(err), said.String())
	}
	campaign := &hinted{err: &interruptedError{id: "small-1", runs: 2}, hint: "resume it"}
	if err := curt(campaign); !strings.Contains(err.Error(), "small-1 was interrupted after 2 runs") {
		t.Error(err)
	}
}

func TestUnusableDestinationIsAWrongUse(t *testing.T) {
	for _, line := range [][]string{{"ro ot@web"}, {"--jump", "a,,b", "web"}, {"--", "-x@web"}, {"user@"}} {
		c := newCommand(t)
		if code := c.run(append([]string{"hosts", "list"}, line...)...); code != exitUsage || !strings.Contains(c.err.String(), "hint: ") {
			t.Errorf("%v: exit code %d: %s", line, code, c.err)
		}
	}
}

func TestPendingChangesAreTold(t *testing.T) {
	c := newCommand(t)
	host := &fakeHost{facts: testFacts(), pending: []lab.Pending{{Knob: lab.KnobID{Kind: lab.KnobSysctl, Name: "a"}, Original: lab.Value{Text: "1"}, Campaign: "old-1", Since: "2026-11-30T17:00:00Z"}}}
	c.attach = fakeAttach(host)
	c.write("small.yaml", study)
	if code := c.run("restore", "--check"); code != exitUnrestored || !strings.Contains(c.out.String(), "old-1") {
		t.Errorf("restore --check: exit code %d: %s", code, c.out)
	}
	if code := c.run("plan", "DIR/small.yaml"); code != 0 || !strings.Contains(c.err.String(), "old-1 left 1 knob changed") {
		t.Errorf("plan: exit code %d: %s", code, c.err)
	}
	if code := c.run("status"); code != 0 || !strings.Contains(c.out.String(), "local: 1 knob left changed by campaign old-1") {
		t.Errorf("status: exit code %d: %s", code, c.out)
	}
	if len(host.pending) == 0 {
		t.Fatal("a command that changes nothing restored the host")
	}
	c.run("run", "DIR/small.yaml") // fails later: the fake cannot run anything
	if len(host.pending) != 0 || !strings.Contains(c.err.String(), "putting it back first") {
		t.Errorf("run planned with what an earlier campaign left: %s", c.err)
	}
}

func TestResumeUnderOtherConditionsBeginsANewPart(t *testing.T) {
	c := newCommand(t)
	pl := planned(t, study)
	pl.Original = lab.State{Settings: map[lab.HostName][]lab.Setting{"here": {{Knob: lab.KnobID{Kind: lab.KnobSysctl, Name: "net.core.somaxconn"}, Value: "4096"}}}}
	now := testFacts()
	now.BootID, now.Kernel = "b2", "6.1.1"
	now.Sysctls = map[string]string{"net.core.somaxconn": "128", "net.ipv4.ip_local_port_range": "32768\t60999"}
	facts := map[lab.HostName]lab.Facts{"here": now}
	got := strings.Join(changes(pl, facts), "\n")
	for _, want := range []string{"kernel of here: 6.1.0 → 6.1.1", "boot of here: b1 → b2", "net.core.somaxconn of here: 4096 → 128"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in %q", want, got)
		}
	}
	s, err := store.Open(context.Background(), filepath.Join(c.dir, "lab.db"))
	must(t, err)
	defer func() { must(t, s.Close()) }()
	_, err = s.Begin(context.Background(), "small-1", pl)
	must(t, err)
	next, err := c.replanned(context.Background(), s, lab.Campaign{ID: "small-1", Parts: 1, Runs: 4}, pl, facts)
	must(t, err)
	if next.Part != 2 || next.Seed != pl.Seed || next.Facts["here"].BootID != "b2" {
		t.Errorf("part %d, seed %d, boot %s", next.Part, next.Seed, next.Facts["here"].BootID)
	}
	same, err := c.replanned(context.Background(), s, lab.Campaign{ID: "small-1", Parts: 1, Runs: 4}, planned(t, study), map[lab.HostName]lab.Facts{"here": testFacts()})
	must(t, err)
	if same.Part != 1 {
		t.Errorf("nothing changed, but part %d begins", same.Part)
	}
}

func TestResumeTakesHostsAtTheirPresentAddresses(t *testing.T) {
	c := newCommand(t)
	inLab := strings.Replace(study, "here: {local: true, roles: [target, load]}", "here: {local: true, roles: [load]}\n  web: {docker: {}, roles: [target]}", 1)
	pl, fresh := plannedAt(t, inLab, "172.17.0.2"), plannedAt(t, inLab, "172.17.0.9")
	got := c.readdressed(pl, fresh)
	if said := c.err.String(); !strings.Contains(said, "web has another address: 172.17.0.2 → 172.17.0.9") {
		t.Errorf("it says %q", said)
	}
	if url := got.Drivings[0].Measured["here"][0].Argv; url[len(url)-1] != "http://172.17.0.9:8081/file" || got.LoadAddress("web") != "172.17.0.9" {
		t.Errorf("load goes to %s", url)
	}
	if pl.LoadAddress("web") != "172.17.0.2" {
		t.Error("the plan before was changed")
	}
}

func TestFirstInterruptCancelsAndSecondLeaves(t *testing.T) {
	c := newCommand(t)
	c.touched.add(lab.Experiment{Hosts: []lab.Host{{Name: "here", Local: true}}}, "here")
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal)
	code := make(chan int)
	go func() { code <- wait(c.app, make(chan int), signals, func() { t.Error("it is to leave at once") }) }()
	signals <- syscall.SIGQUIT
	if got := <-code; got != exitUnrestored {
		t.Errorf("Ctrl-\\: exit code %d", got)
	}
	go func() { code <- wait(c.app, make(chan int), signals, cancel) }()
	signals <- os.Interrupt
	select {
	case <-ctx.Done():
	case <-time.After(10 * time.Second):
		t.Fatal("the first interrupt cancelled nothing")
	}
	signals <- os.Interrupt
	if got := <-code; got != exitUnrestored || !strings.Contains(c.err.String(), `hint: run "ngxlab restore"`) {
		t.Errorf("exit code %d: %s", got, c.err)
	}
}
