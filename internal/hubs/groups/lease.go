package groups

import (
	"context"
	"errors"
	"fmt"

	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/processor"
)

// Leases reads all leases of a group.
func (k *Registry) Leases(ctx context.Context, of processor.Group) ([]processor.Lease, error) {
	g, err := k.find(ctx, of)
	if err != nil {
		return nil, err
	}
	return g.leases(ctx)
}

func (g group) leases(ctx context.Context) ([]processor.Lease, error) {
	return list(ctx, g, "leases", leasePrefix, "", leaseRecord.lease)
}

// Claim writes leases, each by a compare-and-set. They are made at once, since a store that writes
// many changes together needs them together. An acquisition that does not raise the epoch is a
// failed condition, too.
func (k *Registry) Claim(ctx context.Context, of processor.Group, leases []processor.Lease) ([]processor.Lease, error) {
	g, err := k.find(ctx, of)
	if err != nil || len(leases) == 0 {
		return nil, err
	}
	for _, l := range leases {
		if l.Epoch < 0 {
			return nil, fmt.Errorf("lease of partition %s: %w: epoch %d is below zero", l.Partition, ErrInvalid, l.Epoch)
		}
		if err := errors.Join(g.has(l.Partition), checkText("owner", l.Owner, maxOwnerBytes)); err != nil {
			return nil, err
		}
	}
	recorded, err := g.recorded(ctx, leases)
	if err != nil {
		return nil, err
	}
	outcomes := make([]outcome, len(leases))
	atOnce(len(leases), func(i int) { outcomes[i] = g.claim(ctx, recorded[leases[i].Partition], leases[i]) })
	var won []processor.Lease
	var first []created
	var errs []error
	for _, o := range outcomes {
		if o.won {
			won = append(won, o.lease)
		}
		if o.created.key != "" {
			first = append(first, o.created)
		}
		errs = append(errs, o.err)
	}
	if err := g.settle(ctx, first...); err != nil {
		return nil, err
	}
	return won, joined(errs)
}

// recorded reads the leases that are to be written.
func (g group) recorded(ctx context.Context, leases []processor.Lease) (map[string]processor.Lease, error) {
	byPartition := make(map[string]processor.Lease, len(leases))
	if len(leases) > 1 {
		all, err := g.leases(ctx)
		for _, l := range all {
			byPartition[l.Partition] = l
		}
		return byPartition, err
	}
	l, err := g.lease(ctx, leases[0].Partition)
	byPartition[l.Partition] = l
	return byPartition, err
}

// lease reads one; without a version if there is none.
func (g group) lease(ctx context.Context, partition string) (processor.Lease, error) {
	entry, err := g.k.meta.Get(ctx, g.Prefix+leasePrefix+partition)
	if errors.Is(err, meta.ErrNotFound) {
		return processor.Lease{Partition: partition}, nil
	}
	if err != nil {
		return processor.Lease{}, fmt.Errorf("read lease of partition %s: %w", partition, err)
	}
	record, err := decode[leaseRecord](entry)
	return record.lease(partition, entry.Revision), err
}

// outcome is what became of one lease of a claim.
type outcome struct {
	won     bool
	lease   processor.Lease
	created created // only if it did not exist
	err     error
}

// claim writes one lease.
func (g group) claim(ctx context.Context, had, l processor.Lease) outcome {
	expected, ok := revisionOf(l.Version)
	if !ok || !mayFollow(had, l, expected) {
		return outcome{}
	}
	record := leaseRecord{V: recordVersion, Owner: l.Owner, Epoch: l.Epoch, Renewed: now(), Acquired: l.Acquired.UTC()}
	inVain := l.Acquired.IsZero() || l.Acquired.After(record.Renewed) // what the caller says of it
	switch known := had.Version == l.Version; {
	case expected == 0, known && l.Epoch > had.Epoch, !known && inVain:
		record.Acquired = record.Renewed
	case known:
		record.Acquired = had.Acquired
	}
	if record.Renewed.Before(record.Acquired) { // the clock was set back
		record.Renewed = record.Acquired
	}
	key := g.Prefix + leasePrefix + l.Partition
	revision, err := g.k.meta.CompareAndSet(ctx, key, expected, encode(record))
	switch {
	case errors.Is(err, meta.ErrConflict):
		return outcome{}
	case err != nil:
		return outcome{err: fmt.Errorf("write lease of partition %s: %w", l.Partition, err)}
	}
	done := outcome{won: true, lease: record.lease(l.Partition, revision)}
	if expected == 0 {
		done.created = created{key, revision}
	}
	return done
}

// mayFollow reports whether a lease may be written over the one that was read. A read may be
// older than what the caller has seen, which then is taken at its word: the comparison decides
// whether that is what the record holds, and what it held at a revision never changes.
func mayFollow(had, l processor.Lease, expected meta.Revision) bool {
	seen, _ := revisionOf(had.Version)
	switch {
	case seen > expected:
		return false
	case seen < expected || had.Version == "":
		return true
	case l.Owner != "" && l.Owner != had.Owner:
		return l.Epoch > had.Epoch
	default:
		return l.Epoch >= had.Epoch
	}
}

// joined is the first error, with how many there were: a thousand failed leases have one cause.
func joined(errs []error) error {
	var first error
	failed := 0
	for _, err := range errs {
		if err == nil {
			continue
		}
		if failed++; first == nil {
			first = err
		}
	}
	if failed > 1 {
		return fmt.Errorf("%d of %d writes: %w", failed, len(errs), first)
	}
	return first
}

// holds wants the lease to be the partition's, in whatever version: ErrFenced if not. Where the
// read is older than the version that the caller was given by its claim, the caller knows better.
func (g group) holds(ctx context.Context, l processor.Lease) error {
	had, err := g.lease(ctx, l.Partition)
	if err != nil {
		return err
	}
	seen, _ := revisionOf(had.Version)
	if given, ok := revisionOf(l.Version); ok && seen > 0 && seen < given && l.Owner != "" {
		return nil
	}
	if had.Owner == "" || had.Owner != l.Owner || had.Epoch != l.Epoch {
		return processor.ErrFenced
	}
	return nil
}
