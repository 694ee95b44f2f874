package logs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/jetstream/frames"
)

// The body of a batch in a frame: flags (1 byte), then the times that they name, then single events
// as message length (4 bytes), key length (4), key, message; or the bytes of a form of its own.
// Numbers are little-endian, times are in milliseconds.
const (
	// flagTime: the batch has a time of its own, before the frame's: it was imported.
	flagTime = 1 << iota
	// flagMaxTime: the greatest create time is another than the enqueued time.
	flagMaxTime
	// flagFill: what is read is to be told its place.
	flagFill

	knownFlags = flagTime | flagMaxTime | flagFill
)

// bodyOverhead is the most that a body takes beyond what a batch measures.
const bodyOverhead = 1 + 8 + 8

var errBody = errors.New("batch body is malformed")

// encodeBatch copies a batch into the form in which frames carry it. ownTime is not zero for what is
// imported.
func encodeBatch(b eventlog.Batch, ownTime int64) frames.Batch {
	body := append(make([]byte, 0, bodyOverhead+b.Bytes()), 0)
	if ownTime != 0 {
		body[0] |= flagTime
		body = binary.LittleEndian.AppendUint64(body, uint64(ownTime))
	}
	if b.Form != eventlog.FormEvents && !b.MaxTime.IsZero() {
		body[0] |= flagMaxTime
		body = binary.LittleEndian.AppendUint64(body, uint64(b.MaxTime.UnixMilli()))
	}
	if b.Place != nil {
		body[0] |= flagFill
	}
	body = append(body, b.Raw...)
	for i := range b.Events {
		e := &b.Events[i]
		body = binary.LittleEndian.AppendUint32(body, uint32(len(e.Message)))
		body = binary.LittleEndian.AppendUint32(body, uint32(len(e.Key)))
		body = append(body, e.Key...)
		body = append(body, e.Message...)
	}
	return frames.Batch{Events: b.Len(), Producer: b.Producer, Form: uint8(b.Form), Body: body}
}

// stored is a batch as it was read, with its numbers.
type stored struct {
	first    eventlog.Sequence
	count    int
	time     int64
	created  int64 // the greatest create time
	producer eventlog.Producer
	form     eventlog.Form
	unplaced bool
	content  []byte // events, or the bytes of a form of its own
}

// decodeBatch reads a batch of a frame that got this time, and whose first event has this number. It
// copies nothing, and does not look into the events.
func decodeBatch(b frames.Batch, first eventlog.Sequence, time int64) (stored, error) {
	s := stored{first: first, count: b.Events, time: time, producer: b.Producer, form: eventlog.Form(b.Form)}
	if len(b.Body) < 1 || b.Body[0]&^knownFlags != 0 {
		return stored{}, errBody
	}
	flags, rest := b.Body[0], b.Body[1:]
	for _, field := range []struct {
		flag byte
		to   *int64
	}{{flagTime, &s.time}, {flagMaxTime, &s.created}} {
		if flags&field.flag == 0 {
			continue
		}
		if len(rest) < 8 {
			return stored{}, errBody
		}
		*field.to, rest = int64(binary.LittleEndian.Uint64(rest)), rest[8:]
	}
	if flags&flagMaxTime == 0 {
		s.created = s.time
	}
	s.unplaced, s.content = flags&flagFill != 0, rest
	if s.form != eventlog.FormEvents && len(rest) == 0 {
		return stored{}, errBody
	}
	return s, nil
}

func (s *stored) next() eventlog.Sequence { return s.first + eventlog.Sequence(s.count) }

// bytes is what the batch measures, by eventlog.Batch.Bytes.
func (s *stored) bytes() int { return len(s.content) }

// run gives what a cursor gives that stands at a number of the batch. Events are appended to events.
func (s *stored) run(at eventlog.Sequence, events []eventlog.Event, fill Fillers) (eventlog.Run, []eventlog.Event, error) {
	skip := int(at - s.first)
	run := eventlog.Run{First: at, Time: time.UnixMilli(s.time), Producer: s.producerAt(skip)}
	if s.form == eventlog.FormEvents {
		before := len(events)
		events, err := appendEvents(events, s.content, s.count)
		if err == nil {
			run.Events = events[before+skip : len(events) : len(events)]
		}
		return run, events, err
	}
	run.Form, run.Count, run.Skip, run.MaxTime, run.Raw = s.form, s.count, skip, time.UnixMilli(s.created), s.content
	if s.unplaced {
		filler := fill[s.form]
		if filler == nil {
			return run, events, fmt.Errorf("%w: %d to %d are %s", eventlog.ErrForm, s.first, s.next()-1, s.form)
		}
		run.Raw = append([]byte(nil), s.content...) // others read the same bytes
		filler(run.Raw, s.first, s.time)
	}
	return run, events, nil
}

func (s *stored) extent(at eventlog.Sequence) eventlog.Extent {
	skip := int(at - s.first)
	return eventlog.Extent{First: at, Form: s.form, Count: s.count, Skip: skip, Bytes: s.bytes(), Producer: s.producerAt(skip)}
}

// producerAt is the producer of what comes behind so many events of the batch.
func (s *stored) producerAt(skip int) eventlog.Producer {
	p := s.producer
	if p.Set {
		p.First += int32(skip)
	}
	return p
}

// appendEvents lists the events of a body, as parts of it.
func appendEvents(dst []eventlog.Event, body []byte, count int) ([]eventlog.Event, error) {
	const header = eventlog.EventOverheadBytes
	for range count {
		if len(body) < header {
			return dst, errBody
		}
		message, key := uint64(binary.LittleEndian.Uint32(body)), uint64(binary.LittleEndian.Uint32(body[4:]))
		body = body[header:]
		if key > eventlog.MaxKeyBytes || key+message > uint64(len(body)) {
			return dst, errBody
		}
		end := key + message
		dst = append(dst, eventlog.Event{Key: body[:key:key], Message: body[key:end:end]})
		body = body[end:]
	}
	if len(body) != 0 {
		return dst, errBody
	}
	return dst, nil
}

// decodeFrame lists the batches of a data frame whose first event has this number.
func decodeFrame(dst []stored, f frames.Frame, first eventlog.Sequence, time int64) ([]stored, error) {
	for before, b := range f.All() {
		s, err := decodeBatch(b, first+eventlog.Sequence(before), time)
		if err != nil {
			return dst, err
		}
		dst = append(dst, s)
	}
	return dst, nil
}

// importTime is the newest time that batches have of their own; 0 if none has.
func importTime(batches []frames.Batch) (newest int64) {
	for _, b := range batches {
		if b.Body[0]&flagTime != 0 {
			newest = max(newest, int64(binary.LittleEndian.Uint64(b.Body[1:])))
		}
	}
	return newest
}
