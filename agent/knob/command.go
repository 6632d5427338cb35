package knob

import (
	"context"
	"errors"
	"fmt"

	"ngxlab/lab"
)

// commands are knobs that programs put in force, look at and take back. The first reading of one is the verify
// command's, which therefore must change nothing.
type commands struct{}

func (c commands) probe(ctx context.Context, s lab.Setting) []lab.KnobFact {
	return oneFact(ctx, s, c.examine)
}

func (c commands) examine(ctx context.Context, fact *lab.KnobFact) refusal {
	if fact.To.Absent {
		return refusal{reason: "a command is applied or not", cure: "leave it out of the step"}
	}
	value, err := definition(fact.To)
	if err != nil {
		return refusal{reason: err.Error(), cure: "give it apply, verify, revert and a timeout"}
	}
	for _, argv := range [][]string{value.Verify, value.Apply, value.Revert} {
		if _, err := findProgram(argv[0]); err != nil {
			return refusal{reason: err.Error(), cure: "install it, or give its absolute path"}
		}
	}
	value.Applied, err = c.verify(ctx, value)
	if err != nil {
		return refusal{reason: err.Error(), cure: "verify must exit 0 when it is in force, 1 when it is not, and change nothing"}
	}
	fact.Now = lab.Value{Text: value.String()}
	return refusal{}
}

// definition is the value's commands, all three of them.
func definition(v lab.Value) (lab.CommandValue, error) {
	value, err := lab.ParseCommandValue(v.Text)
	if err != nil {
		return value, err
	}
	for _, argv := range [][]string{value.Apply, value.Verify, value.Revert} {
		if len(argv) == 0 || argv[0] == "" {
			return value, errors.New("a command without apply, verify and revert")
		}
	}
	if value.Timeout.Duration <= 0 {
		return value, errors.New("a command without a timeout above 0")
	}
	return value, nil
}

// read runs the verify command of like.
func (c commands) read(ctx context.Context, id lab.KnobID, like lab.Value) (lab.Value, error) {
	if like.Text == "" {
		return lab.Value{}, fmt.Errorf("%s: cannot be read without its definition", id)
	}
	value, err := definition(like)
	if err == nil {
		value.Applied, err = c.verify(ctx, value)
	}
	if err != nil {
		return lab.Value{}, fmt.Errorf("%s: %w", id, err)
	}
	return lab.Value{Text: value.String()}, nil
}

// verify reports whether it is in force.
func (commands) verify(ctx context.Context, value lab.CommandValue) (bool, error) {
	end, err := runProgram(ctx, value.Timeout.Duration, value.Verify)
	if err != nil || end.code > 1 {
		return false, fmt.Errorf("verify: %w", errors.Join(err, end.failure()))
	}
	return end.code == 0, nil
}

// write applies or reverts, as the value says.
func (commands) write(ctx context.Context, id lab.KnobID, to lab.Value) error {
	value, err := definition(to)
	if err != nil {
		return fmt.Errorf("%s: %w", id, err)
	}
	what, argv := "revert", value.Revert
	if value.Applied {
		what, argv = "apply", value.Apply
	}
	end, err := runProgram(ctx, value.Timeout.Duration, argv)
	if err = errors.Join(err, end.failure()); err != nil {
		return fmt.Errorf("%s: %s: %w", id, what, err)
	}
	return nil
}
