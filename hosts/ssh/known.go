package ssh

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"slices"

	xssh "golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// knownKeys are the known_hosts files of a target.
type knownKeys struct {
	target *target
	check  xssh.HostKeyCallback
	plain  []knownhosts.KnownKey // of this host
	other  bool                  // they are those of its port 22: they may vouch for another port, but that may have keys of its own
	signed bool                  // a @cert-authority signs keys of this host
}

// knownKeys reads the files that exist.
func (t *target) knownKeys() (*knownKeys, error) {
	k := &knownKeys{target: t}
	var files []string
	for _, path := range t.known {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		files = append(files, path)
	}
	var err error
	if k.check, err = knownhosts.New(files...); err != nil {
		return nil, fmt.Errorf("read the known hosts: %w", err)
	}
	authority, err := authorities(files)
	if err != nil {
		return nil, fmt.Errorf("read the known hosts: %w", err)
	}
	for _, key := range k.wanted() {
		if authority[place{key.Filename, key.Line}] {
			k.signed = true
		} else {
			k.plain = append(k.plain, key)
		}
	}
	return k, nil
}

// wanted are the entries for this host, found by asking with a key that nobody has, and notes whether they are for
// another port.
func (k *knownKeys) wanted() []knownhosts.KnownKey {
	nobodys, err := xssh.NewPublicKey(ed25519.PublicKey(make([]byte, ed25519.PublicKeySize)))
	if err != nil {
		return nil
	}
	for i, name := range k.target.aliases {
		var unknown *knownhosts.KeyError
		if err := k.check(name, nowhere, nobodys); errors.As(err, &unknown) && len(unknown.Want) > 0 {
			k.other = i > 0
			return unknown.Want
		}
	}
	return nil
}

// nowhere stands for the remote address, which counts only where no name is given.
var nowhere = &net.TCPAddr{IP: net.IPv4zero}

type place struct {
	file string
	line int
}

// authorities are the lines that begin with @cert-authority; knownhosts does not tell them apart.
func authorities(files []string) (map[place]bool, error) {
	found := map[place]bool{}
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		for i, line := range bytes.Split(text, []byte("\n")) {
			if bytes.HasPrefix(bytes.TrimLeft(line, " \t"), []byte("@cert-authority")) {
				found[place{path, i + 1}] = true
			}
		}
	}
	return found, nil
}

// keyKinds are the kinds of host keys with their signature algorithms, in the order in which they are asked for.
var keyKinds = [][]string{
	{xssh.KeyAlgoED25519}, {xssh.KeyAlgoECDSA256}, {xssh.KeyAlgoECDSA384}, {xssh.KeyAlgoECDSA521},
	{xssh.KeyAlgoRSASHA512, xssh.KeyAlgoRSASHA256},
}

// algorithmsOf are the signature algorithms for a type of key.
func algorithmsOf(keyType string) []string {
	if keyType == xssh.KeyAlgoRSA {
		return []string{xssh.KeyAlgoRSASHA512, xssh.KeyAlgoRSASHA256}
	}
	return []string{keyType}
}

// algorithms tells the host which of its keys to show: certificates where an authority is known, then the types that
// are known, then all others, so that a changed key is seen as such.
func (k *knownKeys) algorithms() []string {
	var order []string
	if k.signed {
		order = append(order, xssh.CertAlgoED25519v01, xssh.CertAlgoECDSA256v01, xssh.CertAlgoECDSA384v01,
			xssh.CertAlgoECDSA521v01, xssh.CertAlgoRSASHA512v01, xssh.CertAlgoRSASHA256v01)
	}
	for _, key := range k.plain {
		order = append(order, algorithmsOf(key.Key.Type())...)
	}
	order = append(order, slices.Concat(keyKinds...)...)
	var once []string
	for _, algorithm := range order {
		if !slices.Contains(once, algorithm) {
			once = append(once, algorithm)
		}
	}
	return once
}

// verify accepts a key that is known for the host, and one that a known authority signed for it.
func (k *knownKeys) verify(_ string, _ net.Addr, key xssh.PublicKey) error {
	t := k.target
	var refused error
	for _, name := range t.aliases {
		err := k.check(name, nowhere, key)
		var revoked *knownhosts.RevokedError
		var unknown *knownhosts.KeyError
		switch {
		case err == nil && (isCertificate(key) || k.has(key)):
			return nil
		case errors.As(err, &revoked):
			return &RevokedKeyError{Host: t.written, SHA256: xssh.FingerprintSHA256(key), Revoked: knownKey(revoked.Revoked)}
		case err != nil && !errors.As(err, &unknown):
			refused = fmt.Errorf("the host certificate of %s (%s): %w", t.written, t.dialled(), err)
		}
	}
	switch {
	case refused != nil:
		return refused
	case len(k.plain) == 0 || k.other:
		return &UnknownKeyError{Host: t.written, Address: t.dialled(), Type: key.Type(), SHA256: xssh.FingerprintSHA256(key)}
	}
	return k.changed(key)
}

func (k *knownKeys) changed(key xssh.PublicKey) error {
	e := &ChangedKeyError{Host: k.target.written, Address: k.target.dialled(), Type: key.Type(), SHA256: xssh.FingerprintSHA256(key)}
	for _, known := range k.plain {
		e.Known = append(e.Known, knownKey(known))
	}
	return e
}

// has tells whether the key itself is known: that of an authority is none of a host.
func (k *knownKeys) has(key xssh.PublicKey) bool {
	return slices.ContainsFunc(k.plain, func(known knownhosts.KnownKey) bool {
		return bytes.Equal(known.Key.Marshal(), key.Marshal())
	})
}

func isCertificate(key xssh.PublicKey) bool {
	_, is := key.(*xssh.Certificate)
	return is
}

func knownKey(k knownhosts.KnownKey) KnownKey {
	return KnownKey{Type: k.Key.Type(), SHA256: xssh.FingerprintSHA256(k.Key), File: k.Filename, Line: k.Line}
}
