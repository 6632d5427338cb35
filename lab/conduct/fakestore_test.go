package conduct

import (
	"context"
	"errors"
	"sync"

	"ngxlab/lab"
)

// fakeStore keeps what is committed; before may refuse, like a full disk.
type fakeStore struct {
	mu     sync.Mutex
	done   lab.Done
	runs   []lab.Run
	levels []lab.CapacityLevel
	ends   []lab.Outcome
	firsts []lab.Change
	before func(what string) error
}

func (s *fakeStore) refuse(what string) error {
	if s.before == nil {
		return nil
	}
	return s.before(what)
}

func (s *fakeStore) Begin(context.Context, lab.CampaignID, lab.Plan) (lab.Done, error) {
	return s.done, s.refuse("begin")
}

func (s *fakeStore) Originals(_ context.Context, _ lab.CampaignID, _ lab.HostName, cs []lab.Change) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.firsts = append(s.firsts, cs...)
	return s.refuse("originals")
}

func (s *fakeStore) Commit(_ context.Context, _ lab.CampaignID, r lab.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refuse("commit"); err != nil {
		return err
	}
	switch {
	case r.Run != nil:
		s.runs = append(s.runs, *r.Run)
	case r.Level != nil:
		s.levels = append(s.levels, *r.Level)
	case r.Outcome != nil:
		s.ends = append(s.ends, *r.Outcome)
	}
	return nil
}

// Event takes nothing under a context that has ended, as a real store.
func (s *fakeStore) Event(ctx context.Context, _ lab.CampaignID, _ lab.Event) error {
	return errors.Join(ctx.Err(), s.refuse("event"))
}
