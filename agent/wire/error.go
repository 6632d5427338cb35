package wire

import (
	"errors"
	"time"

	"ngxlab/lab"
)

// Kind tells errors apart that somebody acts on.
type Kind string

// The kinds.
const (
	KindFailed     Kind = "failed"      // what was tried did not work; the message says why
	KindLocked     Kind = "locked"      // another campaign holds the host: Error.Lock
	KindUnclaimed  Kind = "unclaimed"   // the request needs the host's lock, which this session has not claimed
	KindForeign    Kind = "foreign"     // a knob was changed by someone else meanwhile
	KindReadBack   Kind = "read_back"   // a knob does not keep the value it was given
	KindNotSupport Kind = "unsupported" // the host cannot do this
	KindDamaged    Kind = "damaged"     // the journal is not as it was written: what it said is not all known
	KindRequest    Kind = "request"     // the request is not understood
)

// Lock is what the host's lock file says of its holder.
type Lock struct {
	Owner    string         `json:"owner"`
	Campaign lab.CampaignID `json:"campaign"`
	Since    time.Time      `json:"since"`
}

// Error is an error that crosses the wire.
type Error struct {
	Kind    Kind   `json:"kind"`
	Message string `json:"message"`
	Lock    *Lock  `json:"lock,omitempty"` // with KindLocked
}

// Error is the message.
func (e *Error) Error() string { return e.Message }

// Locked is the error of who finds the lock taken.
func Locked(l Lock) *Error {
	message := "in use by " + l.Owner
	if l.Campaign != "" {
		message += ", campaign " + string(l.Campaign)
	}
	if !l.Since.IsZero() {
		message += ", since " + l.Since.UTC().Format(time.RFC3339)
	}
	return &Error{Kind: KindLocked, Message: message, Lock: &l}
}

// From returns err as an error that can cross the wire: the one in its chain with the whole message, or one of kind.
// nil stays nil.
func From(err error, kind Kind) *Error {
	if err == nil {
		return nil
	}
	out := Error{Kind: kind}
	var known *Error
	if errors.As(err, &known) {
		out = *known
	}
	out.Message = err.Error()
	return &out
}
