package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"ngxlab/hosts/docker"
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
	hostAnswers     = "answers"
	hostUnreachable = "does not answer"
	hostDown        = "not up" // a container that is not there
)

// listed is a host as hosts list prints it.
type listed struct {
	Host    lab.HostName  `json:"host"`
	Kind    string        `json:"kind"` // local, ssh or docker
	Lab     string        `json:"lab,omitempty"`
	Address string        `json:"address,omitempty"`
	Roles   []lab.Role    `json:"roles,omitempty"`
	State   string        `json:"state"` // one of the host… words, or what the Docker engine says of a container
	Agent   string        `json:"agent,omitempty"`
	Root    *bool         `json:"root,omitempty"`
	Holder  *lab.Holder   `json:"holder,omitempty"` // absent when nobody does
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
	if f.Address != "" {
		l.Address = f.Address
	}
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
	if isGone(err) {
		l.State = hostDown
		return l
	}
	l.State, l.Error = hostUnreachable, err.Error()
	return l
}

// listLabs are the containers of all Docker labs there are; none when no engine answers.
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
			rows = append(rows, listed{Host: c.Host, Kind: "docker", Lab: l.Name, Address: c.Address, State: c.State})
		}
	}
	return rows
}

func printList(a *app, rows []listed) error {
	p := &page{w: a.out}
	t := newTable(nil, "host", "kind", "address", "roles", "state", "agent", "user", "held by", "left changed")
	for _, l := range rows {
		t.row(string(l.Host), kindText(l), l.Address, roles(l.Roles), l.State, short(l.Agent), userText(l.Root), holderText(l.Holder), pendingText(l.Pending))
	}
	p.table("", t)
	return p.err
}

func kindText(l listed) string {
	if l.Lab != "" {
		return fmt.Sprintf("%s, lab %s", l.Kind, l.Lab)
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

func holderText(h *lab.Holder) string {
	if h == nil {
		return ""
	}
	return fmt.Sprintf("%s, campaign %s, since %s", h.Owner, h.Campaign, clock(h.Since))
}

func pendingText(all []lab.Pending) string {
	if len(all) == 0 {
		return ""
	}
	names := make([]string, len(all))
	for i, p := range all {
		names[i] = p.Knob.String()
	}
	return strings.Join(names, ", ")
}
