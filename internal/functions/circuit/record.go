package circuit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/eventyard/eventyard/internal/functions/breaker"
	"github.com/eventyard/eventyard/processor"
)

// load reads a circuit's record from a store; where there is none it is a closed one, without a
// version.
func load(ctx context.Context, s processor.Store, g processor.Group, function string) (breaker.Record, processor.Version, error) {
	entries, err := s.Entries(ctx, g, Prefix)
	if err != nil {
		return breaker.Record{}, "", fmt.Errorf("read circuit %s: %w", function, err)
	}
	for _, f := range entries {
		if f.Key == Prefix+function {
			r, err := decode(f)
			return r, f.Version, err
		}
	}
	return breaker.Record{State: breaker.Closed}, "", nil
}

func decode(f processor.Entry) (breaker.Record, error) {
	r, err := breaker.DecodeRecord(f.Value)
	if err != nil {
		return breaker.Record{}, fmt.Errorf("entry %s: %w: remove it, or run the version that wrote it", f.Key, err)
	}
	return r, nil
}

// enter takes asking, leave gives it back.
func (m *Member) enter(ctx context.Context) error {
	select {
	case m.asking <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (m *Member) leave() { <-m.asking }

// look reads the record and adopts it. What was read for somebody else since it was called will do.
func (m *Member) look(ctx context.Context) error {
	asked := time.Now()
	if err := m.enter(ctx); err != nil {
		return err
	}
	defer m.leave()
	if m.looked.After(asked) {
		return nil
	}
	return m.lookHeld(ctx)
}

// lookHeld is look for who holds asking.
func (m *Member) lookHeld(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	began := time.Now()
	r, version, err := load(ctx, m.cfg.Store, m.cfg.Group, m.cfg.Function)
	if err != nil {
		return err
	}
	m.looked = began
	if m.isNews(r, version) {
		m.adopt(r, version)
	}
	return nil
}

// maxConflicts is how often a change is decided anew because somebody else was quicker. Each of
// them has changed the circuit, so that more than a few in a row are no race any more.
const maxConflicts = 10

// change changes the record by compare-and-set: decide is asked with the present record (as
// adopted, so that the member's fields tell the same) and says what it is to become, or false. nil
// means that it is so, or that decide wants nothing (any more).
func (m *Member) change(ctx context.Context, decide func(breaker.Record) (breaker.Record, bool)) error {
	if err := m.enter(ctx); err != nil {
		return err
	}
	defer m.leave()
	var err error
	for range maxConflicts {
		is, _ := m.present()
		next, wanted := decide(is)
		if !wanted {
			return nil
		}
		if err = m.put(ctx, next); err == nil {
			return nil
		}
		// The answer may be all that was lost: what is there decides.
		if unread := m.lookHeld(ctx); unread != nil {
			return fmt.Errorf("%w; then %w", err, unread)
		}
		is, _ = m.present()
		if _, wanted := decide(is); !wanted {
			return nil
		}
		if !errors.Is(err, processor.ErrConflict) {
			return err // again, but not at once
		}
	}
	return err
}

// put writes the record in place of the one that was adopted last, and adopts it. The caller holds
// asking.
func (m *Member) put(ctx context.Context, next breaker.Record) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	next.Policy = m.cfg.Policy
	f, err := m.cfg.Store.Put(ctx, m.cfg.Group, processor.Entry{
		Key: Prefix + m.cfg.Function, Value: breaker.EncodeRecord(next), Version: m.version,
	})
	if err != nil {
		return fmt.Errorf("write circuit %s: %w", m.cfg.Function, err)
	}
	m.adopt(next, f.Version)
	return nil
}

// adopt takes a record that was read or written for the one that is known here, and tells of a
// change. The caller holds asking, so that OnChange hears of changes in their order.
func (m *Member) adopt(r breaker.Record, version processor.Version) {
	was, another := m.knowledge.adopt(r, version)
	if !another || (was.State == r.State && was.Incident == r.Incident) || (was.Closed() && r.Closed()) {
		return
	}
	if was.State == "" {
		was.State = breaker.Closed // what everybody takes it for who has not asked
	}
	level, args := slog.LevelInfo, []any{"from", was.State, "to", r.State, "term", r.Term, "by", r.By, "reason", r.Reason}
	if r.State == breaker.Open && !r.Untried { // also after a probe that failed: somebody has to do something
		level = slog.LevelWarn
	}
	if n := len(r.Samples); n > 0 && was.Closed() {
		args = append(args, "error", r.Samples[n-1].Error)
	}
	m.cfg.Log.Log(context.Background(), level, "circuit changed", args...)
	m.cfg.OnChange(was, r)
}
