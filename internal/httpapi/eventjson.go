package httpapi

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/amqp/message"
	"github.com/eventyard/eventyard/internal/eventlog"
)

// eventFormat writes stored events as JSON, one object on one line. It appends to a
// buffer and makes no value in between: a tail does this for every event.
type eventFormat struct {
	// rawBodies gives every data body as bodyBase64, byte for byte. Otherwise JSON
	// bodies are embedded, which keeps their meaning but not their white space.
	rawBodies bool
}

// appendEvent writes event i of a run. An event that cannot be decoded is shown as
// the bytes that are stored, with the reason: a reader must never be stopped by it,
// and never miss it without a word.
func (f eventFormat) appendEvent(dst []byte, partition string, run eventlog.Run, i int) []byte {
	stored := &run.Events[i]
	sequence := int64(run.First) + int64(i)
	dst = append(dst, `{"partition":`...)
	dst = appendText(dst, partition)
	dst = append(dst, `,"sequence":`...)
	dst = strconv.AppendInt(dst, sequence, 10)
	dst = append(dst, `,"offset":"`...)
	dst = strconv.AppendInt(dst, sequence, 10)
	dst = append(dst, `","enqueued":"`...)
	dst = run.Time.UTC().AppendFormat(dst, timeFormat)
	dst = append(dst, '"')
	dst = appendTextField(dst, "key", stored.Key)

	ev, err := message.Decode(stored.Message)
	if err != nil {
		dst = appendTextField(dst, "unreadable", err.Error())
		dst = append(dst, `,"storedBase64":`...)
		dst = appendBase64(dst, stored.Message)
		return append(dst, '}')
	}
	dst = f.appendContent(dst, &ev)
	return append(dst, '}')
}

// appendContent writes what the sender gave: all that a send takes too.
func (f eventFormat) appendContent(dst []byte, ev *event.Event) []byte {
	dst = appendTextField(dst, "contentType", ev.ContentType)
	dst = appendID(dst, "messageId", ev.MessageID)
	dst = appendID(dst, "correlationId", ev.CorrelationID)
	dst = appendTextField(dst, "subject", ev.Subject)
	dst = appendMapField(dst, "properties", ev.Properties)
	dst = appendMapField(dst, "system", ev.System)
	return f.appendBody(dst, ev)
}

// appendBody writes the body in the form that says most and still comes back as the
// same bytes when it is sent again. A JSON string of a body is always its text; so a
// JSON body that is itself a string is shown as text, quotes and all.
func (f eventFormat) appendBody(dst []byte, ev *event.Event) []byte {
	switch {
	case ev.Body == nil:
		dst = append(dst, `,"value":`...)
		return appendValue(dst, ev.Value)
	case f.rawBodies || !utf8.Valid(ev.Body):
		dst = append(dst, `,"bodyBase64":`...)
		return appendBase64(dst, ev.Body)
	}
	dst = append(dst, `,"body":`...)
	if isJSON(ev.ContentType) && !startsString(ev.Body) {
		if with, ok := appendCompact(dst, ev.Body); ok {
			return with
		}
	}
	return appendText(dst, ev.Body)
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

// appendTextField writes a field unless it is empty.
func appendTextField[T string | []byte](dst []byte, name string, text T) []byte {
	if len(text) == 0 {
		return dst
	}
	dst = appendName(dst, name)
	return appendText(dst, text)
}

// appendID writes a message or correlation id, which is text here whatever its type.
func appendID(dst []byte, name string, id any) []byte {
	if id == nil {
		return dst
	}
	dst = appendName(dst, name)
	if n, ok := id.(uint64); ok {
		dst = append(dst, '"')
		dst = strconv.AppendUint(dst, n, 10)
		return append(dst, '"')
	}
	return appendValue(dst, id)
}

// appendMapField writes properties in the order of their names, so that the same
// event always looks the same.
func appendMapField(dst []byte, name string, m map[string]any) []byte {
	if len(m) == 0 {
		return dst
	}
	dst = appendName(dst, name)
	dst = append(dst, '{')
	for i, key := range slices.Sorted(maps.Keys(m)) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendText(dst, key)
		dst = append(dst, ':')
		dst = appendValue(dst, m[key])
	}
	return append(dst, '}')
}

// appendName begins a further field of an object. Names of ours need no escapes.
func appendName(dst []byte, name string) []byte {
	dst = append(dst, ',', '"')
	dst = append(dst, name...)
	return append(dst, '"', ':')
}

func appendBase64(dst, data []byte) []byte {
	dst = append(dst, '"')
	dst = base64.StdEncoding.AppendEncode(dst, data)
	return append(dst, '"')
}
