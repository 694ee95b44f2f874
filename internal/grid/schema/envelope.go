package schema

import (
	"errors"
	"fmt"

	"github.com/eventyard/eventyard/tracing"
)

// Envelope is a look at a stored event. Its slices are parts of the stored bytes, or copies
// where something was escaped there. It is filled anew by each Scan, so that one value can
// be used for many events.
type Envelope struct {
	Form Form
	// Raw is the whole stored object.
	Raw []byte
	// ID, Subject, Type and Time are there in both forms; Source is CloudEvents' source.
	// They are unescaped text. nil: absent.
	ID, Subject, Type, Time, Source []byte
	// DataVersion is Event Grid's; DataSchema, ContentType are CloudEvents'.
	DataVersion, DataSchema, ContentType []byte
	// DomainTopic is the name of the topic of a domain that an event in Event Grid's form is for;
	// nil: it is of no domain.
	DomainTopic []byte
	// Extensions are CloudEvents' other attributes: value is raw JSON.
	Extensions []Member
	// Data is the raw JSON of data, nil if there is none; Base64 is the text of data_base64
	// (unquoted), nil if there is none.
	Data, Base64 []byte
	// Topic is the resource id of the topic or domain, which is not stored: whoever scans fills it in
	// before filters or writers look. It stays as it is from one Scan to the next.
	Topic string
	// Trace is that of an event whose form has no place for it, and is not stored in it either: whoever scans
	// fills it in. Scan empties it.
	Trace tracing.Context

	// spans are where the texts stand in Raw, quotes and all; 0, 0: they are not there.
	spans [attrTexts]span
}

// Member is one member of a JSON object.
type Member struct{ Name, Value []byte }

type span struct{ start, end int }

// errNotStored: the bytes are no event that this package wrote.
var errNotStored = errors.New("not a stored event")

// Scan reads a stored event. It allocates nothing for events without escapes (beyond
// growing Extensions). Errors mean that the bytes are not what Read or FromHub wrote.
//
// It does not walk through data, which is the last member: it only sees that the object is
// closed behind it.
func (e *Envelope) Scan(form Form, stored []byte) error {
	*e = Envelope{Form: form, Raw: stored, Topic: e.Topic, Extensions: e.Extensions[:0]}
	r := reader{b: stored}
	err := e.scan(&r)
	if err == nil {
		err = e.complete()
	}
	if err != nil {
		return fmt.Errorf("scan event in %v: %w: %w", form, errNotStored, err)
	}
	return nil
}

func (e *Envelope) scan(r *reader) error {
	if err := r.open('{', 1); err != nil {
		return err
	}
	ahead := e.Form.order()
	for first := true; ; first = false {
		more, err := r.more('}', first)
		if err != nil {
			return err
		}
		if !more {
			return r.end()
		}
		var name []byte
		a, ok := foresee(r, &ahead)
		if !ok {
			t, err := r.name()
			if err != nil {
				return err
			}
			name = t.bytes()
			a = e.Form.attribute(name)
		}
		if err := e.member(r, a, name); err != nil || e.Data != nil {
			return err
		}
	}
}

// foresee steps over a member's name without reading it: nearly always it is one of those
// ahead in the order in which they were written.
func foresee(r *reader, ahead *[]named) (Attribute, bool) {
	for i := range *ahead {
		n := &(*ahead)[i]
		end := r.i + len(n.key)
		if end <= len(r.b) && string(r.b[r.i:end]) == n.key {
			r.i, *ahead = end, (*ahead)[i+1:]
			r.space()
			return n.attribute, true
		}
	}
	return 0, false
}

// member reads the value of a member. Only that of an extension has to have its name.
func (e *Envelope) member(r *reader, a Attribute, name []byte) error {
	switch {
	case a == attrData: // it takes what is left, but for the brace that closes the event
		last := len(r.b) - 1
		if r.i >= last || r.b[last] != '}' || e.Base64 != nil {
			return r.fail("data is not the last member")
		}
		for isSpace(r.b[last-1]) && last > r.i {
			last--
		}
		e.Data = r.b[r.i:last:last]
		return nil
	case a == attrOther && e.Form == CloudEventForm:
		value, err := r.raw(2)
		e.Extensions = append(e.Extensions, Member{name, value})
		return err
	case a >= attrTexts && a != attrSpecVersion && a != attrBase64 && a != attrTopic:
		return r.fail("a member that this form does not have")
	case r.peek() != '"':
		return r.fail("a string should stand here")
	}
	start := r.i
	t, err := r.text()
	switch {
	case err != nil || a == attrSpecVersion:
		return err
	case a == attrBase64:
		e.Base64 = t.bytes()
	case a == attrTopic:
		e.DomainTopic = t.bytes()
	default:
		*e.slot(a), e.spans[a] = t.bytes(), span{start, r.i}
	}
	return nil
}

// slot is where an attribute's text is kept.
func (e *Envelope) slot(a Attribute) *[]byte {
	switch a {
	case attrID:
		return &e.ID
	case attrSubject:
		return &e.Subject
	case attrType:
		return &e.Type
	case attrTime:
		return &e.Time
	case attrSource:
		return &e.Source
	case attrDataVersion:
		return &e.DataVersion
	case attrDataSchema:
		return &e.DataSchema
	default:
		return &e.ContentType
	}
}

// complete wants everything to be there that every event of the form has.
func (e *Envelope) complete() error {
	missing := e.ID == nil || e.Type == nil
	switch e.Form {
	case EventGridForm:
		missing = missing || e.Subject == nil || e.Time == nil
	case CloudEventForm:
		missing = missing || e.Source == nil
	default:
		return errors.New("there is no such form")
	}
	if missing {
		return errors.New("a member is missing that every event of this form has")
	}
	return nil
}

// appendAttribute writes an attribute's JSON, as it is stored; an empty string if it is absent.
func (e *Envelope) appendAttribute(dst []byte, a Attribute) []byte {
	if s := e.spans[a]; s.end > 0 {
		return append(dst, e.Raw[s.start:s.end]...)
	}
	return appendQuoted(dst, *e.slot(a))
}

// raw is an attribute's JSON as it is stored, nil if it is absent. An envelope that was not
// scanned has to write it first.
func (e *Envelope) raw(a Attribute) []byte {
	if s := e.spans[a]; s.end > 0 {
		return e.Raw[s.start:s.end:s.end]
	}
	if t := *e.slot(a); t != nil {
		return appendQuoted(nil, t)
	}
	return nil
}
