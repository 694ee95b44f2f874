package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/amqp/message"
	"github.com/eventyard/eventyard/internal/amqp/wire"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/sleep"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// How long to wait before reading is tried again after storage has failed.
const (
	firstPause = 200 * time.Millisecond
	maxPause   = 10 * time.Second
)

// reader reads a partition by the broker's cursor. It has no goroutine and, while nothing comes, no
// memory for events: whoever calls Next waits at the partition itself.
type reader struct {
	source  *source
	cfg     hub.ReadConfig
	created time.Time // the hub's that it reads: one of the same name made later is another
	seat    *broker.Receiver

	// The following belong to the goroutine that calls Next.

	cursor eventlog.Cursor
	rest   eventlog.Run // what was fetched and is not given yet; valid until the cursor is used again
	pause  time.Duration
	given  bool  // an event was
	unread error // of an event that could not be read; the next ones can
	final  error // nothing more is to come

	// ready has room for a sign that the reader, which was paused, may go on; unpause gives it.
	ready   chan struct{}
	unpause func()

	// wait is the context of the last wait, made of one with the Done waitOf.
	wait   context.Context
	waitOf <-chan struct{}

	mu sync.Mutex // guards what follows
	// busy: a Next is under way, and the cursor is its own.
	busy, closed bool
	evicted      *broker.EvictedError
	cancel       context.CancelFunc // ends wait; nil: there is none
}

// Open takes a slot at the partition; it is the reader's when Open returns.
func (s *source) Open(ctx context.Context, cfg hub.ReadConfig) (hub.Reader, error) {
	r := &reader{source: s, cfg: cfg, ready: make(chan struct{}, 1)}
	r.unpause = func() {
		select {
		case r.ready <- struct{}{}:
		default:
		}
	}
	r.cfg.Group = cmp.Or(r.cfg.Group, broker.DefaultGroup)
	if err := r.sit(ctx); err != nil {
		return nil, r.error(translate(err))
	}
	return r, nil
}

func (r *reader) sit(ctx context.Context) error {
	at, err := position(r.cfg.From)
	if err != nil {
		return err
	}
	h, err := r.source.broker.Hub(r.source.name)
	if err != nil {
		return err
	}
	cfg := broker.ReceiverConfig{
		Hub: r.source.name, Group: r.cfg.Group, Partition: r.cfg.Partition, At: at, Name: r.cfg.Name, Evict: r.evict,
	}
	if epoch, ok := r.cfg.Epoch.Number(); ok {
		cfg.Epoch = &epoch
	}
	seat, err := r.source.broker.Receive(ctx, cfg)
	if err != nil {
		return err
	}
	r.created, r.seat, r.cursor = h.Created, seat, seat.Cursor
	return nil
}

// evict is called by the broker when another reader takes the slot. A Next under way gives nothing
// from then on.
func (r *reader) evict(err *broker.EvictedError) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.evicted = err
	if r.cancel != nil {
		r.cancel()
	}
}

// Next is documented by hub.Reader.
func (r *reader) Next(ctx context.Context, dst []event.Event, most int) ([]event.Event, error) {
	if err := r.earlier(); err != nil {
		return dst, err
	}
	if !r.enter() {
		return dst, r.finish(hub.ErrClosed)
	}
	given, err := r.read(ctx, dst, max(most, 1))
	if ended := r.leave(); ended != nil { // while it was read: what was not given yet is the next reader's
		return dst, r.finish(ended)
	}
	r.seat.Reads.Add(float64(len(given) - len(dst)))
	if err == nil && len(given) == len(dst) {
		err = r.earlier()
	}
	return given, err
}

// earlier is what a call before has found and could not tell.
func (r *reader) earlier() error {
	err := r.unread
	r.unread = nil
	if err == nil {
		err = r.final
	}
	return err
}

// enter makes the cursor the caller's.
func (r *reader) enter() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.busy = !r.closed
	return r.busy
}

// leave gives it back, and tells whether the reader has ended meanwhile.
func (r *reader) leave() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.busy = false
	switch {
	case r.closed:
		_ = r.cursor.Close()
		return hub.ErrClosed
	case r.evicted != nil:
		return translate(r.evicted)
	}
	return nil
}

// ended tells whether somebody has ended the reader.
func (r *reader) ended() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.closed || r.evicted != nil
}

// read gives what there is, waiting for the first. What fails is tried again until ctx ends, unless
// waiting cannot help.
func (r *reader) read(ctx context.Context, dst []event.Event, most int) ([]event.Event, error) {
	for {
		if err := ctx.Err(); err != nil {
			return dst, err
		}
		given, err := r.take(ctx, dst, most)
		switch {
		case err == nil:
			r.pause = 0
			return given, nil
		case r.ended() || ctx.Err() != nil:
			continue // for the caller to see why
		}
		if err := r.recover(ctx, err); err != nil {
			return dst, r.finish(err)
		}
	}
}

// take gives what has been stored, and waits if that is nothing.
func (r *reader) take(ctx context.Context, dst []event.Event, most int) ([]event.Event, error) {
	if r.ended() {
		return dst, nil
	}
	given := dst
	for len(given)-len(dst) < most && r.unread == nil {
		if len(r.rest.Events) == 0 {
			run, err := r.cursor.TryNext(ctx)
			if err == nil && len(run.Events) == 0 {
				if len(given) > len(dst) {
					break
				}
				run, err = r.cursor.Next(r.until(ctx))
			}
			if err != nil && len(given) > len(dst) {
				break // the next call meets it again
			}
			if err != nil {
				return dst, err
			}
			r.rest = run
		}
		if !r.seat.Ready(r.unpause) {
			if len(given) > len(dst) {
				break
			}
			if err := sleep.For(r.until(ctx), maxPause, r.ready); err != nil {
				return dst, err
			}
			continue
		}
		given = r.decode(given, min(most-(len(given)-len(dst)), len(r.rest.Events)))
	}
	return given, nil
}

