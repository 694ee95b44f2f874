package bolt

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"

	"github.com/eventyard/eventyard/internal/storage/meta"
)

// What one transaction takes at most, so that a crowd does not make it endless.
const (
	maxBatchChanges = 1024
	maxBatchBytes   = 8 << 20
)

// change is one compare-and-set or deletion on its way.
type change struct {
	key      string
	expected meta.Revision
	record   []byte // nil: delete the key
	// left: the caller has gone and wants it undone. Guarded by Store.mu, final once
	// the batch is sealed.
	left bool

	// The answer: written by the batch's leader, read after the batch is done.
	revision meta.Revision
	err      error
}

// batch is what one transaction will hold.
type batch struct {
	changes []*change // guarded by Store.mu until sealed, then the leader's
	bytes   int       // guarded by Store.mu
	sealed  bool      // guarded by Store.mu
	done    chan struct{}
}

// submit has a change committed, with others, and gives its error.
func (s *Store) submit(ctx context.Context, c *change) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	b, leads, err := s.join(c)
	if err != nil {
		return err
	}
	if leads {
		s.lead(b)
		return c.err
	}
	select {
	case <-b.done:
		return c.err
	case <-ctx.Done(): // it is taken back if its batch is not sealed
		s.mu.Lock()
		defer s.mu.Unlock()
		c.left = !b.sealed
		return ctx.Err()
	}
}

// join puts a change into the batch that is open, or opens one for the caller to lead.
func (s *Store) join(c *change) (b *batch, leads bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return nil, false, meta.ErrClosed
	}
	b = s.joining
	if leads = b == nil; leads {
		b = &batch{done: make(chan struct{})}
		s.joining = b
	}
	b.changes = append(b.changes, c)
	b.bytes += len(c.key) + len(c.record)
	if len(b.changes) >= maxBatchChanges || b.bytes >= maxBatchBytes {
		s.joining = nil // full: the next caller opens another
	}
	return b, leads, nil
}

// seal closes the batch to newcomers and gives the changes that are still wanted.
func (s *Store) seal(b *batch) []*change {
	s.mu.Lock()
	defer s.mu.Unlock()
	b.sealed = true
	if s.joining == b {
		s.joining = nil
	}
	wanted := b.changes[:0]
	for _, c := range b.changes {
		if !c.left {
			wanted = append(wanted, c)
		}
	}
	return wanted
}

// lead waits for its turn, commits the batch and answers everyone in it.
func (s *Store) lead(b *batch) {
	s.commit.Lock()
	defer s.commit.Unlock()
	changes := s.seal(b)
	// Nobody must wait for ever behind a panic in the storage library.
	finished := false
	defer func() {
		if !finished {
			s.fail(changes, errors.New("storage library panicked"))
		}
		close(b.done)
	}()
	s.commitChanges(changes)
	finished = true
}

// commitChanges makes the changes in one transaction and fills in their answers. The
// caller holds commit.
func (s *Store) commitChanges(changes []*change) {
	if err := s.settle(); err != nil {
		answerAll(changes, err)
		return
	}
	err := s.update(func(tx *bbolt.Tx) error {
		full := s.room.hold(tx.Size(), needOf(changes))
		if full != nil && asFull(full) == nil {
			return full
		}
		return apply(tx, changes, full)
	})
	if len(changes) > 1 && err != nil && asFull(err) != nil && s.untouched() {
		// Together they want more than the reserve has. One by one each finds the pages that those
		// before it have freed.
		for _, c := range changes {
			s.commitChanges([]*change{c})
		}
		return
	}
	switch {
	case err == nil:
		s.publish(changes)
	case errors.Is(err, errNothingToCommit):
	case errors.Is(err, bbolterrors.ErrDatabaseNotOpen):
		answerAll(changes, meta.ErrClosed)
	default:
		s.fail(changes, err)
	}
}

