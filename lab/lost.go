package lab

import "errors"

// ErrLost is in the chain of errors of a host that cannot be asked any more: its link has ended, or it does not answer. It
// has refused nothing of what was asked.
var ErrLost = errors.New("the host is out of reach")
