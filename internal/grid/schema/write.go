package schema

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// AppendEvent writes one event as out wants it: an Event Grid object with all eight members (topic,
// dataVersion and metadataVersion filled in, data null if absent), a structured CloudEvent, or the
// custom original. An event in CloudEventForm can be written as EventGrid only where it came from a
// hub: type, subject (or empty), time, data (base64 text where it is not JSON).
func AppendEvent(dst []byte, e *Envelope, out Kind) ([]byte, error) {
	switch {
	case out == EventGrid:
		return appendEventGrid(dst, e, nil)
	case out == CloudEvents && e.Form == CloudEventForm && e.Raw != nil:
		return append(dst, e.Raw...), nil
	case out == CloudEvents:
		return appendCloudEvent(dst, e, nil), nil
	case out == Custom && e.Form == EventGridForm && e.Data != nil:
		return append(dst, e.Data...), nil
	case out == Custom:
		return dst, errors.New("write event in CustomInputSchema: it has no original: choose another delivery schema")
	default:
		return dst, fmt.Errorf("write event: there is no schema %q: use eventgrid, cloudevents or custom", out)
	}
}

// appendEventGrid writes an Event Grid event; d is nil unless it is a dead letter.
func appendEventGrid(dst []byte, e *Envelope, d *DeadLetter) ([]byte, error) {
	if e.Time == nil {
		return dst, errors.New("write event in EventGridSchema: it has no time: choose CloudEventSchemaV1_0")
	}
	dst = append(dst, `{"topic":`...)
	dst = appendQuoted(dst, e.TopicID())
	for _, n := range EventGridForm.attributes() {
		dst = append(append(dst, ','), n.key...)
		dst = e.appendAttribute(dst, n.attribute)
	}
	dst = append(dst, `,"metadataVersion":"1"`...)
	if d != nil { // only then: receivers of events know the members of Event Grid's schema, and no others
		dst = appendTrace(d.append(dst, false), e.TraceContext())
	}
	dst = append(dst, `,"data":`...)
	switch {
	case e.Data != nil:
		dst = append(dst, e.Data...)
	case e.Base64 != nil:
		dst = appendQuoted(dst, e.Base64)
	default:
		dst = append(dst, "null"...)
	}
	return append(dst, '}'), nil
}

// appendCloudEvent writes a structured CloudEvent; d is nil unless it is a dead letter.
func appendCloudEvent(dst []byte, e *Envelope, d *DeadLetter) []byte {
	dst = append(dst, `{"specversion":"1.0"`...)
	if e.Form == CloudEventForm {
		dst = e.appendOwnAttributes(dst, d)
	} else {
		dst = e.appendConverted(dst)
	}
	if d != nil {
		dst = d.append(dst, true)
	}
	if e.Data != nil {
		dst = appendRawMember(dst, "data", e.Data)
	} else if e.Base64 != nil {
		dst = appendTextMember(dst, "data_base64", e.Base64)
	}
	return append(dst, '}')
}

// appendOwnAttributes writes what the event has of itself. A dead letter's own attributes take
// the place of those of the same name: it may be one that was published again by hand.
func (e *Envelope) appendOwnAttributes(dst []byte, d *DeadLetter) []byte {
	for _, n := range CloudEventForm.attributes()[1:] {
		if *e.slot(n.attribute) != nil {
			dst = e.appendAttribute(appendMember(dst, n.name), n.attribute)
		}
	}
	for _, x := range e.Extensions {
		if d == nil || !isDeadLetterAttribute(x.Name) {
			dst = appendQuoted(append(dst, ','), x.Name)
			dst = append(dst, ':')
			dst = append(dst, x.Value...)
		}
	}
	return dst
}

// appendConverted writes an Event Grid event's attributes as a CloudEvent's (reference §7).
func (e *Envelope) appendConverted(dst []byte) []byte {
	dst = e.appendAttribute(appendMember(dst, "id"), attrID)
	dst = appendTextMember(dst, "source", e.TopicID())
	dst = e.appendAttribute(appendMember(dst, "type"), attrType)
	if len(e.Subject) > 0 {
		dst = e.appendAttribute(appendMember(dst, "subject"), attrSubject)
	}
	if s, ok := parseStamp(e.Time); ok {
		dst = append(appendMember(dst, "time"), '"')
		dst = append(s.append(dst), '"')
	}
	if len(e.DataVersion) > 0 {
		dst = append(appendMember(dst, "dataschema"), '"')
		dst = append(appendFragment(dst, e.DataVersion), '"')
	}
	if e.Data != nil {
		dst = append(dst, `,"datacontenttype":"application/json"`...)
	}
	return appendTrace(dst, e.Trace)
}

// appendFragment writes a data version as the reference that a dataschema has to be: '#' and
// the version, percent-encoded where a URI may not have it.
func appendFragment(dst, version []byte) []byte {
	dst = append(dst, '#')
	for _, c := range version {
		if strings.IndexByte(fragmentBytes, c) >= 0 {
			dst = append(dst, c)
		} else {
			dst = appendPercent(dst, c)
		}
	}
	return dst
}

// fragmentBytes are what RFC 3986 allows in a fragment.
const fragmentBytes = alphanumeric + "-._~!$&'()*+,;=:@/?"

func appendPercent(dst []byte, c byte) []byte {
	const digits = "0123456789ABCDEF"
	return append(dst, '%', digits[c>>4], digits[c&15])
}

// DeadLetter is what is added to an event that could not be delivered.
type DeadLetter struct {
	Reason      string
	Attempts    int
	LastOutcome string
	LastStatus  int // 0: left out
	Published   time.Time
	LastAttempt time.Time // zero: left out
}

// AppendDeadLetter writes an event for a dead-letter file in the delivery schema out, with
// the spelling of that schema (reference §15): custom in the Event Grid envelope with the
// original as data, CloudEvents in lower case without the last attempt's time.
func AppendDeadLetter(dst []byte, e *Envelope, out Kind, d DeadLetter) ([]byte, error) {
	switch out {
	case EventGrid, Custom:
		return appendEventGrid(dst, e, &d)
	case CloudEvents:
		return appendCloudEvent(dst, e, &d), nil
	default:
		return dst, errors.New("write dead letter: there is no schema " + strconv.Quote(string(out)) + ": use eventgrid, cloudevents or custom")
	}
}

// append writes what is added. CloudEvents have the names in lower case.
func (d *DeadLetter) append(dst []byte, cloudEvents bool) []byte {
	member := func(name string) []byte {
		if cloudEvents {
			name = strings.ToLower(name)
		}
		return appendMember(dst, name)
	}
	dst = appendQuoted(member("deadLetterReason"), d.Reason)
	dst = strconv.AppendInt(member("deliveryAttempts"), int64(d.Attempts), 10)
	dst = appendQuoted(member("lastDeliveryOutcome"), d.LastOutcome)
	if d.LastStatus != 0 {
		dst = strconv.AppendInt(member("lastHttpStatusCode"), int64(d.LastStatus), 10)
	}
	dst = append(appendTime(append(member("publishTime"), '"'), d.Published), '"')
	if !cloudEvents && !d.LastAttempt.IsZero() {
		dst = append(appendTime(append(member("lastDeliveryAttemptTime"), '"'), d.LastAttempt), '"')
	}
	return dst
}

// isDeadLetterAttribute knows the names that append writes for CloudEvents.
func isDeadLetterAttribute(name []byte) bool {
	switch string(name) {
	case "deadletterreason", "deliveryattempts", "lastdeliveryoutcome", "lasthttpstatuscode", "publishtime":
		return true
	default:
		return false
	}
}
