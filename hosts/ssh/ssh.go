// Package ssh reaches hosts over OpenSSH: the person's own configuration, keys, ssh-agent and known hosts, jumps, and
// connections on which scripts run and files are put. Host keys are checked strictly, always; passwords are not used.
package ssh

import (
	"context"
	"fmt"
	"time"
)

// Options of Dial, HostKeys and Trust. The zero value uses the person's and the system's files, asks nobody, and reads
// keys for this connection only.
type Options struct {
	Config         []string          // ssh_config(5) files, the first wins; nil = ~/.ssh/config and /etc/ssh/ssh_config
	KnownHosts     []string          // known_hosts files, the first is written to; nil = as the configuration says
	Keys           *Keys             // shared by all hosts, so that a passphrase is asked for once; nil = only for this one
	Ask            Ask               // for passphrases; nil = encrypted keys need $NGXLAB_PASSPHRASE or an ssh-agent
	Say            func(text string) // what the person should know though nothing failed, e.g. of an ssh-agent; nil = to nobody
	ConnectTimeout time.Duration     // for each connection, until the login is done; 0 = as the configuration says, else 10 s
}

// Dial logs in to a host, through all jumps. Errors name the host as d does; a refused host key is an *UnknownKeyError,
// a *ChangedKeyError or a *RevokedKeyError, a refused login an *AuthError. ctx bounds the dialling only.
func Dial(ctx context.Context, d Destination, o Options) (*Client, error) {
	own := o.Keys == nil
	if own {
		o.Keys = NewKeys()
	}
	client, err := reach(ctx, d, o, 0)
	if own {
		_ = o.Keys.Close() // the login is done
	}
	return client, err
}

// maxJumps bounds a chain of jumps, so that a host that is its own jump is an error.
const maxJumps = 8

// reach logs in to a host, after its jumps.
func reach(ctx context.Context, d Destination, o Options, depth int) (*Client, error) {
	if depth > maxJumps {
		return nil, fmt.Errorf("%s: more than %d jumps: is it its own jump?", d, maxJumps)
	}
	t, err := resolve(d, o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d, err)
	}
	via, err := through(ctx, t, o, depth)
	if err != nil {
		return nil, fmt.Errorf("%s: its jump %w", d, err)
	}
	client, err := login(ctx, t, via, o)
	if err != nil {
		if via != nil {
			_ = via.Close() // the login's error counts
		}
		return nil, fmt.Errorf("%s: %w", d, err)
	}
	return client, nil
}

// through logs in to the last jump of a target; nil = it has none.
func through(ctx context.Context, t *target, o Options, depth int) (*Client, error) {
	if len(t.jumps) == 0 {
		return nil, nil
	}
	last := len(t.jumps) - 1
	d, err := Parse(t.jumps[last])
	if err != nil {
		return nil, err
	}
	d.Jump = joined(t.jumps[:last])
	return reach(ctx, d, o, depth+1)
}
