package hub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math"
	"runtime"
	"sync"
	"time"

	"github.com/Azure/go-amqp"

	"github.com/eventyard/eventyard/event"
)

// ReadConfig says what is read.
type ReadConfig struct {
	Partition string
	// Group is the consumer group; empty means $Default.
	Group string
	From  Position
	// Epoch, where it is Exclusive, makes the reader the only one of its group and partition. The
	// zero value is a plain reader.
	Epoch Epoch
	// Prefetch is how many events the hub may send ahead; 0 means 300.
	Prefetch int
	// Name is shown by the hub; empty means the client's.
	Name string
}

// Epoch decides between readers of one group and partition. The zero Epoch is none: a plain reader,
// of which there may be five.
type Epoch struct {
	number int64
	set    bool
}

// Exclusive is the epoch of a reader that is alone: it disconnects plain readers and those with an
// equal or lower epoch, and is refused while there is one with a higher. 0 is the lowest.
func Exclusive(number int64) Epoch { return Epoch{number, true} }

// Number is what Exclusive was given, for those who implement a hub themselves; ok is false for a
// plain reader.
func (e Epoch) Number() (number int64, ok bool) { return e.number, e.set }

// Reader reads one partition. One goroutine uses it at a time, but Close may be called by any. An
// interface because a hub in the same process, or of a test, has another.
type Reader interface {
	// Next waits for events and appends to dst what has come, at least one and at most max (where
	// max is not above 0: one). What it gives belongs to the caller. When the connection breaks it
	// reconnects and continues behind the last event given, trying until ctx ends, since nothing is
	// lost by waiting. What cannot pass by waiting is an error, which every later call returns as
	// well: ErrEvicted, ErrRefused, ErrNotFound, ErrUnauthorized, ErrOutOfRange, ErrClosed. With
	// ctx's error dst is returned as it was, and no event is lost: a later Next gives it.
	// ErrUnreadable stands for one event, and a later Next continues behind it.
	Next(ctx context.Context, dst []event.Event, max int) ([]event.Event, error)

	// LastEnqueued is the newest event of the partition as the hub reported it with its last
	// delivery; false before the first.
	LastEnqueued() (LastEnqueued, bool)

	// Close ends the reader; its slot at the hub is free when it returns or soon after. Safe twice.
	Close(ctx context.Context) error
}

// readChunk is how many events the iterator takes from its reader at once.
const readChunk = 100

// Read opens a reader and gives its events one by one until ctx ends or the loop does. After an
// error there is nothing more. When ctx ends that is its error.
func (h *Hub) Read(ctx context.Context, cfg ReadConfig) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		r, err := h.Open(ctx, cfg)
		if err != nil {
			yield(event.Event{}, err)
			return
		}
		defer func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeWait)
			defer cancel()
			_ = r.Close(ctx) // the hub notices in any case
		}()
		events := make([]event.Event, 0, readChunk)
		for {
			if events, err = r.Next(ctx, events[:0], readChunk); err != nil {
				yield(event.Event{}, err)
				return
			}
			for i := range events {
				if !yield(events[i], nil) {
					return
				}
			}
		}
	}
}

// reader reads by a link, and by another when that has ended.
type reader struct {
	hub     *Hub
	cfg     ReadConfig
	address string
	life    life // until Close

	// The following belong to the goroutine that calls Next.

	from    Position // where the next link begins
	wait    backoff
	owed    int       // credit to give back to the hub
	metrics []byte    // of the last event given
	lost    time.Time // when the last link ended; zero: none has
	final   error     // nothing more is to come
	unread  error     // of an event that could not be read; the next ones can

	// bound is the context of the last wait, made of one with the Done boundTo; unbind releases it.
	bound   context.Context
	boundTo <-chan struct{}
	unbind  context.CancelFunc

	mu   sync.Mutex
	link *readerLink // guarded by mu; nil while there is none
}

