package ssh_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	xssh "golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"ngxlab/hosts/ssh"
	"ngxlab/internal/testlab"
)

// named is the server's name in known_hosts.
func named(s *testlab.SSHServer) string {
	return knownhosts.Normalize(fmt.Sprintf("[%s]:%d", s.Address, s.Port))
}

// stranger is the key of no server here.
func stranger(t *testing.T, kind string) xssh.PublicKey {
	t.Helper()
	return testlab.SSHKey(t, filepath.Join(t.TempDir(), "stranger"), kind, "")
}

// knowing are options with one known_hosts file of that text.
func knowing(t testing.TB, text string) ssh.Options {
	o := only()
	o.KnownHosts = []string{written(t, "known_hosts", text)}
	return o
}

func TestUnknownHostIsRefusedWithItsFingerprint(t *testing.T) {
	s := testlab.SSHD(t, testlab.SSHDOptions{})
	print := xssh.FingerprintSHA256(s.HostKeys["ed25519"])
	for what, o := range map[string]ssh.Options{
		"no file":           {Config: []string{}, KnownHosts: []string{filepath.Join(t.TempDir(), "none")}},
		"another host":      knowing(t, "elsewhere "+authorized(s.HostKeys["ed25519"])),
		"another port":      knowing(t, "["+s.Address+"]:1 "+authorized(s.HostKeys["ed25519"])),
		"only its port 22":  knowing(t, s.Address+" "+authorized(stranger(t, "ed25519"))),
		"key of a CA":       knowing(t, "@cert-authority "+named(s)+" "+authorized(s.HostKeys["ed25519"])),
		"an unreadable one": knowing(t, "elsewhere "+authorized(s.HostKeys["ed25519"])+named(s)+" ssh-ed25519 garbage\n"),
	} {
		err := refused(t, to(s), o)
		var unknown *ssh.UnknownKeyError
		if !errors.As(err, &unknown) || unknown.Host != s.Address || unknown.SHA256 != print || unknown.Type != "ssh-ed25519" {
			t.Errorf("%s: %v, want an *UnknownKeyError with %s", what, err, print)
		}
		says(t, err, print)
	}
}

func TestChangedHostKeyIsRefusedWithBothFingerprints(t *testing.T) {
	s := testlab.SSHD(t, testlab.SSHDOptions{})
	shown := xssh.FingerprintSHA256(s.HostKeys["ed25519"])
	for _, kind := range []string{"ed25519", "rsa"} { // of the same kind, and of one that the server does not have
		old := stranger(t, kind)
		o := knowing(t, "# mine\n"+named(s)+" "+authorized(old))
		err := refused(t, to(s), o)
		says(t, err, shown, xssh.FingerprintSHA256(old), o.KnownHosts[0]+":2", "changed")
		var changed *ssh.ChangedKeyError
		if !errors.As(err, &changed) || changed.SHA256 != shown || len(changed.Known) != 1 || changed.Known[0].Line != 2 {
			t.Errorf("%s: the error is %#v", kind, err)
		}
	}
}

func TestKnownHostsAreReadAsOpenSSHReadsThem(t *testing.T) {
	s := testlab.SSHD(t, testlab.SSHDOptions{HostKeys: []string{"ed25519", "rsa"}})
	key := authorized(s.HostKeys["ed25519"])
	for what, text := range map[string]string{
		"hashed":       knownhosts.HashHostname(named(s)) + " " + key,
		"without port": s.Address + " " + key,
		"a pattern":    fmt.Sprintf("!elsewhere,[127.0.0.?]:%d ", s.Port) + key,
		"old and new":  named(s) + " " + authorized(stranger(t, "ed25519")) + named(s) + " " + key,
		"no last line": named(s) + " " + strings.TrimSpace(key),
	} {
		c, err := ssh.Dial(t.Context(), to(s), knowing(t, text))
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		_ = c.Close()
	}
	o := knowing(t, "alias "+key)
	o.Config = []string{written(t, "config", "HostKeyAlias alias\n")}
	works(t, dial(t, to(s), o))
	o = knowing(t, "elsewhere "+key)
	o.KnownHosts = append(o.KnownHosts, s.KnownHosts)
	works(t, dial(t, to(s), o)) // the second file
}

func TestRevokedHostKeyIsRefused(t *testing.T) {
	s := testlab.SSHD(t, testlab.SSHDOptions{})
	key := authorized(s.HostKeys["ed25519"])
	err := refused(t, to(s), knowing(t, "@revoked * "+key+named(s)+" "+key))
	var revoked *ssh.RevokedKeyError
	if !errors.As(err, &revoked) || revoked.Revoked.Line != 1 {
		t.Errorf("the error is %v", err)
	}
}

func TestHostCertificateOfAKnownAuthorityIsAccepted(t *testing.T) {
	dir := t.TempDir()
	ca, host := filepath.Join(dir, "ca"), filepath.Join(dir, "host")
	authority := testlab.SSHKey(t, ca, "ed25519", "")
	testlab.SSHKey(t, host, "ed25519", "")
	tool(t, "ssh-keygen", "-q", "-s", ca, "-h", "-I", "test", "-n", "127.0.0.1", host+".pub")
	s := testlab.SSHD(t, testlab.SSHDOptions{
		HostKeys: []string{"ecdsa"}, Config: []string{"HostKey " + host, "HostCertificate " + host + "-cert.pub"},
	})
	works(t, dial(t, to(s), knowing(t, "@cert-authority 127.0.0.*,"+named(s)+" "+authorized(authority))))
	var unknown *ssh.UnknownKeyError
	if err := refused(t, to(s), knowing(t, "@cert-authority elsewhere "+authorized(authority))); !errors.As(err, &unknown) {
		t.Errorf("an authority for another host: %v", err)
	}
}

