package docker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/docker/docker/api/types/system"
	"github.com/docker/docker/api/types/versions"
	"github.com/docker/docker/client"
)

// api is the Docker client as this package uses it: every call and every type of its own is in the files api….go.
type api struct {
	client *client.Client
	host   string // the engine's address, for messages
	dial   func(ctx context.Context) (net.Conn, error)
}

// facts is what an engine says of itself and its machine.
type facts struct {
	id           string
	version      string // of the API agreed on
	architecture string // as uname -m has it
	appArmor     bool
	memory, swap bool // whether it can bound them
	quota, cpus  bool // CPU time, the CPUs to use
	cores        int
	memoryBytes  int64
}

// patience bounds the first contact with an engine, and single questions to it.
const patience = 10 * time.Second

// socketPath is where an engine listens on its own machine.
const socketPath = "/var/run/docker.sock"

func dialAPI(o Options) (*api, error) {
	host := o.Host
	if host == "" {
		host = os.Getenv(client.EnvOverrideHost)
	}
	if host == "" {
		host = client.DefaultDockerHost
	}
	bad := func(err error) error {
		return &Problem{Kind: BadAddress, What: fmt.Sprintf("use the Docker engine at %q", host), Err: err,
			Cure: "DOCKER_HOST is like unix:///var/run/docker.sock, tcp://host:2375 or ssh://user@host"}
	}
	at, err := url.Parse(host)
	if err != nil {
		return nil, bad(err)
	}
	a := &api{host: host}
	opts := []client.Opt{client.WithAPIVersionNegotiation()}
	switch at.Scheme {
	case "unix":
		a.dial = dialer(new(net.Dialer).DialContext, "unix", at.Path)
		opts = append(opts, client.WithHost(host), client.WithDialContext(a.any))
	case "tcp", "http", "https":
		a.dial = dialer(new(net.Dialer).DialContext, "tcp", at.Host)
		opts = append(opts, client.WithTLSClientConfigFromEnv(), client.WithHost(host))
	case "ssh":
		if o.Dial == nil {
			return nil, bad(errors.New("there is no SSH connection to go through"))
		}
		socket := at.Path
		if strings.Trim(socket, "/") == "" {
			socket = socketPath
		}
		a.dial = dialer(o.Dial, "unix", socket)
		opts = append(opts, client.WithHost("http://engine"), client.WithDialContext(a.any)) // a name for the Host header only
	default:
		return nil, bad(fmt.Errorf("the scheme %q is not known", at.Scheme))
	}
	if a.client, err = client.NewClientWithOpts(opts...); err != nil {
		return nil, bad(err)
	}
	return a, nil
}

type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

func dialer(dial dialFunc, network, address string) func(context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) { return dial(ctx, network, address) }
}

// any dials the engine, wherever the client thinks that it is.
func (a *api) any(ctx context.Context, _, _ string) (net.Conn, error) { return a.dial(ctx) }

func (a *api) close() error { return a.client.Close() }

// greet asks the engine for its version and what it can do.
func (a *api) greet(ctx context.Context) (facts, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := a.reach(ctx); err != nil {
		return facts{}, err
	}
	ping, err := a.client.Ping(ctx)
	if err != nil {
		return facts{}, &Problem{Kind: NoDaemon, What: "ask the Docker engine at " + a.host, Err: err,
			Cure: "something answers there that is no Docker engine, or it wants TLS: see DOCKER_TLS_VERIFY and DOCKER_CERT_PATH"}
	}
	a.client.NegotiateAPIVersionPing(ping)
	if v := a.client.ClientVersion(); versions.LessThan(v, oldestAPI) {
		return facts{}, &Problem{Kind: TooOld, What: fmt.Sprintf("the Docker engine at %s speaks version %s of its API, and %s is needed", a.host, v, oldestAPI),
			Cure: "install Docker 20.10 or newer there"}
	}
	info, err := a.client.Info(ctx)
	if err != nil {
		return facts{}, fmt.Errorf("ask the Docker engine at %s what it is: %w", a.host, err)
	}
	if info.OSType != "linux" {
		return facts{}, &Problem{Kind: NotLinux, What: fmt.Sprintf("the Docker engine at %s runs %s containers, and hosts are Linux ones", a.host, info.OSType),
			Cure: "switch it to Linux containers, or name another engine in DOCKER_HOST"}
	}
	return factsOf(info, a.client.ClientVersion()), nil
}

func factsOf(info system.Info, version string) facts {
	f := facts{
		id: info.ID, version: version, architecture: info.Architecture,
		memory: info.MemoryLimit, swap: info.SwapLimit, quota: info.CPUCfsQuota && info.CPUCfsPeriod, cpus: info.CPUSet,
		cores: info.NCPU, memoryBytes: info.MemTotal,
	}
	for _, option := range info.SecurityOptions {
		f.appArmor = f.appArmor || option == "name=apparmor" || strings.HasPrefix(option, "name=apparmor,")
	}
	return f
}

// reach opens a connection to the engine and closes it: what stands in the way is told apart best by the dialling.
func (a *api) reach(ctx context.Context) error {
	conn, err := a.dial(ctx)
	if err == nil {
		return conn.Close()
	}
	p := &Problem{Kind: NoDaemon, What: "reach the Docker engine at " + a.host, Err: err,
		Cure: "install Docker and start it (dockerd), or name the engine in DOCKER_HOST"}
	if errors.Is(err, fs.ErrPermission) {
		p.Kind = NoPermission
		p.Cure = "run this as root, or let the user use Docker (sudo usermod -aG docker $USER, then log in again)"
	}
	return p
}
