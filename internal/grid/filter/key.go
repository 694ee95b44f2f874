package filter

import (
	"slices"
	"strings"

	"github.com/eventyard/eventyard/internal/grid/schema"
)

// key is what a condition asks about: an attribute of the envelope, or a place in the data.
type key struct {
	// name is an attribute's, folded; empty for data.
	name string
	// path leads from data inwards; empty is data itself.
	path []string
}

func parseKey(text string) (key, *problem) {
	parts := strings.Split(text, ".")
	if slices.Contains(parts, "") {
		if text == "" {
			return key{}, wrong(nil, "it has no key")
		}
		return key{}, wrong(nil, "the key %.60q has an empty part: parts have single dots in between", text)
	}
	name := foldString(parts[0])
	switch {
	case len(parts) > MaxKeyParts:
		// To follow one is work at each level, for each event.
		return key{}, wrong(nil, "the key %.60q has %d parts, at most %d are allowed", text, len(parts), MaxKeyParts)
	case name == "data":
		return key{path: parts[1:]}, nil
	case len(parts) > 1:
		return key{}, wrong(nil, "the key %.60q leads nowhere, because only data has parts; did you mean %.60q?", text, "data."+text)
	}
	return key{name: name}, nil
}

func (k key) equal(other key) bool {
	return k.name == other.name && slices.Equal(k.path, other.path)
}

// String is one text for one key.
func (k key) String() string {
	if k.name != "" {
		return k.name
	}
	return strings.Join(append([]string{"data"}, k.path...), ".")
}

// attribute is how a name reads the envelope.
type attribute struct {
	// read gives nil where the event has none. It may use the value's room.
	read func(v *value, e *schema.Envelope) []byte
	// own: it is CloudEvents' own name, which no extension can have. Others give way to an
	// extension of that name.
	own bool
}

// attributes are the names of both schemas, as schema.Envelope.Field knows them. Both are good
// for both forms, because a subscription may be given either.
var attributes = map[string]attribute{
	"id":              {read: id, own: true},
	"source":          {read: source, own: true},
	"subject":         {read: subject, own: true},
	"type":            {read: eventType, own: true},
	"time":            {read: eventTime, own: true},
	"dataschema":      {read: dataSchema, own: true},
	"datacontenttype": {read: contentType, own: true},

	"eventid":          {read: id},
	"topic":            {read: topic},
	"eventtype":        {read: eventType},
	"eventtime":        {read: eventTime},
	"dataversion":      {read: dataVersion},
	"eventtypeversion": {read: dataVersion},
	"metadataversion":  {read: constant("1")},
	"specversion":      {read: constant("1.0")},
}

func id(_ *value, e *schema.Envelope) []byte          { return e.ID }
func subject(_ *value, e *schema.Envelope) []byte     { return e.Subject }
func eventType(_ *value, e *schema.Envelope) []byte   { return e.Type }
func eventTime(_ *value, e *schema.Envelope) []byte   { return e.Time }
func dataSchema(_ *value, e *schema.Envelope) []byte  { return e.DataSchema }
func contentType(_ *value, e *schema.Envelope) []byte { return e.ContentType }

func source(v *value, e *schema.Envelope) []byte {
	if e.Form == schema.CloudEventForm {
		return e.Source
	}
	return topic(v, e)
}

func topic(v *value, e *schema.Envelope) []byte {
	if e.Topic == "" {
		return nil
	}
	v.room = append(v.room[:0], e.Topic...)
	return v.room
}

// dataVersion is the version of the data's shape. Event Grid's events always have one, if
// an empty one.
func dataVersion(_ *value, e *schema.Envelope) []byte {
	switch {
	case e.Form == schema.CloudEventForm:
		return e.DataSchema
	case e.DataVersion == nil:
		return []byte{}
	}
	return e.DataVersion
}

func constant(text string) func(*value, *schema.Envelope) []byte {
	bytes := []byte(text)
	return func(*value, *schema.Envelope) []byte { return bytes }
}
