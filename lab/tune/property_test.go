package tune_test

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"ngxlab/lab"
	"ngxlab/lab/tune"
)

// host plays the machine: values by knob, with the kernel's rule that writing one half zeroes the other, and the
// agent's that a change must find what it expects, or have been made by the write of its other half.
type host map[lab.KnobID]lab.Value

func (h host) apply(c lab.Change) error {
	other, half := tune.Halves(c.Knob.Name)
	found, there := h[c.Knob]
	if !there && !tune.OnHost(c.Knob.Kind) {
		found = lab.Value{Absent: true}
	}
	switch {
	case half && tune.EqualValues(c.Knob, found, c.To):
		return nil
	case !tune.EqualValues(c.Knob, found, c.From):
		return fmt.Errorf("%s: expected %v, found %v", c.Knob, c.From, found)
	case half && c.To.Text == "0":
		return fmt.Errorf("%s: the kernel refuses 0", c.Knob)
	}
	h[c.Knob] = c.To
	if half {
		h[sysctl(other)] = lab.Value{Text: "0"}
	}
	return nil
}

// holds says in what the machine differs from a state.
func (h host) holds(s lab.State) error {
	want := map[lab.KnobID]lab.Value{}
	for _, setting := range s.Settings["web"] {
		want[setting.Knob] = lab.Value{Text: setting.Value, Absent: setting.Absent}
	}
	for k, v := range h {
		w, named := want[k]
		if !named {
			w = lab.Value{Absent: true}
		}
		if !tune.EqualValues(k, v, w) {
			return fmt.Errorf("%s is %v, the state has %v", k, v, w)
		}
	}
	for k, w := range want {
		if _, there := h[k]; !there && !w.Absent {
			return fmt.Errorf("%s was never set", k)
		}
	}
	return nil
}

// original is the host as it was found; some of its pairs use one half, some the other.
func original(r *rand.Rand) lab.State {
	values := map[lab.KnobID]lab.Value{
		sysctl("net.core.somaxconn"): {Text: "4096"}, sysctl("net.ipv4.tcp_rmem"): {Text: "4096\t131072\t6291456"},
		sysctl("net.ipv4.ip_local_port_range"): {Text: "32768\t60999"},
		knob(lab.KnobSysfs, rps):               {Text: "00000000,00000000"}, knob(lab.KnobEthtool, "eth0.channels.combined"): {Text: "2"},
		knob(lab.KnobEthtool, "eth0.rings.rx"): {Text: "512"}, knob(lab.KnobService, "irqbalance"): {Text: tune.Started},
		knob(lab.KnobUnit, "nginx.service.LimitNOFILE"): {Text: "1024"}, knob(lab.KnobFile, "/etc/x"): {Absent: true},
		knob(lab.KnobFile, "/etc/y"): {Text: fileText("old")}, knob(lab.KnobCommand, "irq"): {Text: commandText(false)},
	}
	for _, p := range pairs {
		use := r.IntN(2)
		values[sysctl(p[use])], values[sysctl(p[1-use])] = lab.Value{Text: "20000"}, lab.Value{Text: "0"}
	}
	s := lab.State{Name: "original"}
	s.Settings = map[lab.HostName][]lab.Setting{"web": settingsOf(values, "")}
	return s
}

var pairs = [][2]string{{"vm.dirty_bytes", "vm.dirty_ratio"}, {"vm.dirty_background_bytes", "vm.dirty_background_ratio"}, {"vm.overcommit_kbytes", "vm.overcommit_ratio"}}

func fileText(content string) string {
	return lab.FileValue{Mode: "0644", Owner: "0:0"}.WithContent([]byte(content)).String()
}

func commandText(applied bool) string {
	return lab.CommandValue{Apply: []string{"a"}, Verify: []string{"v"}, Revert: []string{"r"}, Timeout: lab.Seconds(60), Applied: applied}.String()
}

