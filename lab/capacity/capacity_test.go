package capacity

import (
	"math"
	"slices"
	"strings"
	"testing"

	"ngxlab/lab"
)

// level makes a level whose parts grow exactly: server 27 MB + 530 n, TCP 4 000 n, filp 512 n, eventpoll_epi 256 n and
// the rest as given, each times scale, which tells the ramps apart.
func level(ramp, n int, scale float64) lab.CapacityLevel {
	at := func(base, slope float64) int64 { return int64(math.Round(base + slope*scale*float64(n))) }
	return lab.CapacityLevel{Kind: lab.HoldIdle, Ramp: ramp, Asked: n, Connections: n, Parts: map[string]int64{
		lab.PartServer: at(27e6, 530), "TCP": at(1e6, 4000), "filp": at(3e6, 512), "eventpoll_epi": at(1e5, 256),
		"dentry": at(50e6, 384), lab.PartSocketMemory: at(4096, 0), "kmalloc-64": at(9e6, 77),
	}}
}

func ramps(scales ...float64) []lab.CapacityLevel {
	var all []lab.CapacityLevel
	for i, s := range scales {
		for _, n := range []int{0, 1000, 2000, 5000, 10000, 20000} {
			all = append(all, level(i+1, n, s))
		}
	}
	return all
}

func planned(shared bool) lab.Plan {
	return lab.Plan{
		Experiment: lab.Experiment{Capacity: &lab.CapacitySpec{SizesBytes: []int64{1 << 30, 4 << 30, 64 << 30}, ReserveBytes: 1 << 30, ConnectionsPerUser: []int{2, 4, 6}}},
		Capacity: &lab.CapacityPlan{Kinds: []lab.HoldKind{lab.HoldIdle}, SharedKernel: shared, Limits: []lab.CapacityLimit{
			{Name: "hard nofile", Connections: 19980}, {Name: "worker_connections", Connections: 65535}}},
	}
}

func fitOf(t *testing.T, r lab.CapacityResult, part string) lab.CapacityFit {
	t.Helper()
	for _, f := range r.Fits {
		if f.Part == part {
			return f
		}
	}
	t.Fatalf("no fit of %q in %v", part, r.Fits)
	return lab.CapacityFit{}
}

func near(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if math.Abs(got-want) > within {
		t.Errorf("%s: got %v, want %v ± %v", what, got, want, within)
	}
}

func TestSlopesAndIntervalsAreThoseOfTheRamps(t *testing.T) {
	r := Conclude(planned(false), ramps(0.99, 1, 1.01))
	server := fitOf(t, r, lab.PartServer)
	near(t, "slope", server.BytesPerConnection, 530, 0.01)
	near(t, "intercept", server.InterceptBytes, 27e6, 1)
	// t(0.975, 2) = 4.302653; the standard deviation of 524.7, 530, 535.3 is 5.3.
	half := 4.302653 * 5.3 / math.Sqrt(3)
	near(t, "low", server.Low, 530-half, 0.05)
	near(t, "high", server.High, 530+half, 0.05)
	near(t, "kernel", fitOf(t, r, lab.PartKernel).BytesPerConnection, 4000+512+256+384, 0.1)
	near(t, "floor", fitOf(t, r, lab.PartFloor).BytesPerConnection, 4000+512+256, 0.1)
	near(t, "total", fitOf(t, r, lab.PartTotal).BytesPerConnection, 530+4000+512+256+384, 0.1)
	if f := fitOf(t, r, lab.PartKernel); f.Divided || f.NoInterval || len(f.Slopes) != 3 || f.NotLinear {
		t.Errorf("kernel: %+v", f)
	}
	if slices.ContainsFunc(r.Fits, func(f lab.CapacityFit) bool { return f.Part == "kmalloc-64" }) {
		t.Error("a cache that is not on the list counts")
	}
}

