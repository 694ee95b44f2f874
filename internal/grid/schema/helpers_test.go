package schema

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
)

const topicID = "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/yard/providers/Microsoft.EventGrid/topics/orders"

var now = time.Date(2026, 11, 15, 12, 0, 0, 123456700, time.UTC)

// publish is a publication to the topic orders.
func publish(kind Kind, contentType, body string) Publication {
	return Publication{
		Kind: kind, TopicID: topicID, TopicName: "orders", Body: []byte(body),
		Header: http.Header{"Content-Type": {contentType}}, Now: now, NewID: func() string { return "made-up" },
	}
}

// grid publishes to a topic with Event Grid's schema, clouds to one with CloudEvents'.
func grid(body string) Publication { return publish(EventGrid, "application/json", body) }

func clouds(body string) Publication { return publish(CloudEvents, "application/json", body) }

// mustRead gives the stored events as text.
func mustRead(t testing.TB, p Publication) []string {
	t.Helper()
	events, err := Read(p)
	testkit.Must(t, err, "read %s", p.Body)
	var all []string
	for _, e := range events {
		all = append(all, string(e))
	}
	return all
}

// refused gives the refusal that a publication has to get.
func refused(t testing.TB, p Publication) *InputError {
	t.Helper()
	events, err := Read(p)
	var input *InputError
	if !errors.As(err, &input) {
		t.Fatalf("read %s: stored %q, %v; want a refusal", p.Body, events, err)
	}
	if events != nil {
		t.Errorf("refused with %v, and still gave %q", err, events)
	}
	return input
}

// wantStored wants a publication to be stored as one event.
func wantStored(t testing.TB, p Publication, stored string) {
	t.Helper()
	testkit.Slices(t, mustRead(t, p), []string{stored})
}

// wantRefused wants a publication to be refused with 400 and a code, in a message that begins and
// goes on so.
func wantRefused(t testing.TB, p Publication, code, begins, has string) {
	t.Helper()
	err := refused(t, p)
	if err.Status != 400 || err.Code != code || !strings.HasPrefix(err.Message, begins) || !strings.Contains(err.Message, has) {
		t.Errorf("%+v; want %s %s%q", err, code, begins, has)
	}
}

// scanned looks at a stored event of the topic orders.
func scanned(t testing.TB, form Form, stored string) *Envelope {
	t.Helper()
	e := &Envelope{Topic: topicID}
	testkit.Must(t, e.Scan(form, []byte(stored)), "scan %s", stored)
	return e
}

// object decodes JSON with the standard library, which is what ours is held against.
func object(t testing.TB, raw []byte) map[string]any {
	t.Helper()
	var m map[string]any
	testkit.Must(t, json.Unmarshal(raw, &m), "%s", raw)
	return m
}
