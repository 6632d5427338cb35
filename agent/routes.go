package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	"ngxlab/agent/wire"
	"ngxlab/lab"
)

// requestLimit bounds a request: a Serving carries configuration and small files.
const requestLimit = 64 << 20

// access says whether a request needs the host's lock.
type access bool

const (
	anyone   access = false // only reads, or sees to the lock itself
	claimant access = true  // changes or starts something
)

// routes is everything that can be asked.
func (s *session) routes() http.Handler {
	mux := http.NewServeMux()
	p := s.parts
	mux.Handle(wire.PathFacts, reply(s, anyone, p.facts))
	mux.Handle(wire.PathRead, reply(s, anyone, p.read))
	mux.Handle(wire.PathPending, reply(s, anyone, func(context.Context, wire.None) ([]lab.Pending, error) { return p.pending() }))
	mux.Handle(wire.PathStanding, reply(s, anyone, func(ctx context.Context, _ wire.None) ([]lab.Standing, error) { return p.stand(ctx) }))
	mux.Handle(wire.PathRestore, reply(s, anyone, s.restore))
	mux.Handle(wire.PathClock, reply(s, anyone, func(context.Context, wire.None) (wire.Clock, error) { return p.clock(), nil }))
	mux.Handle(wire.PathYardstick, reply(s, anyone, func(ctx context.Context, _ wire.None) (lab.Yardstick, error) { return p.yardstick(ctx) }))
	mux.Handle(wire.PathWatch, stream(s, anyone, s.watch))
	mux.Handle(wire.PathClaim, reply(s, anyone, s.claim))
	mux.Handle(wire.PathRelease, reply(s, anyone, s.release))
	mux.Handle(wire.PathHolder, reply(s, anyone, func(context.Context, wire.None) (lab.Holder, error) { return s.lock.whose() }))
	mux.Handle(wire.PathClean, reply(s, anyone, s.clean))
	mux.Handle(wire.PathApply, reply(s, claimant, func(ctx context.Context, a wire.Apply) ([]lab.Applied, error) {
		return p.apply(ctx, a.Campaign, a.Changes)
	}))
	mux.Handle(wire.PathInstall, stream(s, claimant, s.install))
	mux.Handle(wire.PathBuild, stream(s, claimant, s.build))
	mux.Handle(wire.PathBuilds, reply(s, anyone, func(ctx context.Context, _ wire.None) ([]lab.KeptBuild, error) { return p.builds(ctx) }))
	mux.Handle(wire.PathUnbuild, reply(s, anyone, s.unbuild))
	mux.Handle(wire.PathTry, reply(s, anyone, p.try))
	mux.HandleFunc(wire.PathExport, s.exported)
	mux.HandleFunc(wire.PathImport, s.imported)
	mux.Handle(wire.PathServe, stream(s, claimant, s.server))
	mux.Handle(wire.PathArm, reply(s, claimant, p.arm))
	mux.Handle(wire.PathFire, reply(s, claimant, func(ctx context.Context, f wire.Fire) ([]lab.Process, error) {
		return p.fire(ctx, f.Armed, f.At)
	}))
	mux.Handle(wire.PathHold, reply(s, claimant, p.hold))
	return mux
}

// install runs a package manager to its end, also when the asker leaves or the session ends: one that is interrupted
// half-way leaves a host that must be mended by hand.
func (s *session) install(ctx context.Context, i wire.Install, out *lines[wire.None]) error {
	s.installs.Add(1)
	defer s.installs.Done()
	return s.parts.install(context.WithoutCancel(ctx), i.Packages, out)
}

func (s *session) build(ctx context.Context, r lab.Recipe, out *lines[lab.Build]) error {
	b, err := s.parts.build(ctx, r, out)
	if err != nil {
		return err
	}
	return out.item(b)
}

// server starts a server and keeps it until the asker closes the request, or it dies.
func (s *session) server(ctx context.Context, v lab.Serving, out *lines[lab.Server]) error {
	return s.parts.serve(ctx, v, func(started lab.Server) {
		_ = out.item(started) // an asker that is gone ends ctx, and the server with it
	})
}