// until is a context for the wait, ended by ctx and with the reader. Most waits come with the
// context of the one before, and then share one.
func (r *reader) until(ctx context.Context) context.Context {
	if r.wait != nil && r.waitOf == ctx.Done() && r.wait.Err() == nil {
		return r.wait
	}
	wait, cancel := context.WithCancel(ctx)
	r.wait, r.waitOf = wait, ctx.Done()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cancel != nil {
		r.cancel()
	}
	if r.cancel = cancel; r.closed || r.evicted != nil {
		cancel()
	}
	return wait
}

// decode appends n events of the rest. They belong to the caller: so the bytes are copied, once for
// all of them.
func (r *reader) decode(dst []event.Event, n int) []event.Event {
	bytes := 0
	for i := range n {
		bytes += len(r.rest.Events[i].Message)
	}
	room := make([]byte, 0, bytes)
	for range n {
		stored := &r.rest.Events[0]
		sequence := int64(r.rest.First)
		start := len(room)
		room = append(room, stored.Message...)
		r.rest.Events, r.rest.First = r.rest.Events[1:], r.rest.First+1
		dst = append(dst, event.Event{})
		ev := &dst[len(dst)-1]
		if err := decode(ev, room[start:len(room):len(room)]); err != nil {
			// The AMQP listener sends what is no message without its contents.
			if _, noMessage := wire.AppendDelivery(nil, &wire.Delivery{}, stored.Message); noMessage == nil || decode(ev, nil) != nil {
				r.unread = r.error(fmt.Errorf("%w: sequence number %d: %w", hub.ErrUnreadable, sequence, err))
				return dst[:len(dst)-1]
			}
			r.source.log.Error("a stored event cannot be read and is given without its contents",
				"hub", r.source.name, "partition", r.cfg.Partition, "sequence", sequence, "error", err)
		}
		ev.Partition, ev.Sequence, ev.Offset, ev.Enqueued = r.cfg.Partition, sequence, strconv.FormatInt(sequence, 10), r.rest.Time
		if len(stored.Key) > 0 {
			ev.Key = string(stored.Key)
		}
		r.given = true
	}
	return dst
}

// decode reads what the sender made of an event, whose body stays where it is.
func decode(ev *event.Event, stored []byte) error {
	m, err := wire.Sections(stored)
	if err != nil {
		return err
	}
	return message.DecodeSections(ev, m)
}

// recover finds out whether to go on after a failure: behind events that cannot be read, or where
// it was after a while. An error means that waiting cannot help.
func (r *reader) recover(ctx context.Context, err error) error {
	if errors.Is(err, eventlog.ErrRemoved) {
		if _, gone := r.source.broker.Hub(r.source.name); gone != nil {
			err = gone
		}
	}
	if meaning(err) != nil {
		return translate(err)
	}
	at := r.cursor.At()
	if damage, ok := errors.AsType[*eventlog.CorruptError](err); ok && damage.Next != eventlog.NoSequence {
		r.source.log.Error("stored events cannot be read", "hub", r.source.name, "partition", r.cfg.Partition, "group", r.cfg.Group,
			"first", int64(damage.First), "next", int64(damage.Next), "error", damage)
		at = damage.Next
	} else {
		r.rests(ctx, err)
	}
	return r.reopen(ctx, at)
}

// rests waits before the next try, longer each time.
func (r *reader) rests(ctx context.Context, err error) {
	level := slog.LevelDebug
	if r.pause == 0 {
		level = slog.LevelWarn
	}
	r.source.log.Log(ctx, level, "reading is interrupted and goes on by itself",
		"hub", r.source.name, "group", r.cfg.Group, "partition", r.cfg.Partition, "error", err)
	r.pause = min(max(2*r.pause, firstPause), maxPause)
	sleep.About(r.until(ctx), r.pause)
}

// reopen reads on by another cursor. The slot at the partition stays.
func (r *reader) reopen(ctx context.Context, at eventlog.Sequence) error {
	h, err := r.source.broker.Hub(r.source.name)
	if err == nil && !h.Created.Equal(r.created) {
		err = eventlog.ErrRemoved
	}
	if err != nil {
		return translate(err)
	}
	cursor, err := r.source.broker.Cursor(ctx, r.source.name, r.cfg.Group, r.cfg.Partition, eventlog.At(at))
	if err != nil {
		if meaning(err) != nil {
			return translate(err)
		}
		return nil // the old one fails again, and after it a new one is tried
	}
	_ = r.cursor.Close()
	r.cursor, r.rest = cursor, eventlog.Run{}
	return nil
}

// finish notes that nothing more is to come, and why.
func (r *reader) finish(err error) error {
	if r.final == nil {
		r.final = r.error(err)
	}
	return r.final
}

func (r *reader) error(err error) error {
	return fmt.Errorf("read %s/%s of group %s: %w", r.source.name, r.cfg.Partition, r.cfg.Group, err)
}

// LastEnqueued is the newest event as it is now.
func (r *reader) LastEnqueued() (hub.LastEnqueued, bool) {
	if !r.given {
		return hub.LastEnqueued{}, false
	}
	info := r.seat.Newest()
	return hub.LastEnqueued{Sequence: int64(info.Last), Offset: info.LastOffset, Enqueued: info.LastTime}, true
}

// Close frees the slot at once.
func (r *reader) Close(context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil
	}
	r.closed = true
	if r.cancel != nil {
		r.cancel()
	}
	r.seat.Close()
	if !r.busy {
		_ = r.cursor.Close()
	}
	return nil
}