// apply judges each change against the transaction's state, in which those before it
// have been made already, and makes it or notes why not. If the disk is full it makes only those
// that the reserve is for.
func apply(tx *bbolt.Tx, changes []*change, full error) error {
	entries := tx.Bucket(entriesBucket())
	sum, err := loadTally(tx)
	if err != nil {
		return err
	}
	before := sum.revision
	for _, c := range changes {
		var revision meta.Revision
		present := entries.Get([]byte(c.key))
		if c.err = nil; present != nil {
			revision, _, c.err = openRecord(present, c.key)
		}
		if c.err == nil && revision != c.expected {
			c.err = meta.ErrConflict
		}
		if c.err == nil && full != nil && !c.frugal(present) {
			c.err = fmt.Errorf("%w: what is left is for deletions and small changes: %w", meta.ErrNoSpace, full)
		}
		if c.err != nil {
			continue
		}
		sum.revision++
		c.revision = sum.revision
		if present != nil {
			sum.remove(present)
		}
		if c.record == nil {
			err = entries.Delete([]byte(c.key))
		} else {
			sealRecord(c.record, c.key, c.revision)
			sum.add(c.record)
			err = entries.Put([]byte(c.key), c.record)
		}
		if err != nil {
			return err
		}
	}
	if sum.revision == before {
		return errNothingToCommit
	}
	return sum.save(tx)
}

// reported is the change as watchers get it. They share the value: each copies it for its reader.
func (c *change) reported() meta.Change {
	reported := meta.Change{Entry: meta.Entry{Key: c.key, Revision: c.revision}, Deleted: c.record == nil}
	if !reported.Deleted {
		reported.Value = c.record[recordValue:]
	}
	return reported
}

// publish marks the changes that were made as durable and notifies the watchers.
func (s *Store) publish(changes []*change) {
	made := make([]meta.Change, 0, len(changes))
	for _, c := range changes {
		if c.err == nil {
			made = append(made, c.reported())
		}
	}
	s.durable.Store(uint64(made[len(made)-1].Revision))
	s.board.notify(made)
}

func answerAll(changes []*change, err error) {
	for _, c := range changes {
		c.err = err
	}
}

// doubt is a commit that failed so late that it may have been made.
type doubt struct {
	changes []change // those that were to be made, with their revisions
	cause   error
}

// fail answers for a commit that failed. Everyone gets the error, also who lost a
// comparison: it was made against a state that did not come to be.
func (s *Store) fail(changes []*change, cause error) {
	if s.untouched() {
		// It has left no trace. A full disk is a refusal and no doubt; of any other failure we
		// rather promise nothing.
		err := fmt.Errorf("%w: %w", meta.ErrUncertain, cause)
		if full := asFull(cause); full != nil {
			err = fmt.Errorf("%w: %w", meta.ErrNoSpace, full)
		}
		answerAll(changes, err)
		return
	}
	s.doubt = &doubt{cause: cause}
	for _, c := range changes {
		if c.err == nil {
			s.doubt.changes = append(s.doubt.changes, *c)
		}
	}
	answerAll(changes, fmt.Errorf("%w: %w", meta.ErrUncertain, cause))
}

// untouched tells whether a commit that failed has left no trace.
func (s *Store) untouched() bool {
	seen, err := s.db.revision()
	return err == nil && uint64(seen) == s.durable.Load()
}

// settle ends a doubt: afterwards the changes are durable or were never made. The
// caller holds commit.
func (s *Store) settle() error {
	if s.doubt == nil {
		return nil
	}
	s.gate.Lock()
	defer s.gate.Unlock()
	if err := s.resync(); err != nil {
		return fmt.Errorf("%w: an earlier change is in doubt (%w) and cannot be settled: %w", meta.ErrUncertain, s.doubt.cause, err)
	}
	seen, err := s.db.revision()
	if err != nil {
		return fmt.Errorf("%w: an earlier change is in doubt (%w) and cannot be seen: %w", meta.ErrUncertain, s.doubt.cause, err)
	}
	made := uint64(seen) != s.durable.Load()
	if made {
		changes := make([]*change, len(s.doubt.changes))
		for i := range changes {
			changes[i] = &s.doubt.changes[i]
		}
		s.publish(changes)
	}
	s.log.Warn("change in doubt was settled", "made", made, "cause", s.doubt.cause)
	s.doubt = nil
	return nil
}
