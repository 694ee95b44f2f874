package broker

import (
	"context"
	"errors"
	"time"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
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

// Something has to be done first.
var (
	errDoubt     = errors.New("it is not known what is stored")
	errForgotten = errors.New("the producer was forgotten")
)

// submit gives a batch its place, or finds the place that it has already.
func (l *ledger) submit(ctx context.Context, who *Producer, p *Pending, first int32, events []eventlog.Event) error {
	for {
		start, wait, err := l.slot(who, p, first, events)
		switch {
		case start != nil:
			return l.start(ctx, start)
		case wait != nil:
			err = until(ctx, wait)
		case err == nil:
			return nil
		case errors.Is(err, errDoubt):
			err = l.clearUp(ctx, who.account.id)
		case errors.Is(err, errForgotten):
			err = l.remember(ctx, who.account)
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

// slot judges a batch. It comes back with a flight that the caller has to start, or with
// what has to end first; with neither of them the batch has its place.
func (l *ledger) slot(who *Producer, p *Pending, first int32, events []eventlog.Event) (start *flight, wait <-chan struct{}, err error) {
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
	a := l.accounts[who.account.id]
	if a == nil {
		return nil, errForgotten
	}
	if a.epoch != who.epoch {
		return nil, fenced(who.epoch, a.epoch)
	}
	return a, nil
}

// remember takes a forgotten producer up again that somebody still holds: it is as it was.
func (l *ledger) remember(ctx context.Context, a *account) error {
	if err := l.takeTurn(ctx); err != nil {
		return err
	}
	defer l.endTurn()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.accounts[a.id] == nil {
		a.used = time.Now().Unix()
		l.addLocked(a)
		l.changes++
	}
	return nil
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
