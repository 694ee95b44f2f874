package poison

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/grid/schema"
)

// EventType is the type of poison events in grid topics.
const EventType = "Eventyard.EventPoisoned"

// maxStored is the most that a poison event may measure in a topic, whose log takes half as much
// again as a hub, and maxPublished in a publication, of which it takes 1 MiB.
const (
	maxStored    = 1_500_000
	maxPublished = 1_000_000
)

// JSON is the poison event as it is published to a grid topic, in the form of Event Grid's schema:
// type Eventyard.EventPoisoned, subject functions/FUNCTION/partitions/P/sequences/N, id ID, data
// the poison event's entries and the body (JSON where it is, else base64).
func (l Record) JSON() ([]byte, error) { return l.fitting(schema.EventGridForm, maxPublished) }

// Stored is the poison event as a topic of that schema stores it. As a CloudEvent its source is
// /hubs/HUB.
func (l Record) Stored(form schema.Form) ([]byte, error) { return l.fitting(form, maxStored) }

// fitting is the poison event with as much of its event as has room: all, or no properties, or
// nothing but where it is.
func (l Record) fitting(form schema.Form, most int) (b []byte, err error) {
	l.Reason, l.Stack = cut(l.Reason, maxReasonBytes), cut(l.Stack, maxStackBytes)
	whole := l.data()
	short := whole
	short.Stack, short.Reason = "", cut(short.Reason, shortReason)
	short.Properties, short.System, short.Shortened = nil, nil, true
	reference := data{
		Function: l.Function, Hub: l.Hub, Group: l.Group, Partition: l.Partition, Sequence: l.Sequence, Offset: l.Offset,
		Enqueued: whole.Enqueued, Key: whole.Key, Reason: cut(tooLarge+l.Reason, maxReasonBytes), Attempts: l.Attempts,
		Deaths: l.Deaths, Instance: l.Instance, Redriven: whole.Redriven, Reference: true,
	}
	for _, d := range []data{whole, short, reference} {
		if b, err = l.write(form, d); err != nil {
			return nil, fmt.Errorf("write poison event %s: %w", l.ID, err)
		}
		if len(b) <= most {
			break
		}
	}
	return b, nil
}

// data is what a poison event in a topic says.
type data struct {
	Function      string          `json:"function"`
	Hub           string          `json:"hub"`
	Group         string          `json:"group"`
	Partition     string          `json:"partition"`
	Sequence      int64           `json:"sequence"`
	Offset        string          `json:"offset"`
	Enqueued      time.Time       `json:"enqueued,omitzero"`
	Key           string          `json:"key,omitempty"`
	Reason        string          `json:"reason"`
	Stack         string          `json:"stack,omitempty"`
	Attempts      int             `json:"attempts"`
	Deaths        int             `json:"deaths,omitempty"`
	Instance      string          `json:"instance,omitempty"`
	Redriven      int             `json:"redriven,omitempty"`
	ContentType   string          `json:"contentType,omitempty"`
	Subject       string          `json:"subject,omitempty"`
	MessageID     json.RawMessage `json:"messageId,omitempty"`
	CorrelationID json.RawMessage `json:"correlationId,omitempty"`
	Properties    json.RawMessage `json:"properties,omitempty"`
	System        json.RawMessage `json:"system,omitempty"`
	// Shortened: the event's properties did not fit. Reference: nor did the event, which is where
	// hub, partition and sequence say.
	Shortened  bool            `json:"shortened,omitempty"`
	Reference  bool            `json:"reference,omitempty"`
	Body       json.RawMessage `json:"body,omitempty"`
	BodyBase64 string          `json:"bodyBase64,omitempty"`
}

func (l Record) data() data {
	ev := l.Event
	d := data{
		Function: l.Function, Hub: l.Hub, Group: l.Group, Partition: l.Partition, Sequence: l.Sequence, Offset: l.Offset,
		Enqueued: l.Enqueued.UTC(), Key: ev.Key, Reason: l.Reason, Stack: l.Stack, Attempts: l.Attempts, Deaths: l.Deaths,
		Instance: l.Instance, Redriven: max(l.Redriven, redrivenOf(ev)), ContentType: ev.ContentType, Subject: ev.Subject,
	}
	if len(ev.Properties) > 0 {
		d.Properties, _ = inJSON(event.Event{Value: ev.Properties})
	}
	if len(ev.System) > 0 {
		d.System, _ = inJSON(event.Event{Value: ev.System})
	}
	d.MessageID, _ = inJSON(event.Event{Value: ev.MessageID})
	d.CorrelationID, _ = inJSON(event.Event{Value: ev.CorrelationID})
	d.Body, d.BodyBase64 = inJSON(event.Event{Body: ev.Body, Value: ev.Value})
	return d
}

// inJSON gives the body of an event as JSON, or else as base64. The grid knows how a hub's events
// look there.
func inJSON(ev event.Event) (json.RawMessage, string) {
	stored, err := schema.FromHub(nil, schema.HubEvent{Event: ev})
	var e schema.Envelope
	if err == nil {
		err = e.Scan(schema.CloudEventForm, stored)
	}
	if err != nil || e.Data != nil && !json.Valid(e.Data) {
		return nil, ""
	}
	return e.Data, string(e.Base64)
}

// write writes the event with data as its last member, which is how topics keep events.
func (l Record) write(form schema.Form, d data) ([]byte, error) {
	subject := "functions/" + l.Function + "/partitions/" + l.Partition + "/sequences/" + fmt.Sprint(l.Sequence)
	at := l.At.UTC().Format(time.RFC3339Nano)
	if form == schema.CloudEventForm {
		return marshal(struct {
			SpecVersion string `json:"specversion"`
			ID          string `json:"id"`
			Source      string `json:"source"`
			Type        string `json:"type"`
			Subject     string `json:"subject"`
			Time        string `json:"time"`
			ContentType string `json:"datacontenttype"`
			Data        data   `json:"data"`
		}{"1.0", l.ID, "/hubs/" + l.Hub, EventType, subject, at, "application/json", d})
	}
	return marshal(struct {
		ID        string `json:"id"`
		Subject   string `json:"subject"`
		EventType string `json:"eventType"`
		EventTime string `json:"eventTime"`
		Version   string `json:"dataVersion"`
		Data      data   `json:"data"`
	}{l.ID, subject, EventType, at, "1.0", d})
}

// marshal leaves <, > and & as they are: escaped they would make a body six times as large.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
