package eventhubs

import (
	"fmt"
	"math"
	"slices"

	"github.com/eventyard/eventyard/internal/amqp/wire"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// The formats of a message: one event, or a batch. In a batch each data section of an
// envelope holds the whole encoding of one event's message.
const (
	formatMessage uint32 = 0
	formatBatch   uint32 = 0x80013700
)

// What is larger than this is not kept for the next message: few are as large.
const (
	maxKeptBytes  = 1 << 20
	maxKeptEvents = 1 << 14
)

// batch is one message's events, in the form in which they are stored. It is used again
// and again: decoding allocates nothing once it has grown.
type batch struct {
	events []eventlog.Event
	// key is the envelope's partition key, which counts for all; nil if it has none. It
	// shares the message's bytes.
	key []byte
	// numbers are those that an idempotent producer gave the events.
	numbers numbering

	// buf holds the messages of the events, but for those that are stored just as they came.
	buf []byte
}

// decode takes a message apart. The result is good until the next call, and only as long
// as the message's bytes are.
func (b *batch) decode(format uint32, msg []byte) error {
	b.reset()
	// What is stored is never longer than what was sent, so this is the only growth.
	b.buf = slices.Grow(b.buf, len(msg))
	switch format {
	case formatMessage:
		return b.add(msg)
	case formatBatch:
		return b.decodeEnvelope(msg)
	default:
		return fmt.Errorf("%w: its format is %#x, known are 0 and %#x", errFormat, format, formatBatch)
	}
}

// decodeEnvelope takes nothing but the key from the envelope. Most clients put there a
// copy of the first event's sections, which say nothing about the others. A batch without
// events is one all the same.
func (b *batch) decodeEnvelope(msg []byte) error {
	m, err := wire.Sections(msg)
	if err != nil {
		return fmt.Errorf("batch: %w", err)
	}
	if m.BodyKind != wire.BodyData && m.BodyKind != wire.BodyNone {
		return fmt.Errorf("%w: the body of a batch is data sections", errFormat)
	}
	_, own, err := wire.Normalize(b.buf, m.MessageAnnotations) // what it appends is overwritten
	if err != nil {
		return fmt.Errorf("batch: %w", err)
	}
	b.key = own.Key
	for r := wire.NewReader(m.Body); r.Len() > 0; {
		event, err := r.ReadData()
		if err != nil {
			return fmt.Errorf("batch: %w", err)
		}
		if err := b.add(event); err != nil {
			return err
		}
	}
	return nil
}

// add takes in the message of one event.
func (b *batch) add(msg []byte) error {
	out, stored, own, err := wire.Stored(b.buf, msg)
	if err != nil {
		return fmt.Errorf("event %d: %w", len(b.events), err)
	}
	b.buf = out
	b.numbers.add(own.Producer)
	b.events = append(b.events, eventlog.Event{Key: own.Key, Message: stored})
	return nil
}

// target says where the events go: to the partition of the link's address if it has one,
// else to that of the envelope's key. Events that have a key of their own keep it, and
// where the envelope has none but all of them the same, it is as good.
//
// On a publisher's link, whose address names no partition, the publisher's name is the key, as over
// HTTP: who may send as one publisher only cannot pass for another, nor reach its partition.
func (b *batch) target(at address) (broker.Target, error) {
	if at.publisher == "" {
		return broker.Target{Partition: at.partition, Key: string(b.key)}, nil
	}
	if err := checkPublisher(at.publisher, b.key); err != nil {
		return broker.Target{}, err
	}
	for i := range b.events {
		if err := checkPublisher(at.publisher, b.events[i].Key); err != nil {
			return broker.Target{}, err
		}
	}
	return broker.Target{Key: at.publisher}, nil
}

func checkPublisher(name string, key []byte) error {
	if len(key) > 0 && string(key) != name {
		return fmt.Errorf("%w: the key is %.64q, the publisher %.64q; send without a key, or to the hub's own address",
			errPublisher, key, name)
	}
	return nil
}

// reset lets go of what the events hold.
func (b *batch) reset() {
	clear(b.events)
	b.events, b.buf, b.key, b.numbers = b.events[:0], b.buf[:0], nil, numbering{}
	if cap(b.buf) > maxKeptBytes {
		b.buf = nil
	}
	if cap(b.events) > maxKeptEvents {
		b.events = nil
	}
}

// numbering checks how an idempotent producer has numbered the events of a batch: all by
// the same producer and epoch, each with the number that follows.
type numbering struct {
	first wire.ProducerMark
	count int32
	// wrong is the first event that does not fit; meaningful if broken.
	wrong  int32
	broken bool
}

func (n *numbering) add(mark wire.ProducerMark) {
	if n.count == 0 {
		n.first = mark
	}
	whole := mark.ID.Set && mark.Epoch.Set && mark.Sequence.Set
	want := numberAfter(n.first.Sequence.Value, n.count)
	if !n.broken && (!whole || mark.ID != n.first.ID || mark.Epoch != n.first.Epoch || mark.Sequence.Value != want) {
		n.wrong, n.broken = n.count, true
	}
	n.count++
}

// check holds the numbers against the producer that the link was attached for. It gives
// the number of the first event.
func (n *numbering) check(id int64, epoch int16) (int32, error) {
	switch {
	case n.broken:
		return 0, fmt.Errorf("%w: event %d has not the number that follows, or none", errNumbers, n.wrong)
	case n.first.ID.Value != id || n.first.Epoch.Value != epoch:
		return 0, fmt.Errorf("%w: they are of producer %d and epoch %d, the link is of producer %d and epoch %d",
			errNumbers, n.first.ID.Value, n.first.Epoch.Value, id, epoch)
	default:
		return n.first.Sequence.Value, nil
	}
}

// numberAfter counts on from a number. Behind the largest comes zero.
func numberAfter(n, count int32) int32 {
	return int32((int64(n) + int64(count)) & math.MaxInt32)
}
