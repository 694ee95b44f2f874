package hub

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"runtime"
	"sync"
	"time"

	"github.com/Azure/go-amqp"

	"github.com/eventyard/eventyard/event"
)

// defaultGroup is the consumer group that every hub has.
const defaultGroup = "$Default"

const defaultPrefetch = 300

// ReadConfig says what is read.
type ReadConfig struct {
	Partition string
	// Group is the consumer group; empty means $Default.
	Group string
	From  Position
	// Epoch, where it is not nil, makes the reader exclusive: it disconnects plain ones and those
	// with an equal or lower epoch, and is refused while there is a higher.
	Epoch *int64
	// Prefetch is how many events the hub may send ahead; 0 means 300.
	Prefetch int
	// Name is shown by the hub; empty means the client's.
	Name string
}

// Reader reads one partition. One goroutine uses it at a time, but Close may be called by
// any. An interface because a hub in the same process, or of a test, has another.
type Reader interface {
	// Next waits for events and appends to dst what has come, at least one and at most max (where
	// max is not above 0: one). What it
	// gives belongs to the caller. When the connection breaks it reconnects and goes on behind
	// the last event given, trying until ctx ends, since nothing is lost by waiting; what
	// cannot pass by waiting is an error: ErrEvicted, ErrRefused, ErrNotFound, ErrUnauthorized,
	// ErrOutOfRange, ErrClosed; it is the answer to every later call as well. With ctx's error dst is returned as it was, and no event
	// is lost: a later Next gives it. ErrUnreadable stands for one event, and a later Next goes on behind it.
	Next(ctx context.Context, dst []event.Event, max int) ([]event.Event, error)

	// LastEnqueued is the newest event of the partition as the hub told beside its last
	// delivery; false before the first.
	LastEnqueued() (LastEnqueued, bool)

	// Close ends the reader; its place at the hub is free when it returns or soon after. Safe twice.
	Close(ctx context.Context) error
}

// Open starts a reader, attached when it returns. A hub may also let a reader in and refuse it at once: then
// ErrRefused comes with the first Next.
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

// reader reads by a link, and by another when that has ended.
type reader struct {
	hub     *Hub
	cfg     ReadConfig
	address string

	// The following belong to the goroutine that calls Next.

	from    Position // where the next link begins
	wait    backoff
	owed    int       // credit to give back to the hub
	metrics []byte    // of the last event given
	lost    time.Time // when the last link ended; zero: none has
	final   error     // nothing more is to come
	unread  error     // of an event that could not be read; the next ones can

	// bound is the context of the last wait, made of one with the Done boundTo; unbind lets go of it.
	bound   context.Context
	boundTo <-chan struct{}
	unbind  context.CancelFunc

	// closing is closed by stop, which Close calls; onClose calls a function then.
	closing <-chan struct{}
	stop    context.CancelFunc
	onClose func(func()) (forget func() bool)

	mu   sync.Mutex
	link *readerLink // guarded by mu; nil while there is none
}

func (h *Hub) newReader(ctx context.Context, cfg ReadConfig) (*reader, error) {
	if err := h.named(); err != nil {
		return nil, err
	}
	if cfg.Partition == "" {
		return nil, errNoPartition
	}
	if cfg.Group == "" {
		cfg.Group = defaultGroup
	}
	if cfg.Name == "" {
		cfg.Name = h.client.cfg.Name
	}
	if cfg.Prefetch <= 0 {
		cfg.Prefetch = defaultPrefetch
	}
	cfg.Prefetch = min(cfg.Prefetch, math.MaxInt32)
	open, stop := context.WithCancel(context.Background())
	r := &reader{
		hub: h, cfg: cfg, address: h.source(cfg.Group, cfg.Partition), from: cfg.From,
		wait: backoff{retry: h.client.cfg.Retry}, closing: open.Done(), stop: stop,
		onClose: func(f func()) func() bool { return context.AfterFunc(open, f) },
	}
	return r, r.fix(ctx)
}

// fix makes "latest" a definite place: a link that breaks before the first event came would
// otherwise be followed by one that begins later.
func (r *reader) fix(ctx context.Context) error {
	if r.from.kind != fromLatest {
		return nil
	}
	info, err := r.hub.Partition(ctx, r.cfg.Partition)
	if err == nil {
		r.from = After(info.Last)
	}
	return err
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
		if err := r.recover(ctx, err); err != nil {
			return dst, err
		}
	}
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

// try gives what comes on the link, opening one if there is none.
func (r *reader) try(ctx context.Context, dst []event.Event, most int) ([]event.Event, error) {
	link, err := r.opened(ctx)
	if err != nil {
		return dst, err
	}
	given, err := r.take(ctx, link, dst, most)
	if err != nil && ctx.Err() == nil {
		r.lost = time.Now()
		r.forget(link)
	}
	return given, err
}