// Open starts a reader, attached when it returns. A hub may also accept a reader and refuse it at
// once: then ErrRefused comes with the first Next.
func (h *Hub) Open(ctx context.Context, cfg ReadConfig) (Reader, error) {
	r, err := h.newReader(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("open %s/%s: %w", h.name, cfg.Partition, err)
	}
	err = h.client.retry(ctx, reading, func(ctx context.Context) error {
		link, err := r.attach(ctx)
		if err == nil {
			r.adopt(link)
		}
		return err
	})
	if err != nil {
		return nil, r.error(err)
	}
	return r, nil
}

func (h *Hub) newReader(ctx context.Context, cfg ReadConfig) (*reader, error) {
	if err := h.named(); err != nil {
		return nil, err
	}
	if cfg.Partition == "" {
		return nil, errNoPartition
	}
	cfg.Group = cmp.Or(cfg.Group, "$Default") // the group that every hub has
	cfg.Name = cmp.Or(cfg.Name, h.client.cfg.Name)
	cfg.Prefetch = min(cmp.Or(max(cfg.Prefetch, 0), 300), math.MaxInt32)
	r := &reader{
		hub: h, cfg: cfg, address: h.name + "/ConsumerGroups/" + cfg.Group + "/Partitions/" + cfg.Partition,
		from: cfg.From, wait: backoff{retry: h.client.cfg.Retry}, life: newLife(),
	}
	if r.from.kind == fromLatest {
		// It becomes a definite position: a link that breaks before the first event came would
		// otherwise be followed by one that begins later.
		info, err := h.Partition(ctx, cfg.Partition)
		if err != nil {
			return nil, err
		}
		r.from = After(info.Last)
	}
	return r, nil
}

// Next is documented by Reader.
func (r *reader) Next(ctx context.Context, dst []event.Event, most int) ([]event.Event, error) {
	if err := r.earlier(); err != nil {
		return dst, err
	}
	for {
		if err := r.over(ctx); err != nil {
			return dst, err
		}
		given, err := r.try(ctx, dst, max(most, 1))
		if err == nil {
			r.wait.reset()
			if len(given) == len(dst) {
				err = r.earlier()
			}
			return given, err
		}
		if err := r.over(ctx); err != nil {
			return dst, err
		}
		v := judge(err, reading)
		if !v.passing && !r.ownGhost(err) {
			return dst, r.finish(v.err)
		}
		level := slog.LevelDebug // of the attempts to end an interruption
		if r.wait.next == 0 {
			level = slog.LevelWarn
		}
		r.hub.client.cfg.Log.Log(context.Background(), level, "reading is interrupted and goes on by itself",
			"hub", r.hub.name, "group", r.cfg.Group, "partition", r.cfg.Partition, "from", r.from.String(), "error", v.err)
		_ = r.hub.client.pause(ctx, r.wait.delay(v.busy), r.life.over) // what ended it ends the next try
	}
}

// earlier is what an earlier call has found and could not return.
func (r *reader) earlier() error {
	err := cmp.Or(r.unread, r.final)
	r.unread = nil
	return err
}

// over is the error when nothing can be given: to this caller, or to any.
func (r *reader) over(ctx context.Context) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case r.life.ended() || r.hub.client.life.ended():
		return r.finish(ErrClosed)
	}
	return nil
}

// finish notes that nothing more is to come, and why.
func (r *reader) finish(err error) error {
	r.final = r.error(err)
	return r.final
}

func (r *reader) error(err error) error {
	return fmt.Errorf("read %s/%s of group %s: %w", r.hub.name, r.cfg.Partition, r.cfg.Group, err)
}

// ghostTime is how long a hub may take to notice that a connection is gone.
const ghostTime = 2 * time.Minute

