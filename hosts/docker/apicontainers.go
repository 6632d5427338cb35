package docker

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/pkg/stdcopy"

	"ngxlab/hosts"
	"ngxlab/lab"
)

// spec is how a container is to be made.
type spec struct {
	name, hostname string
	image          string
	command        []string
	network        string // "none" has no network
	labels         map[string]string
	bounds         lab.DockerHost
	readonly       []string // paths; nil = the engine's own list
	unconfined     bool     // without the engine's AppArmor profile
}

// box is a container as the engine tells of it.
type box struct {
	id, name string
	image    string
	state    string // "running", "paused", "exited", "created", "dead" …
	labels   map[string]string
	address  map[string]string // network → address, "" without
	created  time.Time
	started  time.Time // the last time; zero = never, or not asked
	exit     int
	oom      bool // ended for want of memory
}

// make makes a container that is not running and returns its id and what the engine warns of. An end of ctx does not cut
// it short: the engine would go on, and the container would be there only after its leftovers were looked for.
func (a *api) make(ctx context.Context, s spec) (string, []string, error) {
	stop := 2
	host := &container.HostConfig{
		NetworkMode:   container.NetworkMode(s.network),
		RestartPolicy: container.RestartPolicy{Name: container.RestartPolicyDisabled},
		CapAdd:        []string{"NET_ADMIN"},
		ReadonlyPaths: s.readonly,
		Resources: container.Resources{
			NanoCPUs: int64(s.bounds.CPUs * 1e9), CpusetCpus: s.bounds.CPUSet,
			Memory: s.bounds.MemoryBytes, MemorySwap: s.bounds.MemoryBytes, // together: no swap
		},
	}
	if n := int64(s.bounds.Nofile); n > 0 {
		host.Ulimits = []*container.Ulimit{{Name: "nofile", Soft: n, Hard: n}}
	}
	if s.unconfined {
		host.SecurityOpt = []string{"apparmor=unconfined"}
	}
	config := &container.Config{
		Hostname: s.hostname, Image: s.image, Entrypoint: s.command, Labels: s.labels, User: "0:0", StopTimeout: &stop, StopSignal: "SIGTERM",
	}
	var nets *network.NetworkingConfig
	if host.NetworkMode.IsUserDefined() {
		nets = &network.NetworkingConfig{EndpointsConfig: map[string]*network.EndpointSettings{s.network: {Aliases: []string{s.hostname}}}}
	}
	ctx, cancel := detached(ctx)
	defer cancel()
	made, err := a.client.ContainerCreate(ctx, config, host, nets, nil, s.name)
	return made.ID, made.Warnings, err
}

func (a *api) start(ctx context.Context, id string) error {
	return a.client.ContainerStart(ctx, id, container.StartOptions{})
}

func (a *api) unpause(ctx context.Context, id string) error {
	return a.client.ContainerUnpause(ctx, id)
}

func (a *api) rename(ctx context.Context, id, name string) error {
	return a.client.ContainerRename(ctx, id, name)
}

// remove removes a container with all that runs in it; one that is gone already is no error.
func (a *api) remove(ctx context.Context, id string) error {
	err := a.client.ContainerRemove(ctx, id, container.RemoveOptions{Force: true, RemoveVolumes: true})
	if errdefs.IsConflict(err) { // being removed by somebody else
		gone, fails := a.client.ContainerWait(ctx, id, container.WaitConditionRemoved)
		select {
		case <-gone:
			return nil
		case err = <-fails:
		}
	}
	if errdefs.IsNotFound(err) {
		return nil
	}
	return err
}

// unpack unpacks a TAR into a directory of a container, running or not.
func (a *api) unpack(ctx context.Context, id, dir string, tar io.Reader) error {
	return a.client.CopyToContainer(ctx, id, dir, tar, container.CopyToContainerOptions{})
}

// modified tells when a file of a container was last written; it reports false when there is none.
func (a *api) modified(ctx context.Context, id, path string) (time.Time, bool, error) {
	stat, err := a.client.ContainerStatPath(ctx, id, path)
	if errdefs.IsNotFound(err) {
		return time.Time{}, false, nil
	}
	return stat.Mtime, err == nil, err
}

