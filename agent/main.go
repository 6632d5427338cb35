package agent

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"ngxlab/agent/hold"
	"ngxlab/agent/knob"
	"ngxlab/agent/process"
	"ngxlab/agent/wire"
	"ngxlab/lab"
)

// Hidden subcommands, beside process.WaitCommand.
const (
	commandWorker = "worker" // started by the guard
	commandHold   = "hold"   // started by hold.Holder
)

const usage = `usage: ngxlab-agent serve|restore|pending [--dir DIRECTORY]
       ngxlab-agent version
serve answers ngxlab on standard input and output; restore puts back what was changed on this host;
pending lists what was changed and not put back.
`

// Exit codes of the agent, as ngxlab's own.
const (
	exitDone       = 0
	exitFailed     = 1
	exitUse        = 2
	exitUnrestored = 3
)

// Main is the agent's program: args are its arguments without its name, the result is its exit code.
func Main(args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		_, _ = io.WriteString(stderr, usage)
		return exitUse
	}
	code, err := command(args[0], args[1:], stdout, stderr)
	if err != nil && !errors.Is(err, errReported) {
		_, _ = fmt.Fprintf(stderr, "ngxlab-agent: %s: %v\n", args[0], err)
	}
	if err != nil && code == exitDone {
		return exitFailed
	}
	return code
}

func command(name string, args []string, stdout, stderr io.Writer) (int, error) {
	switch name {
	case process.WaitCommand:
		return exitFailed, process.Wait(args)
	case commandHold:
		ordinaryPriority()
		return exitDone, hold.Main(args, os.Stdin, stdout)
	case "version":
		hash, err := ownHash()
		if err == nil {
			_, err = fmt.Fprintf(stdout, "ngxlab-agent protocol %d, %s\n", wire.Protocol, hash)
		}
		return exitDone, err
	}
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(stderr)
	dir := flags.String("dir", "", "state directory")
	if flags.Parse(args) != nil || flags.NArg() > 0 {
		return exitUse, nil
	}
	states := ownDirs() // one that is named is not chosen
	if *dir != "" {
		named, err := filepath.Abs(*dir)
		if err != nil {
			return exitFailed, err
		}
		states = stateDirs{paths: []string{named}}
	}
	switch name {
	case "serve", commandWorker:
		state, err := states.choose()
		if err != nil {
			return exitFailed, err
		}
		if name == commandWorker {
			return exitDone, worker(state)
		}
		return exitDone, guard(state)
	case "restore":
		return everyState(states, func(dir string) (int, error) { return restore(dir, stdout) })
	case "pending":
		return everyState(states, func(dir string) (int, error) { return exitDone, pending(dir, stdout) })
	}
	_, err := io.WriteString(stderr, usage)
	return exitUse, err
}

// everyState does something with each state directory that is there: a home may have been unwritable for a while. The first
// exit code that is not exitDone counts.
func everyState(states stateDirs, do func(dir string) (int, error)) (code int, err error) {
	for _, dir := range states.existing() {
		c, e := do(dir)
		if err = errors.Join(err, e); code == exitDone {
			code = c
		}
	}
	return code, err
}

// restore puts the host back from its journal, without the program. It ends with exitUnrestored when something is left.
func restore(dir string, stdout io.Writer) (int, error) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	defer stop()
	lock, err := openLock(Options{Dir: dir})
	if err != nil {
		return exitUnrestored, err
	}
	defer lock.close() //nolint:errcheck // the process ends next, and the lock with it
	keeper, err := knob.Open(dir)
	if err != nil {
		return exitUnrestored, err
	}
	var done []lab.Restored
	err = lock.during(wire.Claim{Owner: "ngxlab-agent restore"}, func() error {
		cleared := clearWork(dir)
		done, err = keeper.Restore(ctx)
		return errors.Join(cleared, err)
	})
	for _, r := range done {
		note := ""
		if r.Note != "" {
			note = "; " + r.Note
		}
		if _, err := fmt.Fprintf(stdout, "%s: %s (%s, was %s)%s\n", r.Knob, r.Outcome, lab.Quoted(r.Knob, r.Original), lab.Quoted(r.Knob, r.Found), note); err != nil {
			return exitUnrestored, err
		}
	}
	if err != nil {
		return exitUnrestored, err
	}
	return exitDone, nil
}

func pending(dir string, stdout io.Writer) error {
	keeper, err := knob.Open(dir)
	if err != nil {
		return err
	}
	entries, err := keeper.Pending()
	for _, p := range entries {
		_, e := fmt.Fprintf(stdout, "%s: originally %s, changed by campaign %s at %s\n", p.Knob, lab.Quoted(p.Knob, p.Original), p.Campaign, p.Since)
		err = errors.Join(err, e)
	}
	return err
}
