package main

import (
	"context"

	"github.com/spf13/cobra"

	"ngxlab/lab"
)

func newHosts(a *app) *cobra.Command {
	hosts := group(&cobra.Command{
		Use:   "hosts",
		Short: "Look at hosts, trust them, clean them up, and make throwaway ones",
		Long: "A HOST is [user@]host[:port], a name of ~/.ssh/config, or local (this machine, the default). After an experiment\n" +
			"FILE it is a name from there (default: all of its hosts).",
		Example: "  ngxlab hosts facts\n  ngxlab hosts list study.yaml\n  ngxlab hosts trust bench@load1",
	})
	for _, command := range []func(*app) *cobra.Command{newHostsList, newHostsFacts, newHostsTrust, newHostsClean, newHostsUp, newHostsDown} {
		hosts.AddCommand(command(a))
	}
	return hosts
}

// asked is what one host answered to a command, or what went wrong with it.
type asked[T any] struct {
	answer T
	err    error
}

// askHosts attaches every host of the experiment that can be, lets do ask it, and lets it go. The answers are in the
// order of the hosts.
func askHosts[T any](ctx context.Context, a *app, x lab.Experiment, do func(ctx context.Context, i int, m *machine) (T, error)) []asked[T] {
	all := make([]asked[T], len(x.Hosts))
	errs := forEach(ctx, len(x.Hosts), attachTimeout+answerTimeout, func(ctx context.Context, i int) (err error) {
		all[i].answer, err = askHost(ctx, a, x, i, do)
		return err
	})
	for i, err := range errs {
		all[i].err = err
	}
	return all
}

// askHost attaches one host, lets do ask it, and lets it go: how its agent ends matters no more.
func askHost[T any](ctx context.Context, a *app, x lab.Experiment, i int, do func(ctx context.Context, i int, m *machine) (T, error)) (none T, err error) {
	m, err := a.attach(ctx, x.Name, x.Hosts[i])
	if err != nil {
		return none, err
	}
	answer, err := do(ctx, i, m)
	if err != nil {
		_ = m.close()
		return none, err
	}
	return answer, m.close()
}

// failures are the errors of those that failed, each with its place in the file and its advice.
func failures[T any](x lab.Experiment, all []asked[T]) error {
	errs := make([]error, len(all))
	for i, one := range all {
		errs[i] = one.err
	}
	return atHosts(x, errs)
}

// hostFailed is a host in an array of JSON that gave no answer.
type hostFailed struct {
	Host  lab.HostName `json:"host"`
	Error string       `json:"error"`
}

// answersJSON are the answers, with hostFailed where there is none.
func answersJSON[T any](x lab.Experiment, all []asked[T]) []any {
	list := make([]any, len(all))
	for i, one := range all {
		list[i] = one.answer
		if one.err != nil {
			list[i] = hostFailed{x.Hosts[i].Name, one.err.Error()}
		}
	}
	return list
}
