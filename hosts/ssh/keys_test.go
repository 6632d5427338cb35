package ssh_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	xssh "golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"ngxlab/hosts/ssh"
	"ngxlab/internal/testlab"
)

func authorized(key xssh.PublicKey) string { return string(xssh.MarshalAuthorizedKey(key)) }

// lets makes a server let in one more key.
func lets(t *testing.T, s *testlab.SSHServer, key xssh.PublicKey) {
	t.Helper()
	file, err := os.OpenFile(filepath.Join(s.Dir, "authorized_keys"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString(authorized(key)); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}

// locked is the file of a key that is encrypted, with one round instead of 16, for the test's sake.
func locked(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "id_locked")
	tool(t, "ssh-keygen", "-q", "-t", "ed25519", "-a", "1", "-N", "open sesame", "-f", path)
	return path
}

func publicOf(t *testing.T, path string) xssh.PublicKey {
	t.Helper()
	text, err := os.ReadFile(path + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	key, _, _, _, err := xssh.ParseAuthorizedKey(text)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// newKeys are shared by the dials of a test.
func newKeys(t *testing.T) *ssh.Keys {
	t.Helper()
	keys := ssh.NewKeys()
	t.Cleanup(func() { _ = keys.Close() })
	return keys
}

func TestPassphraseIsAskedForOnceForAllHosts(t *testing.T) {
	s := testlab.SSHD(t, testlab.SSHDOptions{})
	d, o, asked := to(s), only(s), atomic.Int32{}
	d.Key = locked(t)
	lets(t, s, publicOf(t, d.Key))
	o.Keys = newKeys(t)
	o.Ask = func(_ context.Context, prompt string) (string, error) {
		asked.Add(1)
		if !strings.Contains(prompt, d.Key) {
			t.Errorf("the prompt %q does not name the key", prompt)
		}
		return "open sesame", nil
	}
	errs := make(chan error)
	for range 20 {
		go func() {
			c, err := ssh.Dial(t.Context(), d, o)
			if err == nil {
				err = c.Close()
			}
			errs <- err
		}()
	}
	for range 20 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

func TestNobodyIsAskedForAKeyThatTheHostRefuses(t *testing.T) {
	s := testlab.SSHD(t, testlab.SSHDOptions{})
	d, o := to(s), only(s)
	d.Key = locked(t)
	o.Ask = func(context.Context, string) (string, error) {
		t.Error("somebody was asked")
		return "", nil
	}
	says(t, refused(t, d, o), "refused with "+d.Key)
}

func TestPassphrasesThatAreNotToBeHadAreTold(t *testing.T) {
	s := testlab.SSHD(t, testlab.SSHDOptions{})
	d, o := to(s), only(s)
	d.Key = locked(t)
	lets(t, s, publicOf(t, d.Key))
	says(t, refused(t, d, o), d.Key, "encrypted", ssh.Passphrase)

	asked, errLeave := 0, errors.New("the person left")
	o.Ask = func(context.Context, string) (string, error) { asked++; return "wrong", nil }
	says(t, refused(t, d, o), "decrypt")
	if asked != 3 {
		t.Errorf("asked %d times for a passphrase that was wrong, want 3", asked)
	}
	o.Ask = func(context.Context, string) (string, error) { return "", errLeave }
	says(t, refused(t, d, o), errLeave.Error())
}

func TestPassphraseComesFromTheEnvironment(t *testing.T) {
	s := testlab.SSHD(t, testlab.SSHDOptions{})
	d := to(s)
	d.Key = locked(t)
	lets(t, s, publicOf(t, d.Key))
	t.Setenv(ssh.Passphrase, "open sesame")
	works(t, dial(t, d, only(s)))
}

// TestOldFormatsOfEncryptedKeysWork is of keys that hide their public half until they are decrypted.
func TestOldFormatsOfEncryptedKeysWork(t *testing.T) {
	s := testlab.SSHD(t, testlab.SSHDOptions{})
	d, o, asked := to(s), only(s), 0
	d.Key = filepath.Join(t.TempDir(), "id_old")
	tool(t, "ssh-keygen", "-q", "-t", "rsa", "-b", "2048", "-m", "PEM", "-N", "open sesame", "-f", d.Key)
	lets(t, s, publicOf(t, d.Key))
	if err := os.Remove(d.Key + ".pub"); err != nil {
		t.Fatal(err)
	}
	o.Ask = func(context.Context, string) (string, error) { asked++; return "open sesame", nil }
	works(t, dial(t, d, o))
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
}

func TestAgentIsUsedAndItsOtherKeysOnlyWhenAllowed(t *testing.T) {
	s := testlab.SSHD(t, testlab.SSHDOptions{})
	dir := t.TempDir()
	socket, named := serveAgent(t, dir, s), filepath.Join(dir, "named")
	testlab.SSHKey(t, named, "ed25519", "")
	d, o := to(s), only(s)
	d.Key, o.Keys = "", newKeys(t)
	o.Config = []string{written(t, "config", "IdentityFile "+named+"\nIdentityAgent "+socket+"\n")}
	for range 2 { // the second over the same connection to the agent
		works(t, dial(t, d, o))
	}
	o.Config = []string{written(t, "config", "IdentityFile "+named+"\nIdentityAgent "+socket+"\nIdentitiesOnly yes\n")}
	err := refused(t, d, o)
	says(t, err, "refused with "+named)
	if strings.Contains(err.Error(), "agent") {
		t.Errorf("IdentitiesOnly: another key of the agent was shown: %v", err)
	}
	o.Config = []string{written(t, "config", "IdentityFile "+s.Key+".pub\nIdentityAgent "+socket+"\nIdentitiesOnly yes\n")}
	works(t, dial(t, d, o)) // the public half names a key of the agent
}

// TestStoppedAgentDelaysHostsOnceAndIsTold has an ssh-agent that takes connections and answers nothing.
func TestStoppedAgentDelaysHostsOnceAndIsTold(t *testing.T) {
	s := testlab.SSHD(t, testlab.SSHDOptions{})
	socket := filepath.Join(t.TempDir(), "agent")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	d, o := to(s), only(s)
	d.Key, o.Keys = "", newKeys(t)
	o.Config = []string{written(t, "config", "IdentityFile "+s.Key+"\nIdentityAgent "+socket+"\n")}
	said := make(chan string, 10)
	o.Say = func(text string) { said <- text }
	began := time.Now()
	errs := make(chan error)
	for range 8 {
		go func() {
			c, err := ssh.Dial(t.Context(), d, o)
			if err == nil {
				err = c.Close()
			}
			errs <- err
		}()
	}
	for range 8 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if took := time.Since(began); took > 6*time.Second {
		t.Errorf("eight logins took %v", took)
	}
	began = time.Now()
	works(t, dial(t, d, o))
	if took := time.Since(began); took > 1900*time.Millisecond {
		t.Errorf("one more took %v", took)
	}
	if len(said) != 1 || !strings.Contains(<-said, socket) {
		t.Errorf("told %d times", len(said))
	}
}

func TestAgentThatWasStartedAnewIsAskedAgain(t *testing.T) {
	s := testlab.SSHD(t, testlab.SSHDOptions{})
	dir := t.TempDir()
	d, o := to(s), only(s)
	d.Key, o.Keys = "", newKeys(t)
	socket := filepath.Join(dir, "agent")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	o.Config = []string{written(t, "config", "IdentityFile none\nIdentityAgent "+socket+"\n")}
	go func() {
		if c, err := l.Accept(); err == nil {
			_, _ = c.Read(make([]byte, 5))
			_ = c.Close()
		}
	}()
	says(t, refused(t, d, o), "ask the ssh-agent at "+socket)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	serveAgent(t, dir, s)
	works(t, dial(t, d, o))
}

func TestKeyFilesThatAreNoneAreToldApartFromLockedOnes(t *testing.T) {
	s := testlab.SSHD(t, testlab.SSHDOptions{})
	missing, noKey, closed := filepath.Join(t.TempDir(), "missing"), written(t, "no-key", "Dear diary\n"), locked(t)
	lets(t, s, publicOf(t, closed))
	for key, isLocked := range map[string]bool{missing: false, noKey: false, closed: true} {
		d, o := to(s), only(s)
		d.Key = key
		var refusal *ssh.AuthError
		if err := refused(t, d, o); !errors.As(err, &refusal) {
			t.Errorf("%s: %v", key, err)
			continue
		}
		if slices.Contains(refusal.Locked, key) != isLocked || slices.Contains(refusal.Broken, key) == isLocked {
			t.Errorf("%s: locked %v, broken %v", key, refusal.Locked, refusal.Broken)
		}
	}
}

// serveAgent is an ssh-agent that holds the server's key, and another before it.
func serveAgent(t *testing.T, dir string, s *testlab.SSHServer) (socket string) {
	t.Helper()
	keyring := agent.NewKeyring()
	other := filepath.Join(dir, "other")
	testlab.SSHKey(t, other, "rsa", "")
	for _, path := range []string{other, s.Key} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		private, err := xssh.ParseRawPrivateKey(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := keyring.Add(agent.AddedKey{PrivateKey: private}); err != nil {
			t.Fatal(err)
		}
	}
	socket = filepath.Join(dir, "agent")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _ = agent.ServeAgent(keyring, c) }()
		}
	}()
	return socket
}

func TestCertificatesBesideKeysAreUsed(t *testing.T) {
	dir := t.TempDir()
	ca := filepath.Join(dir, "ca")
	testlab.SSHKey(t, ca, "ed25519", "")
	s := testlab.SSHD(t, testlab.SSHDOptions{Config: []string{"TrustedUserCAKeys " + ca + ".pub"}})
	d := to(s)
	d.Key = filepath.Join(dir, "id")
	testlab.SSHKey(t, d.Key, "ed25519", "")
	says(t, refused(t, d, only(s)), "refused with "+d.Key)
	tool(t, "ssh-keygen", "-q", "-s", ca, "-I", "test", "-n", s.User, d.Key+".pub")
	works(t, dial(t, d, only(s)))
}

func TestRefusedLoginTellsUserKeysAndMethods(t *testing.T) {
	s := testlab.SSHD(t, testlab.SSHDOptions{Config: []string{"PasswordAuthentication yes"}})
	d := to(s)
	d.Key = filepath.Join(t.TempDir(), "id_other")
	key := testlab.SSHKey(t, d.Key, "ed25519", "")
	err := refused(t, d, only(s))
	says(t, err, "as "+s.User, d.Key, xssh.FingerprintSHA256(key), "publickey", "password")
	var auth *ssh.AuthError
	if !errors.As(err, &auth) || auth.User != s.User || len(auth.Tried) != 1 || auth.Host != s.Address {
		t.Errorf("the error is %#v", err)
	}
	d.User = "no-such-user"
	says(t, refused(t, d, only(s)), "as no-such-user")
	d.Key += "-that-is-not-there"
	says(t, refused(t, d, only(s)), "no key to try", d.Key, "no such file")
}

func TestPasswordsAreSaidToBeUnsupported(t *testing.T) {
	s := testlab.SSHD(t, testlab.SSHDOptions{Config: []string{"PasswordAuthentication yes", "PubkeyAuthentication no"}})
	says(t, refused(t, to(s), only(s)), "allows password", "keys only")
}

func TestKeysThatTheHostEndsTheLoginForAreTold(t *testing.T) {
	s := testlab.SSHD(t, testlab.SSHDOptions{Config: []string{"MaxAuthTries 2"}})
	d, config := to(s), ""
	d.Key = ""
	for i := range 4 {
		path := filepath.Join(t.TempDir(), fmt.Sprint("id", i))
		testlab.SSHKey(t, path, "ed25519", "")
		config += "IdentityFile " + path + "\n"
	}
	o := only(s)
	o.Config = []string{written(t, "config", config)}
	t.Setenv("SSH_AUTH_SOCK", "")
	says(t, refused(t, d, o), "id0", "ended early", "oo many authentication failures")
}
