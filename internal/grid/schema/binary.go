package schema

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
)

// Binary gives a CloudEvent's attributes as ce-* headers (percent-encoded as the HTTP binding
// says), the content type and the body for the binary mode. An event in Event Grid's form is
// converted. The body may share the envelope's bytes.
func Binary(e *Envelope) (header http.Header, body []byte, err error) {
	header = make(http.Header, 8+len(e.Extensions))
	setAttribute(header, "specversion", "1.0")
	setAttribute(header, "id", string(e.ID))
	setAttribute(header, "type", string(e.Type))
	setAttribute(header, "subject", string(e.Subject))
	if e.Form == CloudEventForm {
		e.setOwnHeaders(header)
	} else {
		setAttribute(header, "source", e.TopicID())
		if s, ok := parseStamp(e.Time); ok {
			setAttribute(header, "time", string(s.append(nil)))
		}
		if len(e.DataVersion) > 0 {
			setAttribute(header, "dataschema", string(appendFragment(nil, e.DataVersion)))
		}
	}
	contentType, body, err := e.payload()
	if err != nil {
		return nil, nil, fmt.Errorf("write event in binary mode: %w", err)
	}
	if contentType != "" {
		header.Set("Content-Type", contentType)
	}
	return header, body, nil
}

func (e *Envelope) setOwnHeaders(header http.Header) {
	setAttribute(header, "source", string(e.Source))
	setAttribute(header, "time", string(e.Time))
	setAttribute(header, "dataschema", string(e.DataSchema))
	for _, x := range e.Extensions {
		name := strings.ToLower(string(x.Name))
		if CloudEventForm.attribute([]byte(name)) != attrOther {
			continue // an extension ID: headers have no case, and there it would be the id
		}
		value := string(x.Value)
		if isText(x.Value) {
			value = string(textOf(x.Value))
		}
		setAttribute(header, name, value)
	}
}

// setAttribute leaves out what is empty, which means the same.
func setAttribute(header http.Header, name, value string) {
	if value != "" {
		header.Set(cePrefix+name, encodeHeader(value))
	}
}

// encodeHeader percent-encodes what the HTTP binding wants to be (3.1.3.2): space, double quote,
// percent sign and all that is not printable ASCII.
func encodeHeader(value string) string {
	encode := func(c byte) bool { return c <= ' ' || c == '"' || c == '%' || c > '~' }
	n := 0
	for n < len(value) && !encode(value[n]) {
		n++
	}
	if n == len(value) {
		return value
	}
	out := append(make([]byte, 0, len(value)+16), value[:n]...)
	for ; n < len(value); n++ {
		if encode(value[n]) {
			out = appendPercent(out, value[n])
		} else {
			out = append(out, value[n])
		}
	}
	return string(out)
}

// payload is the data as bytes, and of what type they are.
func (e *Envelope) payload() (contentType string, body []byte, err error) {
	contentType = string(e.ContentType)
	media := mediaType(contentType)
	switch {
	case e.Base64 != nil:
		body, err = base64.StdEncoding.AppendDecode(nil, e.Base64)
		if strings.HasPrefix(media, mediaCloudEvents) {
			contentType = "application/octet-stream"
		}
		return contentType, body, err
	case e.Data == nil:
		return contentType, nil, nil
	case contentType == "" || strings.HasPrefix(media, mediaCloudEvents):
		// Some clients give data the type of the event itself; in binary mode a receiver
		// would take the body for a structured event.
		return mediaJSON, e.Data, nil
	case isText(e.Data) && !isJSON(media):
		// A string with another type is that text (CloudEvents JSON format, 3.1.1).
		return contentType, textOf(e.Data), nil
	default:
		return contentType, e.Data, nil
	}
}