// inspect reports false when there is no such container.
func (a *api) inspect(ctx context.Context, idOrName string) (box, bool, error) {
	c, err := a.client.ContainerInspect(ctx, idOrName)
	if errdefs.IsNotFound(err) {
		return box{}, false, nil
	}
	if err != nil {
		return box{}, false, err
	}
	b := box{
		id: c.ID, name: strings.TrimPrefix(c.Name, "/"), image: c.Config.Image, state: c.State.Status, labels: c.Config.Labels,
		address: map[string]string{}, exit: c.State.ExitCode, oom: c.State.OOMKilled,
	}
	b.created, _ = time.Parse(time.RFC3339Nano, c.Created)
	b.started, _ = time.Parse(time.RFC3339Nano, c.State.StartedAt)
	for name, endpoint := range c.NetworkSettings.Networks {
		b.address[name] = endpoint.IPAddress
	}
	return b, true, nil
}

// boxes returns the containers that have all of the labels; those with an empty value are only to be there.
func (a *api) boxes(ctx context.Context, labels map[string]string) ([]box, error) {
	list, err := a.client.ContainerList(ctx, container.ListOptions{All: true, Filters: withLabels(labels)})
	if err != nil {
		return nil, fmt.Errorf("list the containers: %w", err)
	}
	var boxes []box
	for _, c := range list {
		b := box{id: c.ID, image: c.Image, state: c.State, labels: c.Labels, address: map[string]string{}, created: time.Unix(c.Created, 0)}
		if len(c.Names) > 0 {
			b.name = strings.TrimPrefix(c.Names[0], "/")
		}
		if c.NetworkSettings != nil {
			for name, endpoint := range c.NetworkSettings.Networks {
				b.address[name] = endpoint.IPAddress
			}
		}
		boxes = append(boxes, b)
	}
	slices.SortFunc(boxes, func(a, b box) int { return strings.Compare(a.name, b.name) })
	return boxes, nil
}

func withLabels(labels map[string]string) filters.Args {
	args := filters.NewArgs()
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		label := name
		if v := labels[name]; v != "" {
			label += "=" + v
		}
		args.Add("label", label)
	}
	return args
}

// logs returns the last lines that a container printed.
func (a *api) logs(ctx context.Context, id string) string {
	r, err := a.client.ContainerLogs(ctx, id, container.LogsOptions{ShowStdout: true, ShowStderr: true, Tail: "10"})
	if err != nil {
		return ""
	}
	defer r.Close() //nolint:errcheck // only read
	var text bytes.Buffer
	_, _ = stdcopy.StdCopy(&text, &text, io.LimitReader(r, 64<<10))
	return strings.TrimSpace(text.String())
}

// stream is a process in a container with its ends at hand: what it writes comes in frames unless it has a terminal.
type stream struct {
	exec     string // its id
	hijacked types.HijackedResponse
	tty      bool
}

// exec starts a process in a container, as root.
func (a *api) exec(ctx context.Context, id string, command []string, tty bool) (*stream, error) {
	made, err := a.client.ContainerExecCreate(ctx, id, container.ExecOptions{
		User: "0:0", Tty: tty, AttachStdin: true, AttachStdout: true, AttachStderr: true, Cmd: command,
	})
	if err != nil {
		return nil, err
	}
	attach := func() (types.HijackedResponse, error) {
		return a.client.ContainerExecAttach(ctx, made.ID, container.ExecAttachOptions{Tty: tty})
	}
	hijacked, err := hosts.Await(ctx, attach, func(late types.HijackedResponse) { late.Close() })
	if err != nil {
		return nil, err
	}
	return &stream{exec: made.ID, hijacked: hijacked, tty: tty}, nil
}

// copy copies what the process writes until it has closed both of its outputs, or the connection ends.
func (s *stream) copy(stdout, stderr io.Writer) error {
	var err error
	if s.tty {
		_, err = io.Copy(stdout, s.hijacked.Reader)
	} else {
		_, err = stdcopy.StdCopy(stdout, stderr, s.hijacked.Reader)
	}
	return err
}

func (s *stream) write(p []byte) (int, error) { return s.hijacked.Conn.Write(p) }
func (s *stream) closeWrite() error           { return s.hijacked.CloseWrite() }
func (s *stream) close()                      { s.hijacked.Close() }

// ended reports whether a process started by exec has ended, and its exit code.
func (a *api) ended(ctx context.Context, exec string) (bool, int, error) {
	i, err := a.client.ContainerExecInspect(ctx, exec)
	return err == nil && !i.Running, i.ExitCode, err
}
