package broker

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/eventyard/eventyard/internal/quota"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta"
)

// ledger is what is known of the producers of one partition: which epoch each is in and
// which of its numbers are stored.
//
// What was stored is in the log itself: each batch carries its producer, epoch and first number.
// Reading all of it at each start would take too long, and retention removes it; and that an epoch
// has begun is in the log only when it has stored something. So there is a snapshot in the meta
// store, which is true up to some number in the log, and behind that the log is read. It is written
//
//   - before the first producer of a partition begins, so that where there is none no
//     batch of a producer is in the log either;
//   - when an epoch begins, before its first batch, so that the lower ones stay fenced; but not for
//     one that frames begin, which is in the log with the first of them and not promised before;
//   - now and then, by the broker's Run, so that there is little to read: when there is
//     something to write, or the log has grown.
//
// The account in memory moves only when the engine has said what became of a batch.
// Where it could not say, the log is read again. When the batch is found there it is
// stored. When it is not, that proves nothing yet: it may still come to light, after a
// crash at the latest. But an engine settles what is in doubt before it stores anything
// behind it; so the batch is appended again, and when that is answered all is known.
//
// Where several nodes append to a partition, a producer is one node's at a time: see
// producer_claims.go. The snapshot changes by compare-and-set: what another has written there
// counts as much as what we know, and its epochs fence ours.
type ledger struct {
	broker    *Broker
	hub       *hub
	number    int
	partition eventlog.Partition
	// accounts have a lock of their own, which is held for short moments, and never for I/O.
	accounts accounts

	// turn has room for the one who may begin an epoch, read the log and write the
	// snapshot. All below is the turn holder's.
	turn chan struct{}
	// loaded: the snapshot and what is behind it was read. revision is the snapshot's, saved is
	// up to where it is true, savedBytes how much the log held then, and savedChanges which
	// changes it has.
	loaded       bool
	revision     meta.Revision
	saved        eventlog.Sequence
	savedBytes   int64
	savedChanges uint64
}

