package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"ngxlab/internal/testlab/fingerprint"
	"ngxlab/lab"
)

// victim is who is killed.
type victim struct {
	name   string
	inside []string         // texts of command lines in the container
	one    bool             // one process of each text
	here   []syscall.Signal // for the program, with a pause between two
	listen bool             // sshd is started again some time later
}

// aVictim is the program in a quarter of the raids, one of all that can be killed in another, else a pair of them.
func aVictim(random *rand.Rand) victim {
	const worker, guard = "ngxlab-agent worker", "/.cache/ngxlab/ngxlab-agent-"
	single := []victim{
		{name: "orchestrator", here: []syscall.Signal{syscall.SIGKILL}},
		{name: "worker", inside: []string{worker}},
		{name: "guard", inside: []string{guard}},
		{name: "sessions", inside: []string{"sshd: root"}},
		{name: "sshd", inside: []string{"sshd: /usr/sbin/sshd -f /etc/ngxlab/chaos_sshd_config", "sshd: root"}, listen: true},
		{name: "nginx master", inside: []string{"nginx: master"}},
		{name: "nginx worker", inside: []string{"nginx: worker"}, one: true},
	}
	switch random.IntN(4) {
	case 0:
		return single[0]
	case 1:
		return pick(random, append(single, victim{name: "two interrupts", here: []syscall.Signal{syscall.SIGINT, syscall.SIGINT}}))
	}
	i := random.Perm(len(single))
	a, b := single[min(i[0], i[1])], single[max(i[0], i[1])]
	return victim{name: a.name + " and " + b.name, inside: slices.Concat(a.inside, b.inside), here: slices.Concat(a.here, b.here), listen: a.listen || b.listen}
}

// raid is one campaign and what happens to it.
type raid struct {
	t     *testing.T
	h     *chaosHost
	m     *machineTest
	x     chaosStudy
	p     *program
	began time.Time
	delay time.Duration // from the beginning to the kill

	edit   *edit
	ours   bool   // the edit was over a value of the lab's
	phase  string // of the kill
	killed []string

	checked  int // exit code of restore --check
	putBack  string
	restored string // what restore printed

	mu      sync.Mutex
	last    lab.EventKind
	seen    map[lab.EventKind]int
	waiting lab.EventKind // what is waited for
	come    chan struct{} // closed when it comes
}

// newRaid writes the study and chooses the moment.
func newRaid(t *testing.T, h *chaosHost, x chaosStudy, random *rand.Rand) *raid {
	t.Helper()
	r := &raid{t: t, h: h, x: x, m: &machineTest{command: newCommand(t)}, began: time.Now(), seen: map[lab.EventKind]int{}}
	r.m.agent = h.agent
	r.m.write("chaos.yaml", x.yaml(h))
	r.delay = time.Duration(random.Float64() * float64(h.unit) * x.units())
	return r
}

// units is how long the study takes, in runs with their share of all else.
func (x chaosStudy) units() float64 { return float64(x.states*2) + 2 }

// begin starts the campaign and follows its events.
func (r *raid) begin(seed uint64) {
	r.t.Helper()
	r.p = r.m.start("run", "DIR/chaos.yaml", "--json", "--out", "DIR/report", "--seed", fmt.Sprint(seed))
	r.began = time.Now()
	go func() {
		for e := range r.p.events {
			r.note(e.Kind)
		}
	}()
}

// note remembers an event.
func (r *raid) note(k lab.EventKind) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = k
	r.seen[k]++
	if k == r.waiting {
		close(r.come)
		r.waiting = ""
	}
}

// aims are the events at which it is struck as well as at any moment, for much happens in little time around them; and
// how many of them there are at least.
var aims = []struct {
	kind  lab.EventKind
	times int
}{
	{lab.EventBegin, 1}, {lab.EventState, 3}, {lab.EventState, 3}, {lab.EventChange, 2}, {lab.EventChange, 2}, {lab.EventServer, 3},
	{lab.EventRun, 4}, {lab.EventRunDone, 3}, {lab.EventStop, 1}, {lab.EventRestore, 1}, {lab.EventRestored, 1},
}

// await waits for the moment to strike: in half of the raids any, in the others just after an event.
func (r *raid) await(random *rand.Rand) {
	aim, after := pick(random, aims), time.Duration(random.Int64N(int64(60*time.Millisecond)))
	times := 1 + random.IntN(aim.times)
	if random.IntN(2) == 0 {
		r.wait(r.delay, "")
		return
	}
	for range times {
		r.wait(patience, aim.kind)
	}
	r.wait(time.Since(r.began)+after, "")
}

// wait waits until some time after the beginning, for an event unless that is "", or until the campaign has ended.
func (r *raid) wait(until time.Duration, k lab.EventKind) {
	come := make(chan struct{})
	r.mu.Lock()
	r.waiting, r.come = k, come
	r.mu.Unlock()
	select {
	case <-come:
	case <-r.p.ended:
	case <-time.After(time.Until(r.began.Add(until))):
	}
}

// over reports whether the campaign has ended.
func (r *raid) over() bool {
	select {
	case <-r.p.ended:
		return true
	default:
		return false
	}
}

