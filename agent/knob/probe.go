package knob

import (
	"context"

	"ngxlab/lab"
)

// Probe says what this host has of the knobs of settings, and whether it can have their values: a fact per setting in
// their order, of a pattern one per match. It changes nothing.
func (k *Keeper) Probe(ctx context.Context, settings []lab.Setting) ([]lab.KnobFact, error) {
	var facts []lab.KnobFact
	for _, s := range settings {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		d, err := k.driver(s.Knob.Kind)
		if err != nil {
			facts = append(facts, lab.KnobFact{Asked: s, Knob: s.Knob, Reason: err.Error(), Cure: "leave it out"})
			continue
		}
		facts = append(facts, d.probe(ctx, s)...)
	}
	return facts, nil
}

// oneFact is the fact of a setting as examine fills it in and judges it: the knob's name, what is there and what the
// setting comes to.
func oneFact(ctx context.Context, s lab.Setting, examine func(context.Context, *lab.KnobFact) refusal) []lab.KnobFact {
	fact := lab.KnobFact{Asked: s, Knob: s.Knob, Now: lab.Value{Absent: true}, To: lab.Value{Text: s.Value, Absent: s.Absent}}
	r := examine(ctx, &fact)
	return []lab.KnobFact{r.asFact(fact)}
}
