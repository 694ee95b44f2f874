package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/eventyard/eventyard/processor"
)

// InTx gives a handler that calls work with a transaction in which the batch's checkpoint is moved,
// too: what work writes in it is there exactly once, whoever dies whenever. work neither ends the
// transaction nor calls Batch.Checkpoint, which is an error: the checkpoint moves when work returns
// nil. The store has to be the processor's Config.Store, or what that wraps: by embedding it, or
// with a method Unwrap() processor.Store.
//
//   - The transaction locks the checkpoint's row and looks at its version and the lease
//     before work runs, and again at the lease after.
//   - An error of work, or a panic, rolls it back; the batch comes again.
//   - When the answer to the commit is lost, that is an error, too, and the batch comes again. The
//     lock waits for the first transaction's end, and the row shows how it ended: if it was
//     committed, work does not run a second time.
//   - A new owner of the partition waits in Begin for the transaction's end, or ends it
//     (Config.Evict), and so reads the checkpoint that goes with what was written.
//
// A batch without events (Config.CallWhenIdle) has a transaction, too, under the same lock; it
// moves no checkpoint, so when the answer to its commit is lost, that is not found out. Lanes have
// no checkpoint to move, and are an error.
func (s *Store) InTx(work func(ctx context.Context, tx pgx.Tx, b *processor.Batch) error) processor.Handler {
	return func(ctx context.Context, b *processor.Batch) error {
		run := func(tx pgx.Tx) error { return work(ctx, innerTx{tx}, b) }
		mark, err := b.Mark()
		if err != nil {
			return err
		}
		if !s.keeps(mark.Store) {
			return errOtherStore
		}
		if len(b.Events) == 0 {
			_, err := inTx{s, mark, noEvents}.run(ctx, run)
			return err
		}
		stored, err := inTx{s, mark, b.Events[0].Sequence}.run(ctx, run)
		if err == nil {
			b.Recorded(stored)
		}
		return err
	}
}

// errOurs is what work gets that would end the transaction.
var errOurs = errors.New("the transaction ends when the function returns: with nil it is committed")

// innerTx is the transaction as work sees it.
type innerTx struct{ pgx.Tx }

func (innerTx) Commit(context.Context) error   { return errOurs }
func (innerTx) Rollback(context.Context) error { return errOurs }

// inTx is one call of a transaction handler.
type inTx struct {
	*Store
	mark  processor.Mark
	first int64 // sequence number of the batch's first event, or noEvents
}

const noEvents = -1

// run gives the checkpoint as it is stored.
func (c inTx) run(ctx context.Context, work func(tx pgx.Tx) error) (processor.Checkpoint, error) {
	if err := c.ready(ctx); err != nil {
		return processor.Checkpoint{}, err
	}
	began := false
	first := func(tx pgx.Tx) error { began = true; return work(tx) }
	stored, err := c.try(ctx, first)
	if hasCode(err, lockNotAvailable) && !began {
		// As calls for a partition never overlap, whoever is in the way has lost it, or is an
		// earlier call of ours whose connection the server believes to be alive.
		if err := c.evict(ctx, c.mark.Group, c.mark.Lease); err != nil {
			return processor.Checkpoint{}, c.failed("lock the checkpoint", err)
		}
		stored, err = c.try(ctx, work)
	}
	return stored, err
}

// try makes one transaction.
func (c inTx) try(ctx context.Context, work func(tx pgx.Tx) error) (processor.Checkpoint, error) {
	tx, err := c.pool.BeginTx(ctx, c.cfg.Tx)
	if err != nil {
		return processor.Checkpoint{}, c.failed("begin", err)
	}
	// This ends what was not committed, also when ctx has ended. It does nothing after a commit or
	// on a connection that is lost, and gives up one that does not answer: the pool closes it.
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerTime)
		defer cancel()
		_ = tx.Rollback(ctx)
	}()
	had, err := c.lock(ctx, tx)
	if err != nil {
		return processor.Checkpoint{}, c.failed("lock the checkpoint", err)
	}
	base, done, err := c.judge(had)
	if err != nil || done {
		return had.Checkpoint, err
	}
	if err := work(tx); err != nil {
		return processor.Checkpoint{}, err
	}
	stored := had.Checkpoint
	if c.first != noEvents {
		if stored, err = c.move(ctx, tx, base); err != nil {
			return processor.Checkpoint{}, c.failed("move the checkpoint", err)
		}
	}
	if err := tx.Commit(ctx); err != nil {
		return processor.Checkpoint{}, c.failed("commit", err)
	}
	return stored, nil
}

