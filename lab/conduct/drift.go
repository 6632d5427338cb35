package conduct

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"ngxlab/lab"
	"ngxlab/lab/observe"
	"ngxlab/lab/tune"
)

// errDrifted says that a knob was not as it should be before a run.
var errDrifted = errors.New("a knob is not as it should be")

// DriftError ends a campaign: before a run, knobs of hosts were not as the state in force has them. What was measured
// from then on would be of another state.
type DriftError struct{ Readings []observe.KnobReading }

// Error names each host, the knob, what it should have been and what it was.
func (e *DriftError) Error() string {
	return fmt.Sprintf("someone else changed what the campaign has set: %s", driftText(e.Readings))
}

// DriftCure is advice for people whose hosts someone else changes during a campaign, up to what they can do afterwards.
const DriftCure = "find what sets it (a configuration management agent, a cron job?) and stop it for as long as the campaign takes"

// Cure is DriftCure.
func (e *DriftError) Cure() string { return DriftCure }

func driftText(drifted []observe.KnobReading) string {
	texts := make([]string, len(drifted))
	for i, r := range drifted {
		texts[i] = r.String()
	}
	return strings.Join(texts, "; ")
}

func hasDrifted(r observe.KnobReading) bool { return r.Drifted }

func anyDrifted(all []observe.KnobReading) bool { return slices.ContainsFunc(all, hasDrifted) }

// unfired records a run whose load was not fired because knobs had drifted. When they are knobs of a host the campaign
// ends; a server is ours, and is replaced.
func (c *campaign) unfired(ctx context.Context, run lab.Run, seen *shot) (lab.Run, error) {
	drifted := slices.DeleteFunc(slices.Clone(seen.knobs), func(r observe.KnobReading) bool { return !r.Drifted })
	seen.began = time.Now()
	seen.ended = seen.began
	run = c.account(run, seen)
	run.Figures, run.Problem = lab.Figures{}, "not measured: "+driftText(drifted)
	rules := slices.DeleteFunc(observe.Rules(), func(r observe.Rule) bool { return r.Code != driftCode })
	run.Findings, run.Validity = observe.Judge(observe.Observe(observe.Input{Run: run, Knobs: seen.knobs}), rules)
	if err := c.keep(ctx, run); err != nil {
		return run, err
	}
	ofHosts := slices.DeleteFunc(drifted, func(r observe.KnobReading) bool { return r.Server })
	if len(ofHosts) > 0 {
		return run, fmt.Errorf("%s, %s, round %d: %w", run.Cell.State, run.Cell.Load, run.Round, &DriftError{ofHosts})
	}
	return run, nil
}

// driftCode is the one rule that a run is judged by whose load was not fired.
const driftCode = "knob-drift"

// notFired reports whether the load of a run was not fired because knobs had drifted.
func notFired(r lab.Run) bool {
	return len(r.Findings) == 1 && r.Findings[0].Code == driftCode && r.Findings[0].Outcome == lab.Fired
}

// readings hold what was read of the hosts' knobs against the state in force. Values has one element per knob that the
// plan sets on a host.
func (c *campaign) readings(values map[lab.HostName][]lab.Value, when string) []observe.KnobReading {
	var all []observe.KnobReading
	for _, name := range c.names() {
		for i, s := range c.plan.Original.Settings[name] {
			should, found := c.wanted(name, s.Knob), values[name][i]
			r := observe.KnobReading{
				Host: name, Knob: s.Knob.String(), When: when, Should: lab.Shown(s.Knob, should), Found: lab.Shown(s.Knob, found),
				Drifted: !tune.EqualValues(s.Knob, should, found),
			}
			if r.Drifted && r.Should == r.Found {
				r.Found += " with other content"
			}
			all = append(all, r)
		}
	}
	return all
}

// wanted is the value of a knob in the state in force.
func (c *campaign) wanted(name lab.HostName, id lab.KnobID) lab.Value {
	for _, s := range c.inForce.Settings[name] {
		if s.Knob == id {
			return lab.Value{Text: s.Value, Absent: s.Absent}
		}
	}
	return lab.Value{Absent: true}
}

// serverKnobs are the keys of lab.Sample.InForce, and what people call them.
var serverKnobs = []struct{ key, text string }{
	{"config", "the server's configuration file"}, {"binary", "the server's program"},
	{"nofile", "the server's open-file limit"}, {"nproc", "the server's process limit"},
	{"cpus", "the server's CPUs"}, {"backlog", "the server's backlog"},
}

// readings hold what the server runs under in the last of the samples that tells it against its start and against its
// first sample in the campaign; what a sample does not tell has no reading. A server that has drifted is over.
func (r *running) readings(samples []lab.Sample, when string) []observe.KnobReading {
	found := lastInForce(r.serving.Target, samples)
	if r.inForce == nil {
		r.inForce = found
	}
	should := r.should()
	var all []observe.KnobReading
	for _, k := range serverKnobs {
		if found[k.key] == "" || should[k.key] == "" {
			continue
		}
		drifted := found[k.key] != should[k.key]
		r.over = r.over || drifted
		all = append(all, observe.KnobReading{
			Host: r.serving.Target, Knob: k.text, Server: true, When: when, Drifted: drifted,
			Should: shownInForce(k.key, should[k.key]), Found: shownInForce(k.key, found[k.key]),
		})
	}
	return all
}

// should is what the server was started with and, of what is not known from there, what it ran under at its first sample.
func (r *running) should() map[string]string {
	all := map[string]string{}
	for key, text := range r.inForce {
		all[key] = text
	}
	if r.serving.Config != "" {
		sum := sha256.Sum256([]byte(r.serving.Config))
		all["config"] = hex.EncodeToString(sum[:])
	}
	for key, n := range map[string]int{"nofile": r.server.NofileSoft, "nproc": r.server.NprocSoft, "backlog": r.server.Backlog} {
		if n != 0 {
			all[key] = strconv.Itoa(n)
		}
	}
	return all
}

// shownInForce is a value as it is shown to people: of a hash, as much as tells two apart.
func shownInForce(key, text string) string {
	if key == "config" && len(text) > 12 {
		return "SHA-256 " + text[:12] + "…"
	}
	return text
}

// lastInForce is what the last sample of a target says of its server, nil when none does.
func lastInForce(target lab.HostName, samples []lab.Sample) map[string]string {
	for _, s := range slices.Backward(samples) {
		if s.Host == target && s.InForce != nil {
			return s.InForce
		}
	}
	return nil
}
