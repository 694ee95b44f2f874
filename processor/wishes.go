package processor

import (
	"context"
	"errors"
)

// wishes are the records by which this instance asks others for partitions. The coordinator's
// goroutine alone uses them.
type wishes struct {
	*instance
	own map[string]Entry // by key, as last seen or written
}

// see takes in what was read.
func (s *wishes) see(w world) {
	s.own = map[string]Entry{}
	for _, n := range w.nexts {
		if n.instance == s.id {
			s.own[n.entry.Key] = n.entry
		}
	}
}

// express writes and removes what was decided. Others may be quicker, which the next round shows.
func (s *wishes) express(ctx context.Context, d decision) error {
	ctx, cancel := s.storeContext(ctx)
	defer cancel()
	for _, f := range d.put {
		put, err := s.store.Put(ctx, s.group, f)
		if err == nil {
			s.own[put.Key] = put
		} else if !errors.Is(err, ErrConflict) {
			return &Error{"", "ask for a partition", err}
		}
	}
	for _, f := range d.remove {
		if err := s.store.Remove(ctx, s.group, f); err != nil && !errors.Is(err, ErrConflict) {
			return &Error{"", "remove a record", err}
		}
		delete(s.own, f.Key)
	}
	return nil
}

// withdraw takes our wishes back, as we stop. Whatever stays is removed by others in time.
func (s *wishes) withdraw(ctx context.Context) {
	ctx, cancel := s.storeContext(ctx)
	defer cancel()
	for _, f := range s.own {
		if err := s.store.Remove(ctx, s.group, f); err != nil && !errors.Is(err, ErrConflict) {
			s.report("withdraw a wish", err)
			return
		}
	}
}
