package ssh

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/melbahja/goph"
	xssh "golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// Passphrase is the environment variable whose value is tried on encrypted keys before anyone is asked.
const Passphrase = "NGXLAB_PASSPHRASE"

// Ask asks the person for a secret.
type Ask func(ctx context.Context, prompt string) (string, error)

// Keys are the private keys of this person, each read, and its passphrase asked for, once for all hosts, and the
// connections to ssh-agents. It is made once per program, by NewKeys, and may be used by many at the same time.
type Keys struct {
	asking chan struct{} // holds a token while somebody is asked

	mu     sync.Mutex
	files  map[string]*keyFile
	agents map[string]*agentLink // by socket
}

// NewKeys returns an empty set, which Close ends.
func NewKeys() *Keys {
	return &Keys{asking: make(chan struct{}, 1), files: map[string]*keyFile{}, agents: map[string]*agentLink{}}
}

// Close ends the connections to agents.
func (k *Keys) Close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	var errs []error
	for socket, link := range k.agents {
		errs = append(errs, link.close())
		delete(k.agents, socket)
	}
	return errors.Join(errs...)
}

// keyFile is what is known of a file with a private key. Keys.mu guards it.
type keyFile struct {
	path        string
	public      xssh.PublicKey // nil = in a format that hides it until it is decrypted
	certificate *xssh.Certificate
	signer      xssh.Signer // nil = encrypted, or only the public key is here
	encrypted   bool
	err         error // why it cannot be used
}

// file reads a key file, the first time.
func (k *Keys) file(path string) *keyFile {
	k.mu.Lock()
	defer k.mu.Unlock()
	f, known := k.files[path]
	if !known {
		f = readKey(path)
		k.files[path] = f
	}
	return f
}

// readKey takes what can be had without a passphrase: of an encrypted key, or one that only an agent holds, the public
// half, here or from the file beside it.
func readKey(path string) *keyFile {
	f := &keyFile{path: path}
	signer, err := goph.GetSigner(path, "")
	var encrypted *xssh.PassphraseMissingError
	switch {
	case err == nil:
		f.signer, f.public = signer, signer.PublicKey()
	case errors.As(err, &encrypted):
		f.encrypted, f.public = true, encrypted.PublicKey
	default:
		f.err = err
	}
	for _, beside := range []string{path, path + ".pub"} {
		if f.public == nil {
			f.public = readPublic(beside)
		}
	}
	if f.public != nil && f.signer == nil && !f.encrypted {
		f.err = errors.New("only its public key is there, and no ssh-agent holds it")
	}
	if certificate, ok := readPublic(path + "-cert.pub").(*xssh.Certificate); ok {
		f.certificate = certificate
	}
	return f
}

func readPublic(path string) xssh.PublicKey {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	key, _, _, _, err := xssh.ParseAuthorizedKey(text)
	if err != nil {
		return nil
	}
	return key
}

// state is a copy of what is known of a file now.
func (k *Keys) state(f *keyFile) keyFile {
	k.mu.Lock()
	defer k.mu.Unlock()
	return *f
}

// tries is how often a passphrase is asked for, as by ssh.
const tries = 3

