package console

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/eventyard/eventyard/admin"
)

// publishEvent publishes an event to a topic in the topic's schema, and leads to its journey, where its id is.
var publishEvent = action{
	path: base + "topics/{topic}/publish", calls: []string{publishCall},
	sheet: func(v *visit) (*sheet, error) {
		t, err := v.api.Topic(v.ctx, v.name("topic"))
		return publishSheet(v, t), err
	},
	do: func(v *visit) (outcome, error) {
		t, err := v.api.Topic(v.ctx, v.name("topic"))
		if err != nil {
			return outcome{}, err
		}
		d, err := draftOf(v, t)
		if err != nil {
			return outcome{}, err
		}
		kind, body, err := d.publication(t)
		if err != nil {
			return outcome{}, err
		}
		to := at("topics", t.Name)
		if d.id != "" {
			to = with(at("events"), "id", d.id, "in", "topics/"+t.Name)
		}
		return outcome{to: to, done: "published"}, publish(v, t.Name, kind, body)
	},
}

// schemaWords say what a topic's events are.
var schemaWords = map[string]string{
	"cloudevents": "Its events are CloudEvents.", "eventgrid": "Its events have the schema of Event Grid.",
	"custom": "Its events have a schema of their own: the data is the whole event, a JSON object.",
}

func publishSheet(v *visit, t admin.Topic) *sheet {
	s := &sheet{
		Title:   "Publish an event to " + t.Name,
		About:   fmt.Sprintf("The topic has %s: each that it matches gets it. %s", plural(t.Subscriptions, "subscription", "subscriptions"), schemaWords[t.Schema]),
		Fields:  []field{{Name: "data", Label: "Data", Kind: "area", Value: v.value("data", ""), Placeholder: `{"total": 42}`}},
		Buttons: []button{{"Publish", "main", act}}, Back: at("topics", t.Name), Command: command("topic", "publish", t.Name, "DATA"),
	}
	if t.Schema == "custom" {
		return s
	}
	kind := v.value("type", "eventyard.test")
	s.Command = command("topic", "publish", t.Name, "DATA", "--type", orWord(kind, "TYPE"))
	s.Fields = append(s.Fields,
		field{Name: "type", Label: "Type", Kind: "text", Value: kind, Placeholder: "order.placed"},
		field{Name: "subject", Label: "Subject", Kind: "text", Value: v.value("subject", "/"), Optional: true})
	switch {
	case t.Domain:
		s.Fields = append(s.Fields, field{Name: "source", Label: "Topic of the domain", Kind: "text", Value: v.value("source", "")})
	case t.Schema == "cloudevents":
		s.Fields = append(s.Fields, field{Name: "source", Label: "Source", Kind: "text", Value: v.value("source", "/eventyard/console")})
	}
	s.Fields = append(s.Fields, field{Name: "id", Label: "Id", Kind: "text", Value: v.value("id", ""), Hint: "Empty: one is made. By it the event is found again.", Optional: true})
	return s
}

// draft is an event as it was filled in.
type draft struct {
	id, kind, subject, source string
	at                        time.Time
	data                      json.RawMessage
}

func draftOf(v *visit, t admin.Topic) (d draft, err error) {
	text := func(name string) string { return strings.TrimSpace(v.r.PostFormValue(name)) }
	if d.data, err = dataOf(text("data")); err != nil || t.Schema == "custom" {
		return d, err
	}
	d.id, d.kind, d.subject, d.source = cmp.Or(text("id"), strings.ToLower(rand.Text())), text("type"), text("subject"), text("source")
	d.at = v.now.UTC()
	switch {
	case t.Domain && d.source == "":
		return d, wrongInput(t.Name + " is a domain, whose events name one of its topics: give one. Nothing was published.")
	case !t.Domain && t.Schema == "eventgrid":
		d.source = "" // which the yard fills in
	}
	return d, nil
}

// dataOf takes JSON as it is, and everything else as text. What begins like JSON and is none is a slip.
func dataOf(text string) (json.RawMessage, error) {
	switch {
	case text == "":
		return nil, nil
	case json.Valid([]byte(text)):
		return json.RawMessage(text), nil
	case strings.IndexAny(text, "{[") == 0:
		return nil, wrongInput("The data looks like JSON and is none: " + json.Unmarshal([]byte(text), new(any)).Error() + ". Nothing was published.")
	}
	return json.Marshal(text)
}

// publication is the draft as its topic takes it, with its content type.
func (d draft) publication(t admin.Topic) (contentType string, body []byte, err error) {
	switch t.Schema {
	case "custom":
		return "application/json", d.data, nil
	case "cloudevents":
		body, err = json.Marshal(cloudDraft{"1.0", d.id, d.source, d.kind, d.at, d.subject, d.data})
		return "application/cloudevents+json", body, err
	}
	body, err = json.Marshal([]gridDraft{{d.source, d.id, d.subject, d.kind, d.at, "1.0", d.data}})
	return "application/json", body, err
}

// cloudDraft and gridDraft are a draft in the schemas of CloudEvents and of Event Grid.
type cloudDraft struct {
	Version string          `json:"specversion"`
	ID      string          `json:"id"`
	Source  string          `json:"source"`
	Type    string          `json:"type"`
	Time    time.Time       `json:"time"`
	Subject string          `json:"subject,omitempty"`
	Data    json.RawMessage `json:"data,omitempty"`
}

type gridDraft struct {
	Topic       string          `json:"topic,omitempty"`
	ID          string          `json:"id"`
	Subject     string          `json:"subject"`
	Type        string          `json:"eventType"`
	Time        time.Time       `json:"eventTime"`
	DataVersion string          `json:"dataVersion"`
	Data        json.RawMessage `json:"data,omitempty"`
}
