package delivery

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/eventyard/eventyard/internal/amqp/message"
	"github.com/eventyard/eventyard/internal/grid/hops"
	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/tracing"
)

// group is the consumer group in which a source hub is read. The readers have no epoch and take no
// slot: the broker's cursors, unlike its receivers, keep nobody out.
const group = "$Default"

// errGone: the source is not there, or another has its name.
var errGone = errors.New("source does not exist")

// origin is where a source's events are read: a topic's log, or a hub.
type origin interface {
	partitions() int
	// bounds are the oldest number kept and the one that comes next.
	bounds(ctx context.Context, partition int) (first, next int64, err error)
	// end is the number that comes next, proven: nothing that is stored lies at it or behind it.
	end(ctx context.Context, partition int) (int64, error)
	// cursor opens a reader at a number that is not past the end.
	cursor(ctx context.Context, partition int, at int64) (eventlog.Cursor, error)
	// scan looks at a stored event. What e holds is part of stored or of the reading's own
	// memory, and good until the next scan.
	scan(r *reading, partition int, n int64, at time.Time, stored *eventlog.Event) error
}

// reading is one goroutine's memory for looking at events.
type reading struct {
	envelope schema.Envelope
	scratch  []byte
	hops     int
	// trace is that of an event whose form has no place for it.
	trace tracing.Context
}

// openOrigin finds the origin of subscriptions, and its resource id.
func openOrigin(cfg *Config, snap *topics.Snapshot, s *topics.Subscription) (origin, string, error) {
	if s.Source.Hub == "" {
		t := snap.Topics[auth.Fold(s.Source.Topic)]
		if t == nil || t.ID != s.SourceID {
			return nil, "", errGone
		}
		log, err := cfg.Topics.Log(t)
		if err != nil {
			return nil, "", fmt.Errorf("open the log of topic %s: %w", t.Name, err)
		}
		return &topicOrigin{log: log, form: t.Schema.Form(), resource: t.Resource}, t.Resource, nil
	}
	h, err := cfg.Broker.Hub(s.Source.Hub)
	if isNotFound(err) || err == nil && topics.HubID(h) != s.SourceID {
		return nil, "", errGone
	}
	if err != nil {
		return nil, "", fmt.Errorf("open hub %s: %w", s.Source.Hub, err)
	}
	namespace := cfg.Broker.Namespace()
	resource := topics.HubResource(namespace, h.Name)
	return &hubOrigin{broker: cfg.Broker, namespace: namespace, hub: h, resource: resource}, resource, nil
}

func isNotFound(err error) bool {
	var missing *broker.NotFoundError
	return errors.As(err, &missing)
}

// ended reports whether an error means that a log is no more, or the yard stops.
func ended(err error) bool {
	return errors.Is(err, eventlog.ErrRemoved) || errors.Is(err, eventlog.ErrClosed) || errors.Is(err, errGone) || isNotFound(err)
}

// lost counts the events that retention has removed before they were read, where a run begins behind the next number:
// those below the first that is kept. Other numbers may be no events, as those of transactions that were aborted.
func lost(ctx context.Context, o origin, partition int, next int64, run *eventlog.Run) int64 {
	if int64(run.First) <= next {
		return 0
	}
	first, _, err := o.bounds(ctx, partition)
	if err != nil { // the next read says why
		return 0
	}
	return max(min(first, int64(run.First))-next, 0)
}

// topicOrigin is a topic's log. Its events are stored as schema.Read gave them.
type topicOrigin struct {
	log      eventlog.Partition
	form     schema.Form
	resource string
}

func (o *topicOrigin) partitions() int { return 1 }

func (o *topicOrigin) bounds(ctx context.Context, _ int) (first, next int64, err error) {
	b, err := o.log.Bounds(ctx)
	return int64(b.First), int64(b.Next), err
}

func (o *topicOrigin) end(ctx context.Context, _ int) (int64, error) {
	b, err := o.log.Sealed(ctx)
	return int64(b.Next), err
}

func (o *topicOrigin) cursor(ctx context.Context, _ int, at int64) (eventlog.Cursor, error) {
	c, err := o.log.Cursor(ctx, eventlog.At(eventlog.Sequence(at)))
	if err != nil {
		return nil, err
	}
	return eventlog.EventsOnly(c), nil
}

func (o *topicOrigin) scan(r *reading, _ int, _ int64, _ time.Time, stored *eventlog.Event) error {
	event, properties, ok := message.BodyAndProperties(stored.Message)
	if !ok {
		return errors.New("the stored event has no body of bytes")
	}
	r.hops, r.trace = hops.OfProperties(properties), tracing.OfProperties(properties)
	if err := r.envelope.Scan(o.form, event); err != nil {
		return err
	}
	r.envelope.Trace = r.trace
	r.envelope.Topic = o.resource
	return nil
}

// hubOrigin is a hub whose events feed subscriptions, as CloudEvents.
type hubOrigin struct {
	broker    Broker
	namespace string
	hub       broker.Hub
	resource  string
}

func (o *hubOrigin) partitions() int { return o.hub.Partitions }

func (o *hubOrigin) bounds(ctx context.Context, partition int) (first, next int64, err error) {
	info, err := o.broker.Partition(ctx, o.hub.Name, strconv.Itoa(partition))
	return max(int64(info.First), 0), int64(info.Last) + 1, err
}

func (o *hubOrigin) end(ctx context.Context, partition int) (int64, error) {
	end, err := o.broker.End(ctx, o.hub.Name, strconv.Itoa(partition))
	return int64(end), err
}

// cursor makes sure that the hub is still the same: one made anew under the old name has other
// events under the same numbers.
func (o *hubOrigin) cursor(ctx context.Context, partition int, at int64) (eventlog.Cursor, error) {
	c, err := o.broker.Cursor(ctx, o.hub.Name, group, strconv.Itoa(partition), eventlog.At(eventlog.Sequence(at)))
	if err != nil {
		return nil, err
	}
	if h, err := o.broker.Hub(o.hub.Name); err != nil || !h.Created.Equal(o.hub.Created) {
		_ = c.Close() // it was only read
		return nil, errGone
	}
	return c, nil
}

func (o *hubOrigin) scan(r *reading, partition int, n int64, at time.Time, stored *eventlog.Event) error {
	ev, err := message.Decode(stored.Message)
	if err != nil {
		return err
	}
	r.hops, r.trace = hops.OfProperties(ev.Properties), tracing.Context{} // which the CloudEvent has
	r.scratch, err = schema.FromHub(r.scratch[:0], schema.HubEvent{
		Namespace: o.namespace, Hub: o.hub.Name, Partition: strconv.Itoa(partition), Sequence: n,
		Enqueued: at, Key: string(stored.Key), Event: ev,
	})
	if err != nil {
		return err
	}
	if err := r.envelope.Scan(schema.CloudEventForm, r.scratch); err != nil {
		return err
	}
	r.envelope.Topic = o.resource
	return nil
}
