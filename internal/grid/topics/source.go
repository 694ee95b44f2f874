package topics

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// origin is a source that exists.
type origin struct {
	Source // in its own spelling
	id     string
	// domain is that of a topic; nil: it is none.
	domain *Domain
	// input is the schema of its events; hubs' are made into CloudEvents.
	input schema.Kind
	// log is a topic's, partitions how many a hub has.
	log        topicLog
	partitions int
}

// sources finds the topics and hubs that events come from. It owns nothing.
type sources struct {
	broker    Broker
	namespace string
	view      *view
}

// find gives a source that exists. Errors: ErrInvalid, ErrTopicNotFound, *broker.NotFoundError.
func (k *sources) find(s Source) (origin, error) {
	switch {
	case (s.Topic == "") == (s.Hub == "") || s.Hub != "" && s.DomainTopic != "":
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
	at := origin{Source: Source{Topic: t.Name, Domain: t.Domain != nil}, id: t.ID, domain: t.Domain, input: t.Schema, log: live.logs[t.ID]}
	if s.DomainTopic != "" {
		if t.Domain == nil {
			return origin{}, invalid("topic %q is no domain, so that it has no topics: leave the domain topic out, or name a domain", t.Name)
		}
		if err := checkDomainTopic(s.DomainTopic); err != nil {
			return origin{}, err
		}
		at.DomainTopic = s.DomainTopic
	}
	return at, nil
}

// present finds the source that a subscription was made for.
func (k *sources) present(r *record) (origin, error) {
	at, err := k.find(r.Source)
	if err == nil && at.id != r.SourceID {
		err = fmt.Errorf("%w: it is of another %s that is gone", ErrNotFound, r.Source)
	}
	return at, err
}

// starts reads where delivery begins: at the ends of the source's logs, or at their beginnings.
// Whatever is published after it returned lies behind the ends.
func (k *sources) starts(ctx context.Context, at origin, fromStart bool) ([]int64, error) {
	if at.Hub == "" {
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

// activate has events delivered from now on, or from where they were before. The ends are read
// before the definition is stored, so that nothing published after that is missed.
func (k *sources) activate(ctx context.Context, r *record, at origin) (err error) {
	if r.Starts == nil {
		if r.Starts, err = k.starts(ctx, at, r.FromStart); err != nil {
			return err
		}
	}
	r.Validation.close()
	r.State, r.Why = Active, ""
	if r.Paused {
		r.State = Paused
	}
	r.lapse(time.Now())
	return nil
}

// shown is a subscription as users see it. A topic takes its subscriptions along when it is
// deleted; a hub does not, so that one whose hub is gone is shown as Failed.
func (k *sources) shown(s *Subscription) Subscription {
	shown := *s
	if s.Source.Hub == "" {
		return shown
	}
	switch h, err := k.broker.Hub(s.Source.Hub); {
	case err != nil:
		shown.State, shown.Why = Failed, fmt.Sprintf("hub %q is gone: delete the subscription, or create the hub and it anew", s.Source.Hub)
	case HubID(h) != s.SourceID:
		shown.State, shown.Why = Failed, fmt.Sprintf("hub %q is gone, and another has its name: create the subscription anew", s.Source.Hub)
	}
	return shown
}

var _ Broker = (*broker.Broker)(nil)
