package ssh

import (
	"fmt"
	"strings"
)

// KnownKey is a host key that a known_hosts file holds.
type KnownKey struct {
	Type   string // as in known_hosts, e.g. ssh-ed25519
	SHA256 string // fingerprint as ssh-keygen -l prints it
	File   string
	Line   int
}

func (k KnownKey) String() string {
	return fmt.Sprintf("%s %s (%s:%d)", k.Type, k.SHA256, k.File, k.Line)
}

// UnknownKeyError refuses a host that no known_hosts file knows: "ngxlab hosts trust" adds it.
type UnknownKeyError struct {
	Host    string // as the person wrote it
	Address string // host:port that was reached
	Type    string
	SHA256  string
}

func (e *UnknownKeyError) Error() string {
	return fmt.Sprintf("the host key of %s (%s) is not known: it shows %s %s", e.Host, e.Address, e.Type, e.SHA256)
}

// ChangedKeyError refuses a host that shows another key than the known one.
type ChangedKeyError struct {
	Host    string
	Address string
	Type    string // of the key that it shows
	SHA256  string // of the key that it shows
	Known   []KnownKey
}

func (e *ChangedKeyError) Error() string {
	known := make([]string, len(e.Known))
	for i, k := range e.Known {
		known[i] = k.String()
	}
	return fmt.Sprintf("the host key of %s (%s) has changed: it shows %s %s, known is %s; this is another machine, or somebody is between",
		e.Host, e.Address, e.Type, e.SHA256, strings.Join(known, ", "))
}

// RevokedKeyError refuses a host whose key a known_hosts file revokes.
type RevokedKeyError struct {
	Host    string
	SHA256  string
	Revoked KnownKey
}

func (e *RevokedKeyError) Error() string {
	return fmt.Sprintf("the host key of %s is revoked: %s", e.Host, e.Revoked)
}

// AuthError says that a host lets a user in with none of the keys.
type AuthError struct {
	Host    string
	User    string
	Tried   []string // the keys that were shown, with file and fingerprint
	Unused  []string // keys that could not be used, each with the reason
	Locked  []string // the files among them that an ssh-agent or a passphrase would open
	Broken  []string // the files among them that are missing, cannot be read, or hold no private key
	Methods []string // what the host allows
	Banner  string   // what the host had to say before
	Cause   error    // why it ended before all keys were shown; nil = it did not
}

func (e *AuthError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "log in to %s as %s: ", e.Host, e.User)
	switch {
	case len(e.Tried) == 0:
		b.WriteString("there is no key to try")
	default:
		fmt.Fprintf(&b, "refused with %s", strings.Join(e.Tried, ", "))
	}
	for _, reason := range e.Unused {
		b.WriteString("; " + reason)
	}
	if e.Cause != nil {
		fmt.Fprintf(&b, "; it ended early: %v", e.Cause)
	}
	fmt.Fprintf(&b, "; the host allows %s", strings.Join(e.Methods, ", "))
	if !strings.Contains(strings.Join(e.Methods, " "), methodKeys) {
		b.WriteString(", of which nothing is supported: ngxlab logs in with keys only")
	}
	if e.Banner != "" {
		fmt.Fprintf(&b, "; it says %.300q", e.Banner)
	}
	return b.String()
}

// Unwrap is why the login ended early, if it did.
func (e *AuthError) Unwrap() error { return e.Cause }

const methodKeys = "publickey"
