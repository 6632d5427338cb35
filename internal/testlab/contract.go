package testlab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"testing"
	"time"

	"ngxlab/agent/wire"
	"ngxlab/lab"
)

// Tuned is a host for its knobs.
type Tuned interface {
	Read(ctx context.Context, ks []lab.Setting) ([]lab.Value, error)
	Apply(ctx context.Context, c lab.CampaignID, cs []lab.Change) ([]lab.Applied, error)
	Restore(ctx context.Context) ([]lab.Restored, error)
}

// Clocked is a host for its clock and speed.
type Clocked interface {
	Clock(ctx context.Context) (lab.Clock, error)
	Yardstick(ctx context.Context) (lab.Yardstick, error)
}

// Ran is a host for its processes and its monitors.
type Ran interface {
	Arm(ctx context.Context, cs []lab.Command) (lab.Armed, error)
	Fire(ctx context.Context, a lab.Armed, at lab.Instant) ([]lab.Process, error)
	Watch(ctx context.Context, w lab.Watch, each func(lab.Sample)) error
	Put(ctx context.Context, path string, mode fs.FileMode, r io.Reader) error
}

// Locked is a host for its lock.
type Locked interface {
	Claim(ctx context.Context, c lab.CampaignID, owner string) error
	Release(ctx context.Context) error
	Holder(ctx context.Context) (lab.Holder, error)
	Close() error
}

// Known is a host for what is known of it.
type Known interface {
	Name() lab.HostName
	Facts(ctx context.Context, q lab.FactsQuery) (lab.Facts, error)
	Pending(ctx context.Context) ([]lab.Pending, error)
	Clean(ctx context.Context) (lab.Cleaned, error)
}

// Stood is a host for how its knobs stand.
type Stood interface {
	Standing(ctx context.Context) ([]lab.Standing, error)
}

// Host is one session with a host.
type Host interface {
	Tuned
	Stood
	Clocked
	Ran
	Locked
	Known
}

// contractKnob is a sysctl of a network namespace of its own that nothing here depends on for a moment.
var contractKnob = lab.KnobID{Kind: lab.KnobSysctl, Name: "net.ipv4.tcp_fin_timeout"}

// HostContract runs what every kind of real host must do. Each call of open is a new session with the same host, which
// nobody else has; the contract closes it.
func HostContract(t *testing.T, open func(t testing.TB) Host) {
	t.Helper()
	c := contract{open}
	for name, part := range map[string]func(*testing.T){
		"facts": c.facts, "knobs": c.knobs, "facts of knobs": c.knobFacts, "standing": c.standing, "without a claim nothing is changed": c.unclaimed, "clock": c.clock,
		"common start": c.start, "deadline": c.deadline, "cancelled": c.cancelled, "watch": c.watch, "lock": c.lock,
		"close ends everything": c.close, "put": c.put,
	} {
		t.Run(name, part)
	}
}

// contract opens sessions for its parts.
type contract struct{ open func(testing.TB) Host }

