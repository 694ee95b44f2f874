package sim

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/amqp/message"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

const hubName = "orders"

// line is the hub as one run of an instance reaches it: the broker, behind its gate.
type line struct {
	world *world
	run   *run

	mu      sync.Mutex
	readers []*reader // guarded by mu
	opened  int       // guarded by mu
}

func (l *line) Namespace() string { return "sim" }
func (l *line) Name() string      { return hubName }

func (l *line) Info(ctx context.Context) (hub.Info, error) {
	if err := l.run.gate.pass(); err != nil {
		return hub.Info{}, err
	}
	h, err := l.world.broker.Hub(hubName)
	return hub.Info{Name: h.Name, Created: h.Created, Partitions: h.PartitionIDs()}, err
}

func (l *line) Partition(ctx context.Context, id string) (hub.PartitionInfo, error) {
	if err := l.run.gate.pass(); err != nil {
		return hub.PartitionInfo{}, err
	}
	p, err := l.world.broker.Partition(ctx, hubName, id)
	return hub.PartitionInfo{
		Partition: id, First: int64(p.First), Last: int64(p.Last), LastOffset: p.LastOffset, LastEnqueued: p.LastTime, Empty: p.Empty,
	}, err
}

// Open takes a slot at the broker. It takes a moment, and now and then longer or fails.
func (l *line) Open(ctx context.Context, cfg hub.ReadConfig) (hub.Reader, error) {
	if err := l.run.gate.pass(); err != nil {
		return nil, err
	}
	l.mu.Lock()
	l.opened++
	d := l.run.dice.of("open "+cfg.Partition, l.opened)
	l.mu.Unlock()
	if err := l.run.gate.wait(ctx, d.between(time.Millisecond, 4*time.Millisecond)); err != nil {
		return nil, err
	}
	if l.world.weather.badLine() && d.chance(0.2) {
		return nil, errors.New("connection reset by peer")
	}
	r, err := l.receive(ctx, cfg)
	if err != nil {
		return nil, err
	}
	r.deaf = l.world.weather.badLine() && d.chance(0.1)
	if err := l.run.gate.pass(); err != nil {
		r.drop()
		return nil, err
	}
	return r, nil
}

func (l *line) receive(ctx context.Context, cfg hub.ReadConfig) (*reader, error) {
	r := &reader{line: l, partition: cfg.Partition}
	r.alive, r.end = context.WithCancelCause(context.Background())
	group := cfg.Group
	if group == "" {
		group = broker.DefaultGroup
	}
	at, err := position(cfg.From)
	if err != nil {
		return nil, err
	}
	receiver := broker.ReceiverConfig{
		Hub: hubName, Group: group, Partition: cfg.Partition, At: at, Name: l.run.id,
		Evict: func(err *broker.EvictedError) { r.end(fmt.Errorf("%w: %w", hub.ErrEvicted, err)) },
	}
	if epoch, ok := cfg.Epoch.Number(); ok {
		receiver.Epoch = &epoch
	}
	r.position, err = l.world.broker.Receive(ctx, receiver)
	if err != nil {
		return nil, hubError(err)
	}
	l.mu.Lock()
	l.readers = append(l.readers, r)
	l.mu.Unlock()
	return r, nil
}

// vanish is what the broker notices of a dead process after a while: its readers are gone.
func (l *line) vanish() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.readers {
		r.drop()
	}
}

// position is where that is in the log.
func position(p hub.Position) (eventlog.Position, error) {
	n, inclusive, ok := p.Sequence()
	if offset, in, is := p.Offset(); is { // offsets are sequence numbers here
		var err error
		n, err = strconv.ParseInt(offset, 10, 64)
		inclusive, ok = in, err == nil
	}
	switch {
	case p == hub.Earliest:
		return eventlog.Earliest(), nil
	case p == hub.Latest:
		return eventlog.Latest(), nil
	case !ok:
		return eventlog.Position{}, fmt.Errorf("%w: %s", hub.ErrOutOfRange, p)
	case inclusive:
		return eventlog.At(eventlog.Sequence(n)), nil
	default:
		return eventlog.After(eventlog.Sequence(n)), nil
	}
}

// hubError says it as a hub client does.
func hubError(err error) error {
	var refused *broker.EpochError
	var quota *broker.ReceiverQuotaError
	var missing *broker.NotFoundError
	var outside *eventlog.PositionError
	switch {
	case errors.As(err, &refused), errors.As(err, &quota):
		return fmt.Errorf("%w: %w", hub.ErrRefused, err)
	case errors.As(err, &missing):
		return fmt.Errorf("%w: %w", hub.ErrNotFound, err)
	case errors.As(err, &outside):
		return fmt.Errorf("%w: %w", hub.ErrOutOfRange, err)
	}
	return err
}

// reader is a slot at the broker.
type reader struct {
	line      *line
	partition string
	position  *broker.Receiver
	alive     context.Context // ends, with its cause, when the reader does
	end       context.CancelCauseFunc
	deaf      bool // it never hears of an event

	ahead []event.Event // read but not given; of the goroutine that calls Next
	using sync.Mutex    // held while the cursor is used or closed

	mu       sync.Mutex
	newest   hub.LastEnqueued // guarded by mu
	reported bool             // guarded by mu
	once     sync.Once
}

func (r *reader) Next(ctx context.Context, dst []event.Event, most int) ([]event.Event, error) {
	if err := r.line.run.gate.pass(); err != nil {
		return dst, err
	}
	if err := r.fill(ctx); err != nil {
		return dst, err
	}
	if err := r.line.run.gate.pass(); err != nil {
		return dst, err
	}
	if r.alive.Err() != nil {
		return dst, context.Cause(r.alive)
	}
	n := min(most, len(r.ahead))
	dst = append(dst, r.ahead[:n]...)
	r.ahead = r.ahead[n:]
	r.look()
	return dst, nil
}

// fill waits until there is something ahead.
func (r *reader) fill(ctx context.Context) error {
	r.using.Lock()
	defer r.using.Unlock()
	switch {
	case r.alive.Err() != nil:
		return context.Cause(r.alive)
	case len(r.ahead) > 0:
		return nil
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(r.alive, func() { stop(context.Cause(r.alive)) })()
	if r.deaf {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	run, err := r.position.Cursor.Next(ctx)
	switch { // what was read is kept, also when ctx has ended meanwhile
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return err
	}
	for i, stored := range run.Events {
		e, err := message.Decode(stored.Message)
		if err != nil {
			return err
		}
		e.Partition, e.Sequence = r.partition, int64(run.First)+int64(i)
		e.Offset, e.Enqueued = strconv.FormatInt(e.Sequence, 10), r.line.world.wallClock(run.Time)
		r.ahead = append(r.ahead, e)
	}
	return nil
}

func (r *reader) look() {
	info := r.position.Newest()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.newest = hub.LastEnqueued{Sequence: int64(info.Last), Offset: info.LastOffset, Enqueued: info.LastTime}
	r.reported = true
}

func (r *reader) LastEnqueued() (hub.LastEnqueued, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.newest, r.reported
}

func (r *reader) Close(context.Context) error {
	if err := r.line.run.gate.pass(); err != nil {
		return err // the broker notices later
	}
	r.drop()
	return nil
}

// drop frees the slot.
func (r *reader) drop() {
	r.once.Do(func() {
		r.end(hub.ErrClosed)
		r.position.Close()
		r.using.Lock() // Next has been told and returns
		defer r.using.Unlock()
		r.position.Cursor.Close()
	})
}
