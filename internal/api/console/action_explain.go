package console

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/eventyard/eventyard/admin"
)

// explainSubscription tries an event against a subscription's filter. Nothing is published.
var explainSubscription = action{
	path: ofSubscription + "/explain", calls: []string{"POST /api/v1/subscriptions/{subscription}/explain"},
	sheet: func(v *visit) (*sheet, error) { return explainSheet(v) },
	do: func(v *visit) (outcome, error) {
		event := strings.TrimSpace(v.r.PostFormValue("event"))
		if !json.Valid([]byte(event)) {
			return outcome{}, wrongInput("The event is not JSON. Write it as it would be published.")
		}
		said, err := v.api.Explain(v.ctx, v.ref(), json.RawMessage(event))
		if err != nil {
			return outcome{}, err
		}
		s, err := explainSheet(v)
		if err != nil {
			return outcome{}, err
		}
		s.Note, s.Tests = &note{Tone: "odd", Icon: "x", Text: capital(said.Summary)}, testsOf(said.Conditions)
		if said.Matches {
			s.Note.Tone, s.Note.Icon = "good", "check"
		}
		return outcome{sheet: s}, nil
	},
}

// explainSheet begins with the newest event of the source, which is the one that people ask about.
func explainSheet(v *visit) (*sheet, error) {
	s, err := v.api.Subscription(v.ctx, v.ref(), false)
	if err != nil {
		return nil, err
	}
	event := v.value("event", "")
	if event == "" {
		event = newestEvent(v, s)
	}
	return &sheet{
		Title: "Would " + s.Name + " get this event?", About: "Each condition of its filter is tried. Nothing is published.", Back: subscriptionPath(v.ref()),
		Fields:  []field{{Name: "event", Label: "The event, as it would be published", Kind: "area", Value: event}},
		Buttons: []button{{"Try", "main", look}}, Command: command("subscription", "explain", s.Name, "EVENT"),
	}, nil
}

// newestEvent is the last event of a topic as it was published; where there is none, and of a hub, one to begin with.
func newestEvent(v *visit, s admin.Subscription) string {
	if s.SourceHub != "" {
		return `{"body": {"total": 42}, "properties": {"kind": "order.placed"}}`
	}
	t, err := v.api.Topic(v.ctx, s.Topic)
	if err == nil {
		if end, err := v.api.ReadTopic(v.ctx, t.Name, "latest", 1); err == nil && end.Next > 0 {
			found, err := v.api.ReadTopic(v.ctx, t.Name, strconv.FormatInt(end.Next-1, 10), 1)
			if err == nil && len(found.Events) > 0 && string(found.Events[0].Event) != "null" {
				_, body := publication(t.Schema, found.Events[0].Event)
				return filterText(body)
			}
		}
	}
	switch t.Schema {
	case "custom":
		return `{"total": 42}`
	case "eventgrid":
		return `{"id": "1", "eventType": "order.placed", "subject": "/orders/1", "eventTime": "2026-01-31T12:00:00Z", "dataVersion": "1.0", "data": {"total": 42}}`
	}
	return `{"specversion": "1.0", "id": "1", "source": "/orders", "type": "order.placed", "subject": "/orders/1", "data": {"total": 42}}`
}
