package knob_test

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"ngxlab/agent/knob"
	"ngxlab/lab"
	"ngxlab/lab/tune"
)

const host = lab.HostName("here")

// choice is a knob of the machine, with its original and the values that states give it. A group is knobs that change
// together.
type choice struct {
	ids      []lab.KnobID
	original []string
	values   [][]string // "" = there is none
	file     string     // on the machine, of the first
	foreign  string     // the whole content that someone else gives it
}

// choices of a machine as newMachine makes it.
func machineChoices() []choice {
	one := func(id lab.KnobID, file, original, foreign string, values ...string) choice {
		c := choice{ids: []lab.KnobID{id}, original: []string{original}, file: file, foreign: foreign}
		for _, v := range values {
			c.values = append(c.values, []string{v})
		}
		return c
	}
	couple := func(bytes, ratio, originalBytes, originalRatio string) choice {
		return choice{
			ids: []lab.KnobID{sysctl("vm." + bytes), sysctl("vm." + ratio)}, original: []string{originalBytes, originalRatio},
			values: [][]string{{"8388608", "0"}, {"16777216", "0"}, {"0", "30"}, {"0", "7"}},
			file:   "/proc/sys/vm/" + bytes, foreign: "4194304\n",
		}
	}
	return []choice{
		one(sysctl("net.core.somaxconn"), "/proc/sys/net/core/somaxconn", "4096", "777\n", "128", "8192", "65535"),
		one(sysctl("net.ipv4.tcp_fin_timeout"), "/proc/sys/net/ipv4/tcp_fin_timeout", "60", "33\n", "15", "30"),
		one(sysctl("net.ipv4.tcp_rmem"), "/proc/sys/net/ipv4/tcp_rmem", "4096 131072 6291456", "7\t8\t9\n", "8192 87380 16777216", "4096 65536 4194304"),
		couple("dirty_bytes", "dirty_ratio", "0", "20"),
		couple("dirty_background_bytes", "dirty_background_ratio", "1048576", "0"),
		one(sysfs(hugePages), hugePages, "madvise", "", "always", "never"),
		one(sysfs(steering), steering, "0", "00000000,000000f0\n", "3", "f"),
		one(sysfs(flows), flows, "0", "11\n", "4096", "32768"),
		one(file(present), present, fileText("one\ntwo", "0640"), "theirs\n", fileText("three\n", "0600"), fileText("one\ntwo", "0644"), ""),
		one(file(missing), missing, "", "theirs\n", fileText("new\n", "0644"), fileText("newer\n", "0640")),
	}
}

// ladder is one random campaign on one machine.
type ladder struct {
	t       *testing.T
	rng     *rand.Rand
	m       *machine
	before  map[string]string
	foreign map[string]string // files that someone else changed, as in a snapshot
}

func settings(ids []lab.KnobID, values []string) []lab.Setting {
	var ss []lab.Setting
	for i, id := range ids {
		ss = append(ss, lab.Setting{Knob: id, Value: values[i], Absent: values[i] == "" && id.Kind == lab.KnobFile})
	}
	return ss
}

// states are the original and some random ones over random knobs, completed.
func (l *ladder) states() []lab.State {
	original := lab.State{Name: "original", Settings: map[lab.HostName][]lab.Setting{}}
	var states []lab.State
	for i := range 2 + l.rng.IntN(4) {
		states = append(states, lab.State{Name: strconv.Itoa(i), Settings: map[lab.HostName][]lab.Setting{}})
	}
	for _, c := range machineChoices() {
		original.Settings[host] = append(original.Settings[host], settings(c.ids, c.original)...)
		for _, s := range states {
			if l.rng.IntN(2) == 0 {
				s.Settings[host] = append(s.Settings[host], settings(c.ids, c.values[l.rng.IntN(len(c.values))])...)
			}
		}
	}
	complete, err := tune.Complete(states, original)
	if err != nil {
		l.t.Fatal(err)
	}
	return append([]lab.State{original}, complete...)
}

