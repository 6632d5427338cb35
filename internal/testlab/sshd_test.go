package testlab_test

import (
	"net"
	"os"
	"strconv"
	"testing"

	"golang.org/x/crypto/ssh"

	"ngxlab/internal/testlab"
)

func TestSSHServerLetsItsKeyInAndEndsWithTheTest(t *testing.T) {
	var address string
	t.Run("running", func(t *testing.T) {
		s := testlab.SSHD(t, testlab.SSHDOptions{HostKeys: []string{"ed25519", "ecdsa", "rsa"}})
		address = net.JoinHostPort(s.Address, strconv.Itoa(s.Port))
		text, err := os.ReadFile(s.Key)
		if err != nil {
			t.Fatal(err)
		}
		signer, err := ssh.ParsePrivateKey(text)
		if err != nil {
			t.Fatal(err)
		}
		client, err := ssh.Dial("tcp", address, &ssh.ClientConfig{
			User: s.User, Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)}, HostKeyAlgorithms: []string{ssh.KeyAlgoECDSA256},
			HostKeyCallback: ssh.FixedHostKey(s.HostKeys["ecdsa"]),
		})
		if err != nil {
			t.Fatal(err)
		}
		if n := len(s.Logins(t)); n != 1 {
			t.Errorf("%d logins, want 1", n)
		}
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	if conn, err := net.Dial("tcp", address); err == nil {
		t.Errorf("somebody still listens on %s", address)
		_ = conn.Close()
	}
}
