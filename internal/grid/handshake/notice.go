package handshake

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/grid/signature"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/transport/egress"
)

// notice is an event of the yard's own about a subscription.
type notice struct {
	kind      string // aeg-event-type
	eventType string
	topic     string
	data      any
}

// envelope is Event Grid's schema, as the yard's own notices fill it (reference §10.1).
type envelope struct {
	ID              string `json:"id"`
	Topic           string `json:"topic"`
	Subject         string `json:"subject"`
	Data            any    `json:"data"`
	EventType       string `json:"eventType"`
	EventTime       string `json:"eventTime"`
	MetadataVersion string `json:"metadataVersion"`
	DataVersion     string `json:"dataVersion"`
}

// post makes the request that brings a notice: in Event Grid's schema whatever is delivered, let
// in as deliveries are, and signed as they are.
func post(s topics.Subscription, n notice) (egress.Request, error) {
	id, now := topics.NewUUID(), time.Now()
	body, err := json.Marshal([]envelope{{
		ID: id, Topic: n.topic, Data: n.data, EventType: n.eventType,
		EventTime: now.UTC().Format("2006-01-02T15:04:05.0000000Z"), MetadataVersion: "1", DataVersion: "1",
	}})
	if err != nil {
		return egress.Request{}, fmt.Errorf("write event %s: %w", n.eventType, err)
	}
	signer, err := signature.NewSigner(s.Keys)
	if err != nil {
		return egress.Request{}, err
	}
	h := header(s)
	h.Set("Content-Type", "application/json; charset=utf-8")
	h.Set("Aeg-Event-Type", n.kind)
	h.Set("Aeg-Subscription-Name", strings.ToUpper(s.Name))
	h.Set("Aeg-Delivery-Count", "0")
	h.Set("Aeg-Metadata-Version", "1")
	h.Set("Aeg-Data-Version", "1")
	signer.Sign(h, id, now, body)
	return egress.Request{Endpoint: *s.Webhook, Method: http.MethodPost, Header: h, Body: body}, nil
}

// header has the delivery properties that are the same for every event: an endpoint may let
// nobody in without them. Those taken from an event have none to be taken from.
func header(s topics.Subscription) http.Header {
	h := http.Header{"Accept": {"*/*"}}
	for _, p := range s.Headers {
		if p.Field == "" && egress.Sendable(p.Name, p.Value) {
			h.Set(p.Name, p.Value)
		}
	}
	return h
}
