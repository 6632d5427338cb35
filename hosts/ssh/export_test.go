package ssh

// Resolved is what the tests see of a target.
type Resolved struct {
	Address, User  string
	Port           int
	Keys, Jumps    []string
	Known, Aliases []string
	Agent          string
	Only, Hashed   bool
	Timeout        string
}

// Resolve reads the configuration for a destination.
func Resolve(d Destination, o Options) (Resolved, error) {
	t, err := resolve(d, o)
	if err != nil {
		return Resolved{}, err
	}
	return Resolved{
		Address: t.address, User: t.user, Port: t.port, Keys: t.files, Jumps: t.jumps, Known: t.known,
		Aliases: t.aliases, Agent: t.agent, Only: t.only, Hashed: t.hashed, Timeout: t.timeout.String(),
	}, nil
}