// ownGhost recognises a refusal that may be due to the link that was lost: the hub still counts it
// among the plain readers. That passes.
func (r *reader) ownGhost(err error) bool {
	said, ok := errors.AsType[*amqp.Error](err)
	return ok && said.Condition == amqp.ErrCondResourceLimitExceeded && !r.lost.IsZero() && time.Since(r.lost) < ghostTime
}

// try gives what comes on the link, opening one if there is none.
func (r *reader) try(ctx context.Context, dst []event.Event, most int) ([]event.Event, error) {
	link, err := r.opened(ctx)
	if err != nil {
		return dst, err
	}
	given, err := r.take(ctx, link, dst, most)
	if err != nil && ctx.Err() == nil {
		r.lost = time.Now()
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.link == link { // else Close has it
			r.link = nil
			link.abandon()
		}
	}
	return given, err
}

// take gives what has come on a link, waiting for the first.
func (r *reader) take(ctx context.Context, link *readerLink, dst []event.Event, most int) ([]event.Event, error) {
	given := r.drain(link, dst, most)
	if len(given) > len(dst) || r.unread != nil {
		return given, nil
	}
	// Waits come one after the other, most with one context, and would cost more than what they
	// wait for if each had its own.
	if r.unbind == nil || r.boundTo != ctx.Done() || r.bound.Err() != nil {
		if r.unbind != nil {
			r.unbind()
		}
		r.boundTo = ctx.Done()
		r.bound, r.unbind = r.life.bind(context.WithCancel(ctx))
	}
	m, err := link.receiver.Receive(r.bound, nil)
	if err != nil {
		return dst, err
	}
	// The first event of several wakes us before the goroutine that brings them has brought the
	// rest: giving way to it once makes a batch of what would be as many calls.
	runtime.Gosched()
	return r.drain(link, r.append(dst, rawBytes(m)), most-1), nil
}

// drain gives what is there already. An event that cannot be read ends it.
func (r *reader) drain(link *readerLink, dst []event.Event, most int) []event.Event {
	for taken := 0; taken < most && r.unread == nil; taken++ {
		m := link.receiver.Prefetched()
		if m == nil {
			break
		}
		dst = r.append(dst, rawBytes(m))
	}
	// Credit for the events taken goes back to the hub in large pieces, as each takes a frame. What
	// is owed is never more than a quarter: the hub never has none while nothing is under way.
	if r.owed > 0 && r.owed >= r.cfg.Prefetch/4 {
		_ = link.receiver.IssueCredit(uint32(r.owed)) // fails only while credit is drained, which nobody does
		r.owed = 0
	}
	return dst
}

// errUnnumbered: nobody can go on behind an event without its number.
var errUnnumbered = errors.New("the hub gave it no number")

// append decodes an event, from behind which another link would go on.
func (r *reader) append(dst []event.Event, raw []byte) []event.Event {
	r.owed++
	dst = append(dst, event.Event{})
	ev := &dst[len(dst)-1]
	metrics, err := decodeEvent(ev, raw)
	if ev.Sequence >= 0 {
		r.from = After(ev.Sequence)
	} else if err == nil {
		err = errUnnumbered
	}
	if err != nil {
		r.unread = r.error(fmt.Errorf("%w: sequence number %d: %w", ErrUnreadable, ev.Sequence, err))
		return dst[:len(dst)-1]
	}
	ev.Partition = r.cfg.Partition
	if metrics != nil {
		r.metrics = metrics
	}
	return dst
}

// LastEnqueued is documented by Reader.
func (r *reader) LastEnqueued() (LastEnqueued, bool) { return decodeMetrics(r.metrics) }

// Close is documented by Reader.
func (r *reader) Close(ctx context.Context) error {
	r.life.end()
	r.mu.Lock()
	link := r.link
	r.link = nil
	r.mu.Unlock()
	if link == nil {
		return nil
	}
	link.conn.release(link.audience)
	if err := link.session.Close(ctx); err != nil && ctx.Err() != nil {
		return r.error(fmt.Errorf("close: %w", ctx.Err()))
	}
	return nil
}
