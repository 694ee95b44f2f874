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

// load reads a circuit's record from a store; where there is none it is a closed one, without a version.
func load(ctx context.Context, s processor.Store, g processor.Group, function string) (breaker.Record, processor.Version, error) {
	entries, err := s.Entries(ctx, g, Prefix)
	if err != nil {
		return breaker.Record{}, "", fmt.Errorf("read circuit %s: %w", function, err)
	}
	for _, f := range entries {
		if f.Key == recordKey(function) {
			r, err := decode(f)
			return r, f.Version, err
		}
	}
	return breaker.Record{State: breaker.Closed}, "", nil
}

// decode reads a record.
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
	if m.news(r, version) {
		m.adopt(r, version)
	}
	return nil
}

// doubtful is for how long a record of a lower term than the adopted one is taken for what a replica has that lags behind. If
// it stays it was removed, and perhaps begun anew.
const doubtful = 3 * time.Second

// news tells whether a record that was read is to be adopted. Mostly it is the one that was adopted last.
func (m *Member) news(r breaker.Record, v processor.Version) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.known || r.Term >= m.record.Term {
		m.doubt = time.Time{}
		return !m.known || v != m.version
	}
	if m.doubt.IsZero() {
		m.doubt = time.Now()
	}
	return time.Since(m.doubt) >= doubtful
}

func (m *Member) doubts() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.doubt.IsZero()
}

// maxConflicts is how often a change is decided anew because somebody else was quicker. Each of them has changed the circuit, so
// that more than a few in a row are no race any more.
const maxConflicts = 10

// change changes the record by compare-and-set: decide is asked with the present record (as adopted, so that the member's fields
// tell the same) and says what it is to become, or false. nil means that it is so, or that decide wants nothing (any more).
func (m *Member) change(ctx context.Context, decide func(breaker.Record) (breaker.Record, bool)) error {
	if err := m.enter(ctx); err != nil {
		return err
	}
	defer m.leave()
	var err error
	for range maxConflicts {
		next, wanted := decide(m.present())
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
		if _, wanted := decide(m.present()); !wanted {
			return nil
		}
		if !errors.Is(err, processor.ErrConflict) {
			return err // again, but not at once
		}
	}
	return err
}

func (m *Member) present() breaker.Record {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.record
}

// put writes the record in place of the one that was adopted last, and adopts it. The caller holds asking.
func (m *Member) put(ctx context.Context, next breaker.Record) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	next.Policy = m.cfg.Policy
	f, err := m.cfg.Store.Put(ctx, m.cfg.Group, processor.Entry{
		Key: recordKey(m.cfg.Function), Value: breaker.EncodeRecord(next), Version: m.version,
	})
	if err != nil {
		return fmt.Errorf("write circuit %s: %w", m.cfg.Function, err)
	}
	m.adopt(next, f.Version)
	return nil
}

// adopt makes a record that was read or written the one that is known here, and wakes who waits for a change. The caller holds
// asking, so that OnChange hears of changes in their order.
func (m *Member) adopt(r breaker.Record, version processor.Version) {
	was, another := m.adoptMu(r, version)
	if !another || (was.State == r.State && was.Incident == r.Incident) || (was.Closed() && r.Closed()) {
		return
	}
	if was.State == "" {
		was.State = breaker.Closed // what everybody takes it for who has not asked
	}
	m.logChange(was, r)
	m.cfg.OnChange(was, r)
}

// logChange warns of an opening, and of a probe that failed: somebody has to do something.
func (m *Member) logChange(was, is breaker.Record) {
	level, args := slog.LevelInfo, []any{"from", was.State, "to", is.State, "term", is.Term, "by", is.By, "reason", is.Reason}
	if is.State == breaker.Open && !is.Untried {
		level = slog.LevelWarn
	}
	if n := len(is.Samples); n > 0 && was.Closed() {
		args = append(args, "error", is.Samples[n-1].Error)
	}
	m.cfg.Log.Log(context.Background(), level, "circuit changed", args...)
}

// adoptMu is the part of adopt that takes mu: it gives the record before, and whether this is another and not the same written again.
func (m *Member) adoptMu(r breaker.Record, version processor.Version) (was breaker.Record, another bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	was = m.record
	another = !m.known || r.Term != m.record.Term || r.State != m.record.State || r.Incident != m.record.Incident
	m.known, m.record, m.version, m.since, m.doubt = true, r, version, time.Now(), time.Time{}
	if !another { // written again by a prober that needs its time
		return was, false
	}
	if r.Closed() {
		m.samples = nil
		m.gate.Store(&Pass{Term: r.Term})
	} else {
		m.gate.Store(nil)
	}
	m.probe = m.probe.after(r, m.cfg.Instance)
	close(m.changed)
	m.changed = make(chan struct{})
	return was, true
}

func (m *Member) seenVersion() processor.Version {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.version
}
