package message

import (
	"fmt"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/amqp/wire"
)

// Decode reads an event's stored form. Nothing in the result shares stored's bytes. Key,
// Partition, Sequence, Offset and Enqueued are the caller's to fill in.
//
// What is well-formed AMQP can be decoded, also where a sender did not keep to the standard: a
// property of the wrong type is found among the System values, a name that is no text is spelled as
// text. An annotation with the name of a standard property is left out. An event whose body is null
// has neither a Body nor a Value.
func Decode(stored []byte) (event.Event, error) {
	m, err := wire.Sections(stored)
	var e event.Event
	if err == nil {
		err = decodeHead(&e, m)
	}
	if err == nil {
		err = decodeBody(&e, m)
	}
	if err != nil {
		return event.Event{}, fmt.Errorf("decode event: %w", err)
	}
	return e, nil
}

// DecodeSections is Decode for a caller that has taken the message apart already and owns its
// bytes: a body of one data section, as nearly all have, is not copied. It sets all of e.
func DecodeSections(e *event.Event, m wire.Message) error {
	*e = event.Event{}
	err := decodeHead(e, m)
	switch {
	case err != nil:
	case m.BodyKind == wire.BodyData && m.BodyCount == 1:
		r := wire.NewReader(m.Body)
		e.Body, err = r.ReadData()
	default:
		err = decodeBody(e, m)
	}
	if err != nil {
		return fmt.Errorf("decode event: %w", err)
	}
	return nil
}

// decodeHead reads the sections before the body.
func decodeHead(e *event.Event, m wire.Message) error {
	err := eachPair(m.MessageAnnotations, func(name string, v any) {
		if _, standard := fieldOf(name); !standard && !wire.IsOwnAnnotation([]byte(name)) {
			setSystem(e, name, v)
		}
	})
	if err != nil {
		return err
	}
	if err := decodeProperties(e, m.Properties); err != nil {
		return err
	}
	return eachPair(m.ApplicationProperties, func(name string, v any) {
		if e.Properties == nil {
			e.Properties = make(map[string]any)
		}
		e.Properties[name] = v
	})
}

// eachPair reads a section that is a map, if there is one.
func eachPair(section []byte, set func(name string, v any)) error {
	if section == nil {
		return nil
	}
	r := wire.NewReader(section)
	if _, err := r.ReadDescriptor(); err != nil {
		return err
	}
	entries, err := r.EnterMap()
	if err != nil {
		return err
	}
	for range entries.Count / 2 {
		key, err := r.ReadAny()
		if err != nil {
			return err
		}
		value, err := r.ReadAny()
		if err != nil {
			return err
		}
		switch key := key.(type) {
		case string:
			set(key, value)
		case wire.Symbol:
			set(string(key), value)
		default:
			set(fmt.Sprint(key), value)
		}
	}
	return nil
}

// decodeBody uses one reader for all sections, so that its limits hold for the body as a whole.
func decodeBody(e *event.Event, m wire.Message) error {
	r := wire.NewReader(m.Body)
	switch m.BodyKind {
	case wire.BodyData:
		for r.Len() > 0 {
			data, err := r.ReadData()
			if err != nil {
				return err
			}
			if e.Body == nil && data != nil { // stays nil where there is nothing but null
				e.Body = make([]byte, 0, len(m.Body))
			}
			e.Body = append(e.Body, data...)
		}
	case wire.BodySequence:
		lists := make([]any, m.BodyCount)
		for i := range lists {
			var err error
			if lists[i], err = readSection(&r); err != nil {
				return err
			}
		}
		e.Value = lists
	case wire.BodyValue:
		var err error
		e.Value, err = readSection(&r)
		return err
	}
	return nil
}

func readSection(r *wire.Reader) (any, error) {
	if _, err := r.ReadDescriptor(); err != nil {
		return nil, err
	}
	return r.ReadAny()
}

// Body gives the bytes of an event whose body is a single data section, as nearly all
// are, without decoding the rest. They are a part of stored, nil if the section holds null. It
// allocates nothing. For all other events it says false, and Decode has to do.
func Body(stored []byte) ([]byte, bool) {
	m, err := wire.Sections(stored)
	if err != nil {
		return nil, false
	}
	return singleBody(m)
}

// BodyAndProperties is Body with the application properties, nil if there are none. It allocates
// for these alone.
func BodyAndProperties(stored []byte) (body []byte, properties map[string]any, ok bool) {
	m, err := wire.Sections(stored)
	if err != nil {
		return nil, nil, false
	}
	err = eachPair(m.ApplicationProperties, func(name string, v any) {
		if properties == nil {
			properties = make(map[string]any)
		}
		properties[name] = v
	})
	if err != nil {
		return nil, nil, false
	}
	body, ok = singleBody(m)
	return body, properties, ok
}

func singleBody(m wire.Message) ([]byte, bool) {
	if m.BodyKind != wire.BodyData || m.BodyCount != 1 {
		return nil, false
	}
	r := wire.NewReader(m.Body)
	body, err := r.ReadData()
	return body, err == nil
}
