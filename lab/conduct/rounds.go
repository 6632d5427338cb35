package conduct

import (
	"context"
	"fmt"

	"ngxlab/lab"
	"ngxlab/lab/verdict"
)

const (
	// maxAttempts of a cell in a round: the first and two repetitions (METHOD §3).
	maxAttempts = 3
	// maxRetryShare bounds repetitions to a fifth of the campaign's runs (METHOD §3).
	maxRetryShare = 0.20
)

// slot is a cell in a round.
type slot struct {
	round int
	cell  lab.CellID
}

// turn is the cells of one target and state in one round: one fresh server.
type turn struct {
	round  int
	target lab.HostName
	state  string
	cells  []lab.CellID
}

// rounds measures round after round until the verdicts are narrow enough or a bound is reached. Blocked, it measures
// all rounds of one state before the next state; then there is nothing to stop early for.
func (c *campaign) rounds(ctx context.Context) (lab.Reason, error) {
	if len(c.plan.Cells) == 0 {
		return "", nil // capacity alone
	}
	if c.plan.Experiment.Order == lab.Blocked {
		return lab.ReasonMax, c.blocks(ctx)
	}
	for i := range c.plan.Rounds {
		enough, reason := verdict.Enough(c.plan, c.until(i))
		if enough {
			return reason, c.say(ctx, lab.Event{Kind: lab.EventStop, Round: i, Text: string(reason)})
		}
		c.planned = max(c.planned, (i+1)*len(c.plan.Cells))
		before := len(c.runs)
		if err := c.round(ctx, i+1, anyState); err != nil {
			return "", err
		}
		if len(c.runs) == before {
			continue // done before the campaign was resumed
		}
		text := fmt.Sprintf("round %d is complete", i+1)
		if err := c.say(ctx, lab.Event{Kind: lab.EventRound, Round: i + 1, Text: text}); err != nil {
			return "", err
		}
	}
	_, reason := verdict.Enough(c.plan, c.runs)
	return reason, c.say(ctx, lab.Event{Kind: lab.EventStop, Round: len(c.plan.Rounds), Text: string(reason)})
}

// blocks measures state after state, each in all its rounds.
func (c *campaign) blocks(ctx context.Context) error {
	c.planned = len(c.plan.Rounds) * len(c.plan.Cells)
	for _, state := range c.plan.States {
		only := func(id lab.CellID) bool { return id.State == state.Name }
		for i := range c.plan.Rounds {
			if err := c.round(ctx, i+1, only); err != nil {
				return err
			}
		}
	}
	return c.say(ctx, lab.Event{Kind: lab.EventStop, Round: len(c.plan.Rounds), Text: string(lab.ReasonMax)})
}

// until are the runs of the first rounds: a campaign that goes on where it was interrupted decides as if it had not been.
func (c *campaign) until(round int) []lab.Run {
	var runs []lab.Run
	for _, r := range c.runs {
		if r.Round <= round {
			runs = append(runs, r)
		}
	}
	return runs
}

func anyState(lab.CellID) bool { return true }

// round measures what is missing of the wanted cells of one round, then repeats the invalid ones.
func (c *campaign) round(ctx context.Context, round int, wanted func(lab.CellID) bool) error {
	for attempt := 1; attempt <= maxAttempts; attempt++ {
		for _, t := range c.turns(round, attempt, wanted) {
			if err := c.turn(ctx, t); err != nil {
				return err
			}
		}
	}
	return nil
}

// turns are the open cells of a round in its order: those never run at the first attempt, the invalid ones later, as
// far as the repetitions left reach.
func (c *campaign) turns(round, attempt int, wanted func(lab.CellID) bool) []turn {
	var turns []turn
	left := c.retriesLeft()
	for _, cell := range c.plan.Rounds[round-1] {
		if !wanted(cell) || !c.open(round, attempt, cell) || attempt > 1 && left == 0 {
			continue
		}
		left--
		last := len(turns) - 1
		if last < 0 || turns[last].target != cell.Target || turns[last].state != cell.State {
			turns = append(turns, turn{round: round, target: cell.Target, state: cell.State})
			last++
		}
		turns[last].cells = append(turns[last].cells, cell)
	}
	return turns
}

// open reports whether a cell wants this attempt.
func (c *campaign) open(round, attempt int, cell lab.CellID) bool {
	attempts, valid := c.attempts(round, cell)
	attempts -= c.spared[slot{round, cell}]
	if attempt == 1 {
		return attempts == 0
	}
	return !valid && attempts == attempt-1
}

// retriesLeft is how many repetitions the campaign may still make.
func (c *campaign) retriesLeft() int {
	return max(0, int(maxRetryShare*float64(len(c.plan.Rounds)*len(c.plan.Cells)))-c.repetitions())
}

// repetitions is how many runs repeat an invalid one.
func (c *campaign) repetitions() int {
	made := 0
	for _, r := range c.runs {
		if r.Attempt > 1 {
			made++
		}
	}
	return made
}

// attempts counts the runs of a cell in a round and says whether one of them is valid.
func (c *campaign) attempts(round int, cell lab.CellID) (n int, valid bool) {
	for _, r := range c.runs {
		if r.Round == round && r.Cell == cell {
			n++
			valid = valid || r.Validity != lab.Invalid
		}
	}
	return n, valid
}

// turn stops the server before, moves to the state, starts a fresh server, and measures the cells one after the other.
// Where the experiment lets it and nothing stands against it, the server before goes on. One that did not survive a run,
// or is not as it was started any more, is replaced for the cells that follow.
func (c *campaign) turn(ctx context.Context, t turn) error {
	state, ok := c.plan.State(t.state)
	if !ok {
		return fmt.Errorf("round %d: the plan has no state %q", t.round, t.state)
	}
	serving, err := c.serving(t.target, t.state)
	if err != nil {
		return err
	}
	if err := c.say(ctx, lab.Event{Kind: lab.EventState, Host: t.target, Round: t.round, Text: t.state}); err != nil {
		return err
	}
	if err := c.retire(ctx, state); err != nil {
		return err
	}
	if err := c.move(ctx, state); err != nil {
		return err
	}
	for rest := t.cells; len(rest) > 0; {
		n, err := c.serveCells(ctx, t.round, serving, rest)
		if err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

// serveCells measures cells on one server and returns how many it did before the server was over.
func (c *campaign) serveCells(ctx context.Context, round int, s lab.Serving, cells []lab.CellID) (int, error) {
	r, err := c.running(ctx, round, s)
	if err != nil {
		return 0, err
	}
	if err := c.clock(ctx, round); err != nil {
		return 0, err
	}
	for i, cell := range cells {
		run, err := c.cell(ctx, round, cell, r)
		if err != nil {
			return i, err
		}
		if r.over = r.over || gone(run); r.over {
			return i + 1, nil
		}
	}
	return len(cells), nil
}

// serving finds the plan's serving of a target and state.
func (c *campaign) serving(target lab.HostName, state string) (lab.Serving, error) {
	for _, s := range c.plan.Servings {
		if s.Target == target && s.State == state {
			return s, nil
		}
	}
	return lab.Serving{}, fmt.Errorf("the plan has no server for state %q on %s", state, target)
}

// gone reports whether the server did not survive the run.
func gone(r lab.Run) bool {
	for _, f := range r.Findings {
		if f.Code == "server-restarted" && f.Outcome == lab.Fired {
			return true
		}
	}
	return false
}
