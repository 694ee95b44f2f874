package schema

import "strings"

// What Field gives for versions that all events share.
var (
	rawSpecVersion     = []byte(`"1.0"`)
	rawMetadataVersion = []byte(`"1"`)
)

// Field gives a value of an event by a path as filters and delivery properties write it
// (id, topic, subject, eventtype, data.a.b, …): its raw JSON (strings quoted) or nil. Envelope
// names in any case; members of data exactly first, then in any case. Where a name stands twice
// in data the first one counts.
//
// Both schemas' names are good for both forms: type is eventType, source is the topic where
// the event has no source of its own. An extension goes before a name that is not
// CloudEvents' own.
func (e *Envelope) Field(path string) []byte {
	if len(path) > len("data.") && strings.EqualFold(path[:len("data.")], "data.") {
		return lookup(e.Data, path[len("data."):])
	}
	var buf [32]byte
	if len(path) <= len(buf) {
		if raw, ok := e.attribute(string(lower(buf[:0], path))); ok {
			return raw
		}
	}
	if raw := e.extension(path); raw != nil {
		return raw
	}
	if len(path) > len(buf) {
		return nil
	}
	return e.alias(string(lower(buf[:0], path)))
}

// HasField tells whether an event of this form can have anything at a path, as Field finds it.
// CloudEvents can have any name as an extension's.
func (f Form) HasField(path string) bool {
	if f == CloudEventForm {
		return path != ""
	}
	name := string(lower(nil, path))
	switch name {
	case "id", "subject", "type", "time", "data", "source",
		"topic", "eventtype", "eventid", "eventtime", "dataversion", "eventtypeversion", "specversion", "metadataversion":
		return true
	}
	return len(name) > len("data.") && strings.HasPrefix(name, "data.")
}

// lower appends text with its ASCII letters in lower case; no name of ours has others.
func lower(dst []byte, t string) []byte {
	for i := range len(t) {
		c := t[i]
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		dst = append(dst, c)
	}
	return dst
}

// attribute gives what the name means in both forms, and whether it means anything.
func (e *Envelope) attribute(name string) (raw []byte, ok bool) {
	switch name {
	case "id":
		return e.raw(attrID), true
	case "subject":
		return e.raw(attrSubject), true
	case "type":
		return e.raw(attrType), true
	case "time":
		return e.raw(attrTime), true
	case "data":
		return e.Data, true
	case "source":
		if e.Form == CloudEventForm {
			return e.raw(attrSource), true
		}
		return e.quotedTopic(), true
	case "dataschema":
		return e.raw(attrDataSchema), true
	case "datacontenttype":
		return e.raw(attrContentType), true
	default:
		return nil, false
	}
}

// alias gives what the name means where no extension has it.
func (e *Envelope) alias(name string) []byte {
	switch name {
	case "topic":
		return e.quotedTopic()
	case "eventtype":
		return e.raw(attrType)
	case "eventid":
		return e.raw(attrID)
	case "eventtime":
		return e.raw(attrTime)
	case "dataversion", "eventtypeversion":
		return e.version()
	case "specversion":
		return rawSpecVersion
	case "metadataversion":
		return rawMetadataVersion
	default:
		return nil
	}
}

// version is the data's: Event Grid's is empty where none was given, as it is delivered.
func (e *Envelope) version() []byte {
	if e.Form == CloudEventForm {
		return e.raw(attrDataSchema)
	}
	if raw := e.raw(attrDataVersion); raw != nil {
		return raw
	}
	return []byte(`""`)
}

func (e *Envelope) quotedTopic() []byte {
	if e.Topic == "" {
		return nil
	}
	return appendQuoted(make([]byte, 0, len(e.Topic)+2), e.Topic)
}

func (e *Envelope) extension(name string) []byte {
	var folded []byte
	for _, x := range e.Extensions {
		if string(x.Name) == name {
			return x.Value
		}
		if folded == nil && strings.EqualFold(string(x.Name), name) {
			folded = x.Value
		}
	}
	return folded
}

// lookup follows a path of member names through objects.
func lookup(data []byte, path string) []byte {
	r := reader{b: data}
	for {
		name, rest, deeper := strings.Cut(path, ".")
		if !r.find(name) {
			return nil
		}
		if !deeper {
			raw, err := r.raw(2)
			if err != nil {
				return nil
			}
			return raw
		}
		path = rest
	}
}

// find steps to the value of a member of the object at which the reader stands.
func (r *reader) find(name string) bool {
	if r.open('{', 1) != nil {
		return false
	}
	folded := -1
	for first := true; ; first = false {
		more, err := r.more('}', first)
		if err != nil {
			return false
		}
		if !more {
			break
		}
		found, err := r.name()
		if err != nil {
			return false
		}
		t := found.bytes()
		if string(t) == name {
			return true
		}
		// Of names that differ in case only practically all are of one length.
		if folded < 0 && len(t) == len(name) && strings.EqualFold(string(t), name) {
			folded = r.i
		}
		if r.value(2) != nil {
			return false
		}
	}
	if folded < 0 {
		return false
	}
	r.i = folded
	return true
}
