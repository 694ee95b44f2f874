package topics

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// origin is a source that exists.
type origin struct {
	Source // in its own spelling
	id     string
	// input is the schema of its events; hubs' are made into CloudEvents.
	input schema.Kind
	// log is a topic's, partitions how many a hub has.
	log        topicLog
	partitions int
}

// origin finds a source. Errors: ErrInvalid, ErrTopicNotFound, *broker.NotFoundError.
func (k *Registry) origin(s Source) (origin, error) {
	switch {
	case s.Topic != "" && s.Hub != "" || s == (Source{}):
		return origin{}, invalid("name a topic or a hub, and only one of them, as the source")
	case s.Hub != "":
		h, err := k.broker.Hub(s.Hub)
		if err != nil {
			return origin{}, err
		}
		return origin{Source: Source{Hub: h.Name}, id: HubID(h), input: schema.CloudEvents, partitions: h.Partitions}, nil
	}
	live := k.view.live.Load()
	t := live.Topics[auth.Fold(s.Topic)]
	if t == nil {
		return origin{}, topicNotFound(s.Topic)
	}
	return origin{Source: Source{Topic: t.Name}, id: t.ID, input: t.Schema, log: live.logs[t.ID]}, nil
}

// starts reads where delivery begins: at the ends of the source's logs, or at their beginnings.
// Whatever is published after it returned lies behind the ends.
func (k *Registry) starts(ctx context.Context, at origin, fromStart bool) ([]int64, error) {
	if at.Hub != "" {
		return k.hubStarts(ctx, at, fromStart)
	}
	if at.log.err != nil {
		return nil, at.log.err
	}
	bounds, err := at.log.Bounds(ctx)
	if errors.Is(err, eventlog.ErrRemoved) {
		return nil, topicNotFound(at.Topic)
	}
	if err != nil {
		return nil, fmt.Errorf("read the end of %s: %w", at.Source, err)
	}
	if fromStart {
		return []int64{int64(bounds.First)}, nil
	}
	return []int64{int64(bounds.Next)}, nil
}

func (k *Registry) hubStarts(ctx context.Context, at origin, fromStart bool) ([]int64, error) {
	starts := make([]int64, at.partitions)
	for i := range starts {
		p, err := k.broker.Partition(ctx, at.Hub, strconv.Itoa(i))
		if err != nil {
			return nil, fmt.Errorf("read the end of %s: %w", at.Source, err)
		}
		starts[i] = int64(p.Last) + 1
		if fromStart && p.First != eventlog.NoSequence {
			starts[i] = int64(p.First)
		}
	}
	return starts, nil
}

// gone says why nothing comes from a subscription's source any more; empty while it is there. A
// topic takes its subscriptions along, a hub does not.
func (k *Registry) gone(s *Subscription) string {
	if s.Source.Hub == "" {
		return ""
	}
	h, err := k.broker.Hub(s.Source.Hub)
	switch {
	case err != nil:
		return fmt.Sprintf("hub %q is gone: delete the subscription, or create the hub and it anew", s.Source.Hub)
	case HubID(h) != s.SourceID:
		return fmt.Sprintf("hub %q is gone, and another has its name: create the subscription anew", s.Source.Hub)
	}
	return ""
}

var _ Broker = (*broker.Broker)(nil)
