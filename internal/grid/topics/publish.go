package topics

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/amqp/message"
	"github.com/eventyard/eventyard/internal/grid/hops"
	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/quota"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/tracing"
)

// Publish stores events (as schema.Read gives them) in the topic's log, whole or not at all; they
// are durable when it returns. No events are stored at once. The events have the hops of ctx, and its trace
// where they say nothing of one. by is the quota of who publishes, besides the topic's; nil: none.
//
// Errors: ErrTopicNotFound, ErrReserved (YardEvents: receivers take its events for the yard's own
// word), *quota.Error, and the engine's, eventlog.ErrTooLarge and eventlog.ErrNoSpace among them.
// After eventlog.ErrUncertain or ctx's own error the events may be stored or not; after any other
// they are not.
func (k *topicRegistry) Publish(ctx context.Context, topic string, events [][]byte, by *quota.Meter) error {
	if auth.Fold(topic) == YardEvents {
		return fmt.Errorf("publish to topic %q: %w: only the yard publishes there, use another topic", topic, ErrReserved)
	}
	live, size := k.view.live.Load(), 0
	t := live.Topics[auth.Fold(topic)]
	if t == nil {
		return topicNotFound(topic)
	}
	for _, e := range events {
		size += len(e)
	}
	meters := []*quota.Meter{live.logs[t.ID].quota, by, k.quota}
	if err := quota.Take(len(events), size, time.Now(), meters...); err != nil {
		return fmt.Errorf("publish to topic %q: %w", topic, err)
	}
	err := k.store(ctx, topic, events)
	if err != nil && !errors.Is(err, eventlog.ErrUncertain) && ctx.Err() == nil {
		quota.Charge(-len(events), -size, time.Now(), meters...) // nothing was stored for it
	}
	return err
}

// Announce stores events of the yard's own in YardEvents, in the stored form of Event Grid's
// schema. Errors are those of Publish.
func (k *topicRegistry) Announce(ctx context.Context, events [][]byte) error {
	return k.store(ctx, YardEvents, events)
}

func (k *topicRegistry) store(ctx context.Context, topic string, events [][]byte) error {
	live := k.view.live.Load()
	t := live.Topics[auth.Fold(topic)]
	if t == nil {
		return topicNotFound(topic)
	}
	if len(events) == 0 {
		return nil
	}
	log := live.logs[t.ID]
	if log.err != nil {
		return fmt.Errorf("publish to topic %q: %w", t.Name, log.err)
	}
	err := publish(ctx, log, t.Schema.Form(), events)
	if errors.Is(err, eventlog.ErrRemoved) && !errors.Is(err, eventlog.ErrUncertain) {
		return topicNotFound(topic) // also where one was made anew: it may have another schema
	}
	if err != nil {
		return fmt.Errorf("publish to topic %q: %w", t.Name, err)
	}
	log.published.Add(int64(len(events)))
	return nil
}

// Published tells how many events this node has stored in each topic since it started, by the topic's
// name. It does no I/O.
func (k *topicRegistry) Published() map[string]int64 {
	live := k.view.live.Load()
	counts := make(map[string]int64, len(live.Topics))
	for _, t := range live.Topics {
		counts[t.Name] = live.logs[t.ID].published.Load()
	}
	return counts
}

// buffers are what batches are written into; the engine has copied them when it has taken one.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// messageBytes is the most that an event measures beside its body, hopBytes what its hops add, and
// traceBytes its trace without the state.
const (
	messageBytes = 64
	hopBytes     = 32
	traceBytes   = 128
)

// publish writes all messages behind each other into one buffer, and appends them as one batch.
func publish(ctx context.Context, log eventlog.Partition, form schema.Form, events [][]byte) (err error) {
	size, each := 0, messageBytes
	var properties map[string]any
	if n := hops.Of(ctx); n > 0 {
		each, properties = each+hopBytes, map[string]any{hops.Name: int32(n)}
	}
	for _, e := range events {
		size += each + len(e)
	}
	trace, traced := fitTrace(tracing.Of(ctx), len(events), eventlog.MaxBatchBytes-size)
	size += traced
	if form != schema.CloudEventForm { // which has a place for it
		properties = trace.SetProperties(properties)
		trace = tracing.Context{}
	}
	if size > eventlog.MaxBatchBytes {
		return fmt.Errorf("%w: %d events take about %d bytes as they are stored, at most %d are allowed",
			eventlog.ErrTooLarge, len(events), size, eventlog.MaxBatchBytes)
	}
	buffer := buffers.Get().(*[]byte)
	defer buffers.Put(buffer)
	*buffer = slices.Grow((*buffer)[:0], size)
	contentType := "application/json"
	if form == schema.CloudEventForm {
		contentType = "application/cloudevents+json"
	}
	batch, dst := eventlog.Batch{Events: make([]eventlog.Event, len(events))}, *buffer
	var said []byte
	for i, e := range events {
		begin := len(dst)
		if trace.Valid() {
			said = schema.AppendTraced(said[:0], e, trace)
			e = said
		}
		if dst, err = message.Append(dst, event.Event{Body: e, ContentType: contentType, Properties: properties}); err != nil {
			return fmt.Errorf("event %d: %w", i, err)
		}
		batch.Events[i].Message = dst[begin:len(dst):len(dst)]
	}
	_, err = eventlog.Append(ctx, log, batch)
	return err
}

// fitTrace gives as much of a trace as there is room for with each of some events, and what that takes in
// all: a trace is no reason to refuse them.
func fitTrace(trace tracing.Context, events, room int) (fitting tracing.Context, bytes int) {
	if !trace.Valid() {
		return trace, 0
	}
	if bytes = events * (traceBytes + len(trace.State)); bytes <= room {
		return trace, bytes
	}
	if trace.State != "" {
		trace.State = ""
		return fitTrace(trace, events, room)
	}
	return tracing.Context{}, 0
}

// Log gives a topic's log, for reading; ErrTopicNotFound where it is deleted.
func (k *topicRegistry) Log(t *Topic) (eventlog.Partition, error) {
	log, ok := k.view.live.Load().logs[t.ID]
	if !ok {
		return nil, topicNotFound(t.Name)
	}
	return log.Partition, log.err
}

// openLog gives the handle of a topic's log, and leaves it to provide that the engine makes one.
func (k *topicRegistry) openLog(t *Topic) (eventlog.Partition, error) {
	k.logs.Add(LogOf(t).Log, eventlog.Shape{Partitions: 1, Kind: eventlog.KindTopic, Retention: eventlog.Retention{Age: k.retention}})
	return k.engine.Partition(LogOf(t))
}

// provide has the engine provide the log of a new topic.
func (k *topicRegistry) provide(ctx context.Context, t *Topic) error {
	if err := k.logs.Provide(ctx, LogOf(t).Log); err != nil && !errors.Is(err, eventlog.ErrRemoved) { // else it was deleted meanwhile
		return fmt.Errorf("it is stored, but its log is not ready yet: %w", err)
	}
	return nil
}

// provideAll has it provide the logs of all topics. One that it cannot now is left to Run, so that
// the others are not kept waiting for it.
func (k *topicRegistry) provideAll(ctx context.Context) error {
	err := k.logs.ProvideAll(ctx)
	if err != nil && ctx.Err() == nil {
		k.unprovided(err)
		return nil
	}
	return err
}

func (k *topicRegistry) unprovided(err error) {
	k.log.Warn("the storage of a topic is not ready; trying again", "error", err)
}
