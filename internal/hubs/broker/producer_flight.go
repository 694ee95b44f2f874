package broker

import (
	"context"
	"errors"
	"fmt"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// flight is one batch on its way into the log.
type flight struct {
	account *account
	epoch   int16
	first   int32
	count   int
	bytes   int
	// parts is how many events each of the publications has that it is made of.
	parts []uint32
	// events are copies. They are kept until it is known what became of them.
	events []eventlog.Event
	// floor is a number that it cannot get below: all below was stored when it started.
	floor eventlog.Sequence
	// again: it started before, with unknown outcome.
	again bool

	// landed is closed when the outcome is known: stored or err, set before and not
	// changed after.
	landed chan struct{}
	stored eventlog.Appended
	err    error
}

// over is the record when the flight is stored.
func (f *flight) over(r record) record { return r.extend(f.first, f.count, f.parts) }

func (l *ledger) newFlight(a *account, first int32) *flight {
	return &flight{account: a, epoch: a.epoch, first: first, floor: l.seen, landed: make(chan struct{})}
}

// join takes a publication along.
func (f *flight) join(p *Pending, events []eventlog.Event) {
	p.flight, p.offset = f, f.count
	f.events = append(f.events, events...)
	f.count += p.count
	f.bytes += p.bytes
	f.parts = append(f.parts, uint32(p.count))
}

// copyEvents makes the events outlive the bytes that they were given with.
func copyEvents(events []eventlog.Event) []eventlog.Event {
	size := 0
	for _, e := range events {
		size += len(e.Key) + len(e.Message)
	}
	bytes, copied := make([]byte, 0, size), make([]eventlog.Event, len(events))
	keep := func(part []byte) []byte {
		at := len(bytes)
		bytes = append(bytes, part...)
		return bytes[at:len(bytes):len(bytes)]
	}
	for i, e := range events {
		copied[i] = eventlog.Event{Key: keep(e.Key), Message: keep(e.Message)}
	}
	return copied
}

// start hands a flight to the engine and leaves it to a goroutine to wait for it: who
// submitted it may lose patience, and those behind it must not depend on that. The
// goroutine ends with the last answer of the engine, which gives one to every batch, at
// the latest when it is closed; settle waits for it.
func (l *ledger) start(ctx context.Context, f *flight) error {
	receipt, err := l.partition.Submit(ctx, f.batch())
	if err == nil {
		go l.follow(f, receipt)
		return nil
	}
	reported := err
	if ctx.Err() != nil { // others may wait for it who have not lost patience
		reported = fmt.Errorf("%w: its sender gave up", eventlog.ErrFenced)
	}
	l.crash(f, reported, false)
	return err
}

// follow waits for a flight and starts what has gathered behind it, until nothing has.
func (l *ledger) follow(f *flight, receipt eventlog.Receipt) {
	for f != nil {
		stored, err := receipt.Wait(context.Background())
		if err != nil {
			l.crash(f, err, !certain(err))
			return
		}
		if f = l.land(f, stored); f == nil {
			return
		}
		if receipt, err = l.partition.Submit(context.Background(), f.batch()); err != nil {
			l.crash(f, err, false)
			return
		}
	}
}

func (f *flight) batch() eventlog.Batch {
	a := f.account
	return eventlog.Batch{Events: f.events, Producer: eventlog.Producer{ID: a.id, Epoch: f.epoch, First: f.first, Set: true}}
}

// land ends a flight that was stored and gives the next one, which the caller has to
// start.
func (l *ledger) land(f *flight, stored eventlog.Appended) (next *flight) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := f.account
	f.events, f.stored = nil, stored
	l.countLocked(f)
	if next = a.queue; next != nil {
		next.floor = l.seen
	}
	a.air, a.queue = next, nil
	close(f.landed)
	return next
}

// crash ends a flight that was not stored, or of which that is not known. Nothing that
// gathered behind it is stored.
func (l *ledger) crash(f *flight, err error, doubt bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := f.account
	f.err = err
	if doubt || f.again {
		a.doubt = f
	}
	if next := a.queue; next != nil {
		next.err = fmt.Errorf("%w: the numbers before were not stored", eventlog.ErrFenced)
		close(next.landed)
	}
	a.air, a.queue = nil, nil
	close(f.landed)
}

// countLocked enters what was stored.
func (l *ledger) countLocked(f *flight) {
	a := f.account
	if f.epoch == a.epoch {
		a.record = f.over(a.record)
		a.used, a.kept = f.stored.Time.Unix(), true
	}
	l.changes++
	l.seen = max(l.seen, f.stored.First+eventlog.Sequence(f.count))
	l.hub.metrics.published(f.count, f.bytes)
}

// certain tells whether an append that failed has certainly stored nothing.
func certain(err error) bool {
	if errors.Is(err, eventlog.ErrUncertain) {
		return false
	}
	for _, refusal := range []error{
		eventlog.ErrFenced, eventlog.ErrNoSpace, eventlog.ErrRemoved,
		eventlog.ErrClosed, eventlog.ErrTooLarge, eventlog.ErrEmptyBatch,
	} {
		if errors.Is(err, refusal) {
			return true
		}
	}
	return false
}
