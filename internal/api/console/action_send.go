package console

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/api/frame"
)

var sendEvent = action{
	path: base + "hubs/{hub}/send", calls: []string{"POST /api/v1/hubs/{hub}/events"},
	sheet: func(v *visit) (*sheet, error) {
		hub, body, key := v.name("hub"), "", ""
		kind := "application/json"
		if of := v.r.URL.Query().Get("of"); of != "" && v.r.Method == http.MethodGet {
			e, err := eventsVisit{v}.event(of, v.r.URL.Query().Get("number"))
			if err != nil {
				return nil, err
			}
			if content := e.content(); utf8.Valid(content) {
				body, key, kind = string(content), e.Key, e.ContentType
			}
		}
		return &sheet{
			Title: "Send an event to " + hub, About: "It is stored in the partition of its key, or in the next partition in turn.", Back: at("hubs", hub, "events"),
			Fields: []field{
				{Name: "body", Label: "Body", Kind: "area", Value: v.value("body", body), Placeholder: `{"total": 42}`},
				{Name: "key", Label: "Partition key", Kind: "text", Value: v.value("key", key), Optional: true},
				{Name: "type", Label: "Content type", Kind: "text", Value: v.value("type", kind), Optional: true},
				{Name: "form", Label: "Form", Kind: "select", Value: v.value("form", ""), Options: []option{{"", "the body as it is"}, {cloudForm, "a CloudEvent, with the body as its data"}}},
				{Name: "ctype", Label: "CloudEvents type", Kind: "text", Value: v.value("ctype", "eventyard.test"), Hint: "Of a CloudEvent alone, as are source and subject.", Optional: true},
				{Name: "source", Label: "CloudEvents source", Kind: "text", Value: v.value("source", "/eventyard/console"), Optional: true},
				{Name: "subject", Label: "CloudEvents subject", Kind: "text", Value: v.value("subject", ""), Optional: true},
				{Name: "properties", Label: "Properties, one a line", Kind: "area", Value: v.value("properties", ""), Placeholder: "kind: night", Optional: true, More: true},
				{Name: "id", Label: "Message id", Kind: "text", Value: v.value("id", ""), Optional: true, More: true},
				{Name: "partition", Label: "Partition", Kind: "text", Value: v.value("partition", ""), Placeholder: "that of its key", Hint: "In the place of a key.", Optional: true, More: true},
			},
			Buttons: []button{{"Send", "main", act}}, Command: command("send", hub, "BODY"),
		}, nil
	},
	do: func(v *visit) (outcome, error) {
		filled := admin.Event{Body: []byte(v.r.PostFormValue("body")), ContentType: v.r.PostFormValue("type")}
		if v.r.PostFormValue("form") == cloudForm {
			body, err := cloudBody(v)
			if err != nil {
				return outcome{}, err
			}
			filled = admin.Event{Body: body, ContentType: "application/cloudevents+json"}
		}
		e, err := envelope(v, filled)
		if err != nil {
			return outcome{}, err
		}
		batch := admin.Batch{Events: []json.RawMessage{e}, Key: v.r.PostFormValue("key"), Partition: strings.TrimSpace(v.r.PostFormValue("partition"))}
		sent, err := v.api.Send(v.ctx, v.name("hub"), batch)
		return outcome{to: at("hubs", v.name("hub"), "events"), done: "sent", n: sent.Count}, err
	},
}

// envelope is an event as the API takes it, with the properties and the message id that were filled in.
func envelope(v *visit, e admin.Event) (json.RawMessage, error) {
	properties, err := linesOf(v.r.PostFormValue("properties"))
	if err != nil {
		return nil, err
	}
	for name, value := range properties {
		if e.Properties == nil {
			e.Properties = map[string]any{}
		}
		e.Properties[name] = value
	}
	encoded, err := e.Encode()
	id := v.filled("id")
	if err != nil || id == nil {
		return encoded, err
	}
	form := map[string]any{}
	if err := json.Unmarshal(encoded, &form); err != nil {
		return nil, err
	}
	form["messageId"] = *id
	return json.Marshal(form)
}