func (c inTx) failed(doing string, err error) error {
	return fmt.Errorf("transaction on %s/%s/%s: %s: %w", c.mark.Group.Hub, c.mark.Group.Group, c.mark.Lease.Partition, doing, err)
}

// locked is a checkpoint's row, and whether the lease was the partition's.
type locked struct {
	processor.Checkpoint
	fence int64
	held  bool
}

const lockCheckpoint = "select " + checkpointColumns + ", fence, " + held + ` from {checkpoints}
where {group} and partition = $4 for update`

// lock waits for whoever writes the checkpoint, and keeps others from it until the
// transaction's end. The advisory lock comes first: it shows who we are to a new owner.
func (c inTx) lock(ctx context.Context, tx pgx.Tx) (locked, error) {
	g, l := c.mark.Group, c.mark.Lease
	statements := &pgx.Batch{}
	statements.Queue(c.lockTimeout())
	statements.Queue("select pg_advisory_xact_lock($1)", c.transactionLock(g, l.Partition))
	statements.Queue(c.sql.Replace(lockCheckpoint), append(names(g), l.Partition, l.Owner, l.Epoch)...)
	statements.Queue("set local lock_timeout to default") // work's own waits are work's business
	results := tx.SendBatch(ctx, statements)
	defer results.Close()
	for range 2 {
		if _, err := results.Exec(); err != nil {
			return locked{}, err
		}
	}
	var had locked
	at := &had.Checkpoint
	err := results.QueryRow().Scan(&at.Partition, &at.Sequence, &at.Offset, &at.Epoch, &at.HubID, &at.Updated, &at.Version, &had.fence, &had.held)
	if errors.Is(err, pgx.ErrNoRows) {
		// Begin has made the row, so it is in another database, or someone has removed it.
		if o := in(c.mark.Store); o != nil && o.pool != c.pool {
			return had, errOtherStore
		}
		return had, processor.ErrConflict
	}
	return had, errors.Join(err, results.Close())
}

// judge gives the version in which the checkpoint is moved, or finds that it is done already: by an
// earlier transaction or save of ours whose answer was lost. Of a version that we do not know that
// is so if it was written under our own lease; of one that we have come to know since, the mark
// says it.
func (c inTx) judge(had locked) (base processor.Version, done bool, err error) {
	at := c.mark.Checkpoint
	stored := had.Sequence
	if had.Version == at.Version {
		stored = c.mark.Stored
	}
	switch {
	case !had.held || had.fence != c.mark.Lease.Epoch:
		return "", false, c.failed("look at the lease", processor.ErrFenced)
	case c.first == noEvents:
		return "", false, nil
	case had.Version != at.Version && had.Epoch != c.mark.Lease.Epoch:
		return "", false, c.failed("look at the checkpoint", processor.ErrConflict)
	case stored >= at.Sequence:
		return "", true, nil
	case stored >= c.first: // some of the batch is done: it has to begin later
		return "", false, c.failed("look at the checkpoint", processor.ErrConflict)
	}
	return had.Version, false, nil
}

// move writes the checkpoint, if the lease is still ours.
func (c inTx) move(ctx context.Context, tx pgx.Tx, base processor.Version) (processor.Checkpoint, error) {
	at, l, g := c.mark.Checkpoint, c.mark.Lease, c.mark.Group
	rows, err := tx.Query(ctx, c.sql.Replace(saveCheckpoint), append(names(g),
		l.Partition, l.Owner, l.Epoch, at.Sequence, at.Offset, at.HubID, string(base))...)
	if err != nil {
		return at, err
	}
	got, err := pgx.CollectExactlyOneRow(rows, scanSaved)
	if err != nil {
		return at, err
	}
	at.Partition, at.Epoch = l.Partition, l.Epoch
	return got.apply(at)
}

// errOtherStore: the processor keeps its checkpoints elsewhere, and nothing here could move them.
var errOtherStore = errors.New("transaction: the processor keeps its checkpoints in another store: set Config.Store to the store whose InTx is used")

// in finds ourselves in the processor's store: a user's store may have one of this package in it,
// embedded or given by a method Unwrap.
func in(other processor.Store) *Store {
	for {
		switch s := other.(type) {
		case interface{ self() *Store }:
			return s.self()
		case interface{ Unwrap() processor.Store }:
			other = s.Unwrap()
		default:
			return nil
		}
	}
}

func (s *Store) self() *Store { return s }

// keeps reports whether the processor's store has its records where we have ours, as far as that is
// known without asking the database: two pools may lead to the same one.
func (s *Store) keeps(other processor.Store) bool {
	o := in(other)
	return o != nil && o.cfg.Schema == s.cfg.Schema && o.cfg.Prefix == s.cfg.Prefix
}
