package v1

import (
	"context"
	"fmt"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// maxSeats is how many readers of one tail may hold events in memory at once.
const maxSeats = 8

// turnBytes is what a reader hands over, about, before it lets another have its seat.
const turnBytes = 1 << 20

// seat is the leave to hold events in memory, and the memory to encode them into. A
// tail has a few, whatever its partitions, so that a client who takes nothing costs
// no more for a large hub than for a small one.
type seat struct {
	// Two buffers take turns, also from one reader to the next: that a piece was
	// accepted means that the writer is done with all pieces before it.
	buffers [2][]byte
}

// reader gives the events of one partition to its tail. It belongs to one goroutine.
type reader struct {
	tail  *tail
	index int
	// place is the next event to be handed over.
	position eventlog.Sequence
	// cursor is nil while the reader waits for a seat: what a cursor has loaded, and
	// not yet given, is memory too. At the end of its partition it has nothing loaded.
	cursor eventlog.Cursor
	// seat is nil while the reader holds no events.
	seat *seat
	// given is what was handed over in this turn.
	given int
}

// read is a reader's life.
func (r *reader) read(ctx context.Context) {
	defer r.close()
	for {
		run, err := r.next(ctx)
		if err != nil {
			r.tail.hand(ctx, piece{partition: r.index, err: err})
			return
		}
		if !r.handRun(ctx, run) {
			return
		}
	}
}

// next gives the next run, and has a seat when it does. Whenever the reader has caught
// up it says so, and only then waits: that is the moment to flush.
func (r *reader) next(ctx context.Context) (eventlog.Run, error) {
	if r.given >= turnBytes {
		r.rise()
	}
	for {
		if err := r.sit(ctx); err != nil {
			return eventlog.Run{}, err
		}
		run, err := r.cursor.TryNext(ctx)
		if err != nil || len(run.Events) > 0 {
			return run, err
		}
		r.rise()
		if !r.tail.hand(ctx, piece{partition: r.index}) {
			return run, context.Cause(ctx)
		}
		r.position = r.cursor.At()
		run, err = r.cursor.Next(ctx)
		if err != nil || r.trySit() {
			return run, err
		}
		r.close() // the run has to be read again, once there is a seat for it
	}
}

// sit waits for a seat. A cursor that would have to wait is closed, and opened again where it was.
func (r *reader) sit(ctx context.Context) error {
	if r.seat == nil && !r.trySit() {
		r.close()
		select {
		case r.seat = <-r.tail.seats:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if r.cursor != nil {
		return nil
	}
	cursor, err := r.tail.cursor(ctx, r.tail.broker, r.tail.partitions[r.index], eventlog.At(r.position))
	if err != nil {
		return err
	}
	r.cursor = cursor
	return nil
}

// trySit takes a seat if one is free. Nobody is overtaken: a seat given back goes to
// whoever waits for one.
func (r *reader) trySit() bool {
	select {
	case r.seat = <-r.tail.seats:
		return true
	default:
		return false
	}
}

// rise gives the seat to whoever waits for it.
func (r *reader) rise() {
	r.tail.seats <- r.seat // never waits: there is room for all seats
	r.seat, r.given = nil, 0
}

func (r *reader) close() {
	if r.cursor != nil {
		_ = r.cursor.Close()
		r.cursor = nil
	}
}

// handRun encodes and hands over the events of a run.
func (r *reader) handRun(ctx context.Context, run eventlog.Run) bool {
	buffers := &r.seat.buffers
	for i := range run.Events {
		data := r.tail.format.appendEvent(buffers[0][:0], r.tail.partitions[r.index], run, i)
		next := run.First + eventlog.Sequence(i) + 1
		if !r.tail.hand(ctx, piece{partition: r.index, next: next, data: data}) {
			return false
		}
		r.position = next
		r.given += len(data)
		buffers[0], buffers[1] = buffers[1], data
		if cap(data) > maxScratchBytes {
			buffers[1] = nil
		}
	}
	return true
}

// cursor opens a cursor in the hub that was asked for. One that was deleted meanwhile
// and created anew has the same name and other events.
func (q hubQuery) cursor(ctx context.Context, b Broker, partition string, at eventlog.Position) (eventlog.Cursor, error) {
	cursor, err := b.Cursor(ctx, q.hub, q.group, partition, at)
	if hub, missing := b.Hub(q.hub); missing == nil && hub.Created.Equal(q.created) {
		return cursor, err
	}
	if err == nil {
		_ = cursor.Close()
	}
	return nil, fmt.Errorf("read %s/%s: %w", q.hub, partition, eventlog.ErrRemoved)
}