func settingsOf(values map[lab.KnobID]lab.Value, step string) []lab.Setting {
	var list []lab.Setting
	for _, k := range slices.SortedFunc(maps.Keys(values), func(a, b lab.KnobID) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name)) }) {
		list = append(list, lab.Setting{Knob: k, Value: values[k].Text, Absent: values[k].Absent, Step: step})
	}
	return list
}

// some gives random knobs random values, among them the original ones.
func some(r *rand.Rand, name string) lab.State {
	n := func(max int) string { return strconv.Itoa(1 + r.IntN(max)) }
	all := map[lab.KnobID]lab.Value{
		sysctl("net.core.somaxconn"): {Text: n(3)}, sysctl("net.ipv4.tcp_rmem"): {Text: "4096 131072 6291456"},
		sysctl("net.ipv4.ip_local_port_range"): {Text: n(9) + " 60999"},
		knob(lab.KnobSysfs, rps):               {Text: n(3)}, knob(lab.KnobEthtool, "eth0.channels.combined"): {Text: n(4)},
		knob(lab.KnobEthtool, "eth0.rings.rx"): {Text: n(2)}, knob(lab.KnobService, "irqbalance"): {Text: tune.Stopped},
		knob(lab.KnobUnit, "nginx.service.LimitNOFILE"): {Text: "infinity"}, knob(lab.KnobFile, "/etc/x"): {Text: fileText(n(3))},
		knob(lab.KnobFile, "/etc/y"): {Absent: true}, knob(lab.KnobCommand, "irq"): {Text: commandText(true)},
		knob(lab.KnobNofile, ""): {Text: n(3)}, knob(lab.KnobNproc, ""): {Text: n(3)}, nginx("http.gzip"): {Text: "on"}, nginx("http.sendfile"): {Absent: true},
	}
	for _, p := range pairs {
		all[sysctl(p[r.IntN(2)])] = lab.Value{Text: n(3)}
	}
	for k := range all {
		if r.IntN(2) == 0 {
			delete(all, k)
		}
	}
	return lab.State{Name: name, Steps: []string{"s"}, Settings: map[lab.HostName][]lab.Setting{"web": settingsOf(all, "s")}}
}

func TestTransitionsBetweenRandomStatesAreExactMinimalAndComeBack(t *testing.T) {
	for seed := range uint64(800) {
		r := rand.New(rand.NewPCG(seed, 1))
		origin := original(r)
		states, err := tune.Complete([]lab.State{some(r, "a"), some(r, "b"), some(r, "c")}, origin)
		if err != nil {
			t.Fatal(err)
		}
		path := []lab.State{origin, states[0], states[1], states[0], states[2], origin}
		h := host{}
		for _, s := range origin.Settings["web"] {
			h[s.Knob] = lab.Value{Text: s.Value, Absent: s.Absent}
		}
		for i := 1; i < len(path); i++ {
			if err := h.move(path[i-1], path[i]); err != nil {
				t.Fatalf("seed %d, %s to %s: %v", seed, path[i-1].Name, path[i].Name, err)
			}
		}
	}
}

// move applies the transition and checks that it is exact and minimal.
func (h host) move(from, to lab.State) error {
	list, err := tune.Transition(from, to, "web")
	if err != nil {
		return err
	}
	seen := map[lab.KnobID]bool{}
	for _, c := range list {
		if seen[c.Knob] || tune.EqualValues(c.Knob, c.From, c.To) {
			return fmt.Errorf("%s is changed twice, or to what it is: %+v", c.Knob, c)
		}
		seen[c.Knob] = true
		if err := h.apply(c); err != nil {
			return err
		}
	}
	again, err := tune.Transition(to, to, "web")
	if err != nil {
		return err
	}
	if len(again) > 0 {
		return fmt.Errorf("from a state to itself: %v", again)
	}
	return h.holds(to)
}

