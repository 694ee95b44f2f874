package hub

import (
	"context"
	"errors"
	"fmt"

	"github.com/Azure/go-amqp"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/amqp/wire"
)

// batchFormat is the message format of a batch: a message whose data sections are the encoded
// messages of the events.
const batchFormat = 0x80013700

// Batch gathers events up to the hub's size limit. One goroutine uses it at a time.
type Batch struct {
	label
	partition string
	limit     int

	// encoded is all events, one behind the other; ends is where each ends.
	encoded []byte
	ends    []int
	bytes   int
}

// BatchConfig says where a batch goes: neither is the hub's choice, both are an error.
type BatchConfig struct {
	Key       string
	Partition string
	// MaxBytes is below the hub's own limit; 0 means that limit.
	MaxBytes int
}

// NewBatch asks the hub for its limit and makes an empty batch.
func (h *Hub) NewBatch(ctx context.Context, cfg BatchConfig) (*Batch, error) {
	if cfg.Key != "" && cfg.Partition != "" {
		return nil, fmt.Errorf("new batch for hub %s: it has a key and a partition: %w", h.name, ErrMixedKeys)
	}
	var limit int
	to, err := h.sender(h.target(cfg.Partition))
	if err == nil {
		err = h.client.retry(ctx, sending, func(ctx context.Context) error {
			link, err := to.open(ctx)
			if err == nil {
				limit = link.limit
			}
			return err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("new batch for hub %s: %w", h.name, err)
	}
	if cfg.MaxBytes > 0 {
		limit = min(limit, cfg.MaxBytes)
	}
	b := newBatch(cfg.Key, cfg.Partition)
	b.limit = limit
	return b, nil
}

func newBatch(key, partition string) *Batch {
	b := &Batch{label: label{key: key}, partition: partition}
	if key != "" {
		// The envelope, with the larger form of each part: some bytes too many do no harm.
		b.bytes = 3 + 9 + 2 + len(wire.AnnotationPartitionKey) + 5 + len(key)
	}
	return b
}

// Add takes an event, or returns ErrTooLarge and takes nothing: send the batch and add
// the event to a new one. An event with a key of its own other than the batch's is ErrMixedKeys.
func (b *Batch) Add(ev event.Event) error {
	if ev.Key != "" && ev.Key != b.key {
		return fmt.Errorf("add event with key %q to a batch of %q: %w", ev.Key, b.key, ErrMixedKeys)
	}
	if err := b.add(&ev); err != nil {
		return fmt.Errorf("add event to batch: %w", err)
	}
	return nil
}

func (b *Batch) add(ev *event.Event) error {
	start := len(b.encoded)
	encoded, err := appendEvent(b.encoded, ev, b.label)
	if err != nil {
		return err
	}
	bytes := b.bytes + 3 + 2 + len(encoded) - start // with the head of its data section
	if len(encoded)-start > 0xff {
		bytes += 3
	}
	if b.limit > 0 && bytes > b.limit {
		return tooLarge(bytes, b.limit)
	}
	b.encoded, b.bytes = encoded, bytes
	b.ends = append(b.ends, len(encoded))
	return nil
}

func tooLarge(bytes, limit int) error {
	return fmt.Errorf("%w: %d bytes with it, and %d are allowed", ErrTooLarge, bytes, limit)
}

// Len is the number of events in the batch.
func (b *Batch) Len() int { return len(b.ends) }

// Bytes is the size of the batch on the wire, or a few more.
func (b *Batch) Bytes() int { return b.bytes }

// message makes what is sent. It shares the batch's bytes.
func (b *Batch) message() *amqp.Message {
	m := &amqp.Message{Format: batchFormat, Data: make([][]byte, len(b.ends))}
	if b.key != "" {
		m.Annotations = amqp.Annotations{wire.AnnotationPartitionKey: b.key}
	}
	start := 0
	for i, end := range b.ends {
		m.Data[i] = b.encoded[start:end:end]
		start = end
	}
	return m
}

// SendBatch publishes a batch. Afterwards, also after an error, it still holds its events. An empty
// one is nothing to send.
func (h *Hub) SendBatch(ctx context.Context, b *Batch) error {
	if b == nil {
		return fmt.Errorf("send to hub %s: %w", h.name, errors.New("there is no batch"))
	}
	return h.publish(ctx, b)
}
