package docker

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"
)

// keys are a lab's key and its known hosts, in a directory of the user's own.
type keys struct {
	dir    string
	public string // "ssh-ed25519 AAAA…"
}

func (k keys) private() string    { return filepath.Join(k.dir, "id_ed25519") }
func (k keys) knownHosts() string { return filepath.Join(k.dir, "known_hosts") }
func (k keys) remove() error      { return os.RemoveAll(k.dir) }

func (e *Engine) labDir(name string) string { return filepath.Join(e.state, name) }

// openKeys reads the key in dir, or makes one, and reports whether it did.
func openKeys(dir string) (keys, bool, error) {
	k, err := readKeys(dir)
	if errors.Is(err, fs.ErrNotExist) {
		err = k.make()
		return k, err == nil, err
	}
	return k, false, err
}

// readKeys reads the key in dir; the error is fs.ErrNotExist when there is none.
func readKeys(dir string) (keys, error) {
	k := keys{dir: dir}
	content, err := os.ReadFile(k.private())
	if err != nil {
		return k, fmt.Errorf("read the lab's key: %w", err)
	}
	signer, err := ssh.ParsePrivateKey(content)
	if err != nil {
		return k, fmt.Errorf("read the lab's key %s: %w", k.private(), err)
	}
	k.public = publicText(signer.PublicKey())
	return k, nil
}

func (k *keys) make() error {
	private, public, err := newKey()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(k.dir, 0o700); err != nil {
		return fmt.Errorf("make a directory for the lab's key: %w", err)
	}
	k.public = public
	return write(k.private(), private)
}

// write writes a file for its owner's eyes, whole or not at all.
func write(path string, content []byte) error {
	temporary := path + ".new"
	err := os.WriteFile(temporary, content, 0o600)
	if err == nil {
		err = os.Rename(temporary, path)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(temporary))
	}
	return nil
}

// know writes the host keys of the lab's hosts that have an address, under that address and the host's name.
func (k keys) know(hosts []Container) error {
	var text bytes.Buffer
	for _, c := range hosts {
		if c.Address != "" && c.HostKey != "" {
			fmt.Fprintf(&text, "%s,%s %s\n", c.Address, c.Host, c.HostKey)
		}
	}
	return write(k.knownHosts(), text.Bytes())
}

// newKey makes an ed25519 key: the private one as OpenSSH keeps it, the public one as in authorized_keys.
func newKey() (private []byte, public string, err error) {
	pub, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, "", fmt.Errorf("make a key: %w", err)
	}
	block, err := ssh.MarshalPrivateKey(key, "ngxlab")
	if err != nil {
		return nil, "", fmt.Errorf("write a key: %w", err)
	}
	sshKey, err := ssh.NewPublicKey(pub)
	if err != nil {
		return nil, "", fmt.Errorf("write a key: %w", err)
	}
	return pem.EncodeToMemory(block), publicText(sshKey), nil
}

func publicText(key ssh.PublicKey) string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
}

// lock keeps other processes of this user from making or removing what has the name; they wait. Its file goes with it.
func (e *Engine) lock(ctx context.Context, name string) (unlock func(), err error) {
	if err := os.MkdirAll(e.state, 0o700); err != nil {
		return nil, fmt.Errorf("make a directory for the labs' keys: %w", err)
	}
	path := filepath.Join(e.state, ".lock-"+name)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		file, err := tryLock(path)
		if err != nil {
			return nil, fmt.Errorf("lock %s: %w", name, err)
		}
		if file != nil {
			return func() { _, _ = os.Remove(path), file.Close() }, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for another command that holds %s: %w", path, context.Cause(ctx))
		case <-tick.C:
		}
	}
}

// tryLock returns nil when another has the lock, or had it and removed the file.
func tryLock(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		have, failed := file.Stat()
		there, gone := os.Stat(path)
		if failed == nil && gone == nil && os.SameFile(have, there) {
			return file, nil
		}
		err = failed
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = nil
	}
	return nil, errors.Join(err, file.Close())
}