// edit is someone else's hand on a knob.
func (l *ladder) edit() {
	all := machineChoices()
	c := all[l.rng.IntN(len(all))]
	if c.foreign == "" {
		return
	}
	mode := fs.FileMode(0o644)
	if c.ids[0].Kind == lab.KnobFile {
		mode = 0o604
	}
	l.m.put(c.file, c.foreign, mode)
	if len(c.ids) > 1 {
		l.m.kernel(l.m.root + c.file)
		l.foreign[couplePath(c.ids[1])] = "-rw-r--r-- 0\n"
	}
	l.foreign[c.file] = mode.String() + " " + c.foreign
}

func couplePath(id lab.KnobID) string {
	path, err := knob.Path(id.Name)
	if err != nil {
		panic(err)
	}
	return "/proc/sys/" + path
}

// transition goes from one state to another; done is false when it did not arrive.
func (l *ladder) transition(from, to lab.State) (done bool) {
	changes, err := tune.Transition(from, to, host)
	if err != nil {
		l.t.Fatal(err)
	}
	k := l.m.keeper()
	if l.rng.IntN(4) == 0 {
		k.KillAt(nth(l.rng.IntN(30)))
	}
	var changed *knob.ChangedError
	dead := dies(func() { _, err = k.Apply(l.t.Context(), "camp", changes) })
	if err != nil && (!errors.As(err, &changed) || len(l.foreign) == 0) {
		l.t.Errorf("from %s to %s: %v", from.Name, to.Name, err)
	}
	return !dead && err == nil
}

// walk goes through random states until the end, or a kill, or someone else's hand.
func (l *ladder) walk() {
	states := l.states()
	now := states[0]
	for range 1 + l.rng.IntN(6) {
		next := states[l.rng.IntN(len(states))]
		if !l.transition(now, next) {
			break
		}
		now = next
		if l.rng.IntN(12) == 0 {
			l.edit()
		}
	}
	for l.rng.IntN(3) == 0 {
		l.edit()
	}
	if len(l.foreign) == 0 && l.rng.IntN(3) == 0 {
		k := l.m.keeper()
		k.KillAt(nth(l.rng.IntN(30)))
		dies(func() { _, _ = k.Restore(l.t.Context()) })
	}
}

// check restores and compares.
func (l *ladder) check() error {
	rs, err := l.m.keeper().Restore(l.t.Context())
	if err != nil {
		return err
	}
	want := maps.Clone(l.before)
	maps.Copy(want, l.foreign)
	if d := differences(l.m.snapshot(), want); len(d) > 0 || !l.m.settled() {
		return fmt.Errorf("not as before: %q; restored %+v", d, rs)
	}
	for _, r := range rs {
		_, edited := l.foreign[r.Knob.Name]
		if edited && r.Outcome != lab.RestoreForeign && r.Outcome != lab.RestoreAlready {
			return fmt.Errorf("%s was changed by someone else: %+v", r.Knob, r)
		}
	}
	return nil
}

func TestRandomLaddersAlwaysComeBack(t *testing.T) {
	ladders := 300
	if testing.Short() {
		ladders = 50
	}
	seed := rand.Uint64()
	kinds := map[bool]int{}
	for n := range ladders {
		m := newMachine(t)
		l := &ladder{t: t, rng: rand.New(rand.NewPCG(seed, uint64(n))), m: m, before: m.snapshot(), foreign: map[string]string{}}
		l.walk()
		kinds[len(l.foreign) > 0]++
		if err := l.check(); err != nil || t.Failed() {
			t.Fatalf("ladder %d of seed %d, someone else changed %v: %v", n, seed, slices.Collect(maps.Keys(l.foreign)), err)
		}
	}
	t.Logf("seed %d: %d ladders, in %d of them someone else changed something", seed, ladders, kinds[true])
}
