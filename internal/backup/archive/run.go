package archive

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta"
)

// What the first byte of a run says.
const (
	flagProducer = 1 << iota
	flagFrame
)

// AppendRun encodes a run behind to. Numbers are big-endian, lengths and counts are varints.
func AppendRun(to []byte, run eventlog.Run) []byte {
	var flags byte
	if run.Producer.Set {
		flags |= flagProducer
	}
	if run.Form != eventlog.FormEvents {
		flags |= flagFrame
	}
	to = append(to, flags)
	to = binary.BigEndian.AppendUint64(to, uint64(run.First))
	to = binary.BigEndian.AppendUint64(to, uint64(run.Time.UnixMilli()))
	if run.Producer.Set {
		to = binary.BigEndian.AppendUint64(to, uint64(run.Producer.ID))
		to = binary.BigEndian.AppendUint16(to, uint16(run.Producer.Epoch))
		to = binary.BigEndian.AppendUint32(to, uint32(run.Producer.First))
	}
	if run.Form != eventlog.FormEvents {
		to = append(to, byte(run.Form))
		to = binary.BigEndian.AppendUint32(to, uint32(run.Count))
		to = binary.BigEndian.AppendUint64(to, uint64(run.MaxTime.UnixMilli()))
		return append(to, run.Raw...)
	}
	to = binary.AppendUvarint(to, uint64(len(run.Events)))
	for _, e := range run.Events {
		to = appendBytes(appendBytes(to, e.Key), e.Message)
	}
	return to
}

// parseRun is the reverse. The run shares the memory of the payload, and its events that of events.
func parseRun(payload []byte, events []eventlog.Event) (eventlog.Run, error) {
	p := parser{rest: payload}
	flags := p.byte()
	run := eventlog.Run{First: eventlog.Sequence(p.uint64()), Time: time.UnixMilli(int64(p.uint64())).UTC()}
	if flags&flagProducer != 0 {
		run.Producer = eventlog.Producer{ID: int64(p.uint64()), Epoch: int16(p.uint16()), First: int32(p.uint32()), Set: true}
	}
	switch {
	case flags&^(flagProducer|flagFrame) != 0:
		p.failed = true
	case flags&flagFrame != 0:
		run.Form, run.Count, run.MaxTime = eventlog.Form(p.byte()), int(p.uint32()), time.UnixMilli(int64(p.uint64())).UTC()
		run.Raw = p.rest
		p.failed = p.failed || run.Form == eventlog.FormEvents || len(run.Raw) == 0
	default:
		n := p.uvarint()
		p.failed = p.failed || n > uint64(len(p.rest)) // each takes two bytes at least
		run.Events = events[:0]
		for ; n > 0 && !p.failed; n-- {
			run.Events = append(run.Events, eventlog.Event{Key: p.bytes(), Message: p.bytes()})
		}
		p.failed = p.failed || len(p.rest) > 0
	}
	if p.failed || run.First < 0 || run.Len() <= 0 {
		return eventlog.Run{}, fmt.Errorf("%w: a record holds no run of events", ErrDamaged)
	}
	return run, nil
}

func appendEntry(to []byte, e meta.Entry) []byte {
	to = binary.BigEndian.AppendUint64(to, uint64(e.Revision))
	return append(appendBytes(to, []byte(e.Key)), e.Value...)
}

// parseEntry is the reverse. The value shares the memory of the payload.
func parseEntry(payload []byte) (meta.Entry, error) {
	p := parser{rest: payload}
	e := meta.Entry{Revision: meta.Revision(p.uint64()), Key: string(p.bytes())}
	e.Value = p.rest
	if p.failed || meta.CheckKey(e.Key) != nil || meta.CheckValue(e.Value) != nil {
		return meta.Entry{}, fmt.Errorf("%w: a record holds no entry", ErrDamaged)
	}
	return e, nil
}

func appendBytes(to, b []byte) []byte {
	return append(binary.AppendUvarint(to, uint64(len(b))), b...)
}

// parser reads fields from the front of a payload. After it has failed everything is zero.
type parser struct {
	rest   []byte
	failed bool
}

func (p *parser) take(n int) []byte {
	if p.failed || n > len(p.rest) {
		p.failed = true
		return nil
	}
	taken := p.rest[:n:n]
	p.rest = p.rest[n:]
	return taken
}

func (p *parser) byte() byte {
	if b := p.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (p *parser) uint16() uint16 {
	if b := p.take(2); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

func (p *parser) uint32() uint32 {
	if b := p.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (p *parser) uint64() uint64 {
	if b := p.take(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

func (p *parser) uvarint() uint64 {
	n, used := binary.Uvarint(p.rest)
	if used <= 0 {
		p.failed = true
		return 0
	}
	p.take(used)
	return n
}

// bytes is nil where there are none, as the log gives keys.
func (p *parser) bytes() []byte {
	n := p.uvarint()
	if n == 0 || p.failed || n > uint64(len(p.rest)) {
		p.failed = p.failed || n > 0
		return nil
	}
	return p.take(int(n))
}
