package record

import (
	"cmp"
	"fmt"
	"time"

	"github.com/eventyard/eventyard/internal/amqp/wire"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/tracing"
)

// The headers that an event's own fields become. Properties (AMQP 1.0, §3.2.4) are in the order of their list;
// nil for those that become none.
var (
	headerPartitionKey = []byte(wire.AnnotationPartitionKey)
	headerProperties   = [...][]byte{
		[]byte("message-id"), []byte("user-id"), []byte("to"), nil, []byte("reply-to"), nil,
		[]byte(headerContentType), []byte("content-encoding"), nil, []byte("creation-time"),
	}
)

// mapping makes records of single events. A record is valid until the next is made.
type mapping struct {
	record Record
	// made is what is not a part of the event's bytes: texts of numbers, values of several sections.
	made []byte
}

// of gives an event as a record. What is no message of AMQP any more is an error. Of headers with one name
// Kafka's clients take the last, so that what everybody knows stands behind what is the sender's own.
func (m *mapping) of(e *eventlog.Event, timestamp int64) (*Record, error) {
	m.made = m.made[:0]
	m.record = Record{Timestamp: timestamp, Headers: m.record.Headers[:0]}
	s, err := wire.Sections(e.Message)
	if err == nil {
		err = cmp.Or(m.value(&s), m.annotations(s.MessageAnnotations), m.applicationProperties(s.ApplicationProperties), m.properties(s.Properties))
	}
	m.partitionKey(e.Key)
	return &m.record, err
}

func (m *mapping) header(name, value []byte) {
	m.record.Headers = append(m.record.Headers, Header{Name: name, Value: value})
}

// value has the bytes of the data sections; null is empty. Of other bodies it is the AMQP encoding of what
// they hold, type code included. [U]
func (m *mapping) value(s *wire.Message) (err error) {
	m.record.Value = []byte{}
	r := wire.NewReader(s.Body)
	if s.BodyKind == wire.BodyData && s.BodyCount == 1 {
		if value, err := r.ReadData(); value != nil || err != nil {
			m.record.Value = value
			return err
		}
		return nil
	}
	at := len(m.made)
	for r.Len() > 0 {
		var part []byte
		if s.BodyKind == wire.BodyData {
			part, err = r.ReadData()
		} else {
			part, err = encoded(&r)
		}
		if err != nil {
			return err
		}
		m.made = append(m.made, part...)
	}
	if len(m.made) > at {
		m.record.Value = m.made[at:len(m.made):len(m.made)]
	}
	return nil
}

// encoded gives the next section's value as it is encoded.
func encoded(r *wire.Reader) ([]byte, error) {
	if _, err := r.ReadDescriptor(); err != nil {
		return nil, err
	}
	return raw(r)
}

// raw gives the next value as it is encoded.
func raw(r *wire.Reader) ([]byte, error) {
	left := r.Rest()
	err := r.Skip()
	return left[:len(left)-r.Len()], err
}

// annotations has the key and, [U], that the value is null, if a sender has set what a reader gets.
func (m *mapping) annotations(section []byte) error {
	p, err := readPairs(section)
	for err == nil && p.next(&err) {
		switch string(p.name) {
		case annotationKey:
			m.record.Key, err = m.text(&p.Reader)
		case annotationNull:
			var null any
			if null, err = p.ReadAny(); null == true && len(m.record.Value) == 0 {
				m.record.Value = nil
			}
		default:
			err = p.Skip()
		}
	}
	return err
}

// applicationProperties are headers with the AMQP encoding of their values, type code included.
func (m *mapping) applicationProperties(section []byte) error {
	p, err := readPairs(section)
	for err == nil && p.next(&err) {
		var value []byte
		if value, err = raw(&p.Reader); err == nil {
			m.header(p.name, value)
		}
	}
	own := len(m.record.Headers)
	return cmp.Or(err, m.cloudEvent(own), m.trace(own))
}

// trace has what the first n headers say of a trace once more, as plain text: type codes are nothing that
// readers of W3C Trace Context know.
func (m *mapping) trace(n int) error {
	for i := range n {
		h := m.record.Headers[i]
		if string(h.Name) != tracing.Parent && string(h.Name) != tracing.State {
			continue
		}
		r := wire.NewReader(h.Value)
		value, err := m.text(&r)
		if err != nil {
			return err
		}
		if value != nil {
			m.header(h.Name, value)
		}
	}
	return nil
}