// session is a new session that ends with the test.
func (c contract) session(t *testing.T) Host {
	t.Helper()
	h := c.open(t)
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// claimed is a session that holds the host. The one before it may be a moment from letting it go.
func (c contract) claimed(t *testing.T) Host {
	t.Helper()
	h := c.session(t)
	if err := h.Claim(t.Context(), "c1", "ana@desk"); err != nil {
		t.Fatal(err)
	}
	return h
}

func (c contract) facts(t *testing.T) {
	h := c.session(t)
	f, err := h.Facts(t.Context(), lab.FactsQuery{Sysctls: []string{contractKnob.Name}, Commands: []string{"sh", "no-such-command"}})
	if err != nil {
		t.Fatal(err)
	}
	if f.Host != h.Name() || f.Cores < 1 || f.MemoryBytes <= 0 || f.Kernel == "" || f.BootID == "" || f.Architecture == "" || len(f.Agent) != 64 {
		t.Errorf("facts %+v", f)
	}
	if f.ClockDoubtS <= 0 || f.ClockDoubtS > 1 {
		t.Errorf("clock offset %v ± %v s", f.ClockOffsetS, f.ClockDoubtS)
	}
	if f.Commands["sh"] == "" || f.Commands["no-such-command"] != "" || f.Sysctls["kernel.ostype"] != "Linux" {
		t.Errorf("commands %v, ostype %q", f.Commands, f.Sysctls["kernel.ostype"])
	}
}

// tunable is a claimed session on whose host the knob can be written.
func (c contract) tunable(t *testing.T) Host {
	t.Helper()
	h := c.claimed(t)
	f, err := h.Facts(t.Context(), lab.FactsQuery{Sysctls: []string{contractKnob.Name}})
	if err != nil {
		t.Fatal(err)
	}
	if !f.SysctlWritable[contractKnob.Name] {
		t.Skipf("SKIPPED: %s cannot be written on %s", contractKnob.Name, h.Name())
	}
	return h
}

func (c contract) knobs(t *testing.T) {
	h := c.tunable(t)
	if p, err := h.Pending(t.Context()); err != nil || len(p) > 0 {
		t.Fatalf("pending before any change: %v, %v", p, err)
	}
	TunedContract(t, h, contractKnob)
	if p, err := h.Pending(t.Context()); err != nil || len(p) > 0 {
		t.Errorf("pending after the restore: %v, %v", p, err)
	}
}

// TunedContract is the part of the contract that a fake can be held to as well: a knob whose value is a number is read,
// changed, refused when its value is not the expected one, and restored.
func TunedContract(t *testing.T, h Tuned, knob lab.KnobID) {
	t.Helper()
	ctx := t.Context()
	original := valueOf(t, h, knob)
	n, err := strconv.Atoi(original.Text)
	if err != nil {
		t.Fatalf("%s: %v", knob, err)
	}
	t.Cleanup(func() { _, _ = h.Restore(context.WithoutCancel(ctx)) }) // when the test has failed half-way
	changed, third := lab.Value{Text: strconv.Itoa(n + 1)}, lab.Value{Text: strconv.Itoa(n + 2)}
	applied, err := h.Apply(ctx, "c1", []lab.Change{{Knob: knob, From: original, To: changed}})
	if err != nil || len(applied) != 1 || applied[0].ReadBack != changed || applied[0].Differs {
		t.Fatalf("applied %+v, %v", applied, err)
	}
	_, err = h.Apply(ctx, "c1", []lab.Change{{Knob: knob, From: original, To: third}}) // it has another value now
	if err == nil {
		t.Error("a change was made over a value that was not the expected one")
	}
	var sent *wire.Error
	if errors.As(err, &sent) && sent.Kind != wire.KindForeign {
		t.Errorf("kind %q: %v", sent.Kind, err)
	}
	if now := valueOf(t, h, knob); now != changed {
		t.Errorf("%s is %v after a change that was refused", knob, now)
	}
	restored, err := h.Restore(ctx)
	if err != nil || len(restored) != 1 || restored[0].Outcome != lab.RestoreDone || restored[0].Original != original {
		t.Errorf("restored %+v, %v", restored, err)
	}
	if now := valueOf(t, h, knob); now != original {
		t.Errorf("%s is %v after the restore, it was %v", knob, now, original)
	}
	if again, err := h.Restore(ctx); err != nil || len(again) > 0 {
		t.Errorf("restored a second time: %+v, %v", again, err)
	}
}

// valueOf reads a knob, between two that do not exist.
func valueOf(t *testing.T, h Tuned, knob lab.KnobID) lab.Value {
	t.Helper()
	none := lab.KnobID{Kind: lab.KnobSysctl, Name: "no.such.knob"}
	values, err := h.Read(t.Context(), lab.Naming(none, knob, none))
	if err != nil || len(values) != 3 || !values[0].Absent || values[1].Absent || !values[2].Absent {
		t.Fatalf("read %v, %v", values, err)
	}
	return values[1]
}

func (c contract) unclaimed(t *testing.T) {
	h := c.session(t)
	_, apply := h.Apply(t.Context(), "c1", nil)
	_, arm := h.Arm(t.Context(), []lab.Command{{Argv: []string{"true"}}})
	for call, err := range map[string]error{"apply": apply, "arm": arm} {
		var sent *wire.Error
		if !errors.As(err, &sent) || sent.Kind != wire.KindUnclaimed || !strings.HasPrefix(err.Error(), string(h.Name())+": "+call+": ") {
			t.Errorf("%s: %v", call, err)
		}
	}
}

func (c contract) clock(t *testing.T) { ClockContract(t, c.session(t)) }

// ClockContract is the part of the contract about the clock, which a fake can be held to as well.
func ClockContract(t *testing.T, h Clocked) {
	t.Helper()
	first, err := h.Clock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	y, err := h.Yardstick(t.Context())
	if err != nil || len(y.CPUS) == 0 || y.WallS <= 0 {
		t.Errorf("yardstick %+v, %v", y, err)
	}
	second, err := h.Clock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	doubt := time.Duration((first.UncertaintyS + second.UncertaintyS + 0.001) * float64(time.Second))
	if off := first.Instant(second.At).Sub(second.Host); off > doubt || off < -doubt {
		t.Errorf("two measurements of the clock differ by %v, their uncertainty is %v", off, doubt)
	}
}

// run lets one command go at once and returns how it ended.
func run(t *testing.T, h Host, argv ...string) lab.Process {
	t.Helper()
	armed, err := h.Arm(t.Context(), []lab.Command{{Argv: argv, Deadline: lab.Seconds(20)}})
	if err != nil {
		t.Fatal(err)
	}
	ps, err := h.Fire(t.Context(), armed, 0)
	if err != nil || len(ps) != 1 {
		t.Fatalf("%v: %d processes, %v", argv, len(ps), err)
	}
	return ps[0]
}

// alive reports whether a process, or with a negative pid any of a group, lives on the host.
func alive(t *testing.T, h Host, pid int) bool {
	t.Helper()
	return run(t, h, "sh", "-c", fmt.Sprintf("kill -0 %d", pid)).Exit == 0
}
