package broker

import (
	"context"
	"errors"
	"fmt"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// clearUp finds out what became of a producer's flight in doubt.
func (l *ledger) clearUp(ctx context.Context, id int64) error {
	if err := l.takeTurn(ctx); err != nil {
		return err
	}
	defer l.endTurn()
	l.mu.Lock()
	a := l.accounts[id]
	l.mu.Unlock()
	if a == nil {
		return nil
	}
	return l.settleDoubt(ctx, a)
}

// settleDoubt reads the log for a flight in doubt and, where it is not found there,
// sends it off again.
func (l *ledger) settleDoubt(ctx context.Context, a *account) error {
	l.mu.Lock()
	f := a.doubt
	l.mu.Unlock()
	if f == nil {
		return nil
	}
	bounds, err := l.partition.Bounds(ctx)
	if err != nil {
		return fmt.Errorf("look for what was stored: %w", err)
	}
	if err := l.read(ctx, f.floor, bounds.Next); err != nil {
		return fmt.Errorf("look for what was stored: %w", err)
	}
	again := l.resume(a)
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

// resume ends the doubt where the log has answered it, and makes the flight that has to
// be sent off where it has not.
func (l *ledger) resume(a *account) *flight {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := a.doubt
	a.doubt = nil
	switch {
	case a.epoch != f.epoch: // another node's has begun: it is for that one to say
		return nil
	case a.last == ahead(f.first, f.count-1):
		a.recent = record{}.extend(f.first, f.count, f.parts).recent // the log could not say
		return nil
	}
	a.air = &flight{
		account: a, epoch: f.epoch, first: f.first, count: f.count, bytes: f.bytes, parts: f.parts,
		events: f.events, floor: f.floor, again: true, landed: make(chan struct{}),
	}
	return a.air
}

// read learns from the batches between two numbers. What is damaged is passed over: its
// events are lost, and the producers of the others shall go on.
func (l *ledger) read(ctx context.Context, from, to eventlog.Sequence) error {
	for from < to {
		err := l.readRun(ctx, &from, to)
		damage, damaged := errors.AsType[*eventlog.CorruptError](err)
		switch {
		case err == nil:
			return nil
		case !damaged:
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
		if err != nil {
			return err
		}
		if len(run.Events) == 0 {
			return nil
		}
		l.learn(run)
		*from = cursor.At()
	}
	return nil
}

// learn enters what the log says. A flight in the air is left alone: what is stored of
// it, it will say itself.
func (l *ledger) learn(run eventlog.Run) {
	if !run.Producer.Set {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.accounts[run.Producer.ID]
	if a == nil {
		a = &account{id: run.Producer.ID, record: record{epoch: -1}}
		l.addLocked(a)
	}
	if a.air == nil {
		l.changes++
		a.record = a.record.learn(run.Producer, len(run.Events), run.Time.Unix())
		a.kept = a.kept || a.epoch == run.Producer.Epoch
	}
}
