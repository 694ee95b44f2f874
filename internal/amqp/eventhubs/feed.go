package eventhubs

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/eventyard/eventyard/internal/amqp/wire"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/transport/admission"
)

// feed moves events from a cursor to a link. It belongs to the receiver's Run. Once it runs it
// allocates nothing for an event.
type feed struct {
	*receiver
	cursor eventlog.Cursor
	// share is what the cursor holds of the memory that all readers have. Without it there is no
	// cursor: resume is where the next one begins.
	share   *admission.Share
	dropped bool
	resume  eventlog.Sequence
	// wake, unpause and appendEvent are functions of the feed's own, made once: making one is an
	// allocation.
	wake        func()
	unpause     func()
	appendEvent func([]byte, int) []byte
	// awaiting: the cursor will call wake.
	awaiting atomic.Bool

	// events are those of the run that are not sent yet; first is the number of the first of them.
	events   []eventlog.Event
	first    eventlog.Sequence
	reported wire.Delivery
	newest   wire.DeliveryMetrics
	// bad is the last event that could not be read, or NoSequence.
	bad eventlog.Sequence
}

func newFeed(r *receiver, share *admission.Share) *feed {
	f := &feed{receiver: r, cursor: r.seat.Cursor, share: share, bad: eventlog.NoSequence}
	f.appendEvent, f.unpause = f.append, r.link.Wake
	f.wake = func() {
		f.awaiting.Store(false)
		r.link.Wake()
	}
	return f
}

// close frees what the feed holds.
func (f *feed) close() {
	_ = f.cursor.Close()
	f.share.Give()
}

// run gives events until there are none, or nobody wants any; then the link is woken when that has
// changed.
func (f *feed) run(ctx context.Context) error {
	f.share.Touch()
	// First credit, then events: what nobody may be given need not be in memory.
	for f.link.Wanted() {
		if !f.seat.Ready(f.unpause) { // what was fetched is kept
			return nil
		}
		if len(f.events) == 0 {
			if err := f.fetch(ctx); err != nil {
				return err
			}
		}
		if len(f.events) == 0 {
			f.link.Drained() // the client may want the rest of its credit back
			f.rest()
			return nil
		}
		if err := f.send(ctx); err != nil {
			return err
		}
	}
	return nil
}

// fetch gets the next events, if there are any.
func (f *feed) fetch(ctx context.Context) error {
	if err := f.hold(ctx); err != nil {
		return err
	}
	for {
		run, err := f.cursor.TryNext(ctx)
		damage, damaged := errors.AsType[*eventlog.CorruptError](err)
		if !damaged {
			f.events, f.first = run.Events, run.First
			f.reported.EnqueuedTime = run.Time.UnixMilli()
			f.share.Keep(eventlog.HeldBytes(run))
			return err
		}
		if err := f.pass(ctx, damage); err != nil {
			return err
		}
	}
}

// hold takes memory for what is fetched next. Who has to wait for it holds none meanwhile.
func (f *feed) hold(ctx context.Context) error {
	if !f.share.TryTake(eventlog.MaxHeldBytes) {
		f.drop()
		if err := f.share.Take(ctx, eventlog.MaxHeldBytes); err != nil {
			return err
		}
	}
	if f.dropped {
		return f.reopen(ctx, f.resume)
	}
	return nil
}

// drop gives the memory back, with what was fetched and not sent: it is read again.
func (f *feed) drop() {
	if !f.dropped {
		f.resume = f.cursor.At() - eventlog.Sequence(len(f.events))
		_ = f.cursor.Close()
		f.events, f.dropped = nil, true
	}
	f.share.Give()
}

// rest waits for more, unless that is so already.
func (f *feed) rest() {
	if !f.awaiting.Swap(true) {
		f.await(f.wake)
	}
}

// send gives what credit and windows allow of the events that were fetched.
func (f *feed) send(ctx context.Context) error {
	f.look()
	n, err := f.link.Send(ctx, len(f.events), f.appendEvent)
	f.events, f.first = f.events[n:], f.first+eventlog.Sequence(n)
	f.share.Touch()
	f.delivered.Add(float64(n))
	f.seat.Reads.Add(float64(n))
	if f.bad != eventlog.NoSequence { // locks were held when it was found
		f.peer.handler.metrics.damage.Inc()
		f.peer.log.Error("a stored event cannot be read and was sent without its contents",
			"hub", f.at.hub, "partition", f.at.partition, "sequence", int64(f.bad))
		f.bad = eventlog.NoSequence
	}
	return err
}

// look finds out what the newest event is, for who wants to hear it: when it can be
// reported, which may be long after the events were fetched.
func (f *feed) look() {
	if !f.metrics {
		return
	}
	info := f.seat.Newest()
	f.newest = wire.DeliveryMetrics{
		LastSequence: max(int64(info.Last), int64(f.first)+int64(len(f.events))-1),
		LastTime:     info.LastTime.UnixMilli(),
		Retrieved:    info.Retrieved.UnixMilli(),
	}
	f.reported.Metrics = &f.newest
}

// append writes one of the events as the client gets it. One that is not as it was
// stored cannot be shown, and keeps its position all the same: it comes without a body.
func (f *feed) append(dst []byte, i int) []byte {
	event := &f.events[i]
	f.reported.Sequence = int64(f.first) + int64(i)
	f.reported.Key = nil
	if len(event.Key) > 0 {
		f.reported.Key = event.Key
	}
	out, err := wire.AppendDelivery(dst, &f.reported, event.Message)
	if err != nil {
		f.bad = eventlog.Sequence(f.reported.Sequence)
		out, _ = wire.AppendDelivery(dst, &f.reported, nil)
	}
	return out
}

// pass goes on behind events that cannot be read, where there is something behind them.
func (f *feed) pass(ctx context.Context, damage *eventlog.CorruptError) error {
	f.peer.log.Error("stored events cannot be read", "hub", f.at.hub, "partition", f.at.partition,
		"group", f.at.group, "first", int64(damage.First), "next", int64(damage.Next), "error", damage)
	f.peer.handler.metrics.damage.Inc()
	if damage.Next == eventlog.NoSequence {
		return damage
	}
	_ = f.cursor.Close()
	return f.reopen(ctx, damage.Next)
}

// reopen reads on from a number, in the hub that the link's address found.
func (f *feed) reopen(ctx context.Context, at eventlog.Sequence) error {
	hub, err := f.peer.handler.cfg.Broker.Hub(f.at.hub)
	if err != nil {
		return err
	}
	if !hub.Created.Equal(f.hub.Created) {
		return fmt.Errorf("read %s/%s: %w", f.at.hub, f.at.partition, eventlog.ErrRemoved)
	}
	cursor, err := f.peer.handler.cfg.Broker.Cursor(ctx, f.at.hub, f.at.group, f.at.partition, eventlog.At(at))
	if err != nil {
		return err
	}
	f.cursor, f.dropped = cursor, false
	return nil
}
