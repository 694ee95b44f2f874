package broker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/eventyard/eventyard/internal/eventlog"
)

// Target says which partition events go to: the one named, else the one of the key.
// Where neither is given it is the one of the key that all the events have of their
// own, so that equal keys stay together whatever way they come; else the next in turn.
type Target struct {
	Partition string
	// Key is also stored with every event that has none of its own.
	Key string
}

// Published tells where events were stored.
type Published struct {
	Partition string
	// First is the number of the first event, the others follow it without a gap.
	First eventlog.Sequence
	Time  time.Time
	Count int
}

// maxAppends bounds how often a batch is appended that was certainly not stored.
const maxAppends = 4

// Publish stores events in one partition of a hub, in order, whole or not at all. They
// are as durable as the engine promises when it returns. The slice and what it holds
// are taken over: keys may be filled in.
//
// Errors: *NotFoundError, ErrKeyTooLong, ErrInvalidKey, and the engine's. After eventlog.ErrUncertain
// or ctx's own error the events may be stored or not; after any other they are not.
func (b *Broker) Publish(ctx context.Context, hub string, to Target, events []eventlog.Event) (Published, error) {
	p, err := b.publish(ctx, hub, to, events)
	if err != nil {
		b.metrics.failed(err)
	}
	return p, err
}

func (b *Broker) publish(ctx context.Context, hub string, to Target, events []eventlog.Event) (Published, error) {
	if err := checkKeys(to.Key, events); err != nil {
		return Published{}, fmt.Errorf("publish to hub %.64q: %w", hub, err)
	}
	fillKeys(events, to.Key)
	batch := eventlog.Batch{Events: events}
	for try := 1; ; try++ {
		// Looked up each time: the hub may have been created anew in between.
		h, err := b.find(hub)
		if err != nil {
			return Published{}, err
		}
		number, err := h.choose(to, events)
		if err != nil {
			return Published{}, err
		}
		p, err := h.append(ctx, number, batch)
		if err == nil || !notStored(err) || try == maxAppends {
			return p, err
		}
	}
}

// notStored tells whether an append may be done again without storing twice: the
// partition's writer changed, or the hub was deleted, before the batch got there.
func notStored(err error) bool {
	return !errors.Is(err, eventlog.ErrUncertain) &&
		(errors.Is(err, eventlog.ErrFenced) || errors.Is(err, eventlog.ErrRemoved))
}

// checkKeys looks at every key that would be stored: doors show keys as text, and no
// reader should meet one that no sender could repeat.
func checkKeys(key string, events []eventlog.Event) error {
	if err := checkKey(key, utf8.ValidString(key)); err != nil {
		return err
	}
	for i := range events {
		own := events[i].Key
		if err := checkKey(own, utf8.Valid(own)); err != nil {
			return fmt.Errorf("event %d: %w", i, err)
		}
	}
	return nil
}

func checkKey[T string | []byte](key T, valid bool) error {
	if !valid {
		return fmt.Errorf("%w: use valid UTF-8", ErrInvalidKey)
	}
	// Bytes bound characters, and counting bytes is free.
	if len(key) <= MaxKeyCharacters {
		return nil
	}
	if n := characters(key); n > MaxKeyCharacters {
		return fmt.Errorf("%w: %d characters, use at most %d", ErrKeyTooLong, n, MaxKeyCharacters)
	}
	return nil
}

// characters counts those of valid UTF-8. utf8.RuneCount would copy the bytes.
func characters[T string | []byte](key T) int {
	n := 0
	for i := range len(key) {
		if utf8.RuneStart(key[i]) {
			n++
		}
	}
	return n
}

// fillKeys gives the key to the events that have none, all sharing one copy.
func fillKeys(events []eventlog.Event, key string) {
	if key == "" {
		return
	}
	var shared []byte
	for i := range events {
		if len(events[i].Key) > 0 {
			continue
		}
		if shared == nil {
			shared = []byte(key)
		}
		events[i].Key = shared
	}
}

// choose picks the partition.
func (h *hub) choose(to Target, events []eventlog.Event) (int, error) {
	if to.Partition != "" {
		return h.partitionNumber(to.Partition)
	}
	if to.Key != "" {
		return PartitionForKey(to.Key, h.Partitions), nil
	}
	if key := commonKey(events); len(key) > 0 {
		return partitionOf(key, h.Partitions), nil
	}
	return int((h.turn.Add(1) - 1) % uint64(h.Partitions)), nil
}

// commonKey is the key that all events have of their own; empty if there is none.
func commonKey(events []eventlog.Event) []byte {
	if len(events) == 0 || len(events[0].Key) == 0 {
		return nil
	}
	key := events[0].Key
	for i := range events[1:] {
		if !bytes.Equal(events[1+i].Key, key) {
			return nil
		}
	}
	return key
}

func (h *hub) append(ctx context.Context, number int, batch eventlog.Batch) (Published, error) {
	partition, err := h.partition(number)
	if err != nil {
		return Published{}, err
	}
	// Counted first: what is appended belongs to the engine.
	count, size := len(batch.Events), batch.Bytes()
	stored, err := eventlog.Append(ctx, partition, batch)
	if err != nil {
		return Published{}, fmt.Errorf("publish to %s/%d: %w", h.Name, number, err)
	}
	h.metrics.published(count, size)
	return Published{Partition: strconv.Itoa(number), First: stored.First, Time: stored.Time, Count: count}, nil
}
