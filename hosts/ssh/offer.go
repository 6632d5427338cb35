package ssh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"syscall"

	xssh "golang.org/x/crypto/ssh"
)

// offer are the keys that are shown to one host, in OpenSSH's order: those of the agent that a configured file names,
// the agent's others, then the files'. An encrypted key is shown by its public half; its passphrase is asked for only
// when the host takes it, and while no connection waits for the answer.
type offer struct {
	keys   *Keys
	shown  []*shownKey
	hidden []*keyFile // encrypted in a format that hides the public half
	unused []string   // keys that cannot be used, with the reason
	locked []string   // files among them that are encrypted, or whose key only an agent has
	broken []string   // files among them that are no keys

	mu      sync.Mutex
	tried   []string
	methods []string // that the host allows
	banner  string
	failed  *shownKey // that the host takes, but could not sign
	failure error
}

// errLocked says that a key must be decrypted before it can sign.
var errLocked = errors.New("the key is encrypted")

// newOffer collects the keys for a target.
func newOffer(ctx context.Context, t *target, keys *Keys, say func(text string)) *offer {
	o := &offer{keys: keys}
	var files []*keyFile
	for _, path := range t.files {
		files = append(files, keys.file(path))
	}
	held := o.held(ctx, t, say)
	named := func(s xssh.Signer) int {
		return slices.IndexFunc(files, func(f *keyFile) bool { return sameKey(keys.state(f).public, plainKey(s.PublicKey())) })
	}
	for i := range files {
		o.addCertificate(files[i])
		o.addHeld(slices.DeleteFunc(slices.Clone(held), func(s xssh.Signer) bool { return named(s) != i }))
	}
	if !t.only {
		o.addHeld(slices.DeleteFunc(slices.Clone(held), func(s xssh.Signer) bool { return named(s) >= 0 }))
	}
	for _, f := range files {
		inAgent := slices.ContainsFunc(held, func(s xssh.Signer) bool { return sameKey(keys.state(f).public, s.PublicKey()) })
		if !inAgent {
			o.addFile(f, t.named)
		}
	}
	return o
}

// held are the agent's keys.
func (o *offer) held(ctx context.Context, t *target, say func(text string)) []xssh.Signer {
	if t.agent == "" {
		return nil
	}
	held, err := o.keys.agentSigners(ctx, t.agent, say)
	if err != nil {
		o.unused = append(o.unused, err.Error())
	}
	return held
}

func plainKey(key xssh.PublicKey) xssh.PublicKey {
	if certificate, ok := key.(*xssh.Certificate); ok {
		return certificate.Key
	}
	return key
}

func (o *offer) addHeld(held []xssh.Signer) {
	for _, s := range held {
		public := s.PublicKey()
		if parsed, err := xssh.ParsePublicKey(public.Marshal()); err == nil { // a certificate becomes one
			public = parsed
		}
		o.add(&shownKey{name: "a key of the ssh-agent", public: public, signer: s})
	}
}

// addCertificate shows the certificate beside a key file.
func (o *offer) addCertificate(f *keyFile) {
	now := o.keys.state(f)
	if now.certificate == nil || now.signer == nil {
		return
	}
	signer, err := xssh.NewCertSigner(now.certificate, now.signer)
	if err != nil {
		o.unused = append(o.unused, fmt.Sprintf("%s-cert.pub: %v", f.path, err))
		return
	}
	o.add(&shownKey{name: f.path + "-cert.pub", public: signer.PublicKey(), signer: signer})
}

func (o *offer) addFile(f *keyFile, named bool) {
	now := o.keys.state(f)
	switch {
	case now.err != nil && (named || !now.missing()):
		o.leave(f, now, now.err)
	case now.err != nil:
	case now.public == nil:
		o.hidden = append(o.hidden, f)
	default:
		o.add(&shownKey{name: f.path, public: now.public, file: f})
	}
}

// leave notes a file whose key is not shown.
func (o *offer) leave(f *keyFile, now keyFile, why error) {
	o.unused = append(o.unused, fmt.Sprintf("%s: %v", f.path, why))
	if now.encrypted || now.public != nil {
		o.locked = append(o.locked, f.path)
	} else {
		o.broken = append(o.broken, f.path)
	}
}

func (o *offer) add(k *shownKey) {
	k.offer = o
	o.shown = append(o.shown, k)
}

// signers are the keys as x/crypto takes them. The account of an earlier try is forgotten.
func (o *offer) signers() []xssh.Signer {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.tried, o.methods, o.banner, o.failed, o.failure = nil, nil, "", nil, nil
	var signers []xssh.Signer
	for _, k := range o.shown {
		signers = append(signers, k)
	}
	return signers
}