// cloudBody is what was filled in as a CloudEvent, whose data is the body.
func cloudBody(v *visit) ([]byte, error) {
	text := func(name string) string { return strings.TrimSpace(v.r.PostFormValue(name)) }
	data, err := dataOf(text("body"))
	if err != nil {
		return nil, err
	}
	if text("ctype") == "" || text("source") == "" {
		return nil, wrongInput("A CloudEvent has a type and a source: give both. Nothing was sent.")
	}
	return json.Marshal(cloudDraft{"1.0", strings.ToLower(rand.Text()), text("source"), text("ctype"), v.now.UTC(), text("subject"), data})
}

// sendAgain stores an event of a hub once more, as it is: what the API reads it also takes. Its form says first
// what that means.
var sendAgain = action{
	path: base + "hubs/{hub}/partitions/{partition}/events/{sequence}/again", calls: []string{"POST /api/v1/hubs/{hub}/events"},
	sheet: hubAgainSheet,
	do: func(v *visit) (outcome, error) {
		if v.step() != act {
			s, err := hubAgainSheet(v)
			return outcome{sheet: s}, err
		}
		e, line, err := eventLine(v, v.name("partition"), v.name("sequence"))
		if err != nil {
			return outcome{}, err
		}
		if e.Unreadable != "" {
			return outcome{}, wrongInput("What is stored there is no event that can be read: " + e.Unreadable + ". Nothing was sent.")
		}
		sent, err := v.api.Send(v.ctx, v.name("hub"), admin.Batch{Events: []json.RawMessage{line}})
		return outcome{to: at("hubs", v.name("hub"), "partitions", sent.Partition, "events", strconv.FormatInt(sent.First, 10)), done: "again"}, err
	},
}

// hubAgainPath is the form that sends an event of a hub again.
func hubAgainPath(hub, partition string, n int64) string {
	return at("hubs", hub, "partitions", partition, "events", strconv.FormatInt(n, 10), "again")
}

func hubAgainSheet(v *visit) (*sheet, error) {
	e, err := eventsVisit{v}.event(v.name("partition"), v.name("sequence"))
	if err != nil {
		return nil, err
	}
	h, err := v.api.Hub(v.ctx, v.name("hub"))
	if err != nil {
		return nil, err
	}
	where := "the next partition in turn"
	if e.Key != "" {
		where = "the partition of its key, " + e.Key
	}
	id := "It has no message id by which a consumer could tell that it is the same."
	if e.MessageID != nil {
		id = "Its message id stays " + valueText(e.MessageID) + ": consumers that drop what they have seen drop it."
	}
	n := strconv.FormatInt(e.Sequence, 10)
	return &sheet{
		Title: fmt.Sprintf("Send %s / %s / %s again", h.Name, e.Partition, number(e.Sequence)),
		About: "Body, key and properties are sent as they are. The new event has a sequence number and a time of its own, and the one that is there stays.",
		Note: &note{
			Tone: "odd", Icon: "send", Text: fmt.Sprintf("An event of %s would be stored in %s.", plural(len(e.content()), "byte", "bytes"), where),
			More: fmt.Sprintf("%s, and all subscriptions and functions of %s, get it as a new event. %s", plural(len(h.Groups), "group", "groups"), h.Name, id),
		},
		Back: at("hubs", h.Name, "partitions", e.Partition, "events", n), Buttons: []button{{"Send again", "main", act}},
		Command: command("read", h.Name, "--partition", e.Partition, "--from", n, "--count", "1", "-o", "json") + " | " + command("send", h.Name, "--json"),
	}, nil
}

// publishAgain publishes an event of a topic once more, as it was published.
var publishAgain = action{
	path: base + "topics/{topic}/events/{sequence}/again", calls: []string{publishCall},
	sheet: topicAgainSheet,
	do: func(v *visit) (outcome, error) {
		if v.step() != act {
			s, err := topicAgainSheet(v)
			return outcome{sheet: s}, err
		}
		t, e, err := topicEvent(v)
		if err != nil {
			return outcome{}, err
		}
		kind, body := publication(t.Schema, e.Event)
		return outcome{to: at("topics", t.Name), done: "again"}, publish(v, t.Name, kind, body)
	},
}

// topicAgainPath is the form that publishes an event of a topic again; nothing: only the yard publishes there.
func topicAgainPath(topic string, n int64) string {
	if topic == yardEvents {
		return ""
	}
	return at("topics", topic, "events", strconv.FormatInt(n, 10), "again")
}

