package schema

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/amqp/amqpjson"
	"github.com/eventyard/eventyard/tracing"
)

// HubEvent is an event of a hub that feeds subscriptions.
type HubEvent struct {
	Namespace, Hub, Partition string
	Sequence                  int64
	Enqueued                  time.Time
	Key                       string
	Event                     event.Event
}

// hubType is the type of hub events that say nothing of themselves.
const hubType = "Eventyard.Hub.Event"

// FromHub writes a hub's event as a stored CloudEvent behind dst: what it says of itself as a
// CloudEvent (structured by content type, or binary by application properties cloudEvents:x
// and cloudEvents_x) is kept; else id is namespace/hub/partition/sequence, source
// /hubs/HUB/partitions/P, type Eventyard.Hub.Event, subject the partition key, time the
// enqueued time; data is the body where it is JSON, else data_base64.
//
// A hub takes anything, so nothing is refused here: what claims to be a CloudEvent and is none
// is taken for what it is, some bytes. A CloudEvent without a time gets the enqueued time.
//
// A trace that the event carries in its properties is told as CloudEvents' extension for it.
func FromHub(dst []byte, e HubEvent) ([]byte, error) {
	var d draft
	trace := tracing.OfProperties(e.Event.Properties)
	switch {
	case mediaType(e.Event.ContentType) == mediaCloudEvent && d.readStructured(e.Event.Body):
		d.fill(attrTime, e.appendTime)
		d.setTrace(trace)
		return d.appendStored(dst, CloudEventForm), nil
	case isBinaryHubEvent(e.Event.Properties):
		d.reset()
		d.readProperties(e.Event.Properties)
		d.fill(attrID, e.appendID)
		d.fill(attrSource, e.appendSource)
		d.fill(attrType, appendHubType)
		d.fill(attrTime, e.appendTime)
		d.setTrace(trace)
		// Its content type is the message's own, and is written with the data.
		d.attributes[attrSpecVersion], d.attributes[attrContentType] = rawSpecVersion, nil
		dst = d.appendStored(dst, CloudEventForm)
	default:
		dst = e.appendPlain(dst, trace)
	}
	// The data comes last, behind the object's last attribute.
	return append(e.appendData(dst[:len(dst)-1]), '}'), nil
}

// readStructured reads the body as a CloudEvent, and says whether it is one.
func (d *draft) readStructured(body []byte) bool {
	r := reader{b: body}
	r.space()
	return d.readCloudEvent(&r) == nil && r.end() == nil
}

// fill writes an attribute that the event does not have.
func (d *draft) fill(a Attribute, quoted func([]byte) []byte) {
	if d.attributes[a] == nil {
		d.attributes[a] = quoted(nil)
	}
}

// appendPlain writes the attributes of an event that is no CloudEvent.
func (e *HubEvent) appendPlain(dst []byte, trace tracing.Context) []byte {
	dst = append(dst, `{"specversion":"1.0","id":`...)
	dst = e.appendID(dst)
	dst = append(dst, `,"source":`...)
	dst = e.appendSource(dst)
	dst = append(dst, `,"type":`...)
	dst = appendHubType(dst)
	if key := cmp.Or(e.Key, e.Event.Key); key != "" {
		dst = appendTextMember(dst, "subject", key)
	}
	dst = append(dst, `,"time":`...)
	dst = e.appendTime(dst)
	return append(appendTrace(dst, trace), '}')
}

// The following write JSON strings. Names of hubs need no escapes; those who write them here
// need not know that.

func (e *HubEvent) appendID(dst []byte) []byte {
	dst = appendQuoted(dst, e.Namespace)
	dst = appendInside(dst, "/", e.Hub)
	dst = appendInside(dst, "/", e.Partition)
	dst = append(dst[:len(dst)-1], '/')
	dst = strconv.AppendInt(dst, e.Sequence, 10)
	return append(dst, '"')
}

func (e *HubEvent) appendSource(dst []byte) []byte {
	dst = appendQuoted(dst, "/hubs")
	dst = appendInside(dst, "/", e.Hub)
	return appendInside(dst, "/partitions/", e.Partition)
}

func appendHubType(dst []byte) []byte { return appendQuoted(dst, hubType) }

func (e *HubEvent) appendTime(dst []byte) []byte {
	return append(appendTime(append(dst, '"'), e.Enqueued), '"')
}

// appendInside lengthens the JSON string that dst ends with.
func appendInside(dst []byte, separator, t string) []byte {
	end := len(dst) - 1
	dst = append(dst[:end], separator...)
	at := len(dst)
	dst = appendQuoted(dst, t)
	// The opening quote goes.
	return append(dst[:at], dst[at+1:]...)
}

// appendData writes datacontenttype and data as further members.
func (e *HubEvent) appendData(dst []byte) []byte {
	body, contentType := e.Event.Body, strings.TrimSpace(e.Event.ContentType)
	if contentType != "" && isHeaderText(contentType) {
		dst = appendTextMember(dst, "datacontenttype", contentType)
	}
	if body == nil && e.Event.Value != nil {
		// Types that JSON does not have become text; so does what a number there cannot express.
		return amqpjson.AppendValue(appendMember(dst, "data"), e.Event.Value, amqpjson.Plain)
	}
	if len(body) == 0 {
		return dst
	}
	if contentType == "" || isJSON(mediaType(contentType)) {
		if data, err := validJSON(body); err == nil {
			return appendRawMember(dst, "data", data)
		}
	}
	return appendBase64(appendMember(dst, "data_base64"), body)
}

// The prefixes of a CloudEvent's attributes among the application properties (CloudEvents AMQP
// binding, 3.1.3.1); the second is for those who cannot have a colon there.
const (
	propertyPrefix    = "cloudEvents:"
	propertyPrefixAlt = "cloudEvents_"
)

func isBinaryHubEvent(properties map[string]any) bool {
	return properties[propertyPrefix+"specversion"] == "1.0" || properties[propertyPrefixAlt+"specversion"] == "1.0"
}

// readProperties takes what can be an attribute; of one that is there with both prefixes the
// first. The rest are the application's own.
func (d *draft) readProperties(properties map[string]any) {
	for _, prefix := range []string{propertyPrefix, propertyPrefixAlt} {
		for _, property := range slices.Sorted(maps.Keys(properties)) {
			if name, ok := strings.CutPrefix(property, prefix); ok && isExtensionName(name) {
				d.setProperty([]byte(name), properties[property])
			}
		}
	}
}

func (d *draft) setProperty(name []byte, v any) {
	raw, ok := amqpjson.AppendScalar(nil, v, amqpjson.Plain)
	if !ok {
		return // it has parts
	}
	switch a := CloudEventForm.attribute(name); {
	case a == attrOther:
		// A duplicate, or one too many, is left out.
		_ = d.extend(name, raw)
	case d.attributes[a] != nil, !isText(raw), string(raw) == `""` && a != attrSubject:
	case a == attrData, a == attrBase64:
	default:
		if s, ok := parseStamp(textOf(raw)); a != attrTime || ok && s.strict {
			d.attributes[a] = raw
		}
	}
}