func (l *ledger) takeTurn(ctx context.Context) error {
	select {
	case l.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (l *ledger) endTurn() { <-l.turn }

// begin begins an epoch of a producer, or goes on with it; see Broker.Producer.
func (l *ledger) begin(ctx context.Context, cfg ProducerConfig) (*Producer, error) {
	if err := l.takeTurn(ctx); err != nil {
		return nil, err
	}
	defer l.endTurn()
	if err := l.load(ctx); err != nil {
		return nil, err
	}
	p := &Producer{ledger: l}
	if p.account, p.last = l.accounts.outranked(cfg); p.account != nil {
		p.epoch = *cfg.Epoch
	} else {
		if !cfg.Yard && !l.knows(cfg.ID) {
			l.broker.ledgers.makeRoom(cfg.Account, l)
		}
		a, release := l.accounts.halt(cfg.ID)
		defer release()
		fresh, err := l.enter(ctx, a, cfg)
		if err != nil {
			return nil, err
		}
		l.own(a, cfg.Account)
		// Not what the account says by now: another node's epoch may have been faster.
		p.account, p.epoch, p.last = a, fresh.epoch, fresh.last
	}
	if cfg.Last != nil {
		p.last = *cfg.Last
	}
	return p, nil
}

// publish charges quotas for a batch and submits it. Nobody pays for what is not stored for it.
func (l *ledger) publish(ctx context.Context, held *account, p *Pending, by *quota.Meter, b eventlog.Batch) error {
	if err := p.paid.take(p, by); err != nil {
		l.accounts.owe(b)
		return err
	}
	err := l.submit(ctx, held, p, b)
	if err != nil || p.repeat {
		p.paid.refund()
	}
	if err == nil {
		return nil
	}
	if !errors.Is(err, ErrOutOfOrder) && !errors.Is(err, ErrProducerFenced) {
		l.accounts.owe(b)
	}
	return fmt.Errorf("producer %d: %w", b.Producer.ID, err)
}

// submit lets a batch travel with a flight, or finds the flight that stores it already. held is the
// account of who holds the producer; nil for frames, whose producers nobody does.
func (l *ledger) submit(ctx context.Context, held *account, p *Pending, b eventlog.Batch) error {
	for sure := l.accounts.sole; ; {
		start, wait, err := l.accounts.submit(p, b, sure)
		switch {
		case start != nil:
			return l.start(ctx, start)
		case wait != nil:
			err = until(ctx, wait)
		case err == nil:
			return nil
		case errors.Is(err, errUnbegun):
			// Who begins an epoch ends those before it: not in the name of a transaction that is not this producer's.
			if err = p.mayWrite(ctx, b.Form); err == nil {
				err = l.beginFrames(ctx, b.Producer, p.account)
			}
			sure = true
		case errors.Is(err, errDoubt), errors.Is(err, errForgotten), errors.Is(err, errUnclaimed):
			err = l.recall(ctx, b.Producer.ID, held)
			sure = true
		case errors.Is(err, errUnverified):
			err = l.verify(ctx, p, b.Producer.ID)
		}
		if err != nil {
			return err
		}
	}
}

// recall takes a producer up again that was forgotten, or claimed by another node, and clears up its
// flight in doubt.
func (l *ledger) recall(ctx context.Context, id int64, held *account) error {
	if err := l.takeTurn(ctx); err != nil {
		return err
	}
	defer l.endTurn()
	if err := l.load(ctx); err != nil {
		return err
	}
	a := l.accounts.remember(id, held)
	switch {
	case a == nil:
		return nil
	case l.accounts.doubtOf(a) != nil:
		return l.settleDoubt(ctx, a)
	case l.accounts.holds(a): // by now
		return nil
	}
	return l.claim(ctx, a)
}

// until waits for a channel to be closed.
func until(ctx context.Context, closed <-chan struct{}) error {
	select {
	case <-closed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// drain waits until nothing of a producer is in the air, or of any where a is nil.
func (l *ledger) drain(ctx context.Context, a *account) error {
	for f := l.accounts.inAir(a); f != nil; f = l.accounts.inAir(a) {
		if err := until(ctx, f.landed); err != nil {
			return err
		}
	}
	return nil
}

// settleDoubt reads the log for a flight in doubt and, where it is not found there,
// sends it off again.
func (l *ledger) settleDoubt(ctx context.Context, a *account) error {
	if l.accounts.doubtOf(a) == nil {
		return nil
	}
	if err := l.claim(ctx, a); err != nil { // behind it nothing of the flight comes to light any more
		return fmt.Errorf("look for what was stored: %w", err)
	}
	again := l.accounts.resume(a)
	if again == nil {
		return nil
	}
	if err := l.start(ctx, again); err != nil {
		return fmt.Errorf("store again what may not have been: %w", err)
	}
	if err := until(ctx, again.landed); err != nil {
		return err
	}
	return again.err
}

// read learns from the batches between two numbers. What is damaged is passed over: its
// events are lost, and the producers of the others shall go on.
func (l *ledger) read(ctx context.Context, from, to eventlog.Sequence) error {
	for from < to {
		err := l.readRun(ctx, &from, to)
		damage, damaged := errors.AsType[*eventlog.CorruptError](err)
		if !damaged {
			return err
		}
		l.broker.log.Warn("producers of damaged events are not known", "hub", l.hub.Name, "partition", l.number, "error", err)
		if damage.Next <= from {
			return nil
		}
		from = damage.Next
	}
	return nil
}

// readRun reads until it is done or fails, and leaves in from how far it got.
func (l *ledger) readRun(ctx context.Context, from *eventlog.Sequence, to eventlog.Sequence) error {
	cursor, err := l.partition.Cursor(ctx, eventlog.At(*from))
	if err != nil {
		return err
	}
	defer cursor.Close()
	for *from < to {
		run, err := cursor.TryNext(ctx)
		if err != nil || run.Len() == 0 {
			return err
		}
		l.accounts.learn(run)
		*from = cursor.At()
	}
	return nil
}

// start hands a flight to the engine and leaves it to a goroutine to wait for it: who
// submitted it may lose patience, and those behind it must not depend on that. The
// goroutine ends with the last answer of the engine, which gives one to every batch, at
// the latest when it is closed; drain waits for it.
func (l *ledger) start(ctx context.Context, f *flight) error {
	receipts, err := l.partition.SubmitAll(ctx, f.batches())
	if err == nil {
		go l.follow(f, receipts)
		return nil
	}
	reported := err
	if ctx.Err() != nil { // others may wait for it who have not lost patience
		reported = fmt.Errorf("%w: its sender gave up", eventlog.ErrFenced)
	}
	l.accounts.crash(f, nil, reported, false, lost(err))
	return err
}

// follow waits for a flight and starts what has gathered behind it, until nothing has.
func (l *ledger) follow(f *flight, receipts []eventlog.Receipt) {
	for {
		stored, err := collect(receipts)
		l.hub.metrics.published(f.size(len(stored)))
		if err != nil {
			l.accounts.crash(f, stored, err, !certain(err), lost(err))
			return
		}
		if f = l.accounts.land(f, stored); f == nil {
			return
		}
		if receipts, err = l.partition.SubmitAll(context.Background(), f.batches()); err != nil {
			l.accounts.crash(f, nil, err, false, lost(err))
			return
		}
	}
}

// collect waits for batches that were submitted together, and gives those up to the first of which it is
// not known that it is stored. Those behind that one are not, or nobody knows.
func collect(receipts []eventlog.Receipt) (stored []eventlog.Appended, err error) {
	for _, r := range receipts {
		one, failed := r.Wait(context.Background())
		if err == nil && failed == nil {
			stored = append(stored, one)
		}
		err = cmp.Or(err, failed)
	}
	return stored, err
}
