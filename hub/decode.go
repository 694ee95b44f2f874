package hub

import (
	"fmt"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/amqp/message"
	"github.com/eventyard/eventyard/internal/amqp/wire"
)

// decodeEvent reads an event as a hub delivers it. The event's body is a part of raw, which it
// takes over. metrics is the section in which the hub reports on the partition, to be decoded by
// who needs it; nil if there is none. An event whose sequence number is missing, or cannot be read,
// has -1; it is also set with an error.
//
// Most events have none of what makes decoding dear, so each part is decoded only if it is there.
func decodeEvent(ev *event.Event, raw []byte) (metrics []byte, err error) {
	ev.Sequence = -1
	m, err := wire.Sections(raw)
	if err != nil {
		return nil, fmt.Errorf("decode event: %w", err)
	}
	given := delivered{sequence: -1}
	err = given.read(m.MessageAnnotations)
	ev.Sequence = given.sequence
	if err != nil {
		return nil, fmt.Errorf("decode event: %w", err)
	}
	if !given.foreign {
		m.MessageAnnotations = nil
	}
	if err := message.DecodeSections(ev, m); err != nil {
		ev.Sequence = given.sequence
		return nil, err
	}
	ev.Key, ev.Sequence, ev.Offset, ev.Enqueued = given.key, given.sequence, given.offset, given.enqueued
	return m.DeliveryAnnotations, nil
}

// delivered is what the hub puts on an event.
type delivered struct {
	sequence    int64
	offset, key string
	enqueued    time.Time
	// foreign: there are annotations that are not the hub's.
	foreign bool
}

// read reads a section of message annotations; nil is none.
func (d *delivered) read(section []byte) error {
	a := openAnnotations(section)
	for name, ok := a.next(); ok; name, ok = a.next() {
		switch string(name) {
		case wire.AnnotationSequenceNumber:
			if d.sequence, a.err = a.ReadLong(); a.err != nil {
				d.sequence = -1
			}
		case wire.AnnotationOffset:
			d.offset, a.err = a.ReadString()
		case wire.AnnotationPartitionKey:
			d.key, a.err = a.ReadString()
		case wire.AnnotationEnqueuedTime:
			d.enqueued, a.err = readTime(&a.Reader)
		default:
			d.foreign = d.foreign || !wire.IsOwnAnnotation(name)
			a.err = a.Skip()
		}
	}
	return a.err
}

func readTime(r *wire.Reader) (time.Time, error) {
	ms, err := r.ReadTimestamp()
	return time.UnixMilli(ms).UTC(), err
}

// annotations goes through a section of annotations: after each name its value is to be
// read or skipped, and err set.
type annotations struct {
	wire.Reader
	left int
	err  error
}

func openAnnotations(section []byte) annotations {
	a := annotations{Reader: wire.NewReader(section)}
	if section == nil {
		return a
	}
	if _, a.err = a.ReadDescriptor(); a.err != nil {
		return a
	}
	entries, err := a.EnterMap()
	a.left, a.err = entries.Count/2, err
	return a
}

// next gives the next name, nil if it is no symbol; false at the end, or after an error.
func (a *annotations) next() (name []byte, ok bool) {
	if a.left == 0 || a.err != nil {
		return nil, false
	}
	a.left--
	switch code, err := a.Peek(); {
	case err != nil:
		a.err = err
	case code == wire.CodeSymbol8 || code == wire.CodeSymbol32:
		name, a.err = a.ReadSymbolBytes()
	default:
		a.err = a.Skip()
	}
	return name, a.err == nil
}

// LastEnqueued is the newest event of a partition.
type LastEnqueued struct {
	Sequence int64
	Offset   string
	Enqueued time.Time
}

// decodeMetrics reads what a hub reports on the partition beside an event.
func decodeMetrics(section []byte) (last LastEnqueued, ok bool) {
	a := openAnnotations(section)
	for name, more := a.next(); more; name, more = a.next() {
		switch string(name) {
		case wire.AnnotationLastSequence:
			last.Sequence, a.err = a.ReadLong()
			ok = true
		case wire.AnnotationLastOffset:
			last.Offset, a.err = a.ReadString()
		case wire.AnnotationLastTime:
			last.Enqueued, a.err = readTime(&a.Reader)
		default:
			a.err = a.Skip()
		}
	}
	return last, ok && a.err == nil
}