func (s *session) watch(ctx context.Context, w lab.Watch, out *lines[lab.Sample]) error {
	send := func(sample lab.Sample) { _ = out.item(sample) } // an asker that is gone ends ctx, and the watch with it
	if !w.Held {
		return s.parts.watch(ctx, w, send)
	}
	held := make([]lab.Sample, 0, w.Count)
	err := s.parts.watch(ctx, w, func(sample lab.Sample) { held = append(held, sample) })
	for _, sample := range held {
		send(sample)
	}
	return err
}

// restore puts the host back; who has not claimed it holds it meanwhile, so that no campaign is disturbed.
func (s *session) restore(ctx context.Context, _ wire.None) (done []lab.Restored, err error) {
	if s.lock.isHeld() {
		return s.parts.restore(ctx)
	}
	err = s.lock.during(wire.Claim{Owner: "a restore"}, func() error {
		cleared := s.parts.clear()
		done, err = s.parts.restore(ctx)
		return errors.Join(cleared, err)
	})
	return done, err
}

func (s *session) claim(_ context.Context, c wire.Claim) (wire.None, error) {
	if s.lock.isHeld() {
		return wire.None{}, s.lock.claim(c)
	}
	if err := s.lock.claim(c); err != nil {
		return wire.None{}, err
	}
	if err := s.parts.clear(); err != nil {
		return wire.None{}, errors.Join(err, s.lock.release())
	}
	return wire.None{}, nil
}

func (s *session) release(context.Context, wire.None) (wire.None, error) {
	err := s.parts.end()
	s.installs.Wait()
	return wire.None{}, errors.Join(err, s.lock.release())
}

// reply answers requests that have one result.
func reply[Req, Res any](s *session, needs access, do func(context.Context, Req) (Res, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		defer s.requests.Done()
		var answer wire.Reply[Res]
		var request Req
		err := s.read(r, needs, &request)
		if err == nil {
			answer.Result, err = do(r.Context(), request)
		}
		answer.Error = wire.From(err, kindOf(err))
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer) // the asker is gone when this fails
	}
}

// stream answers requests whose answer is a line at a time.
func stream[Req, Item any](s *session, needs access, do func(context.Context, Req, *lines[Item]) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		defer s.requests.Done()
		w.Header().Set("Content-Type", "application/x-ndjson")
		out := &lines[Item]{w: w, flush: http.NewResponseController(w).Flush}
		var request Req
		err := s.read(r, needs, &request)
		if err == nil {
			err = do(r.Context(), request, out)
		}
		_ = out.send(wire.Line[Item]{Error: wire.From(err, kindOf(err)), End: err == nil}) // as in reply
	}
}

// read decodes the whole body: only then does the server notice when the asker goes away.
func (s *session) read(r *http.Request, needs access, into any) error {
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, requestLimit))
	if err != nil {
		return &wire.Error{Kind: wire.KindRequest, Message: fmt.Sprintf("read the request %s: %v", r.URL.Path, err)}
	}
	if err := json.Unmarshal(body, into); err != nil {
		return &wire.Error{Kind: wire.KindRequest, Message: fmt.Sprintf("read the request %s: %v", r.URL.Path, err)}
	}
	return s.permitted(needs)
}

func (s *session) permitted(needs access) error {
	if needs == claimant && !s.lock.isHeld() {
		return &wire.Error{Kind: wire.KindUnclaimed, Message: "the host is not claimed by this session"}
	}
	return nil
}

// lines is an answer under way: a JSON value per line. As a writer it sends what it is given as log.
type lines[Item any] struct {
	mu    sync.Mutex
	w     io.Writer
	flush func() error
}

func (l *lines[Item]) send(line wire.Line[Item]) error {
	text, err := json.Marshal(line)
	if err != nil {
		return fmt.Errorf("encode an answer: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, err := l.w.Write(append(text, '\n')); err != nil {
		return err
	}
	return l.flush()
}

func (l *lines[Item]) item(i Item) error { return l.send(wire.Line[Item]{Item: &i}) }

func (l *lines[Item]) Write(p []byte) (int, error) {
	if err := l.send(wire.Line[Item]{Log: string(p)}); err != nil {
		return 0, err
	}
	return len(p), nil
}
