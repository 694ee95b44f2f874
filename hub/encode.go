package hub

import (
	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/amqp/message"
	"github.com/eventyard/eventyard/internal/amqp/wire"
)

// label is what an event's annotations say beside those of its own.
type label struct {
	// key is the partition's; empty: none. It is in the envelope and, as with the official clients,
	// with each event.
	key string
	// producer is whose events these are, number the one that the next is given; nil: they are not
	// numbered.
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
	// The label goes beside the event's own annotations.
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
