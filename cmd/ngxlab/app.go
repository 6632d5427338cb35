package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"ngxlab/hosts/ssh"
	"ngxlab/lab"
	"ngxlab/store"
)

// app is what the commands share: the streams, the database's path, and how hosts are reached.
type app struct {
	in       io.Reader
	out      io.Writer // results
	err      io.Writer // progress, doubts and errors
	terminal bool      // err is a terminal
	db       string    // path of the database
	version  string
	stateDir string // of the agent, "" for its own choice
	agent    string // path of an agent to use instead of the embedded one, "" for none

	person string                                                                // who runs the program: the owner of the Docker labs that it makes
	attach func(ctx context.Context, inLab string, h lab.Host) (*machine, error) // inLab is the Docker lab that it may be of
	now    func() time.Time

	ssh    ssh.Options
	docker engine

	said    sync.Mutex    // one note at a time
	answers *bufio.Reader // of in, to questions
	asks    bool          // in is a terminal: a person can answer
	touched touched
}

// newApp returns an app for the streams, which reaches real hosts.
func newApp(in io.Reader, out, err io.Writer) *app {
	a := &app{in: in, out: out, err: err, version: version, person: person(), now: time.Now, answers: bufio.NewReader(in), ssh: ssh.Options{Keys: ssh.NewKeys()}}
	a.ssh.Say = func(text string) { a.note("%s", text) }
	a.attach = a.reach
	return a
}

// execute runs the command line and returns the exit code; errors are printed.
func (a *app) execute(ctx context.Context, args []string) int {
	root := newRoot(a)
	root.SetArgs(args)
	err := errors.Join(root.ExecuteContext(ctx), a.docker.close(), a.ssh.Keys.Close())
	if err == nil {
		return exitDone
	}
	if ctx.Err() != nil {
		err = curt(err)
	}
	printError(a.err, err)
	return exitCode(err)
}

// interrupted says what the first interrupt does.
func (a *app) interrupted() {
	if _, left := a.touched.left(); len(left) > 0 {
		a.note("\ninterrupted: putting the hosts back; interrupt again to leave at once")
	}
}

// leave says what the second interrupt leaves behind, and returns the exit code.
func (a *app) leave() int {
	x, left := a.touched.left()
	if len(left) == 0 {
		return exitInterrupted
	}
	a.note("left before the hosts were put back")
	a.note("hint: run %q", a.restoreCommand(x, left))
	return exitUnrestored
}

// note prints one line to the error stream. A line that cannot be written there has nowhere else to go.
func (a *app) note(format string, args ...any) {
	a.said.Lock()
	defer a.said.Unlock()
	_, _ = io.WriteString(a.err, lab.Printable(fmt.Sprintf(format+"\n", args...)))
}

// newRoot returns the command tree.
func newRoot(a *app) *cobra.Command {
	root := group(&cobra.Command{
		Use:           "ngxlab",
		Short:         "Reproducible tuning studies of web servers",
		Long:          "ngxlab builds the servers of an experiment file, moves the target from one tuned state to the next, drives the load,\nwatches both sides, keeps every run in one SQLite file, puts the hosts back as they were, and writes the study up.",
		Example:       "  ngxlab run quickstart\n  ngxlab init study.yaml && ngxlab plan study.yaml && ngxlab run study.yaml\n  ngxlab hosts facts root@web1 bench@load1",
		SilenceErrors: true,
		SilenceUsage:  true,
	})
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.SetFlagErrorFunc(wrongFlag)
	root.SetHelpCommand(newHelp(a))
	root.CompletionOptions.HiddenDefaultCmd = true
	root.PersistentFlags().StringVar(&a.db, "db", "lab.db", "the database file")
	root.PersistentFlags().StringVar(&a.stateDir, "state-dir", "", "where the agent on each host keeps its journal and builds (default: its own choice)")
	root.PersistentFlags().StringVar(&a.agent, "agent", "", "an agent to use instead of the one in this program")
	hide(root, "agent")
	for _, command := range []func(*app) *cobra.Command{
		newInit, newLibrary, newSchema, newCheck, newPlan, newRun, newResume, newStatus, newList, newShow, newCompare, newVerify,
		newCapacity, newReport, newRestore, newVerifyState, newHosts, newBuilds, newVersion,
	} {
		root.AddCommand(command(a))
	}
	return root
}

// hide keeps a flag that is for developers out of the help.
func hide(cmd *cobra.Command, flag string) {
	cmd.PersistentFlags().Lookup(flag).Hidden = true
}

// reading opens the database for reading, hands it to do, and closes it.
func (a *app) reading(ctx context.Context, do func(*store.Store) error) (err error) {
	s, err := store.OpenReadOnly(ctx, a.db)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return do(s)
}

// writing opens or makes the database, hands it to do, and closes it.
func (a *app) writing(ctx context.Context, do func(*store.Store) error) (err error) {
	s, err := store.Open(ctx, a.db)
	if errors.Is(err, fs.ErrNotExist) {
		return &hinted{err: err, hint: "make its folder first, or name another database with --db"}
	}
	if err != nil {
		return err
	}
	s.Version = a.version
	defer func() { err = errors.Join(err, s.Close()) }()
	return do(s)
}

// campaign finds the campaign that id begins, or the latest when id is "".
func campaign(ctx context.Context, s *store.Store, id string) (lab.Campaign, error) {
	if id == "" {
		return s.Latest(ctx)
	}
	return s.Campaign(ctx, lab.CampaignID(id))
}
