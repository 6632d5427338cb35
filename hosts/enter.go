package hosts

import (
	"context"
	"errors"

	"ngxlab/lab"
)

// Options of Enter and Local.
type Options struct {
	Name  lab.HostName // in the experiment; "" = "local"
	Dir   string       // the agent's state directory; "" = its own choice
	Agent string       // path of an agent to use instead of the embedded one, whatever the host's architecture
	Sudo  bool         // start the agent through sudo -n, unless the user is root
}

// Enter finds a directory and the architecture on the host, sends the agent when it is not there already, starts it, and
// greets it. Closing the Host closes d; on an error Enter has closed it.
func Enter(ctx context.Context, d Door, o Options) (*Host, error) {
	return nil, errors.Join(errors.ErrUnsupported, d.Close())
}
