// Package docker makes labs of throwaway hosts on a Docker engine, through its API: a network, containers with sshd and
// bounds that stand in for hardware sizes, a key, the image. What carries the label of a lab is that lab's, and nothing
// else is ever touched. Only the files named api….go use the Docker client.
package docker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"ngxlab/lab"
)

// The labels of what belongs to a lab: the engine keeps them, so that a lab is found again after a crash, from any
// machine.
const (
	labelLab     = "ngxlab.lab"     // the lab's name; on containers and networks
	labelHost    = "ngxlab.host"    // the host's name
	labelMade    = "ngxlab.made"    // how the container was made: image and bounds, as text
	labelSetup   = "ngxlab.setup"   // the hash of what makes a host of a container
	labelHostKey = "ngxlab.hostkey" // its SSH host key, "ssh-ed25519 AAAA…"
	labelKey     = "ngxlab.key"     // the public key that it was made for
	labelOwner   = "ngxlab.owner"   // who made it, "ana@desk"
	labelVersion = "ngxlab.version" // of the program that made it
	labelImage   = "ngxlab.image"   // on images: how it was made
)

// oldestAPI is the oldest version of the API that is spoken: Docker 20.10's, Debian 12's.
const oldestAPI = "1.41"

// Options of Open.
type Options struct {
	// Host is the engine's address as in DOCKER_HOST (unix://, tcp://, ssh://); "" = DOCKER_HOST, else the local socket.
	// With tcp, DOCKER_TLS_VERIFY and DOCKER_CERT_PATH are as the docker command has them.
	Host string
	// Dial reaches the engine's socket on the host of an ssh:// address; network is "unix".
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Rootfs is the path of a TAR (plain, gzip, bzip2, xz or zstd as far as the engine reads them) of a root file system
	// with sshd and a shell, to make the hosts' image from; "" = as can be.
	Rootfs string
	// State is the directory for the labs' keys; "" = ngxlab/labs in the user's state directory.
	State string
	// Owner says who this user is, such as "ana@desk": what is made carries it, and a lab of another owner is left alone. ""
	// is nobody: then the lab's key alone tells.
	Owner string
	// Holder asks who holds a host, through the way into its container; the zero Holder is nobody. A lab that a campaign
	// holds is neither taken down nor made again. nil = nobody is asked.
	Holder func(ctx context.Context, d *Door, host lab.HostName) (lab.Holder, error)
	// Say is told of a step that takes more than two seconds, and of what was done otherwise than asked; nil = nobody.
	// Several may call it at the same time.
	Say func(text string)
}

// Engine is a Docker engine that answers. Its methods may be called at the same time.
type Engine struct {
	api    *api
	facts  facts
	state  string // directory of this engine's labs
	rootfs string
	owner  string
	holder func(context.Context, *Door, lab.HostName) (lab.Holder, error)
	say    func(string)
}

// Open reaches the engine and agrees on a version of its API. Errors hold a *Problem with what to do about it.
func Open(ctx context.Context, o Options) (*Engine, error) {
	a, err := dialAPI(o)
	if err != nil {
		return nil, err
	}
	f, err := a.greet(ctx)
	if err != nil {
		return nil, errors.Join(err, a.close())
	}
	state, err := stateDir(o.State)
	if err != nil {
		return nil, errors.Join(err, a.close())
	}
	id := sha256.Sum256([]byte(f.id)) // labs of one name on two engines are two
	e := &Engine{api: a, facts: f, state: filepath.Join(state, hex.EncodeToString(id[:6])), rootfs: o.Rootfs, owner: o.Owner, holder: o.Holder, say: o.Say}
	if e.say == nil {
		e.say = func(string) {}
	}
	return e, nil
}

// Close gives up the connections to the engine. Doors stay open.
func (e *Engine) Close() error { return e.api.close() }

func stateDir(asked string) (string, error) {
	if asked != "" {
		return asked, nil
	}
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "ngxlab", "labs"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find a directory for the labs' keys: %w", err)
	}
	return filepath.Join(home, ".local", "state", "ngxlab", "labs"), nil
}

// slow is how long a step takes before it is told.
const slow = 2 * time.Second

// during does a step and says what it is when it takes long. Nothing is said after it has returned.
func (e *Engine) during(what string, step func() error) error {
	said := make(chan struct{})
	timer := time.AfterFunc(slow, func() {
		defer close(said)
		e.say(what)
	})
	defer func() {
		if !timer.Stop() {
			<-said
		}
	}()
	return step()
}

// cleanUp bounds what removes the leftovers of something that failed or was cancelled.
const cleanUp = 30 * time.Second

func detached(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), cleanUp)
}
