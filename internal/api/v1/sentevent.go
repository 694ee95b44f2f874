package v1

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/amqp/wire"
)

// sentEvent is an event as clients send it. What reading adds is taken and left
// aside, so that the output of a read can be sent again as it is.
type sentEvent struct {
	Body          json.RawMessage `json:"body"`
	BodyBase64    *string         `json:"bodyBase64"`
	Value         json.RawMessage `json:"value"`
	ContentType   text            `json:"contentType"`
	MessageID     *text           `json:"messageId"`
	CorrelationID *text           `json:"correlationId"`
	Subject       text            `json:"subject"`
	Key           text            `json:"key"`
	Properties    object          `json:"properties"`
	System        object          `json:"system"`

	Partition json.RawMessage `json:"partition"`
	Sequence  json.RawMessage `json:"sequence"`
	Offset    json.RawMessage `json:"offset"`
	Enqueued  json.RawMessage `json:"enqueued"`
}

func (s *sentEvent) event() (event.Event, error) {
	ev := event.Event{
		Key:         string(s.Key),
		ContentType: string(s.ContentType),
		Subject:     string(s.Subject),
	}
	if s.MessageID != nil {
		ev.MessageID = string(*s.MessageID)
	}
	if s.CorrelationID != nil {
		ev.CorrelationID = string(*s.CorrelationID)
	}
	var err error
	if ev.Properties, err = properties(s.Properties); err != nil {
		return event.Event{}, err
	}
	if ev.System, err = system(s.System); err != nil {
		return event.Event{}, err
	}
	err = s.fillBody(&ev)
	return ev, err
}

const bodyHelp = `give each event a body (text, or any JSON) or a bodyBase64 (bytes), for example {"body":"hello"}`

// fillBody takes the one body there must be: text as it is, other JSON as its compact
// bytes, base64 as the bytes it stands for.
func (s *sentEvent) fillBody(ev *event.Event) error {
	given := 0
	for _, there := range []bool{s.Body != nil, s.BodyBase64 != nil, s.Value != nil} {
		if there {
			given++
		}
	}
	switch {
	case given == 0:
		return badRequest(bodyHelp, "an event has no body")
	case given > 1:
		return badRequest(bodyHelp, "an event has more than one of body, bodyBase64 and value")
	case s.Value != nil:
		return s.fillValue(ev)
	case s.BodyBase64 != nil:
		data, err := base64.StdEncoding.DecodeString(*s.BodyBase64)
		if err != nil {
			return badRequest("use the standard alphabet with padding", "bodyBase64 is not base64: %v", err)
		}
		ev.Body = data
		return nil
	case s.Body[0] == '"':
		var plain text
		if err := json.Unmarshal(s.Body, &plain); err != nil {
			return err
		}
		ev.Body = []byte(plain)
		return nil
	}
	ev.Body, _ = appendCompact(nil, s.Body)
	ev.ContentType = cmp.Or(ev.ContentType, "application/json")
	return nil
}

// fillValue takes an AMQP value body, as far as JSON can say what it is. Null is no
// body that an event can be stored with.
func (s *sentEvent) fillValue(ev *event.Event) error {
	var v any
	if err := decodeExactly(s.Value, &v); err != nil {
		return err
	}
	if v == nil {
		return badRequest(bodyHelp, "a value of null cannot be stored")
	}
	value, err := fromJSON(v)
	ev.Value = value
	return err
}

// fromJSON gives decoded JSON the types that AMQP has: whole numbers are long (or
// ulong beyond it), others double, objects maps, arrays lists.
func fromJSON(v any) (any, error) {
	switch v := v.(type) {
	case json.Number:
		return number(v)
	case []any:
		list := make([]any, len(v))
		for i := range v {
			var err error
			if list[i], err = fromJSON(v[i]); err != nil {
				return nil, err
			}
		}
		return list, nil
	case map[string]any:
		m := make(wire.Map, 0, len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			inner, err := fromJSON(v[key])
			if err != nil {
				return nil, err
			}
			m = append(m, wire.Pair{Key: key, Value: inner})
		}
		return m, nil
	}
	return v, nil
}

// number keeps every digit of a whole number, or refuses it. Others are doubles.
func number(n json.Number) (any, error) {
	text := n.String()
	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		return i, nil
	}
	if u, err := strconv.ParseUint(text, 10, 64); err == nil {
		return u, nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || !strings.ContainsAny(text, ".eE") {
		return nil, badRequest("send it as text", "the number %s is too large", text)
	}
	return f, nil
}

// properties gives application properties their types. AMQP has only simple ones.
func properties(given map[string]any) (map[string]any, error) {
	if len(given) == 0 {
		return nil, nil
	}
	for name, v := range given {
		switch v := v.(type) {
		case json.Number:
			typed, err := number(v)
			if err != nil {
				return nil, err
			}
			given[name] = typed
		case []any, map[string]any:
			return nil, badRequest("put structure into the body, or send it as text",
				"property %q is neither text nor a number, a boolean or null", name)
		}
	}
	return given, nil
}

// system gives the other standard properties the types that AMQP prescribes, where
// JSON has none of its own for them. Annotations are what JSON says they are.
func system(given map[string]any) (map[string]any, error) {
	if len(given) == 0 {
		return nil, nil
	}
	for name, v := range given {
		typed, err := fromJSON(v)
		if err != nil {
			return nil, err
		}
		ok := true
		switch name {
		case "user-id":
			typed, ok = fromBase64(typed)
		case "absolute-expiry-time", "creation-time":
			typed, ok = fromTime(typed)
		case "group-sequence":
			n, whole := typed.(int64)
			typed, ok = uint32(n), whole && n >= 0 && n <= math.MaxUint32
		}
		if !ok {
			return nil, badRequest("write it the way reading shows it", "system value %q is not what it has to be", name)
		}
		given[name] = typed
	}
	return given, nil
}

func fromBase64(v any) (any, bool) {
	text, ok := v.(string)
	data, err := base64.StdEncoding.DecodeString(text)
	return data, ok && err == nil
}

func fromTime(v any) (any, bool) {
	text, ok := v.(string)
	t, err := time.Parse(time.RFC3339, text)
	return t, ok && err == nil
}
