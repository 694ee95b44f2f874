package functions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/eventyard/eventyard/grid"
	"github.com/eventyard/eventyard/tracing"
)

// Topic is a target of poison events in a grid topic, which is the client's; topic is its name, for
// those who read logs. A poison event is an event of type Eventyard.EventPoisoned whose data tells
// whence it came and why, with the original's body. It is there at least once: after a crash it may
// be there again with the same id.
func Topic(client *grid.Client, topic string) Sink { return gridTopic{client, topic} }

type gridTopic struct {
	client *grid.Client
	name   string
}

func (t gridTopic) String() string { return "topic " + t.name }

func (t gridTopic) Put(ctx context.Context, l PoisonEvent) error {
	ev, err := gridEvent(l)
	if err != nil {
		return err
	}
	ctx = tracing.With(ctx, l.Event.Trace())
	err = t.client.Publish(ctx, ev)
	if answer := (*grid.CallError)(nil); err == nil || errors.As(err, &answer) {
		return err
	}
	ev.Source = "/hubs/" + l.Hub // which a topic of CloudEvents wants, and one of Event Grid's schema must not have
	return t.client.Publish(ctx, ev)
}

// gridEvent is the poison event as a topic's client wants it, whatever the topic's schema.
func gridEvent(l PoisonEvent) (grid.Event, error) {
	text, err := l.full().JSON()
	if err != nil {
		return grid.Event{}, err
	}
	var envelope struct {
		ID      string          `json:"id"`
		Type    string          `json:"eventType"`
		Subject string          `json:"subject"`
		Data    json.RawMessage `json:"data"`
		Version string          `json:"dataVersion"`
	}
	if err := json.Unmarshal(text, &envelope); err != nil {
		return grid.Event{}, fmt.Errorf("poison event %s: %w", l.ID, err)
	}
	return grid.Event{
		ID: envelope.ID, Type: envelope.Type, Subject: envelope.Subject, Time: l.At, Data: envelope.Data, DataVersion: envelope.Version,
	}, nil
}
