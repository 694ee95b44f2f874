package logs

import (
	"context"
	"fmt"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta/holds"
)

var _ eventlog.Archivable = (*Engine)(nil)

// Logs is eventlog.Archivable's: the entries of logs say which there are. One that is only being made has
// nothing yet.
func (e *Engine) Logs(ctx context.Context) ([]eventlog.Described, error) {
	e.mu.Lock()
	closed := e.closed
	e.mu.Unlock()
	if closed {
		return nil, eventlog.ErrClosed
	}
	if err := e.cfg.Store.Fresh(ctx, keyPrefix); err != nil { // others may have made some
		return nil, fmt.Errorf("list logs: %w", storeError(ctx, err))
	}
	entries, err := e.cfg.Store.List(ctx, keyPrefix)
	if err != nil {
		return nil, fmt.Errorf("list logs: %w", storeError(ctx, err))
	}
	all := make([]eventlog.Described, 0, len(entries))
	for _, entry := range entries {
		name := entry.Key[len(keyPrefix):]
		d, err := decodeDefinition(entry.Value)
		if err != nil {
			return nil, fmt.Errorf("entry of log %s: %w", name, err)
		}
		if d.state == isLive {
			shape := eventlog.Shape{Partitions: d.partitions, Kind: d.kind, Retention: d.retention}
			all = append(all, eventlog.Described{Name: name, Shape: shape, Known: true})
		}
	}
	return all, nil
}

// Hold is eventlog.Archivable's: every node looks for holds before it removes what was trimmed.
func (e *Engine) Hold(ctx context.Context) (release func(context.Context) error, err error) {
	h, err := holds.Begin(ctx, e.cfg.Store, holds.Trimmed)
	if err != nil {
		return nil, storeError(ctx, err)
	}
	return h.Release, nil
}

// allowTrims lets go what Trim has allowed by now, unless somebody holds it. To look costs a write, so that
// it is done only where there is something new.
func (s tending) allowTrims(ctx context.Context) error {
	asked := s.newTrims()
	if len(asked) == 0 {
		return nil
	}
	held, err := s.e.held(ctx)
	if err != nil || held {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for p, below := range asked {
		p.allowed = max(p.allowed, below)
	}
	return nil
}

// newTrims are the partitions of which more may go than was allowed.
func (s tending) newTrims() map[*part]eventlog.Sequence {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := map[*part]eventlog.Sequence{}
	if !s.readyLocked() {
		return asked
	}
	for _, p := range s.parts {
		if p.trim > p.allowed && p.ended == nil && p.trim > p.fold.State().Head.First {
			asked[p] = p.trim
		}
	}
	return asked
}

// held tells whether some node has what was trimmed stay.
func (e *Engine) held(ctx context.Context) (bool, error) {
	if err := e.holding.take(ctx); err != nil {
		return true, err
	}
	defer e.holding.give()
	held, err := e.holds.Held(ctx)
	if err != nil {
		return true, storeError(ctx, err)
	}
	return held, nil
}
