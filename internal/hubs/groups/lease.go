package groups

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/eventyard/eventyard/internal/parallel"
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

// leases reads them with the time of their owner's presence, where they hang on it.
func (g group) leases(ctx context.Context) ([]processor.Lease, error) {
	var records []leaseRecord
	leases, err := list(ctx, g, "leases", leasePrefix, "", func(r leaseRecord, partition string, revision meta.Revision) processor.Lease {
		records = append(records, r)
		return r.lease(partition, revision)
	})
	if err != nil || !slices.ContainsFunc(records, func(r leaseRecord) bool { return r.Presence != "" }) {
		return leases, err
	}
	who, err := g.presencesByID(ctx)
	for i, r := range records {
		leases[i].Renewed = r.renewed(who[r.Owner])
	}
	return leases, err
}

// KeepsPresence: leases can hang on their owner's presence.
func (k *Registry) KeepsPresence() bool { return true }

// Claim writes leases, each by a compare-and-set. They are made at once, since a store that writes
// many changes together needs them together. An acquisition that does not raise the epoch is a
// failed condition, too.
func (k *Registry) Claim(ctx context.Context, of processor.Group, leases []processor.Lease) ([]processor.Lease, error) {
	return k.ClaimBy(ctx, k.itself, of, leases)
}

// ClaimBy is Claim for a client. Where that is no operator, a lease that it has no right to write
// is one whose condition fails, and an acquisition raises the epoch by one, whatever it asks for.
func (k *Registry) ClaimBy(ctx context.Context, by Caller, of processor.Group, leases []processor.Lease) ([]processor.Lease, error) {
	g, err := k.find(ctx, of)
	if err != nil || len(leases) == 0 {
		return nil, err
	}
	for _, l := range leases {
		if l.Epoch < 0 {
			return nil, fmt.Errorf("lease of partition %s: %w: epoch %d is below zero", l.Partition, ErrInvalid, l.Epoch)
		}
		if err := errors.Join(g.has(l.Partition), checkText("owner", l.Owner, maxOwnerBytes), checkText("presence", l.Presence, maxLifeBytes)); err != nil {
			return nil, err
		}
	}
	recorded, err := g.recorded(ctx, leases)
	if err != nil {
		return nil, err
	}
	who, err := g.presences(ctx, by, recorded, leases)
	if err != nil {
		return nil, err
	}
	outcomes := make([]outcome, len(leases))
	parallel.Each(len(leases), maxAtOnce, func(i int) { outcomes[i] = g.claimBy(ctx, by, who, recorded[leases[i].Partition], leases[i]) })
	var won []processor.Lease
	var first []created
	var errs []error
	for _, o := range outcomes {
		if o.won {
			won = append(won, o.lease)
			noteOwner(ctx, g, o.lease.Partition, recorded[o.lease.Partition].Owner, o.lease.Owner)
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

// leaseRead is a lease as it was read; revision zero: there is none.
type leaseRead struct {
	leaseRecord
	revision meta.Revision
}

// seen is the version that callers know it by.
func (l leaseRead) seen() processor.Version {
	if l.revision == 0 {
		return ""
	}
	return versionOf(l.revision)
}

// recorded reads the leases that are to be written, by partition.
func (g group) recorded(ctx context.Context, leases []processor.Lease) (map[string]leaseRead, error) {
	byPartition := make(map[string]leaseRead, len(leases))
	if len(leases) == 1 {
		l, err := g.lease(ctx, leases[0].Partition)
		byPartition[leases[0].Partition] = l
		return byPartition, err
	}
	_, err := list(ctx, g, "leases", leasePrefix, "", func(r leaseRecord, partition string, revision meta.Revision) struct{} {
		byPartition[partition] = leaseRead{r, revision}
		return struct{}{}
	})
	return byPartition, err
}

// lease reads one.
func (g group) lease(ctx context.Context, partition string) (leaseRead, error) {
	entry, err := g.k.meta.Get(ctx, g.Prefix+leasePrefix+partition)
	if errors.Is(err, meta.ErrNotFound) {
		return leaseRead{}, nil
	}
	if err != nil {
		return leaseRead{}, fmt.Errorf("read lease of partition %s: %w", partition, err)
	}
	record, err := decode[leaseRecord](entry)
	return leaseRead{record, entry.Revision}, err
}

// outcome is what became of one lease of a claim.
type outcome struct {
	won     bool
	lease   processor.Lease
	created created // only if it did not exist
	err     error
}

// claimBy writes one lease if the caller may.
func (g group) claimBy(ctx context.Context, by Caller, who presences, had leaseRead, l processor.Lease) outcome {
	expected, ok := revisionOf(l.Version)
	if !ok || had.revision > expected {
		return outcome{}
	}
	if !by.Operator {
		var may bool
		var err error
		if l, may, err = g.mayClaim(by, who, had, l, expected); err != nil || !may {
			return outcome{err: err}
		}
	}
	return g.claim(ctx, by, had, l, expected)
}

// mayClaim judges a claim of a client that is no operator, by the very record that the comparison
// will find.
func (g group) mayClaim(by Caller, who presences, had leaseRead, l processor.Lease, expected meta.Revision) (processor.Lease, bool, error) {
	if had.revision < expected {
		if had.revision == 0 {
			return l, false, nil
		}
		return l, false, fmt.Errorf("lease of partition %s: %w", l.Partition, ErrBehind)
	}
	l, act, rises := raised(had.leaseRecord, l)
	if !rises {
		g.k.log.Warn("a lease's epoch cannot rise any more: eventyard group release begins anew",
			"hub", g.Hub.Name, "group", g.Group.Name, "partition", l.Partition)
		return l, false, nil
	}
	now := now()
	if l.Owner != "" && by.whoseEntry(who[l.Owner], g.k.up, now) == anothers {
		return l, false, nil // in the name of another that lives
	}
	return l, mayListen[act][by.whoseLease(had.leaseRecord, who[had.Owner], g.k.up, now)], nil
}

// claim writes one lease.
func (g group) claim(ctx context.Context, by Caller, had leaseRead, l processor.Lease, expected meta.Revision) outcome {
	if !mayFollow(had, l, expected) {
		return outcome{}
	}
	record := leaseRecord{V: recordVersion, Owner: l.Owner, Epoch: l.Epoch, Renewed: now(), Acquired: l.Acquired.UTC(), Presence: l.Presence}
	if l.Owner != "" {
		record.bond = by.bond()
	}
	inVain := l.Acquired.IsZero() || l.Acquired.After(record.Renewed) // what the caller says of it
	switch known := had.seen() == l.Version; {
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
func mayFollow(had leaseRead, l processor.Lease, expected meta.Revision) bool {
	switch {
	case had.revision > expected:
		return false
	case had.revision < expected || had.revision == 0:
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

// holds wants the lease to be the partition's, in whatever version, and the caller's: ErrFenced if
// not. Where the read is older than the version that the caller was given by its claim, the caller
// knows better; but only an operator is believed.
func (g group) holds(ctx context.Context, by Caller, l processor.Lease) error {
	had, err := g.lease(ctx, l.Partition)
	if err != nil {
		return err
	}
	given, ok := revisionOf(l.Version)
	older := ok && had.revision > 0 && had.revision < given && l.Owner != ""
	if older && by.Operator {
		return nil
	}
	if had.Owner == "" || had.Owner != l.Owner || had.Epoch != l.Epoch {
		if older {
			return fmt.Errorf("lease of partition %s: %w", l.Partition, ErrBehind)
		}
		return processor.ErrFenced
	}
	if by.Operator {
		return nil
	}
	mine, err := g.mayWriteUnder(ctx, by, had)
	if err == nil && !mine {
		err = processor.ErrFenced
	}
	return err
}

// mayWriteUnder tells whether a lease is one that the caller may write under.
func (g group) mayWriteUnder(ctx context.Context, by Caller, l leaseRead) (bool, error) {
	w := by.whoseLease(l.leaseRecord, nil, g.k.up, now())
	if w == anothers || w == abandoned {
		p, err := g.presence(ctx, l.Owner)
		if err != nil {
			return false, err
		}
		w = by.whoseLease(l.leaseRecord, p, g.k.up, now())
	}
	return mayListen[actSave][w], nil
}
