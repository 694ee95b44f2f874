package memory

import (
	"context"
	"maps"
	"slices"

	"github.com/eventyard/eventyard/processor"
	"github.com/eventyard/eventyard/processor/internal/stores"
)

func (s *Store) Leases(ctx context.Context, g processor.Group) ([]processor.Lease, error) {
	r, err := s.lock(ctx, g)
	defer s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return slices.Collect(maps.Values(r.leases)), nil
}

// Claim writes leases whose condition holds. An acquisition that does not raise the epoch is
// a failed condition, too.
func (s *Store) Claim(ctx context.Context, g processor.Group, leases []processor.Lease) ([]processor.Lease, error) {
	r, err := s.lock(ctx, g)
	defer s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	var won []processor.Lease
	changed := false
	for _, l := range leases {
		if had, exists := r.leases[l.Partition]; had.Version == l.Version && (!exists || stores.MayFollow(had, l)) {
			won = append(won, s.writeLocked(r, had, l))
			changed = changed || !exists || had.Owner != l.Owner || had.Epoch != l.Epoch
		}
	}
	if changed {
		r.notify()
	}
	return won, nil
}

func (s *Store) writeLocked(r *records, had, l processor.Lease) processor.Lease {
	l.Version, l.Renewed = s.nextLocked()
	l.Acquired = had.Acquired
	if had.Version == "" || l.Epoch > had.Epoch {
		l.Acquired = l.Renewed
	}
	if l.Renewed.Before(l.Acquired) { // the clock was set back
		l.Renewed = l.Acquired
	}
	r.leases[l.Partition] = l
	return l
}
