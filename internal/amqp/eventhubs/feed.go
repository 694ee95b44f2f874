package eventhubs

import (
	"context"
	"errors"
	"fmt"

	"github.com/eventyard/eventyard/internal/amqp/wire"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// feed moves events from a cursor to a link. It belongs to one goroutine. Once it runs it
// allocates nothing for an event.
type feed struct {
	*receiver
	cursor eventlog.Cursor

	// events are those of the run that are not sent yet; first is the number of the first of them.
	events   []eventlog.Event
	first    eventlog.Sequence
	reported wire.Delivery
	newest   wire.DeliveryMetrics
	// bad is the last event that could not be read, or NoSequence.
	bad eventlog.Sequence
}

// run gives events until something ends it.
func (f *feed) run(ctx context.Context) error {
	f.bad = eventlog.NoSequence
	appendEvent := f.appendEvent // once: making it is an allocation
	for {
		// First credit, then events: what nobody may be given need not be in memory.
		if err := f.link.WaitCredit(ctx); err != nil {
			return err
		}
		run, err := f.cursor.TryNext(ctx)
		if err == nil && len(run.Events) == 0 {
			f.link.Drained() // the client may want the rest of its credit back
			run, err = f.cursor.Next(ctx)
		}
		if damage, ok := errors.AsType[*eventlog.CorruptError](err); ok {
			err = f.pass(ctx, damage)
		}
		if err != nil {
			return err
		}
		if err := f.send(ctx, run, appendEvent); err != nil {
			return err
		}
	}
}

// send gives a run, in as many steps as credit and windows ask for.
func (f *feed) send(ctx context.Context, run eventlog.Run, appendEvent func([]byte, int) []byte) error {
	f.events, f.first = run.Events, run.First
	f.reported.EnqueuedTime = run.Time.UnixMilli()
	for len(f.events) > 0 {
		if err := f.look(ctx); err != nil {
			return err
		}
		n, err := f.link.Send(ctx, len(f.events), appendEvent)
		f.events, f.first = f.events[n:], f.first+eventlog.Sequence(n)
		f.delivered.Add(float64(n))
		if f.bad != eventlog.NoSequence { // locks were held when it was found
			f.peer.handler.metrics.damage.Inc()
			f.peer.log.Error("a stored event cannot be read and was sent without its contents",
				"hub", f.at.hub, "partition", f.at.partition, "sequence", int64(f.bad))
			f.bad = eventlog.NoSequence
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// look finds out what the newest event is, for who wants to hear it: when it can be
// reported, which may be long after the events were fetched.
func (f *feed) look(ctx context.Context) error {
	if !f.metrics {
		return nil
	}
	if err := f.link.WaitCredit(ctx); err != nil {
		return err
	}
	info, err := f.seat.Newest(ctx)
	if err != nil {
		return err
	}
	f.newest = wire.DeliveryMetrics{
		LastSequence: int64(info.Last),
		LastTime:     info.LastTime.UnixMilli(),
		Retrieved:    info.Retrieved.UnixMilli(),
	}
	f.reported.Metrics = &f.newest
	return nil
}

// appendEvent writes one of the events as the client gets it. One that is not as it was
// stored cannot be shown, and keeps its position all the same: it comes without a body.
func (f *feed) appendEvent(dst []byte, i int) []byte {
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
	hub, err := f.peer.handler.cfg.Broker.Hub(f.at.hub)
	if err != nil {
		return err
	}
	if !hub.Created.Equal(f.hub.Created) {
		return fmt.Errorf("read %s/%s: %w", f.at.hub, f.at.partition, eventlog.ErrRemoved)
	}
	cursor, err := f.peer.handler.cfg.Broker.Cursor(ctx, f.at.hub, f.at.group, f.at.partition, eventlog.At(damage.Next))
	if err != nil {
		return err
	}
	_ = f.cursor.Close()
	f.cursor = cursor
	return nil
}