func TestSharedKernelIsDividedByTwoAndSaysSo(t *testing.T) {
	r := Conclude(planned(true), ramps(1, 1, 1))
	near(t, "kernel", fitOf(t, r, lab.PartKernel).BytesPerConnection, (4000+512+256+384)/2, 0.1)
	near(t, "server", fitOf(t, r, lab.PartServer).BytesPerConnection, 530, 0.1)
	if !fitOf(t, r, "TCP").Divided || !fitOf(t, r, lab.PartTotal).Divided || fitOf(t, r, lab.PartServer).Divided {
		t.Error("the divided parts are not marked")
	}
	if !slices.ContainsFunc(r.Notes, func(n string) bool { return strings.Contains(n, "divided by two, by assumption") }) {
		t.Errorf("notes: %q", r.Notes)
	}
}

func TestProjectionLeavesTheReserveAndNamesTheFirstLimit(t *testing.T) {
	r := Conclude(planned(false), ramps(1, 1, 1))
	if len(r.Projections) != 3 {
		t.Fatalf("projections: %+v", r.Projections)
	}
	small, middle, large := r.Projections[0], r.Projections[1], r.Projections[2]
	if small.Connections != 0 || small.FirstLimit != "memory" || small.AtFirstLimit != 0 {
		t.Errorf("1 GiB less 1 GiB: %+v", small)
	}
	want := (float64(3<<30) - 27e6) / (530 + 4000 + 512 + 256 + 384)
	near(t, "4 GiB", float64(middle.Connections), want, 2)
	if middle.FirstLimit != "hard nofile" || middle.AtFirstLimit != 19980 || !middle.Extrapolation {
		t.Errorf("4 GiB: %+v", middle)
	}
	if middle.Users[4] != middle.Connections/4 || len(middle.Users) != 3 {
		t.Errorf("users: %v", middle.Users)
	}
	if large.ReserveBytes != 64<<30/10 {
		t.Errorf("a tenth of 64 GiB is kept free, not %d", large.ReserveBytes)
	}
}

func TestProjectionWithinFourTimesTheTestedRangeIsNoExtrapolation(t *testing.T) {
	p := planned(false)
	p.Experiment.Capacity.SizesBytes = []int64{1<<30 + 400e6, 1<<30 + 600e6}
	r := Conclude(p, ramps(1, 1))
	if near := r.Projections[0]; near.Extrapolation || near.Connections > 80000 {
		t.Errorf("%+v", near)
	}
	if far := r.Projections[1]; !far.Extrapolation || far.Connections <= 80000 {
		t.Errorf("%+v", far)
	}
}

func TestOneRampHasNoInterval(t *testing.T) {
	r := Conclude(planned(false), ramps(1))
	if f := fitOf(t, r, lab.PartTotal); !f.NoInterval || !r.Projections[1].NoInterval {
		t.Errorf("fit %+v, projection %+v", f, r.Projections[1])
	}
	if !slices.Contains(r.Notes, "idle: one ramp only, so there is no interval") {
		t.Errorf("notes: %q", r.Notes)
	}
}

func TestLevelsWithAProblemAreLeftOutAndNamed(t *testing.T) {
	levels := ramps(1, 1)
	levels[5].Problem = "12 of 20,000 connections failed: connection refused"
	levels[5].Parts[lab.PartServer] = 900e6
	levels[4].Unsettled = true
	r := Conclude(planned(false), levels)
	near(t, "slope", fitOf(t, r, lab.PartServer).BytesPerConnection, 530, 0.01)
	notes := strings.Join(r.Notes, "\n")
	for _, want := range []string{"ramp 1, 20000 connections asked: left out: 12 of 20,000", "ramp 1, 10000 connections: memory had not settled"} {
		if !strings.Contains(notes, want) {
			t.Errorf("notes lack %q: %s", want, notes)
		}
	}
	if len(r.Levels) != 11 {
		t.Errorf("%d levels used", len(r.Levels))
	}
}

func TestBentMemoryIsReported(t *testing.T) {
	levels := ramps(1, 1, 1)
	for i := range levels {
		n := float64(levels[i].Connections)
		levels[i].Parts[lab.PartServer] += int64(n * n * 0.02) // 400 more bytes per connection at the end
	}
	r := Conclude(planned(false), levels)
	if !fitOf(t, r, lab.PartServer).NotLinear || fitOf(t, r, "TCP").NotLinear {
		t.Errorf("server %+v, TCP %+v", fitOf(t, r, lab.PartServer), fitOf(t, r, "TCP"))
	}
	if !strings.Contains(strings.Join(r.Notes, "\n"), "idle, server: memory does not grow in a straight line") {
		t.Errorf("notes: %q", r.Notes)
	}
}