// cloudEvent has the attributes of a CloudEvent among the first n headers once more, as its Kafka binding has
// them. [U]
func (m *mapping) cloudEvent(n int) error {
	for i := range n {
		attribute := cloudAttribute(m.record.Headers[i].Name)
		if attribute == nil {
			continue
		}
		r := wire.NewReader(m.record.Headers[i].Value)
		value, err := m.text(&r)
		if err != nil {
			return err
		}
		if value != nil {
			at := len(m.made)
			m.made = append(append(m.made, cloudHeader...), attribute...)
			m.header(m.made[at:len(m.made):len(m.made)], value)
		}
	}
	return nil
}

// properties are headers of their names, as text.
func (m *mapping) properties(section []byte) error {
	if section == nil {
		return nil
	}
	r := wire.NewReader(section)
	if _, err := r.ReadDescriptor(); err != nil {
		return err
	}
	list, err := r.EnterList()
	if err != nil {
		return err
	}
	for i := range min(list.Count, len(headerProperties)) {
		value, err := m.text(&r)
		if err != nil {
			return err
		}
		if value != nil && headerProperties[i] != nil {
			m.header(headerProperties[i], value)
		}
	}
	return nil
}

// partitionKey is a header, and as UTF-8 [U]. It is not the key.
func (m *mapping) partitionKey(key []byte) {
	if len(key) > 0 {
		m.header(headerPartitionKey, key)
	}
}

// text gives a simple value as text: bytes as they are, times by RFC 3339. Nil means that it has none.
func (m *mapping) text(r *wire.Reader) ([]byte, error) {
	c, err := r.Peek()
	if err != nil {
		return nil, err
	}
	switch c {
	case wire.CodeString8, wire.CodeString32:
		return r.ReadStringBytes()
	case wire.CodeSymbol8, wire.CodeSymbol32:
		return r.ReadSymbolBytes()
	case wire.CodeBinary8, wire.CodeBinary32:
		return r.ReadBinary()
	}
	at := len(m.made)
	if c == wire.CodeTimestamp {
		ms, err := r.ReadTimestamp()
		m.made = time.UnixMilli(ms).UTC().AppendFormat(m.made, "2006-01-02T15:04:05.000Z07:00")
		return m.made[at:len(m.made):len(m.made)], err
	}
	value, err := r.ReadAny()
	switch v := value.(type) {
	case wire.UUID:
		m.made = fmt.Appendf(m.made, "%x-%x-%x-%x-%x", v[:4], v[4:6], v[6:8], v[8:10], v[10:])
	case bool, uint8, uint16, uint32, uint64, int8, int16, int32, int64:
		m.made = fmt.Append(m.made, v)
	default:
		return nil, err
	}
	return m.made[at:len(m.made):len(m.made)], nil
}

// pairs reads a section that is a map: next gives a name, whose value the reader stands before.
type pairs struct {
	wire.Reader
	left int
	name []byte
}

func readPairs(section []byte) (p pairs, err error) {
	if section == nil {
		return p, nil
	}
	p.Reader = wire.NewReader(section)
	if _, err = p.ReadDescriptor(); err != nil {
		return p, err
	}
	entries, err := p.EnterMap()
	p.left = entries.Count / 2
	return p, err
}

// next is false at the end, and where it has failed. Names that are no text are passed over with their values.
func (p *pairs) next(err *error) bool {
	for p.left > 0 {
		p.left--
		var c wire.Code
		if c, *err = p.Peek(); *err != nil {
			return false
		}
		switch c {
		case wire.CodeString8, wire.CodeString32:
			p.name, *err = p.ReadStringBytes()
			return *err == nil
		case wire.CodeSymbol8, wire.CodeSymbol32:
			p.name, *err = p.ReadSymbolBytes()
			return *err == nil
		}
		if *err = cmp.Or(p.Skip(), p.Skip()); *err != nil {
			return false
		}
	}
	return false
}
