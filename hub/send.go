package hub

import (
	"context"
	"fmt"

	"github.com/eventyard/eventyard/event"
)

// Send publishes events as one batch, stored whole or not at all: to the partition of their key, or
// of the hub's choice. nil means durable. Events with different keys are ErrMixedKeys: send them
// apart. No events are nothing to send. When ctx has ended the events may be stored, or may still
// be.
func (h *Hub) Send(ctx context.Context, events ...event.Event) error {
	if len(events) == 0 {
		return nil
	}
	for i := range events {
		if events[i].Key != events[0].Key {
			return fmt.Errorf("send to hub %s: keys %q and %q: %w", h.name, events[0].Key, events[i].Key, ErrMixedKeys)
		}
	}
	return h.send(ctx, newBatch(events[0].Key, ""), events)
}

// SendTo publishes events as one batch to a named partition; they have no keys.
func (h *Hub) SendTo(ctx context.Context, partition string, events ...event.Event) error {
	if partition == "" {
		return fmt.Errorf("send to hub %s: %w", h.name, errNoPartition)
	}
	for i := range events {
		if events[i].Key != "" {
			return fmt.Errorf("send to partition %s/%s: key %q: %w", h.name, partition, events[i].Key, ErrMixedKeys)
		}
	}
	return h.send(ctx, newBatch("", partition), events)
}

func (h *Hub) send(ctx context.Context, b *Batch, events []event.Event) error {
	for i := range events {
		if err := b.add(&events[i]); err != nil {
			return fmt.Errorf("send to hub %s: event %d: %w", h.name, i, err)
		}
	}
	return h.publish(ctx, b)
}

// publish sends a batch, as often as it takes.
func (h *Hub) publish(ctx context.Context, b *Batch) error {
	if b.Len() == 0 {
		return nil
	}
	address := h.target(b.partition)
	to, err := h.sender(address)
	if err == nil {
		m := b.message()
		err = h.client.retry(ctx, sending, func(ctx context.Context) error { return to.send(ctx, m, b.bytes) })
	}
	if err != nil {
		return fmt.Errorf("send %d events to %s: %w", b.Len(), address, err)
	}
	return nil
}
