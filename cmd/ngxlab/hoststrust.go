package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"ngxlab/hosts/ssh"
	"ngxlab/lab"
)

// trustOptions are the flags of hosts trust.
type trustOptions struct {
	yes, json   bool
	fingerprint string
	access      access
}

func newHostsTrust(a *app) *cobra.Command {
	o := trustOptions{}
	cmd := &cobra.Command{
		Use:   "trust FILE|HOST…",
		Short: "Show the SSH keys that hosts have, and add them to ~/.ssh/known_hosts when you agree",
		Long: "Compare a fingerprint with what the host itself says before you agree:\n" +
			"  for k in /etc/ssh/ssh_host_*_key.pub; do ssh-keygen -lf $k; done\n" +
			"A key that differs from the known one is never replaced.",
		Example: "  ngxlab hosts trust study.yaml\n  ngxlab hosts trust bench@load1\n  ngxlab hosts trust --fingerprint SHA256:0yW1… web1",
		Args:    args(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			x, err := chosen(given, o.access)
			if err != nil {
				return err
			}
			return hostsTrust(cmd.Context(), a, x, o)
		},
	}
	cmd.Flags().BoolVar(&o.yes, "yes", false, "agree to every key, without having compared it")
	cmd.Flags().StringVar(&o.fingerprint, "fingerprint", "", "add the key that has this fingerprint, and no other")
	cmd.Flags().BoolVar(&o.json, "json", false, "print an array")
	o.access.flags(cmd)
	return cmd
}

// shownKey is a key of a host as hosts trust prints it.
type shownKey struct {
	Host        lab.HostName `json:"host"`
	Type        string       `json:"type"`
	Fingerprint string       `json:"fingerprint"` // "SHA256:…"
	Known       bool         `json:"known"`       // it was before
	Added       bool         `json:"added"`
}

// hostsTrust asks every host over SSH for its keys at the same time, then asks the person host by host.
func hostsTrust(ctx context.Context, a *app, x lab.Experiment, o trustOptions) error {
	x.Hosts = slices.DeleteFunc(slices.Clone(x.Hosts), func(h lab.Host) bool { return h.Local || isDocker(h) })
	if len(x.Hosts) == 0 {
		return &usageError{err: errors.New("none of these hosts is reached over SSH"), hint: "this machine and the containers of a Docker lab need no trust"}
	}
	keys := make([][]ssh.HostKey, len(x.Hosts))
	errs := forEach(ctx, len(x.Hosts), attachTimeout, func(ctx context.Context, i int) (err error) {
		keys[i], err = ssh.HostKeys(ctx, sshDestination(x.Hosts[i]), a.ssh)
		return named(x.Hosts[i], err)
	})
	all := []any{} // with hostFailed where a host shows none, or another key than it should
	for i, h := range x.Hosts {
		if errs[i] == nil {
			shown, err := a.trustOne(ctx, h, keys[i], o)
			errs[i] = err
			for _, k := range shown {
				all = append(all, k)
			}
		}
		if errs[i] != nil {
			all = append(all, hostFailed{h.Name, errs[i].Error()})
		}
	}
	var err error
	if o.json {
		err = writeJSON(a.out, all)
	}
	return errors.Join(err, atHosts(x, errs))
}

// trustOne shows the keys of one host and adds those that the person agrees to.
func (a *app) trustOne(ctx context.Context, h lab.Host, keys []ssh.HostKey, o trustOptions) ([]shownKey, error) {
	shown := make([]shownKey, len(keys))
	for i, k := range keys {
		shown[i] = shownKey{Host: h.Name, Type: k.Type, Fingerprint: k.SHA256, Known: k.Known}
	}
	if err := a.showKeys(h, keys, o); err != nil {
		return shown, err
	}
	wanted, err := a.wantedKeys(ctx, h, keys, o)
	if err != nil || len(wanted) == 0 {
		return shown, err
	}
	path, err := ssh.Trust(ctx, wanted, a.ssh)
	if err != nil {
		return shown, err
	}
	for i, k := range keys {
		shown[i].Added = slices.ContainsFunc(wanted, func(w ssh.HostKey) bool { return w.SHA256 == k.SHA256 })
	}
	a.note("%s: %s added to %s", h.Name, count(len(wanted), "key"), path)
	return shown, nil
}

// showKeys prints the keys of a host, to the error stream where the output is JSON. One that the files speak against is
// an error.
func (a *app) showKeys(h lab.Host, keys []ssh.HostKey, o trustOptions) error {
	p := &page{w: a.out}
	if o.json {
		p.w = a.err
	}
	var refused error
	for _, k := range keys {
		note := ""
		switch {
		case k.Refused != nil:
			note, refused = "; REFUSED", errors.Join(refused, fmt.Errorf("%s: %w", h.Name, k.Refused))
		case k.Known:
			note = "; known"
		}
		p.line("%s (%s): %s %s%s", h.Name, k.Address, k.Type, k.SHA256, note)
	}
	if len(keys) == 0 {
		return fmt.Errorf("%s: it shows no host key", h.Name)
	}
	return errors.Join(p.err, refused)
}

// wantedKeys are those of the keys that are to be added: the one with the fingerprint asked for, or all that are new once
// the person agrees.
func (a *app) wantedKeys(ctx context.Context, h lab.Host, keys []ssh.HostKey, o trustOptions) ([]ssh.HostKey, error) {
	added := slices.DeleteFunc(slices.Clone(keys), func(k ssh.HostKey) bool { return k.Known })
	switch {
	case o.fingerprint != "":
		return fingerprinted(h, keys, o.fingerprint)
	case len(added) == 0 || o.yes:
		return added, nil
	case !a.asks:
		return nil, &usageError{
			err:  fmt.Errorf("%s: nobody can be asked whether these are its keys: the input is no terminal", h.Name),
			hint: "add --fingerprint SHA256:… with what the host says of itself, or --yes",
		}
	}
	yes, err := a.agree(ctx, fmt.Sprintf("Are these the keys of %s?", h.Name))
	if err == nil && !yes {
		err = fmt.Errorf("%s: not trusted", h.Name)
	}
	return added, err
}

// fingerprinted is the key that has the fingerprint, unless it is known already.
func fingerprinted(h lab.Host, keys []ssh.HostKey, fingerprint string) ([]ssh.HostKey, error) {
	i := slices.IndexFunc(keys, func(k ssh.HostKey) bool { return k.SHA256 == fingerprint })
	switch {
	case i < 0:
		return nil, fmt.Errorf("%s: none of its keys has the fingerprint %s", h.Name, fingerprint)
	case keys[i].Known:
		return nil, nil
	}
	return keys[i : i+1], nil
}
