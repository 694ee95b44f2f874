package broker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/eventyard/eventyard/internal/quota"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// Target says which partition events go to: the one named, else the one of the key.
// Where neither is given it is the one of the key that all the events have of their
// own, so that equal keys stay together whatever way they come; else the next in turn.
type Target struct {
	Partition string
	// Key is also stored with every event that has none of its own.
	Key string
	// Quota is that of who publishes, besides the hub's; nil: none.
	Quota *quota.Meter
	// Created is that of the hub which is meant: one made later under its name is not found.
	// Zero means whichever has the name.
	Created time.Time
}

// Published tells where events were stored.
type Published struct {
	Partition string
	// First is the number of the first event, the others follow it without a gap, but for those of
	// several frames. Where a producer repeated what had been stored before it is eventlog.NoSequence, and
	// Time is zero: nobody remembers where that was. Of frames somebody does, for a while.
	First eventlog.Sequence
	Time  time.Time
	Count int
}

// Publish stores events in one partition of a hub, in order, whole or not at all. They
// are as durable as the engine promises when it returns. The slice and what it holds
// are taken over: keys may be filled in.
//
// What was certainly not stored is appended again, up to a limit: one who waits has
// nothing else under way that it could overtake.
//
// Errors: *NotFoundError, ErrKeyTooLong, ErrInvalidKey, *quota.Error, and the engine's. After
// eventlog.ErrUncertain or ctx's own error the events may be stored or not; after any other they
// are not.
func (b *Broker) Publish(ctx context.Context, hub string, to Target, events []eventlog.Event) (stored Published, err error) {
	var p Pending
	var paid charge
	if err = prepare(hub, to, events); err == nil {
		err = eventlog.Again(func() (err error) {
			if p, err = b.submit(ctx, hub, to, events, &paid); err == nil {
				stored, err = p.wait(ctx)
			}
			return err
		}, eventlog.ErrFenced, eventlog.ErrRemoved)
		err = b.gone(p.hub, err)
	}
	if err != nil {
		paid.ended(err)
		b.metrics.failed(err)
	}
	return stored, err
}

// Submit is Publish without the waiting, for who has several publications under way. The bytes that
// the events hold may be used again when it returns. It waits, until ctx ends, only while too much
// is under way already. Errors as for Publish, besides those that Wait gives.
//
// What one caller submits to a partition, one after another, is stored in that order.
// When one is refused, those submitted behind it before it was told are refused too, and
// none of them is appended again here: its bytes are the caller's again, and it would
// come behind what was submitted meanwhile. So who wants order waits for all that is
// under way and then sends again, from the first that was refused.
func (b *Broker) Submit(ctx context.Context, hub string, to Target, events []eventlog.Event) (*Pending, error) {
	var p Pending
	var paid charge
	err := prepare(hub, to, events)
	if err == nil {
		// Where a hub was deleted and made anew between finding and using it, this goes on with the
		// new one. Nothing overtakes anything by that: what is under way to the old one is lost
		// with it.
		err = eventlog.Again(func() (err error) {
			p, err = b.submit(ctx, hub, to, events, &paid)
			return err
		}, eventlog.ErrFenced, eventlog.ErrRemoved)
		err = b.gone(p.hub, err)
	}
	if err != nil {
		paid.refund()
		b.metrics.failed(err)
		return nil, err
	}
	p.paid = paid
	return &p, nil
}

// prepare checks the keys, and gives that of the target to the events that have none, all sharing
// one copy.
func prepare(hub string, to Target, events []eventlog.Event) error {
	if err := checkKeys(to.Key, events); err != nil {
		return fmt.Errorf("publish to hub %.64q: %w", hub, err)
	}
	if to.Key == "" {
		return nil
	}
	var shared []byte
	for i := range events {
		if len(events[i].Key) > 0 {
			continue
		}
		if shared == nil {
			shared = []byte(to.Key)
		}
		events[i].Key = shared
	}
	return nil
}

// submit hands a batch to the engine once. The hub is looked up each time: it may have
// been created anew since the last. The charge is one for all times.
func (b *Broker) submit(ctx context.Context, hub string, to Target, events []eventlog.Event, paid *charge) (Pending, error) {
	h, err := meant(ctx, b, hub, to.Created)
	if err != nil {
		return Pending{}, err
	}
	p := Pending{broker: b, hub: h, count: len(events)}
	if p.partition, err = h.choose(to, events); err != nil {
		return p, err
	}
	if h.broken != nil {
		return p, h.broken
	}
	batch := eventlog.Batch{Events: events}
	p.bytes = batch.Bytes() // first: what is appended belongs to the engine
	if p.bytes > eventlog.MaxBatchBytes {
		return p, p.failure(tooLarge(&p))
	}
	if err := paid.take(&p, to.Quota); err != nil {
		return p, p.failure(err)
	}
	if p.receipt, err = h.partitions[p.partition].Submit(ctx, batch); err != nil {
		return p, p.failure(err)
	}
	b.countKeys(h, p.partition, events)
	return p, nil
}

// meant finds a hub, if it is the one that was created then; zero means whichever has the name.
func meant(ctx context.Context, b *Broker, name string, created time.Time) (*hub, error) {
	h, err := b.find(ctx, name)
	if err == nil && !created.IsZero() && !created.Equal(h.Created) {
		return nil, hubNotFound(name)
	}
	return h, err
}

// tooLarge says by how much a publication is. A key that was given for all its events is
// stored with each of them, so that it may measure more than what was sent.
func tooLarge(p *Pending) error {
	return fmt.Errorf("%w: %d events with their partition keys take %d bytes, at most %d are allowed",
		eventlog.ErrTooLarge, p.count, p.bytes, eventlog.MaxBatchBytes)
}

// gone gives for a hub that was deleted under a call the error that a moment later would have
// given. What may have been stored in it stays in doubt.
func (b *Broker) gone(h *hub, err error) error {
	if errors.Is(err, eventlog.ErrRemoved) && !errors.Is(err, eventlog.ErrUncertain) && b.hubs.find(h.Name) == nil {
		return hubNotFound(h.Name)
	}
	return err
}

// checkKeys looks at every key that would be stored: listeners show keys as text, and no
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
	characters := 0
	for i := range len(key) { // utf8.RuneCount would copy the bytes
		if utf8.RuneStart(key[i]) {
			characters++
		}
	}
	if characters > MaxKeyCharacters {
		return fmt.Errorf("%w: %d characters, use at most %d", ErrKeyTooLong, characters, MaxKeyCharacters)
	}
	return nil
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
func commonKey(events []eventlog.Event) (key []byte) {
	for i := range events {
		if i == 0 {
			key = events[0].Key
		} else if !bytes.Equal(events[i].Key, key) {
			return nil
		}
	}
	return key
}
