package verdict

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"ngxlab/lab"
)

// reproducedWithin is the factor within which a published ratio counts as reproduced.
const reproducedWithin = 1.15

// claims is family 3: every claim of the file on every target.
func (c campaign) claims() []lab.Verdict {
	var verdicts []lab.Verdict
	for _, target := range c.targets() {
		for _, claim := range c.plan.Experiment.Claims {
			verdicts = append(verdicts, c.claim(claim, target))
		}
	}
	return verdicts
}

func (c campaign) claim(claim lab.Claim, target lab.HostName) lab.Verdict {
	compared := c.compare(pair{target: target, state: claim.State, over: claim.Over}, "", claim.Of)
	v := lab.Verdict{Comparison: compared, Family: FamilyClaims, Claim: claim.Name}
	if claim.Published != nil {
		v.Published = *claim.Published
	}
	v.Word = c.claimWord(claim, compared)
	v.Text = claimText(claim, v)
	if claim.Published != nil {
		v.Reasons = append(c.skipped(claim), c.conditions(target)...)
	}
	return v
}

// claimWord judges every part of a claim; the gravest word wins.
func (c campaign) claimWord(claim lab.Claim, compared lab.Comparison) lab.Word {
	if compared.Prevented != "" {
		return lab.NotMeasurable
	}
	if claim.Published != nil && len(c.skipped(claim)) > 0 {
		return lab.NotComparable
	}
	var words []lab.Word
	if claim.AtLeast != nil {
		words = append(words, bound(compared.Low >= *claim.AtLeast, compared.High < *claim.AtLeast && !compared.LowerBound))
	}
	if claim.AtMost != nil {
		words = append(words, bound(compared.High <= *claim.AtMost && !compared.LowerBound, compared.Low > *claim.AtMost))
	}
	if claim.Published != nil {
		words = append(words, published(compared, *claim.Published))
	}
	for _, grave := range []lab.Word{lab.Contradicted, lab.Undecided} {
		if slices.Contains(words, grave) {
			return grave
		}
	}
	if len(words) == 0 {
		return lab.Undecided
	}
	return words[len(words)-1]
}

func bound(holds, contradicted bool) lab.Word {
	switch {
	case holds:
		return lab.Holds
	case contradicted:
		return lab.Contradicted
	}
	return lab.Undecided
}

func published(c lab.Comparison, q float64) lab.Word {
	low, high := q/reproducedWithin, q*reproducedWithin
	switch {
	case c.Low > high, c.High < low && !c.LowerBound:
		return lab.Contradicted
	case c.Low >= low && c.High <= high && !c.LowerBound:
		return lab.Reproduced
	}
	return lab.Undecided
}

func claimText(claim lab.Claim, v lab.Verdict) string {
	c := v.Comparison
	if v.Word == lab.NotMeasurable {
		return "not measurable: " + c.Prevented
	}
	var said []string
	if claim.AtLeast != nil {
		said = append(said, fmt.Sprintf("claimed at least %g×", *claim.AtLeast))
	}
	if claim.AtMost != nil {
		said = append(said, fmt.Sprintf("claimed at most %g×", *claim.AtMost))
	}
	if claim.Published != nil {
		said = append(said, fmt.Sprintf("published %g×", *claim.Published))
	}
	figure := fmt.Sprintf("%.3g× (%.3g … %.3g)", c.Ratio, c.Low, c.High)
	if c.LowerBound {
		figure = fmt.Sprintf("at least %.3g×", c.Low)
	}
	return fmt.Sprintf("%s: %s, %s", v.Word, figure, strings.Join(said, ", "))
}

// skipped lists the knobs that could not be set in one of the claim's states.
func (c campaign) skipped(claim lab.Claim) []string {
	steps := map[string]bool{}
	for _, name := range []string{claim.State, claim.Over} {
		if s, known := c.plan.State(name); known {
			for _, step := range s.Steps {
				steps[step] = true
			}
		}
	}
	var reasons []string
	for _, r := range c.plan.Refused {
		if steps[r.Step] {
			reasons = append(reasons, fmt.Sprintf("%s of step %q could not be set: %s", r.Knob, r.Step, r.Reason))
		}
	}
	return reasons
}

// conditions lists the published conditions beside those of the target: of a container, what its bounds leave it.
func (c campaign) conditions(target lab.HostName) []string {
	facts := c.plan.Facts[target]
	here := map[string]string{"cpu": facts.CPUModel, "kernel": facts.Kernel, "distribution": facts.Distribution, "cores": "", "memory": ""}
	if n := facts.UsableCPUs(); n > 0 {
		here["cores"] = strconv.Itoa(n)
	}
	if bytes := facts.BoundBytes(); bytes > 0 {
		here["memory"] = fmt.Sprintf("%.3g GiB", float64(bytes)/(1<<30))
	}
	said := c.plan.Experiment.Publish.Conditions
	var differ []string
	for _, key := range slices.Sorted(maps.Keys(said)) {
		now := here[strings.ToLower(key)]
		switch {
		case now == "":
			differ = append(differ, fmt.Sprintf("%s: published %s", key, said[key]))
		case now != said[key]:
			differ = append(differ, fmt.Sprintf("%s: published %s, here %s", key, said[key], now))
		}
	}
	return differ
}
