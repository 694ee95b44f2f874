package grid

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// decodeBody reads a body of JSON: an array of events, or one alone. custom says that each is
// an object of the application's own.
func decodeBody(body []byte, custom bool) ([]Event, error) {
	body = bytes.TrimSpace(body)
	texts := []json.RawMessage{body}
	if len(body) > 0 && body[0] == '[' {
		if err := json.Unmarshal(body, &texts); err != nil {
			return nil, fmt.Errorf("body is not a JSON array: %w", err)
		}
	}
	events := make([]Event, 0, len(texts))
	for i, text := range texts {
		e, err := decodeEvent(text, custom)
		if err != nil {
			return nil, fmt.Errorf("event %d: %w", i+1, err)
		}
		events = append(events, e)
	}
	return events, nil
}

// decodeEvent finds out by its members of which schema an event is. What has neither those of
// CloudEvents nor those of Event Grid is an application's own.
func decodeEvent(text json.RawMessage, custom bool) (Event, error) {
	m, err := decodeMembers(text)
	if err != nil {
		return Event{}, err
	}
	switch {
	case custom:
	case m.has("specversion"):
		return decodeCloudEvent(m)
	case m.text("id") != "" && m.text("eventType") != "" && m.text("eventTime") != "":
		e := Event{
			ID: m.text("id"), Type: m.text("eventType"), Source: m.text("topic"), Subject: m.text("subject"),
			Time: decodeTime(m.text("eventTime")), DataVersion: m.text("dataVersion"),
		}
		if m.has("data") {
			e.Data = m["data"]
		}
		return e, nil
	}
	return Event{Data: text}, nil
}

// members are those of a JSON object, each as it stands.
type members map[string]json.RawMessage

func decodeMembers(text []byte) (members, error) {
	var m members
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, fmt.Errorf("it is not a JSON object: %w", err)
	}
	if m == nil {
		return nil, errors.New("it is null, not a JSON object")
	}
	return m, nil
}

// has says whether a member is there and not null.
func (m members) has(name string) bool {
	return len(m[name]) > 0 && string(m[name]) != "null"
}

// text is a member that is a string; empty where it is none.
func (m members) text(name string) string {
	var s string
	if json.Unmarshal(m[name], &s) != nil {
		return ""
	}
	return s
}

// required is a member that has to be a string with something in it.
func (m members) required(name string) (string, error) {
	s := m.text(name)
	if s == "" {
		return "", fmt.Errorf("%s is missing, empty or not a string", name)
	}
	return s, nil
}

func decodeCloudEvent(m members) (Event, error) {
	e := Event{
		Subject: m.text("subject"), Time: decodeTime(m.text("time")),
		ContentType: m.text("datacontenttype"), DataSchema: m.text("dataschema"),
	}
	if version := m.text("specversion"); !strings.HasPrefix(version, "1.") {
		return Event{}, fmt.Errorf("specversion is %.16q, not 1.0", version)
	}
	var problems [4]error
	e.ID, problems[0] = m.required("id")
	e.Source, problems[1] = m.required("source")
	e.Type, problems[2] = m.required("type")
	problems[3] = m.decodeData(&e)
	if err := errors.Join(problems[:]...); err != nil {
		return Event{}, err
	}
	e.Extensions = m.extensions()
	return e, nil
}

// contentBytes is the type of bytes of which nobody says what they are.
const contentBytes = "application/octet-stream"

// decodeData reads data or data_base64. A string of another type than JSON is the data itself;
// bytes of which nobody says what they are must not be taken for JSON.
func (m members) decodeData(e *Event) error {
	switch {
	case m.has("data") && m.has("data_base64"):
		return errors.New("it has both data and data_base64")
	case m.has("data_base64"):
		b, err := base64.StdEncoding.DecodeString(m.text("data_base64"))
		if err != nil || m["data_base64"][0] != '"' {
			return errors.New("data_base64 is not base64")
		}
		e.Data = b
		e.ContentType = cmp.Or(e.ContentType, contentBytes)
	case m.has("data") && !isJSON(e.ContentType) && m["data"][0] == '"':
		e.Data = []byte(m.text("data"))
	case m.has("data"):
		e.Data = m["data"]
	}
	return nil
}

// extensions are the members that are no attributes. Those that are objects or arrays, which
// CloudEvents do not allow, are left out.
func (m members) extensions() map[string]any {
	var found map[string]any
	for name, text := range m {
		if checkExtension(name) != nil {
			continue
		}
		value := decodeScalar(text)
		if value == nil {
			continue
		}
		if found == nil {
			found = make(map[string]any)
		}
		found[name] = value
	}
	return found
}

func decodeScalar(text json.RawMessage) any {
	if n, err := strconv.ParseInt(string(text), 10, 64); err == nil {
		return n
	}
	var value any
	if json.Unmarshal(text, &value) != nil {
		return nil
	}
	switch value.(type) {
	case string, bool, float64:
		return value
	}
	return nil
}

// timeLayouts are RFC 3339's and what else grids take from publishers and hand on as it is: zones
// without a colon or minutes, or none, which means UTC; no seconds.
var timeLayouts = func() (layouts []string) {
	for _, clock := range []string{"15:04:05", "15:04"} {
		for _, zone := range []string{"Z07:00", "Z0700", "Z07", ""} {
			layouts = append(layouts, "2006-01-02T"+clock+zone)
		}
	}
	return layouts
}()

// decodeTime reads a time. An event is not refused for its time: what cannot be read is zero.
func decodeTime(text string) time.Time {
	text = strings.ToUpper(text)
	if date, clock, found := strings.Cut(text, " "); found {
		text = date + "T" + clock
	}
	for _, layout := range timeLayouts {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC()
		}
	}
	return time.Time{}
}

// attributeHeader is what the headers of CloudEvents' binary mode begin with.
const attributeHeader = "Ce-"

// decodeBinary reads a CloudEvent in binary mode: attributes are headers, the body is the data.
func decodeBinary(h http.Header, body []byte) (Event, error) {
	var e Event
	if version := h.Get(attributeHeader + "Specversion"); !strings.HasPrefix(version, "1.") {
		return e, fmt.Errorf("ce-specversion is %.16q, not 1.0", version)
	}
	for name := range h {
		attribute, ok := strings.CutPrefix(name, attributeHeader)
		if !ok {
			continue
		}
		// CloudEvents' HTTP binding, §3.1.3.2. What is not percent-encoded, or wrongly, is as it
		// stands.
		value, err := url.PathUnescape(h.Get(name))
		if err != nil {
			value = h.Get(name)
		}
		e.setAttribute(strings.ToLower(attribute), value)
	}
	if e.ID == "" || e.Source == "" || e.Type == "" {
		return e, errors.New("ce-id, ce-source or ce-type is missing")
	}
	e.ContentType = h.Get("Content-Type")
	if len(body) == 0 {
		return e, nil
	}
	if e.Data = body; e.ContentType == "" {
		e.ContentType = contentBytes
	}
	return e, nil
}

func (e *Event) setAttribute(name, value string) {
	switch name {
	case "id":
		e.ID = value
	case "source":
		e.Source = value
	case "type":
		e.Type = value
	case "subject":
		e.Subject = value
	case "time":
		e.Time = decodeTime(value)
	case "dataschema":
		e.DataSchema = value
	default:
		if checkExtension(name) != nil {
			return
		}
		if e.Extensions == nil {
			e.Extensions = make(map[string]any)
		}
		e.Extensions[name] = value
	}
}
