// Package hold holds TCP connections to a web server open: idle ones, on which one request was done, and active
// ones, on which a request is in progress.
//
// The connections are held by processes of their own (the agent's binary again), because a process has a bounded
// number of descriptors, and so that the memory for them is counted apart.
package hold

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"ngxlab/lab"
)

// spare is how many descriptors of a holder are not connections: its pipes, epoll, and what the runtime opens.
const spare = 32

// How long a holder may take to end after its input is closed, which for 20,000 connections is some tenths of a second;
// when the whole agent ends, within seconds, there is less time.
const (
	endTimeout   = 10 * time.Second
	closeTimeout = time.Second
)

// Holder holds connections for one agent. Its methods may be called at the same time; calls of Hold take turns.
type Holder struct {
	Self string   // path of the binary whose command "hold" is Main
	Args []string // before "hold", usually none

	mu       sync.Mutex
	asked    lab.Hold // what the holders were started for
	holders  []*holder
	finished chan struct{} // ends the thread that the holders were started from
}

// Hold opens or closes connections until what lab.Hold asks for is held, each tried once. Held.Failed counts the
// connections that could not be opened in this call, and those that the server closed since the call before; of
// these, Error is the first. It fails, and ends the holders, when a holder cannot be started or dies, or ctx is
// cancelled. Another server, kind, number of processes or set of sources ends the holders before.
func (h *Holder) Hold(ctx context.Context, want lab.Hold) (lab.Held, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	start := time.Now()
	if want.Connections <= 0 {
		return lab.Held{TookS: time.Since(start).Seconds()}, h.end(endTimeout)
	}
	if want.TLS {
		return try(ctx, want)
	}
	if err := h.prepare(ctx, want); err != nil {
		return lab.Held{}, errors.Join(err, h.end(endTimeout))
	}
	held, err := h.fill(ctx, want.Connections)
	if err != nil {
		return lab.Held{}, errors.Join(err, h.end(endTimeout))
	}
	held.TookS = time.Since(start).Seconds()
	return held, nil
}

// Close closes all connections and ends the holders, within about a second.
func (h *Holder) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.end(closeTimeout)
}

// prepare has as many holders as asked for, of the right kind.
func (h *Holder) prepare(ctx context.Context, want lab.Hold) error {
	if same(h.asked, want) && len(h.holders) > 0 && len(h.holders) >= processes(want) {
		return nil
	}
	if err := h.end(endTimeout); err != nil {
		return err
	}
	server, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host(want.Address))
	if err != nil {
		return fmt.Errorf("hold connections to %s: %w", want.Address, err)
	}
	h.asked, h.finished = want, make(chan struct{})
	return h.start(ctx, want, net.JoinHostPort(server[0].Unmap().String(), port(want.Address)))
}

// same reports whether two calls differ in no more than the number of connections.
func same(a, b lab.Hold) bool {
	return a.Kind == b.Kind && a.Address == b.Address && a.URL == b.URL && a.Processes == b.Processes &&
		a.Campaign == b.Campaign && strings.Join(a.Sources, ",") == strings.Join(b.Sources, ",")
}

// processes is how many holders are asked for; when none is said, as many as the limit of open files asks, and one
// per CPU otherwise.
func processes(want lab.Hold) int {
	if want.Processes > 0 {
		return want.Processes
	}
	var r syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r); err != nil || r.Max <= spare {
		return 1
	}
	each := int(min(r.Max-spare, 1<<30))
	return max((want.Connections+each-1)/each, min(runtime.NumCPU(), want.Connections))
}

// start starts the holders from a thread that lives as long as they do: the signal that ends them with their parent
// is sent when the thread ends that started them.
func (h *Holder) start(ctx context.Context, want lab.Hold, server string) error {
	n := processes(want)
	started := make(chan error)
	go func(finished chan struct{}) {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		var err error
		for i := 0; i < n && err == nil; i++ {
			var p *holder
			if p, err = spawn(ctx, h.Self, h.arguments(want, server, i, n), want.Campaign); err == nil {
				h.holders = append(h.holders, p)
			}
		}
		started <- err
		<-finished
	}(h.finished)
	return <-started
}

func (h *Holder) arguments(want lab.Hold, server string, part, parts int) []string {
	args := append(append([]string{}, h.Args...), "hold", "-kind", string(want.Kind), "-server", server,
		"-host", want.Address, "-url", want.URL, "-part", strconv.Itoa(part), "-parts", strconv.Itoa(parts))
	if len(want.Sources) > 0 {
		args = append(args, "-sources", strings.Join(want.Sources, ","))
	}
	return args
}

// fill tells every holder its share and waits for all.
func (h *Holder) fill(ctx context.Context, connections int) (lab.Held, error) {
	stop := context.AfterFunc(ctx, func() {
		for _, p := range h.holders {
			_ = p.cmd.Process.Kill() // waited for by end
		}
	})
	defer stop()
	replies, errs := make([]reply, len(h.holders)), make([]error, len(h.holders))
	var all sync.WaitGroup
	for i, share := range lab.Split(connections, len(h.holders)) {
		all.Go(func() { replies[i], errs[i] = h.holders[i].fill(share) })
	}
	all.Wait()
	if err := ctx.Err(); err != nil {
		return lab.Held{}, fmt.Errorf("hold %d connections: %w", connections, err)
	}
	var held lab.Held
	for _, r := range replies {
		held.Open += r.Open
		held.Answered += r.Answered
		held.Failed += r.Failed
		held.RSSBytes += r.RSSBytes
		if held.Error == "" {
			held.Error = r.Error
		}
	}
	return held, errors.Join(errs...)
}

// end ends the holders and with them their connections; those that have not ended in time are killed.
func (h *Holder) end(limit time.Duration) error {
	if h.finished == nil {
		return nil
	}
	errs := make([]error, len(h.holders))
	var all sync.WaitGroup
	for i, p := range h.holders {
		all.Go(func() { errs[i] = p.end(limit) })
	}
	all.Wait()
	close(h.finished)
	h.holders, h.finished, h.asked = nil, nil, lab.Hold{}
	return errors.Join(errs...)
}

func host(address string) string { name, _, _ := net.SplitHostPort(address); return name }

func port(address string) string { _, number, _ := net.SplitHostPort(address); return number }

// minimal is the environment of a holder.
func minimal(campaign lab.CampaignID) []string {
	env := []string{"PATH=" + os.Getenv("PATH")}
	if campaign != "" {
		env = append(env, "NGXLAB_CAMPAIGN="+string(campaign))
	}
	return env
}
