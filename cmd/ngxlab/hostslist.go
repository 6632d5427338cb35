package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ngxlab/hosts/docker"
	"ngxlab/hosts/ssh"
	"ngxlab/lab"
)

func newHostsList(a *app) *cobra.Command {
	var asJSON bool
	var o access
	cmd := &cobra.Command{
		Use:     "list [FILE] [HOST…]",
		Short:   "Say of hosts whether they answer, who holds them and what is left changed (default: this machine and the Docker labs there are)",
		Example: "  ngxlab hosts list\n  ngxlab hosts list study.yaml\n  ngxlab hosts list --json root@web1 | jq '.[].pending'",
		RunE: func(cmd *cobra.Command, given []string) error {
			x, err := chosen(given, o)
			if err != nil {
				return err
			}
			return hostsList(cmd.Context(), a, x, listOptions{labs: len(given) == 0, json: asJSON})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print an array")
	o.flags(cmd)
	return cmd
}

// listOptions say what hosts list shows, and how.
type listOptions struct {
	labs bool // also the Docker labs there are
	json bool
}

// The states of a listed host.
const (
	hostAnswers    = "answers"
	hostNoAnswer   = "no answer"
	hostNoAgent    = "no agent" // it is reached, and no agent starts there
	hostNoKey      = "no usable key"
	hostRefused    = "login refused"
	hostKeyUnknown = "key unknown"
	hostKeyChanged = "key changed"
	hostKeyRevoked = "key revoked"
	hostNoEngine   = "no engine"   // of its container
	hostDown       = "not up"      // a container that is not there
	hostStopped    = "not running" // a container that is there
)

// failedState is what is the matter with a host that was not asked.
func failedState(err error) string {
	var engine *engineError
	var unknown *ssh.UnknownKeyError
	var changed *ssh.ChangedKeyError
	var revoked *ssh.RevokedKeyError
	var login *ssh.AuthError
	var problem *docker.Problem
	var agentless *agentlessError
	switch {
	case errors.As(err, &engine):
		return hostNoEngine
	case errors.As(err, &unknown):
		return hostKeyUnknown
	case errors.As(err, &changed):
		return hostKeyChanged
	case errors.As(err, &revoked):
		return hostKeyRevoked
	case errors.As(err, &login) && (len(login.Tried) > 0 || login.Cause == nil):
		return loginState(login)
	case errors.As(err, &problem) && problem.Kind == docker.NotRunning:
		return containerState(problem.State)
	case errors.As(err, &agentless) && !errors.Is(err, lab.ErrLost):
		return hostNoAgent
	}
	return hostNoAnswer
}

func loginState(e *ssh.AuthError) string {
	if len(e.Tried) == 0 {
		return hostNoKey
	}
	return hostRefused
}

// containerState is a container that cannot be asked, from the engine's word for it.
func containerState(word string) string {
	switch word {
	case "":
		return hostDown
	case statePaused:
		return statePaused
	}
	return hostStopped
}

// listed is a host as hosts list prints it.
type listed struct {
	Host    lab.HostName  `json:"host"`
	Kind    string        `json:"kind"` // local, ssh or docker
	Lab     string        `json:"lab,omitempty"`
	Owner   string        `json:"owner,omitempty"` // who made the lab
	Address string        `json:"address,omitempty"`
	Roles   []lab.Role    `json:"roles,omitempty"`
	State   string        `json:"state"` // one of the host… words, or "paused"
	Agent   string        `json:"agent,omitempty"`
	Root    *bool         `json:"root,omitempty"`
	Holder  *lab.Holder   `json:"holder,omitempty"` // absent when nobody does, or when it does not answer
	Pending []lab.Pending `json:"pending,omitempty"`
	Error   string        `json:"error,omitempty"`
}

// hostsList asks every host at the same time; no lab is brought up for it.
func hostsList(ctx context.Context, a *app, x lab.Experiment, o listOptions) error {
	all := askHosts(ctx, a, x, func(ctx context.Context, i int, m *machine) (listed, error) { return listOne(ctx, x, i, m) })
	rows := make([]listed, len(all))
	for i := range all {
		if rows[i] = all[i].answer; all[i].err != nil {
			rows[i] = listFailed(x, i, all[i].err)
		}
		if isGone(all[i].err) {
			all[i].err = nil
		}
	}
	if slices.ContainsFunc(x.Hosts, isDocker) {
		a.fillIn(ctx, rows)
	}
	if o.labs {
		rows = append(rows, a.listLabs(ctx)...)
	}
	var err error
	if o.json {
		err = writeJSON(a.out, rows)
	} else {
		err = printList(a, rows)
	}
	return errors.Join(err, failures(x, all))
}

// listOne asks a host for what the list shows of it.
func listOne(ctx context.Context, x lab.Experiment, i int, m *machine) (listed, error) {
	l := listOf(x, i)
	l.State = hostAnswers
	f, err := m.facts(ctx, lab.FactsQuery{Brief: true})
	if err != nil {
		return l, err
	}
	l.Agent, l.Root = f.Agent, &f.Root
	holder, err := m.holder(ctx)
	if err != nil {
		return l, err
	}
	if holder.Owner != "" {
		l.Holder = &holder
	}
	l.Pending, err = m.pending(ctx)
	return l, err
}

// listOf is what the file says of a host.
func listOf(x lab.Experiment, i int) listed {
	h := x.Hosts[i]
	l := listed{Host: h.Name, Kind: "ssh", Roles: h.Roles}
	switch {
	case h.Local:
		l.Kind = "local"
	case h.Docker != nil:
		l.Kind, l.Lab = "docker", x.Name
	default:
		l.Address = sshDestination(h).String()
	}
	return l
}

func listFailed(x lab.Experiment, i int, err error) listed {
	l := listOf(x, i)
	if l.State = failedState(err); !isGone(err) {
		l.Error = err.Error()
	}
	return l
}

// fillIn adds to containers what the engine knows of them, whether they answer or not: their addresses and owners.
func (a *app) fillIn(ctx context.Context, rows []listed) {
	e, err := a.docker.open(ctx, a)
	if err != nil {
		return // each of them says so
	}
	labs, err := e.Labs(ctx)
	if err != nil {
		a.note("the Docker labs could not be listed: %v", err)
	}
	for i, row := range rows {
		for _, l := range labs {
			if row.Lab != l.Name {
				continue
			}
			rows[i].Owner = l.Owner
			if c := slices.IndexFunc(l.Hosts, func(c docker.Container) bool { return c.Host == row.Host }); c >= 0 {
				rows[i].Address = l.Hosts[c].Address
			}
		}
	}
}

// listLabs asks the containers of all Docker labs there are, whoever made them; there are none when no engine answers.
func (a *app) listLabs(ctx context.Context) []listed {
	e, err := a.docker.open(ctx, a)
	var problem *docker.Problem
	if errors.As(err, &problem) && problem.Kind == docker.NoDaemon && os.Getenv("DOCKER_HOST") == "" {
		return nil // most machines have none
	}
	if err != nil {
		a.note("the Docker labs could not be listed: %v", err)
		return nil
	}
	labs, err := e.Labs(ctx)
	if err != nil {
		a.note("the Docker labs could not be listed: %v", err)
	}
	var rows []listed
	for _, l := range labs {
		for _, c := range l.Hosts {
			rows = append(rows, listed{Host: c.Host, Kind: "docker", Lab: l.Name, Owner: l.Owner, Address: c.Address, State: c.State})
		}
	}
	forEach(ctx, len(rows), containerTimeout, func(ctx context.Context, i int) error {
		rows[i] = a.listContainer(ctx, rows[i])
		return nil // it is in the row
	})
	return rows
}

// containerTimeout bounds how long one container of a lab that nobody named may take to answer.
const containerTimeout = 20 * time.Second

// listContainer asks a container that runs for what the list shows of it.
func (a *app) listContainer(ctx context.Context, row listed) listed {
	if row.State != stateRunning {
		row.State = containerState(row.State)
		return row
	}
	x := lab.Experiment{Name: row.Lab, Hosts: []lab.Host{{Name: row.Host, Docker: &lab.DockerHost{}}}}
	l, err := askHost(ctx, a, x, 0, func(ctx context.Context, i int, m *machine) (listed, error) { return listOne(ctx, x, i, m) })
	if err != nil {
		l = listFailed(x, 0, err)
	}
	l.Owner, l.Address = row.Owner, row.Address
	return l
}

func printList(a *app, rows []listed) error {
	p := &page{w: a.out}
	t := newTable(nil, "host", "kind", "address", "roles", "state", "agent", "user", "held by", "left changed")
	for _, l := range rows {
		t.row(string(l.Host), kindText(l), l.Address, roles(l.Roles), l.State, short(l.Agent), userText(l.Root), holderText(l), pendingText(l))
	}
	p.table("", t)
	return p.err
}

func kindText(l listed) string {
	if l.Lab != "" {
		text := fmt.Sprintf("%s, lab %s", l.Kind, l.Lab)
		if l.Owner != "" {
			text += " of " + l.Owner
		}
		return text
	}
	return l.Kind
}

// short is the beginning of a hash.
func short(hash string) string { return hash[:min(12, len(hash))] }

func userText(root *bool) string {
	switch {
	case root == nil:
		return ""
	case *root:
		return "root"
	}
	return "not root"
}

// unasked is what the list shows where nothing is known; a container that does not run has nothing, and shows nothing.
func unasked(l listed) string {
	if l.State == hostDown || l.State == hostStopped {
		return ""
	}
	return "not known"
}

func holderText(l listed) string {
	switch h := l.Holder; {
	case l.State != hostAnswers:
		return unasked(l)
	case h == nil:
		return "nobody"
	default:
		return fmt.Sprintf("%s, campaign %s, since %s", h.Owner, h.Campaign, clock(h.Since))
	}
}

func pendingText(l listed) string {
	switch {
	case l.State != hostAnswers:
		return unasked(l)
	case len(l.Pending) == 0:
		return "nothing"
	}
	names := make([]string, len(l.Pending))
	for i, p := range l.Pending {
		names[i] = p.Knob.String()
	}
	return strings.Join(names, ", ")
}
