package grid

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"strings"
	"time"
)

// Event is one event, in whichever schema it travels.
type Event struct {
	// ID distinguishes an event from all others of its source, and is how receivers know repeats.
	// Empty: Publish makes one.
	ID string
	// Type says what happened, such as "order.placed". Required to publish.
	Type string
	// Source says where: CloudEvents' source, which Config.Source can give. In the Event Grid
	// schema it is the topic, which the grid fills in: leave it empty but to publish to a domain.
	Source string
	// Subject says to what it happened, such as "orders/42". Filters look at its ends.
	Subject string
	// Time says when; zero: Publish takes the present.
	Time time.Time

	// Data is the payload: JSON, or bytes of any other ContentType in CloudEvents. nil: none. Of a
	// custom schema it is the whole event.
	Data []byte
	// ContentType is the media type of Data; empty: application/json.
	ContentType string
	// DataVersion is the Event Grid schema's, DataSchema CloudEvents': how to read Data.
	DataVersion, DataSchema string

	// Extensions are CloudEvents' further attributes: names of small letters and digits; values
	// that are strings, bools or integers of 32 bits (other numbers are no CloudEvents, though a
	// grid carries them). Those received are string, bool, int64 or float64.
	Extensions map[string]any
}

// JSON makes an event of a value, as encoding/json writes it:
//
//	placed, err := grid.JSON("order.placed", "orders/42", order)
func JSON(typ, subject string, v any) (Event, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return Event{}, fmt.Errorf("event %q: %w", typ, err)
	}
	return Event{Type: typ, Subject: subject, Data: data}, nil
}

// Unmarshal reads Data, which is JSON, into v.
func (e Event) Unmarshal(v any) error {
	if !isJSON(e.ContentType) {
		return fmt.Errorf("data of event %q is %s, not JSON: use Data itself", e.ID, e.ContentType)
	}
	if e.Data == nil {
		return fmt.Errorf("event %q has no data", e.ID)
	}
	if err := json.Unmarshal(e.Data, v); err != nil {
		return fmt.Errorf("data of event %q: %w", e.ID, err)
	}
	return nil
}

// ContentID makes an id of what an event says: its type, source, subject and data, but not its
// time. The same event has the same id whenever and wherever it is published, so that receivers
// know it again. It is for events that happen once; those that happen again with the same words
// (a listener opens) are not told apart.
func ContentID(e Event) string {
	h := sha256.New()
	for _, part := range []string{e.Type, e.Source, e.Subject, e.DataVersion, e.DataSchema, e.ContentType} {
		h.Write(binary.AppendUvarint(nil, uint64(len(part))))
		h.Write([]byte(part))
	}
	h.Write(e.Data)
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

// randomID is a UUID of version 4.
func randomID(Event) string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// isJSON says whether data of a media type is JSON: none is, by CloudEvents' rules.
func isJSON(contentType string) bool {
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		media, _, _ = strings.Cut(contentType, ";")
		media = strings.ToLower(strings.TrimSpace(media))
	}
	return media == "" || strings.HasSuffix(media, "/json") || strings.HasSuffix(media, "+json")
}

var errNotJSON = errors.New("data is not JSON: write it as JSON, or say by ContentType what it is")