// strike kills the victims. Those that are not there yet are waited for while the campaign lasts.
func (r *raid) strike(v victim, random *rand.Rand) {
	r.t.Helper()
	r.mu.Lock()
	r.phase = string(r.last)
	r.mu.Unlock()
	switch {
	case r.over():
		r.phase = "after the end"
		r.h.unit = time.Duration(float64(time.Since(r.began)) / r.x.units())
		if code := r.p.exit(); !slices.Contains(finished, code) && (r.edit == nil || !r.edit.early) {
			r.t.Errorf("the campaign ended with exit code %d before anybody disturbed it", code)
		}
	case r.phase == "":
		r.phase = "preparation"
	}
	pause := time.Duration(random.Int64N(int64(time.Second)))
	for i, signal := range v.here {
		if i > 0 {
			r.wait(time.Since(r.began)+pause, "")
		}
		_ = r.p.cmd.Process.Signal(signal) // it may have ended
	}
	for len(v.inside) > 0 {
		a, err := r.h.inside.ask(fingerprint.Request{Kill: v.inside, One: v.one})
		must(r.t, err)
		r.killed = a.Killed
		if len(a.Killed) > 0 || r.over() {
			break
		}
		r.wait(time.Since(r.began)+20*time.Millisecond, "")
	}
	if v.listen {
		r.wait(time.Since(r.began)+pause, "")
		r.h.listen(r.t)
	}
}

// end waits for the end of the campaign; one that goes on is interrupted after a while.
func (r *raid) end(random *rand.Rand) {
	r.t.Helper()
	r.wait(time.Since(r.began)+time.Duration(random.Int64N(int64(2*time.Second))), "")
	_ = r.p.cmd.Process.Signal(syscall.SIGINT) // it may have ended
	r.p.exit()
}

// thirdParty sets a knob of the lab's to a third value.
func (r *raid) thirdParty() {
	r.t.Helper()
	was := r.h.mustRun(r.t, fmt.Sprintf("sysctl -n %s; sysctl -qw %[1]s='%s'", r.edit.sysctl, r.edit.value))
	r.ours = strings.TrimSpace(was) != r.h.before["sysctl "+r.edit.sysctl]
}

// restores is how often restore is tried.
const restores = 3

// restore puts the host back from another machine.
func (r *raid) restore() {
	r.t.Helper()
	r.checked, _ = r.h.elsewhere(r.t, "restore", "--check", r.h.destination())
	for try := 1; ; try++ {
		code, said := r.h.elsewhere(r.t, "restore", r.h.destination())
		r.restored += fmt.Sprintf("try %d, exit code %d: %s", try, code, said)
		if code == exitDone {
			break
		}
		if try == restores {
			r.t.Fatalf("not restored in %d tries", try)
		}
		<-time.After(time.Second)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case !strings.Contains(r.restored, "nothing to put back"):
		r.putBack = "by restore"
	case r.seen[lab.EventChange] > 0:
		r.putBack = "by the run itself"
	default:
		r.putBack = "nothing had changed"
	}
}

// mustBeAsBefore holds that the host is as it was but for the third party's edit, which must be there, and must have been
// told of where it was over a value of the lab's.
func (r *raid) mustBeAsBefore() {
	r.t.Helper()
	if r.edit != nil {
		now := strings.TrimSpace(r.h.mustRun(r.t, "sysctl -n "+r.edit.sysctl))
		if strings.Join(strings.Fields(now), " ") != r.edit.value {
			r.t.Errorf("%s is %s, somebody else has set it to %s", r.edit.sysctl, now, r.edit.value)
		}
		if said := r.restored + r.p.stderr.String(); r.ours && !strings.Contains(said, "changed by someone else") {
			r.t.Errorf("of the edit of %s nothing is said", r.edit.sysctl)
		}
		r.h.mustRun(r.t, fmt.Sprintf("sysctl -qw %s='%s'", r.edit.sysctl, r.h.before["sysctl "+r.edit.sysctl]))
	}
	r.h.mustBe(r.t, r.h.before)
}

// explain says of a campaign that failed all that is needed to have it again.
func (r *raid) explain(seed uint64, v victim) {
	if !r.t.Failed() {
		return
	}
	keeps := "ls -lR /var/lib/ngxlab --ignore builds; for f in journal journal.restored; do echo == $f; tail -n 60 /var/lib/ngxlab/$f; done 2>&1; ps -eo pid,ppid,stat,args"
	a, err := r.h.inside.ask(fingerprint.Request{Run: []string{"/bin/sh", "-c", keeps}})
	r.t.Logf("have it again with: -run TestKilledCampaigns -chaos.n 1 -chaos.seed %d\nvictim %s in phase %q after %v of at most %v, killed %q\nedit %+v\nrestore --check: exit code %d\n%s\n%s\nthe campaign said:\n%s\nthe host has (%v):\n%s",
		seed, v.name, r.phase, r.delay, time.Since(r.began), r.killed, r.edit, r.checked, r.restored, r.x.yaml(r.h), r.p.stderr, err, a.Output)
}
