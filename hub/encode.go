package hub

import (
	"github.com/Azure/go-amqp"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/amqp/message"
	"github.com/eventyard/eventyard/internal/amqp/wire"
)

// batchFormat is the message format of a batch: a message whose data sections are the
// encoded messages of the events.
const batchFormat = 0x80013700

// label is what an event's annotations say beside those of its own.
type label struct {
	// key is the partition's; empty: none. It stands in the envelope and, as the official clients have it,
	// with each event.
	key string
	// producer is whose events these are, number the one that the next is given; nil: they are not numbered.
	producer *ProducerConfig
	number   int32
}

// appendEvent writes an event as the message that a batch carries. After an error dst is
// returned as it was.
func appendEvent(dst []byte, ev *event.Event, l label) ([]byte, error) {
	if l == (label{}) {
		return message.Append(dst, *ev)
	}
	if len(ev.System) == 0 {
		out, err := message.Append(l.append(dst, nil), *ev)
		if err != nil {
			return dst, err
		}
		return out, nil
	}
	return appendMerged(dst, ev, l)
}

// appendMerged puts the label beside the event's own annotations.
func appendMerged(dst []byte, ev *event.Event, l label) ([]byte, error) {
	encoded, err := message.Append(nil, *ev)
	if err != nil {
		return dst, err
	}
	m, err := wire.Sections(encoded)
	if err != nil {
		return dst, err
	}
	return append(l.append(dst, m.MessageAnnotations), m.Tail...), nil
}

// append writes message annotations: the label, and those of another such section.
func (l label) append(dst, others []byte) []byte {
	dst, entries := wire.BeginMap(wire.AppendDescriptor(dst, wire.DescriptorMessageAnnotations))
	pairs := 0
	if l.key != "" {
		dst = wire.AppendString(wire.AppendSymbol(dst, wire.AnnotationPartitionKey), l.key)
		pairs++
	}
	if l.producer != nil {
		dst = wire.AppendLong(wire.AppendSymbol(dst, wire.AnnotationProducerID), l.producer.ID)
		dst = wire.AppendShort(wire.AppendSymbol(dst, wire.AnnotationProducerEpoch), l.producer.Epoch)
		dst = wire.AppendInt(wire.AppendSymbol(dst, wire.AnnotationProducerSequence), l.number)
		pairs += 3
	}
	if r := wire.NewReader(others); len(others) > 0 {
		// It is of our own making, and in order.
		_, _ = r.ReadDescriptor()
		more, _ := r.EnterMap()
		dst = append(dst, r.Rest()...)
		pairs += more.Count / 2
	}
	return wire.EndMap(dst, entries, pairs)
}

// envelope is the message around a batch's events.
func envelope(key string) *amqp.Message {
	m := &amqp.Message{Format: batchFormat}
	if key != "" {
		m.Annotations = amqp.Annotations{wire.AnnotationPartitionKey: key}
	}
	return m
}

// envelopeBytes is the size of an envelope without events.
func envelopeBytes(key string) int {
	if key == "" {
		return 0
	}
	// The larger form of each part will do: some bytes too many harm nobody.
	return 3 + 9 + 2 + len(wire.AnnotationPartitionKey) + 5 + len(key)
}

// sectionBytes is the size of the data section that an event of so many bytes becomes.
func sectionBytes(encoded int) int {
	if encoded <= 0xff {
		return 3 + 2 + encoded
	}
	return 3 + 5 + encoded
}
