package v1

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/hubs/broker"
)

// The send calls of the Event Hubs REST API (wire reference §7). The timeout and
// api-version are taken and not looked at; management calls do not exist here.

// address is where a REST call sends to.
type address struct {
	hub, partition, publisher string
}

// parseAddress reads a path from its right end, because a hub's name may hold slashes:
// .../messages, before that maybe .../partitions/ID or .../publishers/NAME, and all that
// is left is the hub.
func parseAddress(escapedPath string) (address, bool) {
	segments := strings.Split(strings.TrimPrefix(escapedPath, "/"), "/")
	for i, segment := range segments {
		plain, err := url.PathUnescape(segment)
		if err != nil {
			return address{}, false
		}
		segments[i] = plain
	}
	n := len(segments) - 1
	if n < 1 || !strings.EqualFold(segments[n], "messages") || reserved(segments[0]) {
		return address{}, false
	}
	var a address
	if n > 2 && segments[n-1] != "" {
		switch strings.ToLower(segments[n-2]) {
		case "partitions":
			a.partition, n = segments[n-1], n-2
		case "publishers":
			a.publisher, n = segments[n-1], n-2
		}
	}
	a.hub = strings.Join(segments[:n], "/")
	return a, a.hub != ""
}

// reserved: no hub's name begins with the first part of a path of the yard's own.
func reserved(segment string) bool {
	return slices.ContainsFunc(broker.ReservedNames(), func(name string) bool { return strings.EqualFold(name, segment) })
}

// route is the path that openapi.json describes the call under.
func (a address) route() string {
	switch {
	case a.partition != "":
		return "/{hub}/partitions/{partition}/messages"
	case a.publisher != "":
		return "/{hub}/publishers/{publisher}/messages"
	default:
		return "/{hub}/messages"
	}
}

// batchType is the content type of a batch; with any other the body is one event.
const batchType = "application/vnd.microsoft.servicebus.json"

// postMessages stores one event or a batch. A publisher's name is the partition key
// of all it sends.
func (d *Handler) postMessages(w http.ResponseWriter, r *http.Request) (err error) {
	a, _ := parseAddress(r.URL.EscapedPath())
	if err := broker.CheckPublisher(a.publisher); err != nil {
		return badRequest("name the publisher with letters, digits, '-', '_' and '.'", "%v", err)
	}
	box := d.newOutbox(r, a.hub)
	defer func() { box.end(err) }()
	body, err := frame.ReadBody(r.Body, r.ContentLength)
	if err != nil {
		return err
	}
	if mediaType(r.Header.Get("Content-Type")) == batchType {
		err = addBatch(&box, body)
	} else {
		err = addSingle(&box, r.Header, body)
	}
	if err != nil {
		return err
	}
	to, err := box.target(a.partition, a.publisher)
	if err != nil {
		return err
	}
	if _, err := d.publish(r, a.hub, to, box.events); err != nil {
		return err
	}
	w.WriteHeader(http.StatusCreated)
	return nil
}

func mediaType(contentType string) string {
	kind, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		kind, _, _ = strings.Cut(contentType, ";")
	}
	return strings.ToLower(strings.TrimSpace(kind))
}

// addSingle takes the body as an event's body, and the headers as its properties.
func addSingle(box *outbox, header http.Header, body []byte) error {
	ev := event.Event{Body: body, Properties: headerProperties(header)}
	if body == nil {
		ev.Body = []byte{}
	}
	// The type that every REST call had to name says nothing about the event.
	if given := header.Get("Content-Type"); mediaType(given) != "application/atom+xml" {
		ev.ContentType = given
	}
	if text := header.Get("BrokerProperties"); text != "" {
		var props brokerProperties
		if err := json.Unmarshal([]byte(text), &props); err != nil {
			return badRequest(brokerPropertiesHelp, "the BrokerProperties header is not what is wanted: %v", err)
		}
		props.fill(&ev)
	}
	return box.add(ev)
}

// batchItem is one event of a batch.
type batchItem struct {
	Body             json.RawMessage
	IsBodyBase64     bool
	UserProperties   object
	BrokerProperties brokerProperties
}

const batchHelp = `send [{"Body":"text","UserProperties":{"a":1},"BrokerProperties":{"PartitionKey":"k"}}]`

func addBatch(box *outbox, body []byte) error {
	dec := json.NewDecoder(bytes.NewReader(body))
	if opening, err := dec.Token(); err != nil || opening != json.Delim('[') {
		return badRequest(batchHelp, "the body of a batch is a JSON array")
	}
	for dec.More() {
		var item batchItem
		if err := dec.Decode(&item); err != nil {
			return badRequest(batchHelp, "event %d of the batch is not what is wanted: %v", len(box.events), err)
		}
		ev, err := item.event()
		if err != nil {
			return err
		}
		if err := box.add(ev); err != nil {
			return err
		}
	}
	if _, err := dec.Token(); err != nil {
		return badRequest(batchHelp, "the batch ends in the middle of its JSON")
	}
	return endOfJSON(dec)
}

func (item *batchItem) event() (event.Event, error) {
	var ev event.Event
	var err error
	if ev.Body, err = item.body(); err != nil {
		return ev, err
	}
	if ev.Properties, err = properties(item.UserProperties); err != nil {
		return ev, err
	}
	item.BrokerProperties.fill(&ev)
	return ev, nil
}

// body is the text of a string, or of any other JSON its own text.
func (item *batchItem) body() ([]byte, error) {
	if item.Body == nil {
		return nil, badRequest(batchHelp, "an event of the batch has no Body")
	}
	if item.Body[0] != '"' {
		return item.Body, nil
	}
	var plain text
	if err := json.Unmarshal(item.Body, &plain); err != nil {
		return nil, badRequest(batchHelp, "a Body is not text: %v", err)
	}
	if !item.IsBodyBase64 {
		return []byte(plain), nil
	}
	data, err := base64.StdEncoding.DecodeString(string(plain))
	if err != nil {
		return nil, badRequest("leave IsBodyBase64 out for text", "a Body is not base64: %v", err)
	}
	return data, nil
}
