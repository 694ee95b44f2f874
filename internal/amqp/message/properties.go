package message

import (
	"fmt"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/amqp/wire"
)

// kind is the type that the standard prescribes for a property.
type kind uint8

const (
	kindID kind = iota // ulong, uuid, binary or string
	kindBinary
	kindString
	kindSymbol // a plain string in an event
	kindTime
	kindUint
)

// The positions of those standard properties that are fields of an event.
const (
	fieldMessageID     = 0
	fieldSubject       = 3
	fieldCorrelationID = 5
	fieldContentType   = 6
)

type property struct {
	name string
	kind kind
	// field: the event has a field for it; all others are System values.
	field bool
}

// properties is the list of the properties section (§3.2.4), in its order. Read only.
var properties = [...]property{
	fieldMessageID:     {"message-id", kindID, true},
	1:                  {"user-id", kindBinary, false},
	2:                  {"to", kindString, false},
	fieldSubject:       {"subject", kindString, true},
	4:                  {"reply-to", kindString, false},
	fieldCorrelationID: {"correlation-id", kindID, true},
	fieldContentType:   {"content-type", kindSymbol, true},
	7:                  {"content-encoding", kindSymbol, false},
	8:                  {"absolute-expiry-time", kindTime, false},
	9:                  {"creation-time", kindTime, false},
	10:                 {"group-id", kindString, false},
	11:                 {"group-sequence", kindUint, false},
	12:                 {"reply-to-group-id", kindString, false},
}

// fieldOf finds a standard property by its name.
func fieldOf(name string) (int, bool) {
	for i := range properties {
		if properties[i].name == name {
			return i, true
		}
	}
	return 0, false
}

// propertyList gathers the standard properties of an event; nil means not set.
func propertyList(e event.Event) (list [len(properties)]any, err error) {
	for name, v := range e.System {
		i, standard := fieldOf(name)
		if !standard {
			continue
		}
		if properties[i].field {
			return list, fmt.Errorf("system value %q: %w", name, ErrPropertyField)
		}
		list[i] = v
	}
	list[fieldMessageID] = e.MessageID
	list[fieldCorrelationID] = e.CorrelationID
	if e.Subject != "" {
		list[fieldSubject] = e.Subject
	}
	if e.ContentType != "" {
		list[fieldContentType] = e.ContentType
	}
	return list, nil
}

// appendProperties writes the section up to the last property set, or nothing.
func appendProperties(dst []byte, e event.Event) ([]byte, error) {
	values, err := propertyList(e)
	if err != nil {
		return dst, err
	}
	count := len(values)
	for count > 0 && values[count-1] == nil {
		count--
	}
	if count == 0 {
		return dst, nil
	}
	dst, list := wire.BeginList(wire.AppendDescriptor(dst, wire.DescriptorProperties))
	for i, v := range values[:count] {
		p := properties[i]
		if text, ok := v.(string); ok && p.kind == kindSymbol {
			v = wire.Symbol(text)
		}
		if v != nil && !p.admits(v) {
			return dst, fmt.Errorf("property %s: %T: %w", p.name, v, ErrPropertyType)
		}
		if dst, err = wire.AppendAny(dst, v); err != nil { // null where it is not set
			return dst, fmt.Errorf("property %s: %w", p.name, err)
		}
	}
	return wire.EndList(dst, list, count), nil
}

// admits reports whether a value, as the codec knows it, is of the prescribed type.
func (p property) admits(v any) bool {
	switch v.(type) {
	case string:
		return p.kind == kindString || p.kind == kindID
	case wire.Symbol:
		return p.kind == kindSymbol
	case []byte:
		return p.kind == kindBinary || p.kind == kindID
	case uint64, wire.UUID:
		return p.kind == kindID
	case time.Time:
		return p.kind == kindTime
	case uint32:
		return p.kind == kindUint
	default:
		return false
	}
}

// decodeProperties reads the section into the event, if there is one.
func decodeProperties(e *event.Event, section []byte) error {
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
	for i := range min(list.Count, len(properties)) {
		v, err := r.ReadAny()
		if err != nil {
			return err
		}
		if v != nil {
			setProperty(e, i, v)
		}
	}
	return nil
}

// setProperty puts a value into its field, or among the System values if it has none.
// There it also goes if it is not of its type: a sender's slip must not make the event
// unreadable, nor should it be hidden.
func setProperty(e *event.Event, field int, v any) {
	p := properties[field]
	if s, ok := v.(wire.Symbol); ok && (p.kind == kindSymbol || p.kind == kindString) {
		v = string(s) // senders confuse strings and symbols, and Go programs need not care
	}
	text, isText := v.(string)
	switch {
	case field == fieldMessageID && p.admits(v):
		e.MessageID = v
	case field == fieldCorrelationID && p.admits(v):
		e.CorrelationID = v
	case field == fieldSubject && isText:
		e.Subject = text
	case field == fieldContentType && isText:
		e.ContentType = text
	default:
		setSystem(e, p.name, v)
	}
}

func setSystem(e *event.Event, name string, v any) {
	if e.System == nil {
		e.System = make(map[string]any)
	}
	e.System[name] = v
}
