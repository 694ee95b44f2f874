package schema

import "strings"

// What Field gives for versions that all events share.
var (
	rawSpecVersion     = []byte(`"1.0"`)
	rawMetadataVersion = []byte(`"1"`)
)

// field is a name by which filters and delivery properties know an attribute.
type field struct {
	attribute Attribute
	// own: it is CloudEvents' own name, which no extension can have. Others give way to an
	// extension.
	own bool
}

// fields are the names of both schemas, in lower case. Both are good for both forms, because a
// subscription may be given either.
var fields = map[string]field{
	"id":              {attrID, true},
	"source":          {attrSource, true},
	"subject":         {attrSubject, true},
	"type":            {attrType, true},
	"time":            {attrTime, true},
	"data":            {attrData, true},
	"dataschema":      {attrDataSchema, true},
	"datacontenttype": {attrContentType, true},

	"eventid":          {attrID, false},
	"topic":            {attrTopic, false},
	"eventtype":        {attrType, false},
	"eventtime":        {attrTime, false},
	"dataversion":      {attrDataVersion, false},
	"eventtypeversion": {attrDataVersion, false},
	"metadataversion":  {attrMetadataVersion, false},
	"specversion":      {attrSpecVersion, false},
}

// FindAttribute gives the attribute of a name in lower case, as Field knows it, but for data; own
// says that no extension can have the name, known whether there is one.
func FindAttribute(name string) (a Attribute, own, known bool) {
	if name == DomainTopicKey {
		return attrDomainTopic, true, true
	}
	f, known := fields[name]
	return f.attribute, f.own, known && f.attribute != attrData
}

// Text is the text of an attribute that FindAttribute gave; nil where the event has none. Of
// isTopic it is TopicID, which is no bytes.
func (e *Envelope) Text(a Attribute) (text []byte, isTopic bool) {
	switch {
	case a == attrTopic, a == attrSource && e.Form != CloudEventForm:
		return nil, true
	case a == attrDomainTopic:
		return e.domainTopic(), false
	case a == attrSpecVersion:
		return rawSpecVersion[1:4], false
	case a == attrMetadataVersion:
		return rawMetadataVersion[1:2], false
	case a == attrDataVersion && e.Form == CloudEventForm:
		return e.DataSchema, false
	case a == attrDataVersion && e.DataVersion == nil:
		return []byte{}, false // Event Grid's events always have one, if an empty one
	}
	return *e.slot(a), false
}

// Field gives a value of an event by a path as filters and delivery properties write it
// (id, topic, subject, eventtype, data.a.b, …): its raw JSON (strings quoted) or nil. Envelope
// names in any case; members of data exactly first, then in any case. Where a name stands twice
// in data the first one counts.
//
// Both schemas' names are good for both forms: type is eventType, source is the topic where the
// event has no source of its own. An extension goes before a name that is not CloudEvents' own.
func (e *Envelope) Field(path string) []byte {
	if len(path) > len("data.") && strings.EqualFold(path[:len("data.")], "data.") {
		return lookup(e.Data, path[len("data."):])
	}
	var buf [32]byte // longer than any name of ours
	f, known := fields[string(lower(buf[:0], path[:min(len(path), len(buf))]))]
	if f.own {
		return e.field(f.attribute)
	}
	var folded []byte
	for _, x := range e.Extensions {
		if string(x.Name) == path {
			return x.Value
		}
		if folded == nil && strings.EqualFold(string(x.Name), path) {
			folded = x.Value
		}
	}
	if folded == nil && known {
		return e.field(f.attribute)
	}
	return folded
}

// HasField says whether an event of this form can have anything at a path, as Field finds it.
// CloudEvents can have any name as an extension's.
func (f Form) HasField(path string) bool {
	if f == CloudEventForm {
		return path != ""
	}
	name := string(lower(nil, path))
	if known, ok := fields[name]; ok {
		return known.attribute != attrDataSchema && known.attribute != attrContentType
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

// field is the raw JSON of an attribute, as it is stored where it is.
func (e *Envelope) field(a Attribute) []byte {
	switch {
	case a == attrData:
		return e.Data
	case a == attrSpecVersion:
		return rawSpecVersion
	case a == attrMetadataVersion:
		return rawMetadataVersion
	case a == attrDataVersion && e.Form == CloudEventForm:
		return e.raw(attrDataSchema)
	case a == attrDataVersion && e.DataVersion == nil:
		return []byte(`""`) // as it is delivered
	case a != attrTopic && (a != attrSource || e.Form == CloudEventForm):
		return e.raw(a)
	case e.Topic == "":
		return nil
	}
	return appendQuoted(nil, e.TopicID())
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
