package azblob

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/eventyard/eventyard/processor"
	"github.com/eventyard/eventyard/processor/internal/stores"
)

// Leases reads the ownership blobs, then the epoch blobs, so that the epochs are
// never older than the leases.
func (s *store) Leases(ctx context.Context, g processor.Group) ([]processor.Lease, error) {
	folder, err := s.reading(ctx, g)
	if err != nil {
		return nil, fmt.Errorf("read leases: %w", err)
	}
	owned, err := s.blobs.list(ctx, folder+"ownership/")
	if err != nil {
		return nil, fmt.Errorf("read leases: %w", err)
	}
	drawn, err := s.blobs.list(ctx, folder+"eventyard/epoch/")
	if err != nil {
		return nil, fmt.Errorf("read leases: %w", err)
	}
	epochs := make(map[string]epoch, len(drawn))
	for _, r := range drawn {
		if epochs[r.partition()], err = newEpoch(r); err != nil {
			return nil, fmt.Errorf("read leases: %w", err)
		}
	}
	leases := make([]processor.Lease, 0, len(owned))
	for _, r := range owned {
		// The highest epoch drawn may be above the owner's own: the next owner has to exceed it.
		e := epochs[r.partition()]
		l := processor.Lease{
			Partition: r.partition(), Owner: r.meta["ownerid"], Epoch: e.number, Renewed: r.modified, Version: r.version,
		}
		l.Acquired = acquired(l, e)
		leases = append(leases, l)
		delete(epochs, l.Partition)
	}
	// A number drawn by one that died before it had the partition has to be exceeded, too.
	for _, p := range slices.Sorted(maps.Keys(epochs)) {
		leases = append(leases, processor.Lease{Partition: p, Epoch: epochs[p].number})
	}
	return leases, nil
}

// acquired is when the owner drew its number, as far as that is known.
func acquired(l processor.Lease, e epoch) time.Time {
	if l.Owner != "" && l.Owner == e.owner && e.drawn.Before(l.Renewed) {
		return e.drawn
	}
	return l.Renewed
}

// atOnce is how many leases are written at the same time.
const atOnce = 16

// Claim writes each lease by itself, several at once.
func (s *store) Claim(ctx context.Context, g processor.Group, leases []processor.Lease) ([]processor.Lease, error) {
	if len(leases) == 0 {
		return nil, ctx.Err()
	}
	folder, err := s.writing(ctx, g)
	if err != nil {
		return nil, fmt.Errorf("claim: %w", err)
	}
	return stores.Claim(leases, atOnce, func(l processor.Lease) (processor.Lease, error) { return s.claim(ctx, folder, l) })
}

// claim writes one lease. ErrConflict.
func (s *store) claim(ctx context.Context, folder string, l processor.Lease) (processor.Lease, error) {
	// Metadata travels in a header.
	bad := func(r rune) bool { return r < ' ' || r > '~' }
	if strings.ContainsFunc(l.Owner, bad) || strings.TrimSpace(l.Owner) != l.Owner {
		return processor.Lease{}, fmt.Errorf("owner %q: blob metadata takes printable ASCII only, with no space at either end", l.Owner)
	}
	if err := ctx.Err(); err != nil {
		return processor.Lease{}, err
	}
	blob := ownershipBlob(folder, l.Partition)
	mine := s.lease(blob)
	before, e := epoch{}, epoch{owner: l.Owner, drawn: mine.Acquired}
	// Of the lease that this store wrote last nobody can have drawn the number meanwhile, and if
	// anybody has the partition, the write will fail.
	renews := l.Version != "" && l.Version == mine.Version && l.Epoch == mine.Epoch && (l.Owner == mine.Owner || l.Owner == "")
	if !renews {
		var err error
		if before, e, err = s.acquire(ctx, folder, l); err != nil {
			return processor.Lease{}, err
		}
	}
	r, err := s.blobs.write(ctx, blob, map[string]string{"ownerid": l.Owner}, l.Version)
	if errors.Is(err, processor.ErrConflict) && before.version != e.version {
		// The number drawn is nobody's, and put back, so that the owner's lease is read with its
		// own again. Nothing depends on it: if it fails, or another has drawn since, it stays
		// drawn.
		_, _ = s.blobs.write(ctx, epochBlob(folder, l.Partition), before.meta(), e.version)
	}
	if err != nil {
		return processor.Lease{}, err
	}
	l.Version, l.Renewed = r.version, r.modified
	l.Acquired = acquired(l, e)
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.Owner == "" {
		delete(s.mine, blob)
	} else {
		s.mine[blob] = l
	}
	return l, nil
}

// acquire makes the lease's number its owner's, unless it is already. It gives the epoch blob as it
// was and as it is. ErrConflict.
func (s *store) acquire(ctx context.Context, folder string, l processor.Lease) (before, after epoch, err error) {
	now, err := s.blobs.head(ctx, ownershipBlob(folder, l.Partition))
	if err != nil {
		return before, after, err
	}
	if now.version != l.Version { // the write would fail, but a number would be drawn in vain
		return before, after, processor.ErrConflict
	}
	e, err := s.readEpoch(ctx, folder, l.Partition)
	if err != nil {
		return before, after, err
	}
	owner := now.meta["ownerid"]
	current, drawn := e.of(owner)
	switch {
	case l.Epoch < current:
		return before, after, processor.ErrConflict
	case l.Epoch == current && (l.Owner == "" || l.Owner == owner && drawn):
		return e, e, nil // a release, or a renewal through another store
	case l.Epoch == e.number && l.Owner == e.owner:
		return e, e, nil // drawn before, and then the answer was lost
	case l.Epoch <= e.number:
		return before, after, processor.ErrConflict
	}
	// The number is drawn for a partition that is held by somebody until the lease is written.
	next := epoch{number: l.Epoch, owner: l.Owner}
	if drawn {
		next.heldOwner, next.heldNumber = owner, current
	}
	r, err := s.blobs.write(ctx, epochBlob(folder, l.Partition), next.meta(), e.version)
	if err != nil {
		return before, after, err
	}
	after, err = newEpoch(r)
	return e, after, err
}

// owned asks whether the lease's owner still has the partition under the lease's epoch. ErrFenced.
func (s *store) owned(ctx context.Context, folder string, l processor.Lease) error {
	blob := ownershipBlob(folder, l.Partition)
	now, err := s.blobs.head(ctx, blob)
	if err != nil {
		return err
	}
	if l.Owner == "" || now.meta["ownerid"] != l.Owner {
		return processor.ErrFenced
	}
	if mine := s.lease(blob); mine.Version == now.version && mine.Owner == l.Owner && mine.Epoch == l.Epoch {
		return nil
	}
	e, err := s.readEpoch(ctx, folder, l.Partition)
	if err != nil {
		return err
	}
	if number, drawn := e.of(l.Owner); !drawn || number != l.Epoch {
		return processor.ErrFenced
	}
	return nil
}

func (s *store) lease(blob string) processor.Lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mine[blob]
}

func ownershipBlob(folder, partition string) string { return folder + "ownership/" + partition }