func TestWhatEndsGoesFirstAndWhatStartsGoesLast(t *testing.T) {
	base := state("base", "file /etc/x", fileText("a"), "sysctl fs.nr_open", "1", "ethtool eth0.channels.combined", "2", "ethtool eth0.rings.rx", "1",
		"sysfs "+rps, "1", "unit nginx.service.LimitNOFILE", "1", "service firewalld", tune.Started, "service tuned", tune.Stopped,
		"command c", commandText(false), "command d", commandText(true), "nofile ", "1", "nginx gzip", "on")
	tuned := state("tuned", "file /etc/x", fileText("b"), "sysctl fs.nr_open", "2", "ethtool eth0.channels.combined", "1", "ethtool eth0.rings.rx", "2",
		"sysfs "+rps, "2", "unit nginx.service.LimitNOFILE", "2", "service firewalld", tune.Stopped, "service tuned", tune.Started,
		"command c", commandText(true), "command d", commandText(false), "nofile ", "2", "nginx gzip", "off")
	for _, c := range []struct {
		from, to lab.State
		want     []string
	}{
		{base, tuned, []string{"command d", "service firewalld", "file /etc/x", "sysctl fs.nr_open", "ethtool eth0.rings.rx", "sysfs " + rps,
			"ethtool eth0.channels.combined", "unit nginx.service.LimitNOFILE", "service tuned", "command c", "nofile", "nginx gzip"}},
		{tuned, base, []string{"command c", "service tuned", "file /etc/x", "sysctl fs.nr_open", "ethtool eth0.channels.combined", "ethtool eth0.rings.rx",
			"sysfs " + rps, "unit nginx.service.LimitNOFILE", "service firewalld", "command d", "nofile", "nginx gzip"}},
	} {
		list, err := tune.Transition(c.from, c.to, "web")
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, change := range list {
			got = append(got, change.Knob.String())
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s to %s:\n%q\nwant\n%q", c.from.Name, c.to.Name, got, c.want)
		}
	}
}

func TestTheLaterStepsHalfCounts(t *testing.T) {
	origin := state("original", "sysctl vm.dirty_bytes", "0", "sysctl vm.dirty_ratio", "20")
	both := lab.State{Name: "both", Steps: []string{"one", "two"}, Settings: map[lab.HostName][]lab.Setting{"web": {
		{Knob: sysctl("vm.dirty_bytes"), Value: "1048576", Step: "one"}, {Knob: sysctl("vm.dirty_ratio"), Value: "30", Step: "two", BestEffort: true}}}}
	complete, err := tune.Complete([]lab.State{both}, origin)
	if err != nil {
		t.Fatal(err)
	}
	if got := complete[0].Settings["web"]; len(got) != 2 || got[0].Value != "0" || got[0].Step != "two" || !got[0].BestEffort || got[1].Value != "30" {
		t.Errorf("completed to %+v", got)
	}
	if both.Settings["web"][0].Value != "1048576" {
		t.Error("the state given was changed")
	}
	both.Settings["web"][1].Step = "one"
	if _, err := tune.Complete([]lab.State{both}, origin); err == nil {
		t.Error("one step sets both halves, and it is accepted")
	}
	if got := tune.Needs([]lab.KnobID{sysctl("vm.dirty_bytes"), sysctl("net.core.somaxconn"), nginx("vm.dirty_ratio")}); !slices.Equal(got, []lab.KnobID{sysctl("vm.dirty_ratio")}) {
		t.Errorf("needed besides: %v", got)
	}
	if got := tune.Needs([]lab.KnobID{sysctl("vm.dirty_bytes"), sysctl("vm.dirty_ratio")}); got != nil {
		t.Errorf("needed besides both halves: %v", got)
	}
}

func TestACommandIsDefinedOnce(t *testing.T) {
	origin := state("original", "command c", commandText(false))
	other := state("other", "command c", `{"apply":["b"],"verify":["v"],"revert":["r"],"timeout_s":60,"applied":true}`)
	if _, err := tune.Complete([]lab.State{other}, origin); err == nil {
		t.Error("a command with two definitions is accepted")
	}
	if _, err := tune.Complete([]lab.State{state("same", "command c", commandText(true))}, origin); err != nil {
		t.Error(err)
	}
}