func TestWithoutNamedCachesNothingIsProjected(t *testing.T) {
	levels := ramps(1, 1, 1)
	for i := range levels {
		levels[i].Parts = map[string]int64{lab.PartServer: levels[i].Parts[lab.PartServer], lab.PartSocketMemory: 4096}
	}
	r := Conclude(planned(false), levels)
	if len(r.Projections) != 0 || r.Problem != "" {
		t.Errorf("%+v", r)
	}
	if !strings.Contains(strings.Join(r.Notes, "\n"), "the kernel's named caches were not read (/proc/slabinfo is for root), so nothing is projected") {
		t.Errorf("notes: %q", r.Notes)
	}
}

func TestAnonymousServerMemoryIsMarkedAndSaid(t *testing.T) {
	levels := ramps(1, 1, 1)
	for i := range levels {
		levels[i].Anonymous = true
	}
	r := Conclude(planned(false), levels)
	for part, want := range map[string]bool{lab.PartServer: true, lab.PartTotal: true, lab.PartKernel: false, "TCP": false} {
		if f := fitOf(t, r, part); f.Anonymous != want {
			t.Errorf("%s: %+v", part, f)
		}
	}
	if !strings.Contains(strings.Join(r.Notes, "\n"), "idle: server memory is anonymous resident memory, for PSS cannot be read here") || len(r.Projections) == 0 {
		t.Errorf("notes: %q, %d projections", r.Notes, len(r.Projections))
	}
}

func TestPSSAndAnonymousMemoryMakeNoSlopeTogether(t *testing.T) {
	levels := ramps(1, 1)
	levels[2].Anonymous = true
	r := Conclude(planned(false), levels)
	if slices.ContainsFunc(r.Fits, func(f lab.CapacityFit) bool { return f.Part == lab.PartServer || f.Part == lab.PartTotal }) {
		t.Errorf("fits %+v", r.Fits)
	}
	if !strings.Contains(strings.Join(r.Notes, "\n"), "idle: the server's memory is left out: PSS at some levels, anonymous resident memory at others") {
		t.Errorf("notes: %q", r.Notes)
	}
}

func TestCacheMissingFromALevelIsNotTakenForZero(t *testing.T) {
	levels := ramps(1, 1)
	delete(levels[3].Parts, "dentry")
	r := Conclude(planned(false), levels)
	near(t, "kernel", fitOf(t, r, lab.PartKernel).BytesPerConnection, 4000+512+256, 0.1)
	if !strings.Contains(strings.Join(r.Notes, "\n"), "left out, not read at every level: dentry") {
		t.Errorf("notes: %q", r.Notes)
	}
}

func TestNothingUsableIsAProblem(t *testing.T) {
	levels := ramps(1)
	for i := range levels {
		levels[i].Problem = "the server died"
	}
	if r := Conclude(planned(false), levels); r.Problem == "" || len(r.Notes) != 7 {
		t.Errorf("%+v", r)
	}
	if r := Conclude(lab.Plan{}, ramps(1)[:1]); r.Problem == "" {
		t.Errorf("one level: %+v", r)
	}
	if r := Conclude(lab.Plan{}, nil); r.Problem == "" {
		t.Error("no level at all is no problem")
	}
}

func TestRulesOfThumbStandBesideTheMeasuredFigures(t *testing.T) {
	r := Conclude(planned(false), ramps(1, 1, 1))
	if len(r.Rules) != 3 {
		t.Fatalf("rules: %+v", r.Rules)
	}
	near(t, "kernel", r.Rules[0].MeasuredBytes, 5152, 0.1)
	near(t, "200,000", r.Rules[1].MeasuredBytes, 200000*5682+27e6, 10)
	near(t, "server", r.Rules[2].MeasuredBytes, 530, 0.1)
}

func TestInputIsLeftAlone(t *testing.T) {
	levels := ramps(1, 1)
	before := levels[3].Parts["TCP"]
	Conclude(planned(true), levels)
	if levels[3].Parts["TCP"] != before || len(levels[3].Parts) != 7 {
		t.Errorf("parts changed: %v", levels[3].Parts)
	}
}
