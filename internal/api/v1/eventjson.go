package v1

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/amqp/amqpjson"
	"github.com/eventyard/eventyard/internal/amqp/message"
	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// eventFormat writes stored events as JSON, one object on one line. It appends to a
// buffer and makes no value in between: a tail does this for every event.
type eventFormat struct {
	// rawBodies gives every data body as bodyBase64, byte for byte. Otherwise JSON
	// bodies are embedded, which keeps their meaning but not their white space.
	rawBodies bool
	// cloud gives each event as subscriptions of its hub see it: a CloudEvent, of this namespace and hub.
	cloud          bool
	namespace, hub string
}

// appendEvent writes event i of a run. An event that cannot be decoded is shown as
// the bytes that are stored, with the reason: a reader must never be stopped by it,
// and never miss it without a word.
func (f eventFormat) appendEvent(dst []byte, partition string, run eventlog.Run, i int) []byte {
	stored := &run.Events[i]
	sequence := int64(run.First) + int64(i)
	dst = append(dst, `{"partition":`...)
	dst = amqpjson.AppendText(dst, partition, amqpjson.Exact)
	dst = append(dst, `,"sequence":`...)
	dst = strconv.AppendInt(dst, sequence, 10)
	dst = append(dst, `,"offset":"`...)
	dst = strconv.AppendInt(dst, sequence, 10)
	dst = append(dst, `","enqueued":"`...)
	dst = run.Time.UTC().AppendFormat(dst, timeFormat)
	dst = append(dst, '"')
	dst = amqpjson.AppendTextField(dst, "key", stored.Key)

	ev, err := message.Decode(stored.Message)
	if err != nil {
		dst = amqpjson.AppendTextField(dst, "unreadable", err.Error())
		dst = append(dst, `,"storedBase64":`...)
		dst = amqpjson.AppendBase64(dst, stored.Message)
		return append(dst, '}')
	}
	if f.cloud {
		dst = append(dst, `,"cloudEvent":`...)
		dst, _ = schema.FromHub(dst, schema.HubEvent{ // it takes whatever can be decoded
			Namespace: f.namespace, Hub: f.hub, Partition: partition, Sequence: sequence, Enqueued: run.Time, Key: string(stored.Key), Event: ev,
		})
		return append(dst, '}')
	}
	dst = f.appendContent(dst, &ev)
	return append(dst, '}')
}

// appendContent writes what the sender gave: all that a send takes too.
func (f eventFormat) appendContent(dst []byte, ev *event.Event) []byte {
	dst = amqpjson.AppendTextField(dst, "contentType", ev.ContentType)
	dst = amqpjson.AppendIDField(dst, "messageId", ev.MessageID)
	dst = amqpjson.AppendIDField(dst, "correlationId", ev.CorrelationID)
	dst = amqpjson.AppendTextField(dst, "subject", ev.Subject)
	dst = amqpjson.AppendMapField(dst, "properties", ev.Properties)
	dst = amqpjson.AppendMapField(dst, "system", ev.System)
	return f.appendBody(dst, ev)
}

// appendBody writes the body in the form that says most and still comes back as the
// same bytes when it is sent again. A JSON string of a body is always its text; so a
// JSON body that is itself a string is shown as text, quotes and all.
func (f eventFormat) appendBody(dst []byte, ev *event.Event) []byte {
	switch {
	case ev.Body == nil:
		dst = append(dst, `,"value":`...)
		return amqpjson.AppendValue(dst, ev.Value, amqpjson.Exact)
	case f.rawBodies || !utf8.Valid(ev.Body):
		dst = append(dst, `,"bodyBase64":`...)
		return amqpjson.AppendBase64(dst, ev.Body)
	}
	dst = append(dst, `,"body":`...)
	if isJSON(ev.ContentType) && !startsString(ev.Body) {
		if with, ok := appendCompact(dst, ev.Body); ok {
			return with
		}
	}
	return amqpjson.AppendText(dst, ev.Body, amqpjson.Exact)
}

// isJSON tells whether a content type says that the body is JSON.
func isJSON(contentType string) bool {
	kind, _, _ := strings.Cut(contentType, ";")
	kind = strings.ToLower(strings.TrimSpace(kind))
	return kind == "application/json" || kind == "text/json" || strings.HasSuffix(kind, "+json")
}

func startsString(body []byte) bool {
	trimmed := bytes.TrimLeft(body, " \t\r\n")
	return len(trimmed) > 0 && trimmed[0] == '"'
}

// appendCompact appends JSON without its white space, hence on one line, or nothing
// if it is no JSON.
func appendCompact(dst, text []byte) ([]byte, bool) {
	buf := bytes.NewBuffer(dst)
	if err := json.Compact(buf, text); err != nil {
		return dst, false
	}
	return buf.Bytes(), true
}
