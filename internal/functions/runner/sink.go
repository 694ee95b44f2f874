package runner

import (
	"context"

	"github.com/eventyard/eventyard/functions"
	"github.com/eventyard/eventyard/internal/functions/poison"
	"github.com/eventyard/eventyard/internal/grid/hops"
	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/tracing"
)

// topicSink puts poison into a topic of this yard.
type topicSink struct {
	*catalog
	topic string
}

// Put publishes a poison event. After a crash it is published again, with the same id.
func (s topicSink) Put(ctx context.Context, l functions.PoisonEvent) error {
	form := schema.EventGridForm
	if grid, ok := s.cfg.Topics.(interface {
		Topic(name string) (topics.Topic, error)
	}); ok {
		t, err := grid.Topic(s.topic)
		if err != nil {
			return err
		}
		form = t.Schema.Form()
	}
	event, err := poison.Record{
		ID: l.ID, Function: l.Function, Hub: l.Hub, Group: l.Group, Partition: l.Partition, Sequence: l.Sequence, Offset: l.Event.Offset,
		Enqueued: l.Event.Enqueued, Reason: l.Reason, Stack: l.Stack, Attempts: l.Attempts, Deaths: l.Deaths, At: l.At,
		Instance: l.Instance, Event: l.Event,
	}.Stored(form)
	if err != nil {
		return err
	}
	ctx = hops.With(ctx, hops.OfProperties(l.Event.Properties))
	ctx = tracing.With(ctx, l.Event.Trace())
	return s.cfg.Topics.Publish(ctx, s.topic, [][]byte{event}, nil)
}

func (s topicSink) String() string { return topicPrefix + s.topic }