// unlock decrypts a key file. Whoever comes meanwhile waits, and gets the same result.
func (k *Keys) unlock(ctx context.Context, f *keyFile, ask Ask) error {
	select {
	case k.asking <- struct{}{}:
		defer func() { <-k.asking }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if now := k.state(f); now.signer != nil || now.err != nil {
		return now.err
	}
	signer, err := decrypt(ctx, f.path, ask)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if f.signer, f.err = signer, err; err == nil {
		f.public = signer.PublicKey()
	}
	return err
}

func decrypt(ctx context.Context, path string, ask Ask) (xssh.Signer, error) {
	if passphrase := os.Getenv(Passphrase); passphrase != "" {
		if signer, err := goph.GetSigner(path, passphrase); err == nil {
			return signer, nil
		} else if ask == nil {
			return nil, fmt.Errorf("it is encrypted, and not with the passphrase in %s: %w", Passphrase, err)
		}
	}
	if ask == nil {
		return nil, fmt.Errorf("it is encrypted, and nobody can be asked for its passphrase (%s is not set)", Passphrase)
	}
	prompt := "passphrase of " + path
	var wrong error
	for range tries {
		passphrase, err := ask(ctx, prompt)
		if err != nil {
			return nil, fmt.Errorf("ask for its passphrase: %w", err)
		}
		signer, err := goph.GetSigner(path, passphrase)
		if err == nil {
			return signer, nil
		}
		wrong, prompt = err, "that was not it; passphrase of "+path
	}
	return nil, fmt.Errorf("decrypt it: %w", wrong)
}

// Bounds of an answer of an ssh-agent.
const (
	agentPatience = 15 * time.Second // to sign, for which it may wait for a person to touch a token
	listPatience  = 2 * time.Second  // to list its keys
)

// agentLink is the connection to an ssh-agent.
type agentLink struct {
	conn   *bounded // nil = not connected
	client agent.ExtendedAgent

	listing sync.Mutex
	silent  error // it did not answer in time, and is not asked again, which would delay every host
}

// bounded gives each exchange its time. It is no io.Closer, so that the agent's client sends one request at a time.
type bounded struct {
	conn net.Conn
	late atomic.Bool // an answer did not come in time, which the client's errors do not tell
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.conn.Read(p)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		b.late.Store(true)
	}
	return n, err
}

// requestIdentities asks for the keys (draft-ietf-sshm-ssh-agent, section 6.1); it stands after the message's length.
const requestIdentities = 11

func (b *bounded) Write(p []byte) (int, error) {
	patience := agentPatience
	if len(p) > 4 && p[4] == requestIdentities {
		patience = listPatience
	}
	if err := b.conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return 0, err
	}
	return b.conn.Write(p)
}

// agentSigners are the keys that the agent at a socket holds, in its order. One that gave no answer in time is not asked
// again; say is told of that, once.
func (k *Keys) agentSigners(ctx context.Context, socket string, say func(text string)) ([]xssh.Signer, error) {
	link := k.agentAt(socket)
	link.listing.Lock()
	defer link.listing.Unlock()
	if link.silent != nil {
		return nil, link.silent
	}
	signers, err := link.list(ctx, socket)
	if err == nil {
		return signers, nil
	}
	err = fmt.Errorf("ask the ssh-agent at %s: %w", socket, err)
	if ctx.Err() == nil && (errors.Is(err, context.DeadlineExceeded) || link.conn != nil && link.conn.late.Load()) {
		link.silent = err
		if say != nil {
			say(fmt.Sprintf("the ssh-agent at %s did not answer within %v: going on without its keys", socket, listPatience))
		}
	}
	return nil, err
}

// agentAt is the link to the agent at a socket, connected or not.
func (k *Keys) agentAt(socket string) *agentLink {
	k.mu.Lock()
	defer k.mu.Unlock()
	link, known := k.agents[socket]
	if !known {
		link = &agentLink{}
		k.agents[socket] = link
	}
	return link
}

// list asks for the keys, over the connection that there is, which may have ended meanwhile, or a new one.
func (l *agentLink) list(ctx context.Context, socket string) ([]xssh.Signer, error) {
	if l.conn != nil {
		signers, err := l.client.Signers()
		if err == nil || l.conn.late.Load() {
			return signers, err
		}
		_ = l.conn.conn.Close() // broken already
		l.conn = nil
	}
	ctx, cancel := context.WithTimeout(ctx, listPatience)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, err
	}
	l.conn = &bounded{conn: conn}
	l.client = agent.NewClient(l.conn)
	return l.client.Signers()
}

// close ends the connection, if there is one.
func (l *agentLink) close() error {
	l.listing.Lock()
	defer l.listing.Unlock()
	if l.conn == nil {
		return nil
	}
	return l.conn.conn.Close()
}

func sameKey(a, b xssh.PublicKey) bool {
	return a != nil && b != nil && bytes.Equal(a.Marshal(), b.Marshal())
}

// missing tells whether a file is simply not there.
func (f *keyFile) missing() bool { return errors.Is(f.err, fs.ErrNotExist) }
