package verdict

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"ngxlab/lab"
)

// world is a simulated machine: rounds differ by roundSD, runs within a round by runSD (logs).
type world struct {
	roundSD, runSD float64
	effects        map[string]float64 // state → log effect on goodput
	random         *rand.Rand
}

// planOf makes a plan of an isolated ladder with n steps and a control.
func planOf(steps int, loads []string, repeat lab.Repeat) lab.Plan {
	p := lab.Plan{Experiment: lab.Experiment{Repeat: repeat, Ladder: lab.Ladder{Kind: lab.Isolated}, Order: lab.Interleaved}}
	p.States = []lab.State{{Name: "base"}}
	for i := range steps {
		name := fmt.Sprintf("step%d", i+1)
		p.States = append(p.States, lab.State{Name: name, Step: name, Over: "base", Steps: []string{"base", name}})
	}
	p.States = append(p.States, lab.State{Name: lab.ControlName, Over: "base", Control: true})
	for _, l := range loads {
		p.Loads = append(p.Loads, lab.LoadPoint{Name: l, Headline: true})
	}
	for _, s := range p.States {
		for _, l := range loads {
			p.Cells = append(p.Cells, lab.Cell{ID: lab.CellID{Target: "web", State: s.Name, Load: l}})
		}
	}
	return p
}

func (w world) round(p lab.Plan, round int) []lab.Run {
	block := w.random.NormFloat64() * w.roundSD
	var runs []lab.Run
	for _, c := range p.Cells {
		x := 10 + block + w.effects[c.ID.State] + w.random.NormFloat64()*w.runSD
		runs = append(runs, lab.Run{Cell: c.ID, Round: round, Attempt: 1, Part: 1, Validity: lab.Clean,
			Figures: lab.Figures{lab.Goodput: math.Exp(x)}})
	}
	return runs
}

// campaign measures rounds until Enough says so.
func (w world) campaign(p lab.Plan) ([]lab.Run, int) {
	var runs []lab.Run
	for round := 1; ; round++ {
		runs = append(runs, w.round(p, round)...)
		if done, _ := Enough(p, runs); done {
			return runs, round
		}
	}
}

func has(verdicts []lab.Verdict, words ...lab.Word) bool {
	for _, v := range verdicts {
		for _, w := range words {
			if v.Family == FamilySteps && v.Word == w {
				return true
			}
		}
	}
	return false
}

var repeat20 = lab.Repeat{Min: 6, Max: 20, Precision: 0.02, Effect: 0.02}

// Five steps without any effect, stopped on width: the share of campaigns with any helps or hurts at all (family-wise)
// is at most 5 %. Fixed seeds; with 2000 campaigns a true 4 % shows as 3.1 to 4.9 %. Only goodput is simulated, so
// this says nothing of the two headline metrics together.
func TestFalseVerdictsInCampaignsWithoutAnyEffect(t *testing.T) {
	const campaigns = 2000
	for _, cv := range []float64{0.01, 0.03} {
		w := world{roundSD: 0.13, runSD: cv / math.Sqrt2, random: rand.New(rand.NewPCG(11, uint64(cv*1000)))}
		p := planOf(5, []string{"a"}, repeat20)
		wrong, differs, rounds := 0, 0, 0
		for range campaigns {
			runs, n := w.campaign(p)
			verdicts := All(lab.Results{Plan: p, Runs: runs})
			if has(verdicts, lab.Helps, lab.Hurts) {
				wrong++
			}
			for _, v := range verdicts {
				if v.Family == FamilyControl && v.Word == lab.Contradicted {
					differs++
				}
			}
			rounds += n
		}
		share := float64(wrong) / campaigns
		t.Logf("paired CV %.0f %%: false verdict in %.2f %% of campaigns, control differs in %.2f %%, %.1f rounds on average",
			100*cv, 100*share, 100*float64(differs)/campaigns, float64(rounds)/campaigns)
		if share > 0.05 {
			t.Errorf("paired CV %.0f %%: false verdicts in %.2f %% of campaigns", 100*cv, 100*share)
		}
		if float64(differs)/campaigns > 0.05 {
			t.Errorf("paired CV %.0f %%: the control differs in %d of %d campaigns", 100*cv, differs, campaigns)
		}
	}
}

// One of five steps gains 5 %: with a paired spread of 2 % it is found nearly always.
func TestStepOfFivePercentIsFound(t *testing.T) {
	const campaigns = 300
	w := world{roundSD: 0.13, runSD: 0.02 / math.Sqrt2, effects: map[string]float64{"step3": math.Log(1.05)},
		random: rand.New(rand.NewPCG(5, 6))}
	p := planOf(5, []string{"a"}, repeat20)
	found := 0
	for range campaigns {
		runs, _ := w.campaign(p)
		for _, v := range All(lab.Results{Plan: p, Runs: runs}) {
			if v.Family == FamilySteps && v.Step == "step3" && v.Word == lab.Helps && v.Comparison.Metric == lab.Goodput {
				found++
			}
		}
	}
	t.Logf("found in %d of %d campaigns", found, campaigns)
	if found < campaigns*9/10 {
		t.Errorf("a step of +5 %% is found in %d of %d campaigns", found, campaigns)
	}
}

// The quickstart's terms: six rounds fixed in practice, precision and effect 5 %, two load points.
func TestQuickstartTermsKeepFalseVerdictsRare(t *testing.T) {
	const campaigns = 1000
	w := world{roundSD: 0.13, runSD: 0.03, random: rand.New(rand.NewPCG(8, 9))}
	p := planOf(4, []string{"a", "b"}, lab.Repeat{Min: 6, Max: 6, Precision: 0.05, Effect: 0.05})
	wrong := 0
	for range campaigns {
		runs, _ := w.campaign(p)
		if has(All(lab.Results{Plan: p, Runs: runs}), lab.Helps, lab.Hurts) {
			wrong++
		}
	}
	t.Logf("false verdict in %.1f %% of campaigns", 100*float64(wrong)/campaigns)
	if wrong > campaigns/20 {
		t.Errorf("false verdicts in %d of %d campaigns", wrong, campaigns)
	}
}

func TestRoundsStopAtTheBudget(t *testing.T) {
	p := planOf(1, []string{"a"}, lab.Repeat{Min: 6, Max: 20, Precision: 0.02, Effect: 0.02, Budget: lab.Seconds(35)})
	var runs []lab.Run
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for round := 1; round <= 3; round++ {
		if done, reason := Enough(p, runs); done {
			t.Fatalf("stopped before round %d: %s", round, reason)
		}
		runs = append(runs,
			lab.Run{Cell: p.Cells[0].ID, Round: round, Began: at, Window: lab.Window{DurationS: 4}, Validity: lab.Clean},
			lab.Run{Cell: p.Cells[1].ID, Round: round, Began: at.Add(6 * time.Second), Window: lab.Window{DurationS: 4}, Validity: lab.Clean})
		at = at.Add(time.Hour) // a pause between rounds is not used
	}
	if done, reason := Enough(p, runs); !done || reason != lab.ReasonBudget {
		t.Errorf("after 30 s of 35, with rounds of 10 s: %v, %s", done, reason)
	}
}
