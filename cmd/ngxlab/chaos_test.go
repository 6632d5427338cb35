package main

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ngxlab/internal/testlab/fingerprint"
)

// How much chaos there is. One campaign is had again with its seed: -chaos.seed SEED -chaos.n 1.
var (
	chaosCampaigns = flag.Int("chaos.n", 20, "campaigns of the chaos test")
	chaosSeed      = flag.Uint64("chaos.seed", 0, "seed of its first campaign, the next has the next (0 = by the clock)")
	chaosLanes     = flag.Int("chaos.hosts", 3, "container hosts of the chaos test, each with one campaign at a time")
)

// TestKilledCampaignsLeaveHostsAsTheyWere starts campaigns of random studies on container hosts over SSH, kills something
// at a random moment of each, and lets another machine restore the host: its fingerprint must be the one before.
func TestKilledCampaignsLeaveHostsAsTheyWere(t *testing.T) {
	began := time.Now()
	first := *chaosSeed
	if first == 0 {
		first = uint64(began.UnixNano())/1000%1_000_000_000*1000 + 1 //nolint:gosec // after 1970
	}
	seeds := make(chan uint64, *chaosCampaigns)
	for i := range *chaosCampaigns {
		seeds <- first + uint64(i) //nolint:gosec // not negative
	}
	close(seeds)
	hosts := chaosHosts(t, min(*chaosLanes, *chaosCampaigns))
	ready := time.Now()
	c := newTally()
	var lanes sync.WaitGroup
	for _, h := range hosts { // t.Parallel would have no more than there are CPUs
		lanes.Go(func() { t.Run(string(h.container.Host), func(t *testing.T) { h.campaigns(t, seeds, c) }) })
	}
	lanes.Wait()
	t.Logf("%s; %.0f s, %.1f s to prepare; seeds from %d on", c, time.Since(ready).Seconds(), ready.Sub(began).Seconds(), first)
	if c.equal != *chaosCampaigns {
		t.Errorf("%d of %d fingerprints are equal", c.equal, *chaosCampaigns)
	}
}

// TestUndisturbedCampaignLeavesItsHostAsItWas changes everything that a container host can have, in steps of all kinds,
// and lets nobody disturb it.
func TestUndisturbedCampaignLeavesItsHostAsItWas(t *testing.T) {
	h := chaosHosts(t, 1)[0]
	before := h.fingerprint(t)
	m := &machineTest{command: newCommand(t)}
	m.agent = h.agent
	m.write("chaos.yaml", wholeStudy().yaml(h))
	p := m.start("run", "DIR/chaos.yaml", "--out", "DIR/report")
	if code := p.exit(); code != exitDone && code != exitDoubtful || !strings.Contains(p.stderr.String(), "web: as it was before the campaign") {
		t.Errorf("exit code %d: %s", code, p.stderr)
	}
	h.mustBe(t, before)
}

// mustBe holds that the host is as it was.
func (h *chaosHost) mustBe(t *testing.T, before fingerprint.Fingerprint) {
	t.Helper()
	if lines := h.differences(t, before); len(lines) > 0 {
		t.Errorf("the host is not as it was:\n%s", strings.Join(lines, "\n"))
	}
}

// campaigns has one campaign after the other; a host that did not come back gets no more.
func (h *chaosHost) campaigns(t *testing.T, seeds <-chan uint64, c *tally) {
	h.prime(t)
	for seed := range seeds {
		if !t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { h.campaign(t, seed, c) }) {
			t.Fatalf("campaign with seed %d: no more campaigns on this host", seed)
		}
	}
}

// campaign is one campaign, what happens to it, and the restore from another machine.
func (h *chaosHost) campaign(t *testing.T, seed uint64, c *tally) {
	random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // to be had again
	x := randomStudy(random)
	v := aVictim(random)
	r := newRaid(t, h, x, random)
	defer r.explain(seed, v)
	r.begin(seed)
	if r.edit = x.edited(random); r.edit != nil && r.edit.early {
		r.wait(time.Duration(random.Float64()*float64(r.delay)), "")
		r.thirdParty()
	}
	r.await(random)
	r.strike(v, random)
	r.end(random)
	if r.edit != nil && !r.edit.early {
		r.thirdParty()
	}
	r.restore()
	r.mustBeAsBefore()
	c.add(r, v)
}

// tally counts what happened.
type tally struct {
	mu      sync.Mutex
	n       int
	equal   int
	by      map[string]map[string]int // "victims", "phases" … → what → how often
	seconds float64
}

func newTally() *tally { return &tally{by: map[string]map[string]int{}} }

// add counts a campaign.
func (c *tally) add(r *raid, v victim) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	if !r.t.Failed() {
		c.equal++
	}
	c.seconds += time.Since(r.began).Seconds()
	c.count("victims", v.name)
	c.count("phases", r.phase)
	c.count("put back", r.putBack)
	c.count("restore --check", fmt.Sprint("exit ", r.checked))
	switch {
	case r.edit != nil && r.ours:
		c.count("edits by a third party", "kept and told of")
	case r.edit != nil:
		c.count("edits by a third party", "kept where the lab had nothing")
	}
}

func (c *tally) count(of, what string) {
	if c.by[of] == nil {
		c.by[of] = map[string]int{}
	}
	c.by[of][what]++
}

func (c *tally) String() string {
	text := fmt.Sprintf("chaos: %d campaigns, %d equal fingerprints, %.1f s each", c.n, c.equal, c.seconds/float64(max(1, c.n)))
	for _, of := range slices.Sorted(maps.Keys(c.by)) {
		var parts []string
		for _, what := range slices.Sorted(maps.Keys(c.by[of])) {
			parts = append(parts, fmt.Sprintf("%s %d", what, c.by[of][what]))
		}
		text += "; " + of + ": " + strings.Join(parts, ", ")
	}
	return text
}

// pick is one of several.
func pick[T any](random *rand.Rand, all []T) T { return all[random.IntN(len(all))] }