// mend does what a refused try asks for: a passphrase, or leaving out a key that cannot sign. It reports whether another
// try makes sense.
func (o *offer) mend(ctx context.Context, ask Ask) (again bool, err error) {
	o.mu.Lock()
	failed, failure, refused := o.failed, o.failure, o.methods != nil
	o.mu.Unlock()
	switch {
	case failed != nil:
		o.shown = slices.DeleteFunc(o.shown, func(k *shownKey) bool { return k == failed })
		if errors.Is(failure, errLocked) {
			return o.unlock(ctx, failed.file, ask)
		}
		o.unused = append(o.unused, fmt.Sprintf("%s: %v", failed.label(), failure))
		return true, nil
	case refused && len(o.hidden) > 0:
		f := o.hidden[0]
		o.hidden = o.hidden[1:]
		return o.unlock(ctx, f, ask)
	}
	return false, nil
}

// unlock decrypts a key and puts it first, so that the next try is not used up by keys that were refused.
func (o *offer) unlock(ctx context.Context, f *keyFile, ask Ask) (again bool, err error) {
	if err := o.keys.unlock(ctx, f, ask); ctx.Err() != nil {
		return false, err
	} else if err != nil {
		o.leave(f, o.keys.state(f), err)
		return true, nil
	}
	k := &shownKey{name: f.path, public: o.keys.state(f).public, file: f, offer: o}
	o.shown = append([]*shownKey{k}, o.shown...)
	return true, nil
}

// refusal is the error of a login that was refused, with err its cause as x/crypto tells it; nil when it is no refusal.
func (o *offer) refusal(t *target, err error) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.methods == nil || errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	e := &AuthError{
		Host: t.written, User: t.user, Tried: o.tried, Unused: o.unused, Locked: o.locked, Broken: o.broken,
		Methods: o.methods, Banner: o.banner,
	}
	if len(o.tried) > 0 && len(o.tried) < len(o.shown) || errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) {
		e.Cause = err
	}
	return e
}

// allowed notes the methods that the host allows; which comes next is x/crypto's choice.
func (o *offer) allowed(c *xssh.ClientAuthContext) (xssh.AuthMethod, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.methods = append([]string{}, c.AllowedMethods...)
	return nil, nil
}

func (o *offer) hear(banner string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.banner = banner
	return nil
}

// shownKey is a key as it is shown to a host.
type shownKey struct {
	offer  *offer
	name   string
	public xssh.PublicKey
	signer xssh.Signer // nil = the file's, once it is decrypted
	file   *keyFile
}

func (k *shownKey) label() string { return k.name + " (" + xssh.FingerprintSHA256(k.public) + ")" }

// PublicKey is asked for when the key is shown.
func (k *shownKey) PublicKey() xssh.PublicKey {
	k.offer.mu.Lock()
	defer k.offer.mu.Unlock()
	if label := k.label(); !slices.Contains(k.offer.tried, label) {
		k.offer.tried = append(k.offer.tried, label)
	}
	return k.public
}

// Algorithms are those that the key can sign with, the best first.
func (k *shownKey) Algorithms() []string {
	keyType := plainKey(k.public).Type()
	if keyType == xssh.KeyAlgoRSA {
		return append(algorithmsOf(keyType), xssh.KeyAlgoRSA) // the last for hosts that do not say what they take
	}
	return []string{keyType}
}

// Sign implements ssh.Signer.
func (k *shownKey) Sign(rand io.Reader, data []byte) (*xssh.Signature, error) {
	return k.SignWithAlgorithm(rand, data, "")
}

// SignWithAlgorithm implements ssh.AlgorithmSigner. A failure is noted: the host takes this key.
func (k *shownKey) SignWithAlgorithm(rand io.Reader, data []byte, algorithm string) (*xssh.Signature, error) {
	signature, err := k.sign(rand, data, algorithm)
	if err != nil {
		k.offer.mu.Lock()
		defer k.offer.mu.Unlock()
		k.offer.failed, k.offer.failure = k, err
	}
	return signature, err
}

func (k *shownKey) sign(rand io.Reader, data []byte, algorithm string) (*xssh.Signature, error) {
	signer := k.signer
	if signer == nil {
		signer = k.offer.keys.state(k.file).signer
	}
	if signer == nil {
		return nil, errLocked
	}
	if able, ok := signer.(xssh.AlgorithmSigner); ok && algorithm != "" {
		return able.SignWithAlgorithm(rand, data, algorithm)
	}
	return signer.Sign(rand, data)
}