// recover waits after a failure until it is time for another try; an error means that there
// is none.
func (r *reader) recover(ctx context.Context, err error) error {
	if over := r.over(ctx); over != nil {
		return over
	}
	v := judge(err, reading)
	if !v.passing && !r.ownGhost(err) {
		return r.finish(v.err)
	}
	r.log(v.err)
	_ = r.hub.client.pause(ctx, r.wait.delay(v.busy), r.closing)
	return nil // what ended the pause ends the next try
}

// ghostTime is how long a hub may take to notice that a connection is gone.
const ghostTime = 2 * time.Minute

// ownGhost tells a refusal that may be due to the link that was lost: the hub still counts it among
// the plain readers. That passes.
func (r *reader) ownGhost(err error) bool {
	said := (*amqp.Error)(nil)
	return errors.As(err, &said) && said.Condition == amqp.ErrCondResourceLimitExceeded &&
		!r.lost.IsZero() && time.Since(r.lost) < ghostTime
}

// log tells of an interruption, and of the attempts to end it only who listens closely.
func (r *reader) log(err error) {
	level := slog.LevelDebug
	if r.wait.next == 0 {
		level = slog.LevelWarn
	}
	r.hub.client.cfg.Log.Log(context.Background(), level, "reading is interrupted and goes on by itself",
		"hub", r.hub.name, "group", r.cfg.Group, "partition", r.cfg.Partition, "from", r.from.String(), "error", err)
}

// over tells why there is nothing to be given: not to this caller, or to none.
func (r *reader) over(ctx context.Context) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case r.isClosed():
		return r.finish(ErrClosed)
	}
	return nil
}

func (r *reader) isClosed() bool {
	select {
	case <-r.closing:
		return true
	default:
		return r.hub.client.isClosed()
	}
}

// finish notes that nothing more is to come, and why.
func (r *reader) finish(err error) error {
	r.final = r.error(err)
	return r.final
}

func (r *reader) error(err error) error {
	return fmt.Errorf("read %s/%s of group %s: %w", r.hub.name, r.cfg.Partition, r.cfg.Group, err)
}

// take gives what has come on a link, waiting for the first.
func (r *reader) take(ctx context.Context, link *readerLink, dst []event.Event, most int) ([]event.Event, error) {
	given := r.drain(link, dst, most)
	if len(given) > len(dst) || r.unread != nil {
		return given, nil
	}
	m, err := link.receiver.Receive(r.until(ctx), nil)
	if err != nil {
		return dst, err
	}
	// The first event of several wakes us before the goroutine that brings them has brought the rest:
	// giving way to it once makes a batch of what would be as many calls.
	runtime.Gosched()
	return r.drain(link, r.append(dst, rawBytes(m)), most-1), nil
}

// until is bind for waits that come one after the other, most with one context, and
// cost more than what they wait for if each has its own.
func (r *reader) until(ctx context.Context) context.Context {
	if r.unbind != nil {
		if r.boundTo == ctx.Done() && r.bound.Err() == nil {
			return r.bound
		}
		r.unbind()
	}
	r.boundTo = ctx.Done()
	r.bound, r.unbind = r.bind(ctx)
	return r.bound
}

// bind ends a wait when the reader is closed.
func (r *reader) bind(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	forget := r.onClose(cancel)
	return ctx, func() {
		forget()
		cancel()
	}
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
	r.repay(link)
	return dst
}

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

// errUnnumbered: nobody can go on behind an event without its number.
var errUnnumbered = errors.New("the hub gave it no number")

// repay gives credit back to the hub for the events taken, in large pieces: each takes a frame. What
// is owed is never more than a quarter, so that the hub never has none while nothing is under way.
func (r *reader) repay(link *readerLink) {
	if r.owed > 0 && r.owed >= r.cfg.Prefetch/4 {
		// It fails while credit is being drained, which nobody here does.
		_ = link.receiver.IssueCredit(uint32(r.owed))
		r.owed = 0
	}
}

// LastEnqueued is documented by Reader.
func (r *reader) LastEnqueued() (LastEnqueued, bool) { return decodeMetrics(r.metrics) }

// Close is documented by Reader.
func (r *reader) Close(ctx context.Context) error {
	r.stop()
	r.mu.Lock()
	link := r.link
	r.link = nil
	r.mu.Unlock()
	if link == nil {
		return nil
	}
	if err := link.close(ctx); err != nil && ctx.Err() != nil {
		return r.error(fmt.Errorf("close: %w", ctx.Err()))
	}
	return nil
}
