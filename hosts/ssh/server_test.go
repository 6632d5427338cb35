package ssh_test

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	xssh "golang.org/x/crypto/ssh"

	"ngxlab/agent"
	"ngxlab/hosts/ssh"
	"ngxlab/internal/testlab"
)

// serverDir tells this test binary, started again, to be an SSH server that keeps its agents' state there.
const serverDir = "NGXLAB_TEST_SSH_SERVER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(serverDir); dir != "" {
		if err := serve(dir); err != nil {
			panic(err)
		}
		return
	}
	for _, name := range []string{"SSH_AUTH_SOCK", ssh.Passphrase} { // of whoever runs the tests
		if err := os.Unsetenv(name); err != nil {
			panic(err)
		}
	}
	m.Run()
}

// notAnAgent is what clients of this server take for the agent's binary: the server serves agents itself.
const notAnAgent = "no program\n"

// serve is a server with a host behind every connection, each with an agent in this process. It says its port and host
// key, and ends with its standard input.
func serve(dir string) error {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	signer, err := xssh.NewSignerFromKey(private)
	if err != nil {
		return err
	}
	config := &xssh.ServerConfig{
		PublicKeyCallback: func(xssh.ConnMetadata, xssh.PublicKey) (*xssh.Permissions, error) { return nil, nil },
	}
	config.AddHostKey(signer)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(os.Stdout, "%d %s", l.Addr().(*net.TCPAddr).Port, xssh.MarshalAuthorizedKey(signer.PublicKey())); err != nil {
		return err
	}
	go func() {
		for i := 0; ; i++ {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go serveHost(conn, config, filepath.Join(dir, fmt.Sprint(i)))
		}
	}()
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

func serveHost(conn net.Conn, config *xssh.ServerConfig, dir string) {
	c, channels, requests, err := xssh.NewServerConn(conn, config)
	if err != nil {
		return
	}
	go xssh.DiscardRequests(requests)
	for offered := range channels {
		channel, requests, err := offered.Accept()
		if err != nil {
			continue
		}
		go func() {
			for r := range requests {
				_ = r.Reply(r.Type == "exec", nil)
				if r.Type == "exec" {
					go attend(channel, dir)
				}
			}
		}()
	}
	_ = c.Close()
}

func attend(channel xssh.Channel, dir string) {
	sum := sha256.Sum256([]byte(notAnAgent))
	err := agent.Serve(context.Background(), &program{Channel: channel}, agent.Options{Dir: dir, Hash: hex.EncodeToString(sum[:])})
	code := byte(0)
	if err != nil {
		code = 1
	}
	_, _ = channel.SendRequest("exit-status", false, []byte{0, 0, 0, code})
	_ = channel.Close()
}

// program is a channel as a program has it: closing its standard output does not end it.
type program struct {
	xssh.Channel
	writing sync.Mutex // x/crypto has Write and CloseWrite race
}

func (p *program) Write(b []byte) (int, error) {
	p.writing.Lock()
	defer p.writing.Unlock()
	return p.Channel.Write(b)
}

func (p *program) Close() error {
	p.writing.Lock()
	defer p.writing.Unlock()
	return p.CloseWrite()
}

// crowd is a server in another process that is as many hosts as there are connections.
func crowd(t testing.TB) (d ssh.Destination, o ssh.Options, agentPath string) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cmd := exec.CommandContext(context.Background(), exe)
	cmd.Env = append(os.Environ(), serverDir+"="+filepath.Join(dir, "hosts"))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	port, key, _ := strings.Cut(line, " ")
	d = ssh.Destination{Address: "127.0.0.1", User: "crowd", Key: filepath.Join(dir, "client")}
	if _, err := fmt.Sscan(port, &d.Port); err != nil {
		t.Fatal(err)
	}
	testlab.SSHKey(t, d.Key, "ed25519", "")
	o = knowing(t, "[127.0.0.1]:"+port+" "+key)
	o.Keys = ssh.NewKeys()
	return d, o, written(t, "agent", notAnAgent)
}
