package broker

import (
	"context"
	"errors"
	"fmt"

	"github.com/eventyard/eventyard/internal/eventlog"
)

// account is one producer in a ledger. All of it is guarded by ledger.mu.
//
// A producer has one flight in the air at a time: a batch that the engine was given and
// has not answered for. What is submitted meanwhile gathers behind it and travels with
// the next, as one batch. So whatever happens to a flight, it is known what is stored
// before the next one starts: no batch is stored behind one that is not, which the engine
// does not promise for batches that are under way together.
type account struct {
	id int64
	record
	// kept: a restart would find the epoch again.
	kept bool
	// air is the flight under way, queue the one that gathers behind it. Nil: none.
	air, queue *flight
	// doubt is a flight of which nobody knows whether it was stored; nil: there is none.
	// Nothing else starts before that is cleared up.
	doubt *flight
	// halted is closed when an epoch has begun, or was refused; nil while none is
	// about to. Nothing starts meanwhile.
	halted chan struct{}
}

// flight is one batch on its way into the log.
type flight struct {
	account *account
	epoch   int16
	first   int32
	count   int
	bytes   int
	// parts is how many publications it is made of.
	parts int
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

// outlook is the record as it is when all that is under way is stored.
func (a *account) outlook() record {
	r := a.record
	for _, f := range []*flight{a.air, a.queue} {
		if f != nil {
			r = f.over(r)
		}
	}
	return r
}

// over is the record when the flight is stored.
func (f *flight) over(r record) record { return r.extend(f.first, f.count, f.whole()) }

// whole is how many events it has if it is one publication, else 0; see record.newest.
func (f *flight) whole() uint32 {
	if f.parts == 1 {
		return uint32(f.count)
	}
	return 0
}

// errDoubt: something has to be cleared up first.
var errDoubt = errors.New("it is not known what is stored")

// submit gives a batch its place, or finds the place that it has already.
func (l *ledger) submit(ctx context.Context, who *Producer, p *Pending, first int32, events []eventlog.Event) error {
	for {
		start, wait, err := l.place(who, p, first, events)
		switch {
		case start != nil:
			return l.start(ctx, start)
		case wait != nil:
			err = until(ctx, wait)
		case err == nil:
			return nil
		case errors.Is(err, errDoubt):
			err = l.clearUp(ctx, who.id)
		}
		if err != nil {
			return err
		}
	}
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

// place judges a batch. It comes back with a flight that the caller has to start, or with
// what has to end first; with neither of them the batch has its place.
func (l *ledger) place(who *Producer, p *Pending, first int32, events []eventlog.Event) (start *flight, wait <-chan struct{}, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a, err := l.accountLocked(who)
	switch {
	case err != nil:
		return nil, nil, err
	case a.halted != nil:
		return nil, a.halted, nil
	case a.doubt != nil:
		return nil, nil, errDoubt
	}
	repeat, err := a.outlook().judge(first, p.count)
	switch {
	case err != nil:
		return nil, nil, err
	case repeat:
		l.repeatLocked(a, p, first)
		return nil, nil, nil
	case a.air == nil:
		a.record = a.record.decided(first)
		a.air = l.newFlight(a, first)
		a.air.join(p, copyEvents(events))
		return a.air, nil, nil
	case a.queue == nil:
		a.queue = l.newFlight(a, first)
	case a.queue.bytes+p.bytes > eventlog.MaxBatchBytes:
		return nil, a.air.landed, nil
	}
	a.queue.join(p, copyEvents(events))
	return nil, nil, nil
}

// accountLocked finds the account of a producer that is still in force.
func (l *ledger) accountLocked(who *Producer) (*account, error) {
	a := l.accounts[who.id]
	if a == nil {
		return nil, fmt.Errorf("forgotten, since %d others were used later: %w", l.limit, ErrProducerFenced)
	}
	if a.epoch != who.begun.epoch {
		return nil, fmt.Errorf("epoch %d, the present one is %d: %w", who.begun.epoch, a.epoch, ErrProducerFenced)
	}
	return a, nil
}

// repeatLocked lets a repeat wait for the flight that its last event is with: what is
// before that is stored before it.
func (l *ledger) repeatLocked(a *account, p *Pending, first int32) {
	l.broker.metrics.repeats.Add(float64(p.count))
	for _, f := range []*flight{a.air, a.queue} {
		if f == nil {
			continue
		}
		end := ahead(first, p.count-1)
		if at := distance(f.first, end); at < int64(f.count) {
			p.flight, p.offset = f, int(at)-p.count+1
			return
		}
	}
}

func (l *ledger) newFlight(a *account, first int32) *flight {
	return &flight{account: a, epoch: a.epoch, first: first, floor: l.seen, landed: make(chan struct{})}
}

// join takes a publication along.
func (f *flight) join(p *Pending, events []eventlog.Event) {
	p.flight, p.offset = f, f.count
	f.events = append(f.events, events...)
	f.count += p.count
	f.bytes += p.bytes
	f.parts++
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
	if err != nil {
		l.land(f, eventlog.Appended{}, notStarted(err))
		return err
	}
	go l.follow(f, receipt)
	return nil
}

// notStarted is what those are told who wait for a flight that another's impatience
// ended.
func notStarted(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w: its sender gave up", eventlog.ErrFenced)
	}
	return err
}

// follow waits for a flight and starts what has gathered behind it, until nothing has.
func (l *ledger) follow(f *flight, receipt eventlog.Receipt) {
	for f != nil {
		stored, err := receipt.Wait(context.Background())
		for f = l.land(f, stored, err); f != nil; f = l.land(f, eventlog.Appended{}, err) {
			if receipt, err = l.partition.Submit(context.Background(), f.batch()); err == nil {
				break
			}
		}
	}
}

func (f *flight) batch() eventlog.Batch {
	a := f.account
	return eventlog.Batch{Events: f.events, Producer: eventlog.Producer{ID: a.id, Epoch: f.epoch, First: f.first, Set: true}}
}

// land notes how a flight ended and gives the next one, which the caller has to start.
// Where it was not stored, nothing behind it is.
func (l *ledger) land(f *flight, stored eventlog.Appended, err error) *flight {
	l.mu.Lock()
	defer l.mu.Unlock()
	a, next := f.account, f.account.queue
	a.air, a.queue = next, nil
	f.stored, f.err = stored, err
	defer close(f.landed)
	if err == nil {
		f.events = nil
		l.countLocked(f)
		if next != nil {
			next.floor = l.seen
		}
		return next
	}
	if f.again || !certain(err) {
		a.doubt = f
	}
	if next != nil {
		a.air, next.events = nil, nil
		next.err = fmt.Errorf("%w: the numbers before were not stored", eventlog.ErrFenced)
		close(next.landed)
	}
	return nil
}

// countLocked enters what was stored.
func (l *ledger) countLocked(f *flight) {
	a := f.account
	if f.epoch == a.epoch {
		a.record = f.over(a.record)
		a.used, a.kept = f.stored.Time.Unix(), true
	}
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
