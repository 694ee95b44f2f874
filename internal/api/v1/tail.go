package v1

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// tail follows partitions as server-sent events until the client leaves, the count is reached, the
// hub is deleted, the token expires or is revoked or the yard stops. But for the first of these,
// the last thing it sends is an event named end, with the reason and where to resume.
//
// One goroutine per partition waits at its cursor and encodes; the request's own
// goroutine writes. Between them is a channel without a buffer, so a slow client
// holds up the readers. Only as many of these as there are seats hold events in
// memory, each the run at its cursor and at most two encoded events.
func (d *Handler) tail(w http.ResponseWriter, r *http.Request, q hubQuery) error {
	t, err := d.openTail(r.Context(), q)
	if err != nil {
		return err
	}
	ctx, cancel, err := d.untilOver(r)
	if err != nil {
		t.close()
		return err
	}
	defer cancel()
	d.metrics.tails.Inc()
	defer d.metrics.tails.Dec()

	reading, stop := context.WithCancel(ctx)
	var readers sync.WaitGroup
	for _, r := range t.readers {
		readers.Go(func() { r.read(reading) })
	}
	defer readers.Wait()
	defer stop()
	t.out = newStream(w, "text/event-stream", d.cfg.WriteTimeout)
	if err := t.write(ctx, q.count, d.cfg.Heartbeat); err != nil && r.Context().Err() == nil {
		reason := endReason(err)
		if reason == endFailed || reason == endDamaged {
			d.logOurs("following a hub broke off", err, "hub", q.hub)
		}
		t.out.sayEnd(endJSON{Reason: reason, Detail: frame.Words(err), Resume: string(appendPositions(nil, t.partitions, t.next))})
	}
	return nil
}

// tail is one client's live view of a hub.
type tail struct {
	hubQuery
	broker  Broker
	readers []*reader // each its own goroutine's, once it runs
	pieces  chan piece
	seats   chan *seat

	// next is where each partition goes on, out the client's stream. Both belong to
	// the request's goroutine.
	next []eventlog.Sequence
	out  *stream
}

// piece is what a reader hands to the writer: an event, or, with no data, the word
// that it has caught up, or its error.
type piece struct {
	partition int
	next      eventlog.Sequence
	data      []byte
	err       error
}

// openTail opens all cursors first, so that what is wrong is told by a status.
func (d *Handler) openTail(ctx context.Context, q hubQuery) (*tail, error) {
	seats := min(maxSeats, len(q.partitions))
	t := &tail{hubQuery: q, broker: d.cfg.Broker, pieces: make(chan piece), seats: make(chan *seat, seats)}
	for range seats {
		t.seats <- new(seat)
	}
	for i, partition := range q.partitions {
		cursor, err := q.cursor(ctx, t.broker, partition, q.from.of(partition))
		if err != nil {
			t.close()
			return nil, err
		}
		t.readers = append(t.readers, &reader{tail: t, index: i, cursor: cursor, position: cursor.At()})
		t.next = append(t.next, cursor.At())
	}
	return t, nil
}

func (t *tail) close() {
	for _, r := range t.readers {
		r.close()
	}
}

func (t *tail) hand(ctx context.Context, p piece) bool {
	select {
	case t.pieces <- p:
		return true
	case <-ctx.Done():
		return false
	}
}

// errCounted: the client has got as many events as it asked for.
var errCounted = errors.New("as many events as asked for")

// write sends what the readers hand over until there is a reason to end, and gives
// it. A failed write ends the request, for the client is gone.
func (t *tail) write(ctx context.Context, count int, heartbeat time.Duration) error {
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	// An id without an event comes first: a client that loses the connection before the first
	// event, having asked for the latest, would come back at a later latest.
	if t.out.send(string(appendPositions([]byte("id: "), t.partitions, t.next))+"\n\n") != nil {
		return nil
	}
	sent := 0
	for {
		var err error
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-beat.C:
			err = t.out.send(": still here\n\n")
		case p := <-t.pieces:
			switch {
			case p.err != nil:
				return t.failed(ctx, p)
			case p.data == nil && t.out.buf.Buffered() > 0:
				err = t.out.flush()
			case p.data == nil: // caught up, and nothing to send
			default:
				sent++
				err = t.event(p)
			}
		}
		if err != nil {
			return nil
		}
		if sent == count && count > 0 {
			return errCounted
		}
	}
}

// failed gives the reason that counts when a reader fails: an error that came with
// the end of the context is not its own.
func (t *tail) failed(ctx context.Context, p piece) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if damage, ok := errors.AsType[*eventlog.CorruptError](p.err); ok && damage.Next > t.next[p.partition] {
		t.next[p.partition] = damage.Next // whoever resumes goes on behind it
	}
	return p.err
}

func (t *tail) event(p piece) error {
	t.next[p.partition] = p.next
	text := append(t.out.scratch[:0], "id: "...)
	text = appendPositions(text, t.partitions, t.next)
	text = append(text, "\nevent: event\ndata: "...)
	text = append(text, p.data...)
	return t.out.write(append(text, '\n', '\n'))
}

// Why a tail ends.
const (
	endCount    = "count"
	endDeleted  = "deleted"
	endStopping = "stopping"
	endExpired  = "expired"
	endRevoked  = "revoked"
	endDamaged  = "damaged"
	endFailed   = "failed"
)

func endReason(err error) string {
	switch {
	case errors.Is(err, errCounted):
		return endCount
	case errors.Is(err, eventlog.ErrRemoved), as[*broker.NotFoundError](err):
		return endDeleted
	case errors.Is(err, frame.ErrStopping), errors.Is(err, eventlog.ErrClosed):
		return endStopping
	case errors.Is(err, auth.ErrExpired):
		return endExpired
	case errors.Is(err, auth.ErrRevoked):
		return endRevoked
	case as[*eventlog.CorruptError](err):
		return endDamaged
	}
	return endFailed
}
