package invoke

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/amqp/amqpjson"
)

// timeFormat is the one of the yard's HTTP listener: hubs keep times in whole milliseconds.
const timeFormat = "2006-01-02T15:04:05.000Z07:00"

// writeEventHubs writes a batch as an object of our own, with events in the words of Event Hubs'
// clients. Values and bodies look as they do when they are read at the yard's HTTP listener.
func (p *page) writeEventHubs(call *Call) {
	dst := append(p.body, `{"function":`...)
	dst = appendText(dst, call.Function)
	dst = appendText(amqpjson.AppendName(dst, "hub"), call.Hub)
	dst = appendText(amqpjson.AppendName(dst, "group"), call.Group)
	dst = appendText(amqpjson.AppendName(dst, "partition"), call.Partition)
	dst = strconv.AppendInt(amqpjson.AppendName(dst, "attempt"), int64(call.Attempt), 10)
	dst = append(amqpjson.AppendName(dst, "events"), '[')
	for i := range call.Events {
		if i > 0 {
			dst = append(dst, ',')
		}
		ev := &call.Events[i]
		p.id = call.appendID(p.id[:0], ev.Sequence)
		dst = appendHubEvent(dst, p.id, ev)
	}
	p.body = append(dst, "]}"...)
}

// appendHubEvent writes one event. What it does not have is left out.
func appendHubEvent(dst, id []byte, ev *event.Event) []byte {
	dst = appendText(append(dst, `{"id":`...), id)
	dst = strconv.AppendInt(amqpjson.AppendName(dst, "sequenceNumber"), ev.Sequence, 10)
	dst = amqpjson.AppendTextField(dst, "offset", ev.Offset)
	dst = append(amqpjson.AppendName(dst, "enqueuedTimeUtc"), '"')
	dst = append(ev.Enqueued.UTC().AppendFormat(dst, timeFormat), '"')
	dst = amqpjson.AppendTextField(dst, "partitionKey", ev.Key)
	dst = appendIDField(dst, "messageId", ev.MessageID)
	dst = appendIDField(dst, "correlationId", ev.CorrelationID)
	dst = amqpjson.AppendTextField(dst, "contentType", ev.ContentType)
	dst = amqpjson.AppendTextField(dst, "subject", ev.Subject)
	dst = appendMapField(dst, "properties", ev.Properties)
	dst = appendMapField(dst, "systemProperties", ev.System)
	return append(appendBody(dst, ev), '}')
}

// appendBody writes JSON as JSON where the content type says that it is; a JSON string stays the
// text that it is written as, so that a string in body is always the body's own characters.
func appendBody(dst []byte, ev *event.Event) []byte {
	switch {
	case ev.Body == nil:
		return appendValue(amqpjson.AppendName(dst, "value"), ev.Value)
	case !utf8.Valid(ev.Body):
		return amqpjson.AppendBase64(amqpjson.AppendName(dst, "bodyBase64"), ev.Body)
	}
	dst = amqpjson.AppendName(dst, "body")
	if trimmed := bytes.Trim(ev.Body, " \t\r\n"); isJSON(ev.ContentType) && !bytes.HasPrefix(trimmed, []byte{'"'}) && json.Valid(trimmed) {
		return append(dst, trimmed...)
	}
	return appendText(dst, ev.Body)
}

// isJSON tells whether a content type says that the body is JSON.
func isJSON(contentType string) bool {
	media, _, _ := strings.Cut(contentType, ";")
	media = strings.ToLower(strings.TrimSpace(media))
	return media == "application/json" || media == "text/json" || strings.HasSuffix(media, "+json")
}

// appendIDField writes a message or correlation id, which is text here whatever its type.
func appendIDField(dst []byte, name string, id any) []byte {
	if id == nil {
		return dst
	}
	dst = amqpjson.AppendName(dst, name)
	if n, ok := id.(uint64); ok {
		dst = strconv.AppendUint(append(dst, '"'), n, 10)
		return append(dst, '"')
	}
	return appendValue(dst, id)
}

// appendMapField writes the members in the order of their names, so that the same event always
// looks the same.
func appendMapField(dst []byte, name string, m map[string]any) []byte {
	if len(m) == 0 {
		return dst
	}
	dst = append(amqpjson.AppendName(dst, name), '{')
	for i, name := range slices.Sorted(maps.Keys(m)) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendText(dst, name), ':')
		dst = appendValue(dst, m[name])
	}
	return append(dst, '}')
}
