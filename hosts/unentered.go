package hosts

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// ShellError is a host that answers, but on which no script ran to its end: its login shell, or what that does at its
// start, is in the way.
type ShellError struct{ err error }

func (e *ShellError) Error() string { return e.err.Error() }

// Unwrap is what was seen.
func (e *ShellError) Unwrap() error { return e.err }

// Cure is what the host needs.
func (e *ShellError) Cure() string {
	return "give the user a login shell that runs commands, as sh does, with start-up files that print little and neither exit " +
		"nor wait when no person is there; \"ssh HOST echo ok\" has to print ok and end"
}

// SudoError is a host where sudo starts no agent for a user, with and without a terminal.
type SudoError struct {
	User  string
	Agent string // path of the agents there, as a pattern
	err   error
}

func (e *SudoError) Error() string {
	return fmt.Sprintf("sudo -n does not start the agent for user %s (tried with and without a terminal): %v", e.User, e.err)
}

// Unwrap is what was seen, with sudo's own words.
func (e *SudoError) Unwrap() error { return e.err }

// Cure is the rule that sudo needs. What it says itself does not tell which is missing: it asks for a password also where a
// rule allows other commands or another user.
func (e *SudoError) Cure() string {
	return fmt.Sprintf("give sudo the rule \"%[1]s ALL=(root) NOPASSWD: ALL\", or for the agent alone \"%[1]s ALL=(root) NOPASSWD: %[2]s\" (visudo -f /etc/sudoers.d/%[1]s); or log in as root",
		e.User, e.Agent)
}

// noPlaceError says why no directory of a host took the agent.
type noPlaceError struct {
	bytes   int
	reasons []error // one for each
}

func (e *noPlaceError) add(reasons []string) {
	for _, r := range reasons {
		e.reasons = append(e.reasons, errors.New(r))
	}
}

func (e *noPlaceError) Error() string {
	lines := make([]string, len(e.reasons))
	for i, r := range e.reasons {
		lines[i] = "\n  " + r.Error()
	}
	return fmt.Sprintf("no directory for the agent (%d bytes):%s", e.bytes, strings.Join(lines, ""))
}

// Unwrap are the reasons.
func (e *noPlaceError) Unwrap() []error { return e.reasons }

// answering is a door that can ask whether the host still answers: nil when it does.
type answering interface {
	Answers(ctx context.Context) error
}

// answerLimit bounds that question.
const answerLimit = 2 * time.Second

// blame makes a ShellError of a script that did not run to its end, where the host answers all the same.
func (e *entrance) blame(ctx context.Context, why *unstarted) error {
	door, ok := e.door.(answering)
	if !ok || e.runs || why.unopened || ctx.Err() != nil {
		return why
	}
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	if door.Answers(ctx) != nil {
		return why
	}
	return &ShellError{why}
}

// brief is what a message needs of what a host printed: some of the first lines and of the last.
func brief(text string) string {
	const first, last, width = 3, 3, 200
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if left := len(lines) - first - last; left > 1 {
		lines = append(append(lines[:first:first], fmt.Sprintf("(%d more lines)", left)), lines[first+left:]...)
	}
	for i, line := range lines {
		if r := []rune(line); len(r) > width {
			lines[i] = string(r[:width]) + "…"
		}
	}
	return strings.Join(lines, "\n")
}
