package docker

import "fmt"

// Kind tells the problems apart that a person can do something about.
type Kind int

// The kinds of Problem.
const (
	NoDaemon     Kind = iota + 1 // nothing answers at the engine's address
	NoPermission                 // the socket is there, and not for this user
	TooOld                       // the engine speaks only older versions of the API
	NotLinux                     // the engine runs other containers than Linux ones
	BadAddress                   // the engine's address cannot be used
	NameInUse                    // something that is no lab of ours has the name of a network or a container
	AddressClash                 // no addresses are free for the network, or those asked for are in use
	NoImage                      // there is no image for the hosts, and none can be made
	BadImage                     // the image lacks what a host needs
	BadHost                      // a host cannot be had as it was asked for
	NotRunning                   // the container is not there, or stopped, or paused
	BadSubnet                    // the addresses asked for cannot be those of the lab's network
	Foreign                      // the lab is another user's
	Held                         // a campaign holds the lab
)

// Problem is why a lab, or a part of it, cannot be had.
type Problem struct {
	Kind  Kind
	What  string // what was tried, on what
	Cure  string // what to do, for a line of its own; "" when nothing is known
	Err   error  // the cause; nil when What says all
	State string // of the container, in the engine's word, "" = it is not there; of NotRunning alone
}

func (p *Problem) Error() string {
	if p.Err == nil {
		return p.What
	}
	return fmt.Sprintf("%s: %v", p.What, p.Err)
}

func (p *Problem) Unwrap() error { return p.Err }
