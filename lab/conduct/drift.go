package conduct

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
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

// serverKnobs are the keys of lab.Sample.InForce, and what people call them of a server.
var serverKnobs = []struct{ key, text string }{
	{"config", "configuration file"}, {"binary", "program"}, {"nofile", "open-file limit"}, {"nproc", "process limit"},
	{"cpus", "CPUs"}, {"backlog", "backlog"},
}

// readings hold what the server and its upstream run under in the last of the samples that tells it against their start
// and against their first sample in the campaign; what a sample does not tell has no reading. A server that has drifted is
// over. s is its serving, complete.
func (r *running) readings(s lab.Serving, samples []lab.Sample, when string) []observe.KnobReading {
	all := r.readingsOf("the server", s, r.server, lastInForce(s.Target, samples), when)
	if up := s.Upstream; up != nil && r.server.Upstream != nil {
		all = append(all, r.readingsOf("the upstream", *up, *r.server.Upstream, lastInForce(up.Target, samples), when)...)
	}
	return all
}

func (r *running) readingsOf(what string, s lab.Serving, server lab.Server, found map[string]string, when string) []observe.KnobReading {
	if r.inForce[s.Target] == nil {
		r.inForce[s.Target] = found
	}
	should := shouldBe(s, server, r.inForce[s.Target])
	var all []observe.KnobReading
	for _, k := range serverKnobs {
		if found[k.key] == "" || should[k.key] == "" {
			continue
		}
		drifted := found[k.key] != should[k.key]
		r.over = r.over || drifted
		all = append(all, observe.KnobReading{
			Host: s.Target, Knob: what + "'s " + k.text, Server: true, When: when, Drifted: drifted,
			Should: shownInForce(k.key, should[k.key]), Found: shownInForce(k.key, found[k.key]),
		})
	}
	return all
}

// filledIn finds what the agent fills in where it writes a configuration.
var filledIn = regexp.MustCompile(`\{[a-z_]+\}`)

// shouldBe is what a server was started with and, of what is not known from there, what it ran under at its first sample.
func shouldBe(s lab.Serving, server lab.Server, first map[string]string) map[string]string {
	all := map[string]string{}
	for key, text := range first {
		all[key] = text
	}
	asWritten := len(server.Files) == 0 && !filledIn.MatchString(s.Config) && len(s.Build.Dynamic) == 0
	if s.Config != "" && asWritten {
		sum := sha256.Sum256([]byte(s.Config))
		all["config"] = hex.EncodeToString(sum[:])
	}
	for key, n := range map[string]int{"nofile": server.NofileSoft, "nproc": server.NprocSoft, "backlog": server.Backlog} {
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