func TestTrustedHostIsKnownFromThenOn(t *testing.T) {
	s := testlab.SSHD(t, testlab.SSHDOptions{HostKeys: []string{"ed25519", "ecdsa", "rsa"}})
	o, path := only(), filepath.Join(t.TempDir(), "ssh", "known_hosts")
	o.KnownHosts = []string{path}
	keys := hostKeys(t, s, o)
	if len(keys) != 3 {
		t.Fatalf("%d keys, want 3: %v", len(keys), keys)
	}
	for _, key := range keys {
		if key.Known || key.Refused != nil || key.Host != s.Address || !strings.HasPrefix(key.SHA256, "SHA256:") {
			t.Errorf("the key is %+v", key)
		}
	}
	for range 2 { // again changes nothing
		if got, err := ssh.Trust(t.Context(), keys, o); err != nil || got != path {
			t.Fatalf("%q, %v", got, err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil || strings.Count(string(text), "\n") != 3 {
		t.Errorf("known_hosts holds %q, %v", text, err)
	}
	for file, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v, want %v", file, info.Mode(), err, want)
		}
	}
	works(t, dial(t, to(s), o))
	for _, key := range hostKeys(t, s, o) {
		if !key.Known {
			t.Errorf("the key is %+v", key)
		}
	}
	if out := tool(t, "ssh-keygen", "-F", named(s), "-f", path); strings.Count(out, "found: line") != 3 {
		t.Errorf("ssh-keygen finds %s", out)
	}
}

func hostKeys(t *testing.T, s *testlab.SSHServer, o ssh.Options) []ssh.HostKey {
	t.Helper()
	keys, err := ssh.HostKeys(t.Context(), to(s), o)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func TestAnotherPortOfAKnownHostCanBeTrusted(t *testing.T) {
	s := testlab.SSHD(t, testlab.SSHDOptions{})
	o := knowing(t, s.Address+" "+authorized(stranger(t, "ed25519")))
	if _, err := ssh.Trust(t.Context(), hostKeys(t, s, o), o); err != nil {
		t.Fatal(err)
	}
	works(t, dial(t, to(s), o))
}

func TestTrustKeepsEveryOtherLine(t *testing.T) {
	s := testlab.SSHD(t, testlab.SSHDOptions{})
	old := "# mine\nelsewhere " + strings.TrimSpace(authorized(s.HostKeys["ed25519"])) // without an end of line
	o := knowing(t, old)
	o.Config = []string{written(t, "config", "HashKnownHosts yes\n")}
	if _, err := ssh.Trust(t.Context(), hostKeys(t, s, o), o); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(o.KnownHosts[0])
	if err != nil || !strings.HasPrefix(string(text), old+"\n|1|") {
		t.Errorf("known_hosts holds %q, %v", text, err)
	}
	works(t, dial(t, to(s), o))
}

func TestChangedKeyIsNotTrusted(t *testing.T) {
	s := testlab.SSHD(t, testlab.SSHDOptions{HostKeys: []string{"ed25519", "rsa"}})
	for _, kind := range []string{"ed25519", "ecdsa"} {
		o := knowing(t, named(s)+" "+authorized(stranger(t, kind)))
		before, err := os.ReadFile(o.KnownHosts[0])
		if err != nil {
			t.Fatal(err)
		}
		_, err = ssh.Trust(t.Context(), hostKeys(t, s, o), o)
		var changed *ssh.ChangedKeyError
		if !errors.As(err, &changed) {
			t.Errorf("%s: %v", kind, err)
		}
		if after, err := os.ReadFile(o.KnownHosts[0]); err != nil || string(after) != string(before) {
			t.Errorf("known_hosts became %q, %v", after, err)
		}
	}
	o := knowing(t, named(s)+" "+authorized(s.HostKeys["ed25519"]))
	keys := hostKeys(t, s, o)
	if _, err := ssh.Trust(t.Context(), keys, o); err != nil {
		t.Errorf("one more kind of key of a known host: %v", err)
	}
}

func TestKnownHostsFilesAndAliasOfTheConfigurationAreUsed(t *testing.T) {
	s := testlab.SSHD(t, testlab.SSHDOptions{})
	empty, known := written(t, "empty", ""), written(t, "known_hosts", "the-alias "+authorized(s.HostKeys["ed25519"]))
	o := ssh.Options{Config: []string{written(t, "config", fmt.Sprintf("Match host %s\nHostKeyAlias the-alias\nUserKnownHostsFile %s\nGlobalKnownHostsFile %s\n", s.Address, empty, known))}}
	works(t, dial(t, to(s), o))
	o.Config = []string{written(t, "config", fmt.Sprintf("HostKeyAlias other\nUserKnownHostsFile %s\nGlobalKnownHostsFile %s\n", empty, known))}
	var unknown *ssh.UnknownKeyError
	if err := refused(t, to(s), o); !errors.As(err, &unknown) {
		t.Errorf("under another alias: %v", err)
	}
}
