package admin

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"unicode/utf8"
)

// MaxEventBytes is how much a yard takes at once, as it stores it. An event has to fit alone.
const MaxEventBytes = 1 << 20

// Event is one event to send.
type Event struct {
	Body        []byte
	ContentType string
	Properties  map[string]any
}

// Encode writes the event as the API takes it: the body as text if it is text.
func (e Event) Encode() (json.RawMessage, error) {
	form := struct {
		Body        *string        `json:"body,omitempty"`
		BodyBase64  *string        `json:"bodyBase64,omitempty"`
		ContentType string         `json:"contentType,omitempty"`
		Properties  map[string]any `json:"properties,omitempty"`
	}{ContentType: e.ContentType, Properties: e.Properties}
	if text := string(e.Body); isPlain(text) {
		form.Body = &text
	} else {
		encoded := base64.StdEncoding.EncodeToString(e.Body)
		form.BodyBase64 = &encoded
	}
	return json.Marshal(form)
}

// isPlain: the text survives JSON, and escaping it costs less than base64 would.
func isPlain(text string) bool {
	escapes := 0
	for i := range len(text) {
		switch c := text[i]; {
		case c == '\n' || c == '\r' || c == '\t' || c == '"' || c == '\\':
			escapes++
		case c < 0x20 || c == '<' || c == '>' || c == '&':
			escapes += 5
		}
	}
	return utf8.ValidString(text) && escapes <= 64+len(text)/3
}

// Batch is what one send stores, whole or not at all, in one partition.
type Batch struct {
	// Events are objects as the API takes them, such as Event.Encode gives.
	Events []json.RawMessage
	// Key or Partition choose the partition; without them it is the next in turn.
	Key, Partition string
}

// encode joins what is encoded already; encoding it as a whole would go over every
// event twice more.
func (b Batch) encode() (json.RawMessage, error) {
	target, err := json.Marshal(struct {
		Key       string `json:"key,omitempty"`
		Partition string `json:"partition,omitempty"`
	}{b.Key, b.Partition})
	if err != nil {
		return nil, err
	}
	size := len(target) + 16
	for _, e := range b.Events {
		size += len(e) + 1
	}
	body := append(make([]byte, 0, size), `{"events":[`...)
	for i, e := range b.Events {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, e...)
	}
	body = append(body, ']')
	if string(target) == "{}" {
		return append(body, '}'), nil
	}
	body = append(body, ',')
	return append(body, target[1:]...), nil
}

// Sent is where a batch was stored.
type Sent struct {
	Partition string `json:"partition"`
	First     int64  `json:"first"`
	Count     int    `json:"count"`
	Enqueued  Time   `json:"enqueued"`
}

// Send stores a batch. Nil means that it is as durable as the yard promises. After an
// *UnreachableError it may or may not have been stored.
func (c *Client) Send(ctx context.Context, hub string, b Batch) (Sent, error) {
	body, err := b.encode()
	if err != nil {
		return Sent{}, fmt.Errorf("encode batch: %w", err)
	}
	var sent Sent
	err = c.call(ctx, http.MethodPost, []string{"hubs", hub, "events"}, body, &sent)
	return sent, named(hub, err)
}
