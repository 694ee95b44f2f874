package invoke

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/amqp/amqpjson"
	"github.com/eventyard/eventyard/internal/grid/schema"
)

// What every event is told of its place, as extension attributes. Results refer to events by their
// ids, so id is always the stable one, which is unique. What an event has of its own by these names
// it keeps under another: "original" is put before it.
const (
	attrPartitionKey = "partitionkey" // CloudEvents' extension for partitioning
	attrHub          = "hub"
	attrPartition    = "partition"
	attrSequence     = "sequence" // text: CloudEvents' integers have 32 bits
	attrAttempt      = "attempt"
	original         = "original"
)

// writeCloudEvents writes a batch of CloudEvents (CloudEvents JSON format, 4).
func (p *page) writeCloudEvents(call *Call) error {
	p.body = append(p.body, '[')
	for i := range call.Events {
		if i > 0 {
			p.body = append(p.body, ',')
		}
		if err := p.writeCloudEvent(call, &call.Events[i]); err != nil {
			return fmt.Errorf("event %d of partition %s: %w", call.Events[i].Sequence, call.Partition, err)
		}
	}
	p.body = append(p.body, ']')
	return nil
}

// writeCloudEvent has the grid make a CloudEvent of the event, and adds what a function needs to
// know.
func (p *page) writeCloudEvent(call *Call, ev *event.Event) (err error) {
	p.stored, err = schema.FromHub(p.stored[:0], schema.HubEvent{
		Namespace: call.Function, Hub: call.Hub, Partition: call.Partition, Sequence: ev.Sequence, Enqueued: ev.Enqueued, Key: ev.Key, Event: *ev,
	})
	if err != nil {
		return err
	}
	e := &p.envelope
	if err := e.Scan(schema.CloudEventForm, p.stored); err != nil {
		return err
	}
	dst := append(p.body, `{"specversion":"1.0","id":`...)
	p.id = call.appendID(p.id[:0], ev.Sequence)
	dst = appendText(dst, p.id)
	// An id that the grid made says where the event is, and is none of its own.
	ownID := !bytes.Equal(e.ID, p.id)
	dst = amqpjson.AppendTextField(dst, "source", e.Source)
	dst = amqpjson.AppendTextField(dst, "type", e.Type)
	dst = amqpjson.AppendTextField(dst, "subject", e.Subject)
	dst = amqpjson.AppendTextField(dst, "time", e.Time)
	dst = amqpjson.AppendTextField(dst, "dataschema", e.DataSchema)
	dst = appendExtensions(dst, e, ev.Key != "", ownID)
	dst = amqpjson.AppendTextField(dst, attrPartitionKey, ev.Key)
	dst = amqpjson.AppendTextField(dst, attrHub, call.Hub)
	dst = amqpjson.AppendTextField(dst, attrPartition, call.Partition)
	dst = append(amqpjson.AppendName(dst, attrSequence), '"')
	dst = append(strconv.AppendInt(dst, ev.Sequence, 10), '"')
	dst = strconv.AppendInt(amqpjson.AppendName(dst, attrAttempt), int64(call.Attempt), 10)
	p.body = append(appendData(dst, e, ev), '}')
	return nil
}

// appendExtensions writes the event's own, those whose names are taken under others.
func appendExtensions(dst []byte, e *schema.Envelope, keyed, ownID bool) []byte {
	if ownID {
		dst = amqpjson.AppendTextField(dst, original+"id", e.ID)
	}
	for _, x := range e.Extensions {
		name := string(x.Name)
		rest, ok := strings.CutPrefix(name, original)
		if ok && (rest == "id" && ownID || isTaken(rest, keyed) &&
			slices.ContainsFunc(e.Extensions, func(y schema.Member) bool { return string(y.Name) == rest })) {
			continue // the nearer original is the one that is told
		}
		dst = append(dst, ',', '"')
		if isTaken(name, keyed) {
			dst = append(dst, original...)
		}
		dst = append(append(dst, name...), '"', ':')
		dst = append(dst, x.Value...)
	}
	return dst
}

// isTaken tells whether we have a use for the name. An event without a key may have one among its
// attributes.
func isTaken(name string, keyed bool) bool {
	switch name {
	case attrHub, attrPartition, attrSequence, attrAttempt:
		return true
	}
	return name == attrPartitionKey && keyed
}

// appendData writes data with its type. What the grid could only put into base64 is a string here
// where it is text.
func appendData(dst []byte, e *schema.Envelope, ev *event.Event) []byte {
	text := e.Base64 != nil && isTextBody(ev)
	if text && len(e.ContentType) == 0 {
		// Without one it would mean a JSON string (CloudEvents JSON format, 3.1).
		dst = append(dst, `,"datacontenttype":"text/plain"`...)
	} else {
		dst = amqpjson.AppendTextField(dst, "datacontenttype", e.ContentType)
	}
	switch {
	case text:
		return appendText(amqpjson.AppendName(dst, "data"), ev.Body)
	case e.Data != nil:
		return append(amqpjson.AppendName(dst, "data"), e.Data...)
	case e.Base64 != nil:
		return appendText(amqpjson.AppendName(dst, "data_base64"), e.Base64)
	}
	return dst
}

// isTextBody tells whether a body that is no JSON is text: by its type, or, where it has none, by
// its looks.
func isTextBody(ev *event.Event) bool {
	media, _, _ := strings.Cut(ev.ContentType, ";")
	media = strings.ToLower(strings.TrimSpace(media))
	switch {
	case media == "":
		return utf8.Valid(ev.Body) && !bytes.ContainsFunc(ev.Body, isControl)
	case strings.HasPrefix(media, "text/"), strings.HasSuffix(media, "/xml"), strings.HasSuffix(media, "+xml"), media == "application/x-www-form-urlencoded":
		return utf8.Valid(ev.Body) && !isJSON(ev.ContentType)
	}
	return false
}

// isControl tells characters that text does not have.
func isControl(r rune) bool {
	return r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0x7f
}
