package ssh

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	xssh "golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// HostKey is a key that a host shows, and what the known_hosts files say of it.
type HostKey struct {
	Host    string // as the person wrote it
	Address string // host:port that was reached
	Type    string // e.g. ssh-ed25519
	SHA256  string // fingerprint, as ssh-keygen -l prints it
	Known   bool   // it is in the files for this host
	Refused error  // the files speak against it: a *ChangedKeyError or a *RevokedKeyError; nil = they do not

	key    xssh.PublicKey
	target *target
}

// errSeen ends a handshake once the key is seen.
var errSeen = errors.New("the key was seen")

// HostKeys asks a host for its keys, one connection for each kind, without logging in; jumps on the way are logged in to,
// and their keys checked. What is returned is not verified: anybody between may have sent it.
func HostKeys(ctx context.Context, d Destination, o Options) ([]HostKey, error) {
	if o.Keys == nil {
		o.Keys = NewKeys()
		defer o.Keys.Close() //nolint:errcheck // only asked
	}
	t, err := resolve(d, o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d, err)
	}
	known, err := t.knownKeys()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d, err)
	}
	via, err := through(ctx, t, o, 0)
	if err != nil {
		return nil, fmt.Errorf("%s: its jump %w", d, err)
	}
	if via != nil {
		defer via.Close() //nolint:errcheck // only asked
	}
	var keys []xssh.PublicKey
	for _, algorithms := range keyKinds {
		key, err := t.show(ctx, via, algorithms)
		if err != nil {
			return nil, fmt.Errorf("%s: ask for its host keys: %w", d, err)
		}
		if key != nil {
			keys = append(keys, key)
		}
	}
	return known.judged(keys), nil
}

// show asks for one kind of key; nil when the host has none of it.
func (t *target) show(ctx context.Context, via *Client, algorithms []string) (xssh.PublicKey, error) {
	var seen xssh.PublicKey
	_, err := t.handshake(ctx, via, func() *xssh.ClientConfig {
		return &xssh.ClientConfig{
			User: t.user, HostKeyAlgorithms: algorithms,
			HostKeyCallback: func(_ string, _ net.Addr, key xssh.PublicKey) error {
				seen = key
				return errSeen
			},
		}
	})
	var none *xssh.AlgorithmNegotiationError
	if errors.Is(err, errSeen) || errors.As(err, &none) && none.What == "host key" {
		return seen, nil
	}
	return nil, err
}

// judged says of each key what the files say. A kind of key that they do not have is no change while another of the
// host's keys is known.
func (k *knownKeys) judged(keys []xssh.PublicKey) []HostKey {
	oneKnown := slices.ContainsFunc(keys, func(key xssh.PublicKey) bool { return k.verify("", nil, key) == nil })
	judged := make([]HostKey, len(keys))
	for i, key := range keys {
		err := k.verify("", nil, key)
		var unknown *UnknownKeyError
		var changed *ChangedKeyError
		switch {
		case errors.As(err, &unknown), errors.As(err, &changed) && oneKnown && !k.hasType(key.Type()):
			err = nil
		}
		judged[i] = HostKey{
			Host: k.target.written, Address: k.target.dialled(), Type: key.Type(), SHA256: xssh.FingerprintSHA256(key),
			Known: k.has(key), Refused: err, key: key, target: k.target,
		}
	}
	return judged
}

func (k *knownKeys) hasType(keyType string) bool {
	return slices.ContainsFunc(k.plain, func(known knownhosts.KnownKey) bool { return known.Key.Type() == keyType })
}

// Trust adds the keys that HostKeys returned to the person's known_hosts file, and returns its path. Keys that are there
// already stay as they are, and so does every other line. A key that is Refused is an error, and then none is added:
// the old line is for the person to remove. Of o only KnownHosts counts.
func Trust(ctx context.Context, keys []HostKey, o Options) (path string, err error) {
	added := map[string][]byte{}
	for _, key := range keys {
		if key.Refused != nil {
			return "", fmt.Errorf("trust %s: %w", key.Host, key.Refused)
		}
		if o.KnownHosts != nil {
			key.target.known = o.KnownHosts
		}
		known, err := key.target.knownKeys() // as the files are now
		if err == nil && len(key.target.known) == 0 {
			err = errors.New("the configuration names no known_hosts file")
		}
		if err != nil {
			return "", fmt.Errorf("trust %s: %w", key.Host, err)
		}
		path = key.target.known[0]
		if !known.has(key.key) {
			added[path] = append(added[path], key.line()...)
		}
	}
	for path, lines := range added {
		if err := appendLines(path, lines); err != nil {
			return "", fmt.Errorf("trust: %w", errors.Join(err, ctx.Err()))
		}
	}
	return path, nil
}

// line is the key's line in known_hosts.
func (h HostKey) line() string {
	name := knownhosts.Normalize(h.target.aliases[0])
	line := knownhosts.Line([]string{name}, h.key)
	if h.target.hashed {
		line = knownhosts.HashHostname(name) + strings.TrimPrefix(line, name)
	}
	return line + "\n"
}

// appendLines adds whole lines to a file in one write, and makes the file, for its owner alone, when there is none.
func appendLines(path string, lines []byte) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	last := []byte{'\n'}
	if info.Size() > 0 {
		if _, err := file.ReadAt(last, info.Size()-1); err != nil {
			return err
		}
	}
	if last[0] != '\n' {
		lines = append([]byte{'\n'}, lines...)
	}
	if _, err := file.Write(lines); err != nil {
		return err
	}
	return file.Sync()
}
