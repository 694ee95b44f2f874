package grid

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Schema is how events are written on the wire. It is a property of a topic.
type Schema int

const (
	// EventGrid is Event Grid's own schema, the default of topics.
	EventGrid Schema = iota
	// CloudEvents is CloudEvents 1.0.
	CloudEvents
	// Custom is the topic's own: Event.Data is the whole event, and a mapping of the topic finds
	// its id, type and subject there. The other fields of an Event do not travel.
	Custom
)

// The content types of publications.
const (
	contentJSON       = "application/json; charset=utf-8"
	contentCloudBatch = "application/cloudevents-batch+json; charset=utf-8"
)

// encode writes a publication: an array in each schema.
func (s Schema) encode(events []Event) ([]byte, error) {
	encode := encodeEventGrid
	switch s {
	case CloudEvents:
		encode = encodeCloudEvent
	case Custom:
		encode = encodeCustom
	}
	body := []byte{'['}
	for i, e := range events {
		text, err := encode(e)
		if err != nil {
			return nil, fmt.Errorf("event %d (id %.64q): %w", i+1, e.ID, err)
		}
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, text...)
	}
	return append(body, ']'), nil
}

// eventGridEvent is the Event Grid schema.
type eventGridEvent struct {
	Topic       string          `json:"topic,omitempty"`
	ID          string          `json:"id"`
	Subject     string          `json:"subject"`
	Type        string          `json:"eventType"`
	Time        string          `json:"eventTime"`
	DataVersion string          `json:"dataVersion"`
	Data        json.RawMessage `json:"data,omitempty"`
}

func encodeEventGrid(e Event) ([]byte, error) {
	if err := checkEnvelope(e); err != nil {
		return nil, err
	}
	if !isJSON(e.ContentType) || e.Data != nil && !json.Valid(e.Data) {
		return nil, fmt.Errorf("in the Event Grid schema %w; only CloudEvents carry other things", errNotJSON)
	}
	if len(e.Extensions) > 0 || e.DataSchema != "" {
		return nil, errors.New("the Event Grid schema has no extensions and no data schema: leave them out, or use a topic of CloudEvents")
	}
	return marshal(eventGridEvent{
		Topic: e.Source, ID: e.ID, Subject: e.Subject, Type: e.Type, Time: e.Time.UTC().Format(time.RFC3339Nano),
		DataVersion: e.DataVersion, Data: e.Data,
	})
}

func encodeCustom(e Event) ([]byte, error) {
	if text := bytes.TrimSpace(e.Data); len(text) > 0 && text[0] == '{' && json.Valid(text) {
		return text, nil
	}
	return nil, errors.New("data is not a JSON object: in a custom schema Data is the whole event")
}

func encodeCloudEvent(e Event) ([]byte, error) {
	if err := checkEnvelope(e); err != nil {
		return nil, err
	}
	if e.Source == "" {
		return nil, errors.New("it has no source, which CloudEvents need: set Source, of the event or in Config")
	}
	members := make(map[string]any, 9+len(e.Extensions))
	for _, name := range slices.Sorted(maps.Keys(e.Extensions)) {
		if err := checkExtension(name); err != nil {
			return nil, err
		}
		if value := e.Extensions[name]; value != nil {
			members[name] = value
		}
	}
	members["specversion"], members["id"], members["source"], members["type"] = "1.0", e.ID, e.Source, e.Type
	members["time"] = e.Time.UTC().Format(time.RFC3339Nano)
	for name, value := range map[string]string{"subject": e.Subject, "dataschema": e.DataSchema, "datacontenttype": e.ContentType} {
		if value != "" {
			members[name] = value
		}
	}
	switch {
	case e.Data == nil:
	case !isJSON(e.ContentType):
		members["data_base64"] = e.Data
	case !json.Valid(e.Data):
		return nil, errNotJSON
	default:
		members["data"] = json.RawMessage(e.Data)
	}
	return marshal(members)
}

func checkEnvelope(e Event) error {
	if e.Type == "" {
		return errors.New("it has no type: set Type, such as order.placed")
	}
	if year := e.Time.UTC().Year(); year < 0 || year > 9999 {
		return fmt.Errorf("its time is in the year %d: give one of four digits", year)
	}
	return nil
}

// attributes are CloudEvents' own names.
var attributes = []string{"id", "source", "type", "specversion", "subject", "time", "dataschema", "datacontenttype", "data"}

func checkExtension(name string) error {
	if name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
		return fmt.Errorf("extension %.64q: a name has only small letters and digits", name)
	}
	if slices.Contains(attributes, name) {
		return fmt.Errorf("extension %q is an attribute of CloudEvents: use the field of Event", name)
	}
	return nil
}

// marshal is json.Marshal without escapes for HTML, which would only lengthen data.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), nil
}