// topicEvent reads the event of a topic that a path names.
func topicEvent(v *visit) (t admin.Topic, e admin.TopicEvent, err error) {
	n, err := strconv.ParseInt(v.name("sequence"), 10, 64)
	if err != nil || n < 0 {
		return t, e, notHere(v.r)
	}
	if t, err = v.api.Topic(v.ctx, v.name("topic")); err != nil {
		return t, e, err
	}
	page, err := v.api.ReadTopic(v.ctx, t.Name, strconv.FormatInt(n, 10), 1)
	if err != nil {
		return t, e, err
	}
	if len(page.Events) == 0 || page.Events[0].Sequence != n || string(page.Events[0].Event) == "null" {
		return t, e, noEvent(fmt.Sprintf("topic %s has no event %s that can be read: it may have been removed by retention", t.Name, number(n)))
	}
	return t, page.Events[0], nil
}

// eventHead is what names an event, in either schema.
type eventHead struct {
	ID        string `json:"id"`
	Type      string `json:"type"`
	EventType string `json:"eventType"`
	Subject   string `json:"subject"`
}

func topicAgainSheet(v *visit) (*sheet, error) {
	t, e, err := topicEvent(v)
	if err != nil {
		return nil, err
	}
	var head eventHead
	_ = json.Unmarshal(e.Event, &head) // an event of another shape has none of it
	return &sheet{
		Title: "Publish event " + orWord(head.ID, number(e.Sequence)) + " again",
		About: "Id, type, time and data are published as they are. The event that is there stays, and so does what became of it.",
		Note: &note{
			Tone: "odd", Icon: "send", Text: fmt.Sprintf("An event of %s would be published to %s.", plural(len(e.Event), "byte", "bytes"), t.Name),
			More: fmt.Sprintf("The topic has %s: each that it matches gets it, also if it got it before. It keeps its id: receivers that drop what they have seen drop it, and Find an event shows both. To deliver it to one subscription alone, redrive its dead letter.", plural(t.Subscriptions, "subscription", "subscriptions")),
		},
		Back: with(at("events"), "id", head.ID, "in", "topics/"+t.Name, "number", strconv.FormatInt(e.Sequence, 10)), Buttons: []button{{"Publish again", "main", act}},
		Command: command("topic", "publish", t.Name, "DATA", "--type", cmp.Or(head.EventType, head.Type, "TYPE"), "--subject", orWord(head.Subject, "SUBJECT"), "--id", orWord(head.ID, "ID")),
	}, nil
}

// publication is an event as its topic takes it, with its content type. What came in a schema of one's own is
// kept whole, as the data of what is stored.
func publication(schema string, stored json.RawMessage) (contentType string, body []byte) {
	switch schema {
	case "cloudevents":
		return "application/cloudevents+json", stored
	case "custom":
		var kept struct {
			Data json.RawMessage `json:"data"`
		}
		if json.Unmarshal(stored, &kept) == nil && kept.Data != nil {
			return "application/json", kept.Data
		}
	}
	return "application/json", stored
}

// publishCall is the one that publishers make, which is Event Grid's.
const publishCall = "POST /topics/{topic}/api/events"

// publish makes that call, as whoever is signed in.
func publish(v *visit, topic, contentType string, body []byte) error {
	r, err := http.NewRequestWithContext(v.ctx, http.MethodPost, "http://inside/topics/"+url.PathEscape(topic)+"/api/events", bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", contentType)
	response, err := inside{v.console.cfg.API}.RoundTrip(r)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxRefusalBytes))
	if err != nil || response.StatusCode == http.StatusOK {
		return err
	}
	refusal := &frame.Refusal{Status: response.StatusCode, Code: "not-published", Title: "The event was not published", Detail: http.StatusText(response.StatusCode)}
	var said struct {
		Error struct {
			Details []struct{ Code, Message string } `json:"details"`
		} `json:"error"`
	}
	if json.Unmarshal(answer, &said) == nil && len(said.Error.Details) > 0 {
		refusal.Code, refusal.Detail = said.Error.Details[0].Code, said.Error.Details[0].Message
	}
	return refusal
}

// maxRefusalBytes bounds what is read of a refusal.
const maxRefusalBytes = 64 << 10
