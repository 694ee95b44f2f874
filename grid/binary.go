package grid

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

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
		// CloudEvents' HTTP binding, §3.1.3.2. What is not percent-encoded, or wrongly, is as it stands.
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
