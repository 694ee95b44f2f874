package v1

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// tail follows partitions as server-sent events until the client leaves, the count is reached, the
// hub is deleted, the token expires or is revoked or the yard stops. But for the first of these,
// the last thing it sends is an event named end, with the reason and where to resume.
//
// The request's own goroutine does it all: it gives partitions that have something their turns, one
// after the other, and waits at all others at once. So a partition at rest costs its position and
// some words in the waker, and of all others one has a cursor, whatever the client takes.
func (d *Handler) tail(w http.ResponseWriter, r *http.Request, q hubQuery) error {
	leave, err := d.followed.Take(grantOf(r).Account(), len(q.partitions))
	if err != nil {
		return err
	}
	defer leave()
	t, err := d.openTail(r.Context(), q)
	if err != nil {
		return err
	}
	defer t.waker.Stop()
	ctx, cancel, err := d.untilOver(r)
	if err != nil {
		return err
	}
	defer cancel()
	d.metrics.tails.Inc()
	defer d.metrics.tails.Dec()

	t.out = newStream(w, "text/event-stream", d.cfg.WriteTimeout)
	t.out.reading = d.newReading(w, r)
	defer t.out.reading.end()
	err = t.run(ctx, d.cfg.Heartbeat)
	if errors.Is(err, errClientGone) || r.Context().Err() != nil {
		return nil
	}
	reason := endReason(err)
	if reason == endFailed || reason == endDamaged {
		d.logOurs("following a hub broke off", err, "hub", q.hub)
	}
	t.out.sayEnd(endJSON{Reason: reason, Detail: frame.Words(err), Resume: string(appendPositions(nil, t.partitions, t.next))})
	return nil
}

// tail is one client's live view of a hub. It belongs to the request's goroutine.
type tail struct {
	hubQuery
	broker Broker
	// waker waits at the partitions that have nothing to give; ready are the others, in the order
	// of their turns. Both know them by their place in partitions.
	waker *eventlog.Waker
	ready []int
	// next is where each partition goes on.
	next  []eventlog.Sequence
	out   *stream
	sent  int
	reads prometheus.Counter
}

// How many partitions all tails may follow at once: those of one policy or token, and all.
const (
	maxFollowedByOne = 65_536
	maxFollowed      = 262_144
)

// turnBytes is what a partition gives, about, before it is another's turn.
const turnBytes = 1 << 20

// openTail finds all positions first, so that what is wrong is told by a status.
func (d *Handler) openTail(ctx context.Context, q hubQuery) (*tail, error) {
	t := &tail{hubQuery: q, broker: d.cfg.Broker, reads: d.cfg.Broker.Reads(q.hub, q.group), waker: eventlog.NewWaker(), next: make([]eventlog.Sequence, len(q.partitions))}
	for i, partition := range q.partitions {
		cursor, err := q.cursor(ctx, t.broker, partition, q.from.of(partition))
		if err != nil {
			t.waker.Stop()
			return nil, err
		}
		t.next[i] = cursor.At()
		t.waker.Wait(i, cursor)
		_ = cursor.Close()
	}
	return t, nil
}

// errCounted: the client has got as many events as it asked for.
var errCounted = errors.New("as many events as asked for")

// run gives what comes until there is a reason to end, and says which. What was given is sent when
// there is nothing more to give.
func (t *tail) run(ctx context.Context, heartbeat time.Duration) error {
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	// An id without an event comes first: a client that loses the connection before the first
	// event, having asked for the latest, would come back at a later latest.
	if err := t.out.send(string(appendPositions([]byte("id: "), t.partitions, t.next)) + "\n\n"); err != nil {
		return errClientGone
	}
	for {
		if t.ready = t.waker.Woken(t.ready); len(t.ready) > 0 {
			if err := t.turn(ctx); err != nil {
				return err
			}
			continue
		}
		if t.out.memory != nil && t.out.flush() != nil {
			return errClientGone
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-beat.C:
			if t.out.send(": still here\n\n") != nil {
				return errClientGone
			}
		case <-t.waker.C():
		}
	}
}

// turn gives what the next partition has: it is waited at then, or has another turn after all others.
func (t *tail) turn(ctx context.Context) error {
	i := t.ready[0]
	t.ready = t.ready[:copy(t.ready, t.ready[1:])]
	if err := t.out.reading.hold(ctx, maxRunBytes); err != nil {
		return err
	}
	defer t.out.reading.share.Give()
	cursor, err := t.cursor(ctx, t.broker, t.partitions[i], eventlog.At(t.next[i]))
	if err != nil {
		return t.failed(ctx, i, err)
	}
	defer cursor.Close()
	for given := 0; given < turnBytes; {
		run, err := cursor.TryNext(ctx)
		if err != nil {
			return t.failed(ctx, i, err)
		}
		if len(run.Events) == 0 {
			t.waker.Wait(i, cursor)
			return nil
		}
		t.out.reading.share.Keep(runBytes(run))
		before := t.sent
		n, err := t.give(ctx, i, run)
		t.reads.Add(float64(t.sent - before))
		if err != nil {
			return err
		}
		given += n
	}
	t.ready = append(t.ready, i)
	return nil
}

// give writes the events of a run, and tells how many bytes they are.
func (t *tail) give(ctx context.Context, i int, run eventlog.Run) (bytes int, err error) {
	for at := range run.Events {
		if ctx.Err() != nil {
			return bytes, context.Cause(ctx)
		}
		t.next[i] = run.First + eventlog.Sequence(at) + 1
		text := append(t.out.scratch().line[:0], "id: "...)
		text = appendPositions(text, t.partitions, t.next)
		text = append(text, "\nevent: event\ndata: "...)
		head := len(text)
		text = t.format.appendEvent(text, t.partitions[i], run, at)
		bytes += len(text) - head
		if t.out.write(append(text, '\n', '\n')) != nil {
			return bytes, errClientGone
		}
		if t.sent++; t.sent == t.count {
			return bytes, errCounted
		}
	}
	return bytes, nil
}

// failed gives the reason that counts when reading fails: an error that came with
// the end of the context is not its own.
func (t *tail) failed(ctx context.Context, i int, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if damage, ok := errors.AsType[*eventlog.CorruptError](err); ok && damage.Next > t.next[i] {
		t.next[i] = damage.Next // whoever resumes goes on behind it
	}
	return err
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
