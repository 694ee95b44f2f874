package groups

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/processor"
)

// Leases reads all leases of a group.
func (k *Registry) Leases(ctx context.Context, g processor.Group) ([]processor.Lease, error) {
	at, err := k.find(ctx, g)
	if err != nil {
		return nil, err
	}
	return k.leases(ctx, at)
}

func (k *Registry) leases(ctx context.Context, at location) ([]processor.Lease, error) {
	entries, err := k.meta.List(ctx, at.leases())
	if err != nil {
		return nil, fmt.Errorf("read leases: %w", err)
	}
	leases := make([]processor.Lease, len(entries))
	for i, e := range entries {
		record, err := decode[leaseRecord](e)
		if err != nil {
			return nil, err
		}
		leases[i] = record.lease(strings.TrimPrefix(e.Key, at.leases()), e.Revision)
	}
	return leases, nil
}

// Claim writes leases, each by a compare-and-set. They are made at once, since a store that
// writes many changes together needs them together. An acquisition that does not raise the epoch is a
// failed condition, too.
func (k *Registry) Claim(ctx context.Context, g processor.Group, leases []processor.Lease) ([]processor.Lease, error) {
	at, err := k.find(ctx, g)
	if err != nil || len(leases) == 0 {
		return nil, err
	}
	for _, l := range leases {
		if err := checkLease(at, l); err != nil {
			return nil, err
		}
	}
	recorded, err := k.recorded(ctx, at, leases)
	if err != nil {
		return nil, err
	}
	outcomes := make([]outcome, len(leases))
	atOnce(len(leases), func(i int) {
		outcomes[i] = k.claim(ctx, at, recorded[leases[i].Partition], leases[i])
	})
	return k.conclude(ctx, at, outcomes)
}

func checkLease(at location, l processor.Lease) error {
	if l.Epoch < 0 {
		return fmt.Errorf("lease of partition %s: %w: epoch %d is below zero", l.Partition, ErrInvalid, l.Epoch)
	}
	return errors.Join(at.has(l.Partition), checkText("owner", l.Owner, maxOwnerBytes))
}

// recorded reads the leases that are to be written.
func (k *Registry) recorded(ctx context.Context, at location, leases []processor.Lease) (map[string]processor.Lease, error) {
	byPartition := make(map[string]processor.Lease, len(leases))
	if len(leases) > 1 {
		all, err := k.leases(ctx, at)
		for _, l := range all {
			byPartition[l.Partition] = l
		}
		return byPartition, err
	}
	l, err := k.lease(ctx, at, leases[0].Partition)
	byPartition[l.Partition] = l
	return byPartition, err
}

// lease reads one; without a version if there is none.
func (k *Registry) lease(ctx context.Context, at location, partition string) (processor.Lease, error) {
	entry, err := k.meta.Get(ctx, at.lease(partition))
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
func (k *Registry) claim(ctx context.Context, at location, had, l processor.Lease) outcome {
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
	key := at.lease(l.Partition)
	revision, err := k.meta.CompareAndSet(ctx, key, expected, encode(record))
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

// mayFollow tells whether a lease may be written over the one that was read. A read may be
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

// conclude gathers what was written.
func (k *Registry) conclude(ctx context.Context, at location, outcomes []outcome) ([]processor.Lease, error) {
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
	if err := k.settle(ctx, at, first...); err != nil {
		return nil, err
	}
	return won, joined(errs)
}

// joined is the first error, with how many there were: a thousand failed leases have one
// cause.
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

// holds wants the lease to be the partition's, in whatever version: ErrFenced if not. Where
// the read is older than the version that the caller was given by its claim, the caller knows better.
func (k *Registry) holds(ctx context.Context, at location, l processor.Lease) error {
	had, err := k.lease(ctx, at, l.Partition)
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
