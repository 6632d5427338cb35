package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"ngxlab/experiments"
	"ngxlab/lab"
	"ngxlab/store"
)

// The exit codes (DESIGN §13).
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitUnrestored  = 3 // wins over all others
	exitDoubtful    = 4 // done, but a claim is contradicted or every run invalid
	exitInterrupted = 130
)

// usageError is a wrong use of the command line.
type usageError struct {
	err  error
	hint string
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// hinted is an error with advice.
type hinted struct {
	err  error
	hint string
}

func (e *hinted) Error() string { return e.err.Error() }
func (e *hinted) Unwrap() error { return e.err }

// unrestoredError says which hosts are not as they were, and the command that puts them back.
type unrestoredError struct {
	hosts   []lab.HostName
	knobs   map[lab.HostName][]lab.KnobID // as far as they are known
	restore string
}

func (e *unrestoredError) Error() string {
	names := make([]string, len(e.hosts))
	for i, h := range e.hosts {
		names[i] = string(h)
		if knobs := e.knobs[h]; len(knobs) > 0 {
			words := make([]string, len(knobs))
			for j, k := range knobs {
				words[j] = k.String()
			}
			names[i] += " (" + joined(words) + ")"
		}
	}
	return "not put back as it was: " + joined(names)
}

// doubtfulError says why a campaign that was done should not be trusted as it stands.
type doubtfulError struct{ reason string }

func (e *doubtfulError) Error() string { return e.reason }

// exitCode is the one place where errors become exit codes.
func exitCode(err error) int {
	var unrestored *unrestoredError
	var usage *usageError
	var doubtful *doubtfulError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &unrestored):
		return exitUnrestored
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	case errors.As(err, &usage):
		return exitUsage
	case errors.As(err, &doubtful):
		return exitDoubtful
	}
	return exitFailed
}

// printError prints everything that went wrong, then the advice on a line of its own. Problems of an experiment file,
// refusals and what went wrong with a host carry theirs.
func printError(w io.Writer, err error) {
	var text strings.Builder
	var without []error // advice of their own
	for _, part := range parts(err) {
		text.WriteString(errorText(part) + "\n")
		if host := new(hostError); !errors.As(part, &host) {
			without = append(without, part)
		}
	}
	if hint := hintFor(errors.Join(without...)); hint != "" {
		text.WriteString("hint: " + hint + "\n")
	}
	_, _ = io.WriteString(w, lab.Printable(text.String())) // the last resort: nowhere else to say it
}

// cutError is what an interrupt cut short, of which there is no more to say.
type cutError struct{}

func (cutError) Error() string { return "interrupted" }

// Is makes it the cancelled context that it comes from.
func (cutError) Is(target error) bool { return target == context.Canceled }

// curt leaves out how what was interrupted ended: that its commands were killed says nothing of them. What has advice
// stays.
func curt(err error) error {
	var all []error
	cut := false
	for _, part := range parts(err) {
		var advised *hinted
		var campaign *interruptedError
		if !errors.Is(part, context.Canceled) || errors.As(part, &advised) || errors.As(part, &campaign) {
			all = append(all, part)
		} else if !cut {
			cut = true
			all = append(all, cutError{})
		}
	}
	return errors.Join(all...)
}

// errorText is one thing that went wrong.
func errorText(err error) string {
	var file *experiments.Error
	var refused *refusedError
	switch {
	case errors.As(err, &file):
		return file.Error()
	case errors.As(err, &refused):
		return refused.Error()
	}
	return "ngxlab: " + err.Error()
}

// parts are the errors that were joined into one.
func parts(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, part := range joined.Unwrap() {
		all = append(all, parts(part)...)
	}
	return all
}

// hintFor is the one place where errors become advice.
func hintFor(err error) string {
	var usage *usageError
	var advised *hinted
	var unrestored *unrestoredError
	var newer *store.NewerError
	var not *store.NotDatabaseError
	var missing *store.NotFoundError
	var both *store.AmbiguousError
	var run *store.RunNotFoundError
	var path *fs.PathError
	var curable interface{ Cure() string } // drift in a campaign
	switch {
	case errors.As(err, &unrestored):
		return fmt.Sprintf("run %q", unrestored.restore)
	case errors.As(err, &usage):
		return usage.hint
	case errors.As(err, &advised):
		return advised.hint
	case errors.As(err, &newer):
		return "update ngxlab, or name another database with --db"
	case errors.As(err, &not):
		return "name the database with --db"
	case errors.As(err, &missing):
		return missingHint(missing)
	case errors.As(err, &both):
		return "write more of the id: " + joinCampaigns(both.Both)
	case errors.As(err, &run):
		return "\"ngxlab show CAMPAIGN\" lists the runs"
	case errors.As(err, &path) && errors.Is(err, fs.ErrNotExist) && strings.HasSuffix(path.Path, ".db"):
		return "\"ngxlab run\" makes a database; name another with --db"
	case errors.As(err, &curable):
		return curable.Cure()
	}
	return ""
}

func missingHint(e *store.NotFoundError) string {
	if len(e.Near) == 0 {
		return "\"ngxlab run\" makes one"
	}
	return fmt.Sprintf("the nearest are %s; \"ngxlab list\" shows all", joinCampaigns(e.Near))
}

// args turns the complaint of an argument check into a wrong use.
func args(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, given []string) error {
		if err := check(cmd, given); err != nil {
			return &usageError{err: fmt.Errorf("%s: %w", cmd.Name(), err), hint: "usage: " + cmd.UseLine()}
		}
		return nil
	}
}

func joinHosts(hosts []lab.HostName) string {
	names := make([]string, len(hosts))
	for i, h := range hosts {
		names[i] = string(h)
	}
	return strings.Join(names, ", ")
}

func joinCampaigns(ids []lab.CampaignID) string {
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = string(id)
	}
	return strings.Join(names, ", ")
}
