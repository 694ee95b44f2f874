package deadletter

import (
	"context"
	"errors"
	"fmt"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/amqp/message"
	"github.com/eventyard/eventyard/internal/grid/hops"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// target is where letters are written.
type target interface {
	// write is durable when it returns nil. It ends with ctx, if it can.
	write(ctx context.Context, name string, l load) (put, error)
}

// put is where letters went: for people, and as the announcement has it.
type put struct {
	show, url, subject string
	bytes              int
	left               int     // how many of the load, the last, are still to be written
	without            []int64 // letters that do not fit there
}

func (c Config) targetOf(t topics.Target) (target, error) {
	switch t.Kind {
	case topics.TargetFolder:
		return c.folder(t.Where)
	case topics.TargetBlob:
		if account, container, ok := t.Account(); ok {
			return c.named(account, container)
		}
		return newContainer(t, c.Transport)
	case topics.TargetHub:
		return hubTarget{c.Broker, t.Where}, nil
	}
	return nil, fmt.Errorf("%w: %q is no target for dead letters", topics.ErrInvalid, t.Kind)
}

// CheckTarget says whether a target may be used: a folder under the data folder or one of those
// allowed, a URL that can be read, a hub's name. It is the configuration's, so that topics can be
// given it before the service is opened over them.
func (c Config) CheckTarget(t topics.Target) error {
	if !written(t) {
		return nil
	}
	_, err := c.targetOf(t)
	return err
}

// hubTarget sends letters to a hub, an event each, and as many as one batch takes: it is stored
// whole or not at all, so that nothing is sent twice where a hub refuses, as for its quota.
type hubTarget struct {
	broker Broker
	hub    string
}

func (h hubTarget) write(ctx context.Context, _ string, l load) (put, error) {
	at := put{show: "hub " + h.hub, url: "/hubs/" + h.hub, subject: "/hubs/" + h.hub}
	var batch []eventlog.Event
	size := 0
	for i := range l.letters {
		stored, err := asEvent(&l, i)
		if err != nil {
			return put{}, fmt.Errorf("write dead letter %d: %w", l.letters[i].Number, err)
		}
		room := len(stored) + eventlog.EventOverheadBytes
		// A letter that came from dead letters of a loop would feed the loop.
		if room > eventlog.MaxBatchBytes || l.letters[i].Hops > hops.Max {
			at.without = append(at.without, l.letters[i].Number)
			continue
		}
		if size+room > eventlog.MaxBatchBytes {
			at.left = len(l.letters) - i
			break
		}
		batch, size, at.bytes = append(batch, eventlog.Event{Message: stored}), size+room, at.bytes+len(l.body(i))
	}
	return at, h.send(ctx, batch)
}

func (h hubTarget) send(ctx context.Context, batch []eventlog.Event) error {
	if len(batch) == 0 {
		return nil
	}
	_, err := h.broker.Publish(ctx, h.hub, broker.Target{}, batch)
	var missing *broker.NotFoundError
	if errors.As(err, &missing) {
		return fmt.Errorf("send dead letters to hub %s: %w: create it, or name another target", h.hub, err)
	}
	if err != nil {
		return fmt.Errorf("send dead letters to hub %s: %w", h.hub, err)
	}
	return nil
}

// asEvent is a letter as hubs keep it.
func asEvent(l *load, i int) ([]byte, error) {
	letter := &l.letters[i]
	return message.Append(nil, event.Event{
		Body: l.body(i), ContentType: "application/json", MessageID: letter.guid(letter.Subscription),
		Properties: letter.Trace.SetProperties(map[string]any{
			"deadLetterReason": letter.Reason, "deliveryAttempts": int64(letter.Attempts),
			"lastDeliveryOutcome": string(letter.LastOutcome), "subscription": letter.Subscription, "subscriptionName": l.subscription,
			hops.Name: int32(letter.Hops + 1),
		}),
	})
}
