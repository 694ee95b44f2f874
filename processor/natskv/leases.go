package natskv

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/eventyard/eventyard/processor"
	"github.com/eventyard/eventyard/processor/internal/stores"
)

// leaseRecord is the value of a lease.
type leaseRecord struct {
	Owner    string    `json:"owner,omitempty"`
	Epoch    int64     `json:"epoch"`
	Acquired time.Time `json:"acquired"`
	Renewed  time.Time `json:"renewed"`
}

func newLease(key string, e entry) (processor.Lease, error) {
	var r leaseRecord
	if err := json.Unmarshal(e.value, &r); err != nil {
		return processor.Lease{}, fmt.Errorf("key %s: %w", key, err)
	}
	return processor.Lease{
		Partition: text(key[strings.LastIndexByte(key, '.')+1:]), Owner: r.Owner, Epoch: r.Epoch,
		Acquired: r.Acquired, Renewed: r.Renewed, Version: e.version(),
	}, nil
}

func (s *store) Leases(ctx context.Context, g processor.Group) ([]processor.Lease, error) {
	byPartition, err := s.leases(ctx, g)
	if err != nil {
		return nil, fmt.Errorf("read leases: %w", err)
	}
	return slices.Collect(maps.Values(byPartition)), nil
}

func (s *store) leases(ctx context.Context, g processor.Group) (map[string]processor.Lease, error) {
	found, err := s.read(ctx, folder(g)+"lease.*")
	if err != nil {
		return nil, err
	}
	byPartition := make(map[string]processor.Lease, len(found))
	for key, e := range found {
		l, err := newLease(key, e)
		if err != nil {
			return nil, err
		}
		byPartition[l.Partition] = l
	}
	return byPartition, nil
}

// atOnce is how many leases are written at the same time.
const atOnce = 64

// Claim reads what is recorded, for the epochs and the times, and then writes the leases on
// condition of their versions, many at once.
func (s *store) Claim(ctx context.Context, g processor.Group, leases []processor.Lease) ([]processor.Lease, error) {
	if len(leases) == 0 {
		return nil, ctx.Err()
	}
	recorded, err := s.leases(ctx, g)
	if err != nil {
		return nil, fmt.Errorf("claim: %w", err)
	}
	return stores.Claim(leases, atOnce, func(l processor.Lease) (processor.Lease, error) {
		return s.claim(ctx, g, l, recorded[l.Partition])
	})
}

// claim writes one lease over the recorded one. ErrConflict.
func (s *store) claim(ctx context.Context, g processor.Group, l, recorded processor.Lease) (processor.Lease, error) {
	if l.Version != recorded.Version || l.Version != "" && !stores.MayFollow(recorded, l) {
		return processor.Lease{}, processor.ErrConflict
	}
	l.Renewed = now()
	l.Acquired = l.Renewed
	if l.Version != "" && l.Epoch == recorded.Epoch {
		l.Acquired = recorded.Acquired // a renewal or a release
		if l.Renewed.Before(l.Acquired) {
			l.Renewed = l.Acquired // another machine's clock is ahead
		}
	}
	value, err := json.Marshal(leaseRecord{l.Owner, l.Epoch, l.Acquired, l.Renewed})
	if err != nil {
		return processor.Lease{}, err
	}
	l.Version, err = s.write(ctx, leaseKey(g, l.Partition), value, l.Version)
	return l, err
}

// now is the time as it comes back from a record.
func now() time.Time { return time.Now().UTC().Round(0) }
