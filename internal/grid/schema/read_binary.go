package schema

import (
	"encoding/base64"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"
)

// cePrefix begins the headers of CloudEvents' binary mode.
const cePrefix = "ce-"

// maxHeaderName is how long the name of an extension may be in binary mode (reference §3).
const maxHeaderName = 20

// hasBinaryAttributes says whether a request is in binary mode: one of the headers that it
// has to have is enough, so that those who forget another hear of it.
func hasBinaryAttributes(h http.Header) bool {
	for name := range h {
		if attribute, ok := cutPrefixFold(name, cePrefix); ok {
			switch strings.ToLower(attribute) {
			case "id", "source", "type", "specversion":
				return true
			}
		}
	}
	return false
}

func cutPrefixFold(name, prefix string) (string, bool) {
	if len(name) < len(prefix) || !strings.EqualFold(name[:len(prefix)], prefix) {
		return "", false
	}
	return name[len(prefix):], true
}

// readBinary makes a structured CloudEvent of one in binary mode: the attributes are in
// headers, the body is the data.
func (p *Publication) readBinary() ([]byte, error) {
	var d draft
	size := 0
	for _, header := range slices.Sorted(maps.Keys(p.Header)) {
		name, ok := cutPrefixFold(header, cePrefix)
		if !ok {
			continue
		}
		values := p.Header[header]
		if err := d.setHeader(strings.ToLower(name), values); err != nil {
			return nil, err
		}
		size += len(header) + len(values[0])
	}
	if size += len(p.Body); size > p.MaxEventBytes {
		return nil, refuseSize("the event has %d bytes, and may have %d: make it smaller", size, p.MaxEventBytes)
	}
	contentType := p.Header.Get("Content-Type")
	d.attributes[attrContentType] = appendQuoted(nil, contentType)
	err := d.checkCloudEvent()
	if err == nil && p.Domain {
		err = p.address(&d)
	}
	if err != nil {
		return nil, asHeaderError(err)
	}
	if isJSON(mediaType(contentType)) {
		data, err := validJSON(p.Body)
		if err != nil {
			return nil, inputError(err)
		}
		d.attributes[attrData] = data
	} else {
		d.attributes[attrBase64] = appendBase64(nil, p.Body)
	}
	return d.appendStored(nil, CloudEventForm), nil
}

func appendBase64(dst, data []byte) []byte {
	dst = append(dst, '"')
	dst = base64.StdEncoding.AppendEncode(dst, data)
	return append(dst, '"')
}

func (d *draft) setHeader(name string, values []string) error {
	if len(values) != 1 {
		return refuseHeader("the header ce-%s has to be there once, and not %d times", name, len(values))
	}
	value, ok := decodeHeader(values[0])
	if !ok {
		return refuseHeader("the header ce-%s is not percent-encoded UTF-8", name)
	}
	switch a := CloudEventForm.attribute([]byte(name)); a {
	case attrContentType:
		return refuseHeader("the header ce-%s must not be sent: Content-Type says what the data is", name)
	case attrData, attrBase64:
		return refuseHeader("the header ce-%s must not be sent: the body is the data", name)
	case attrOther:
		if len(name) > maxHeaderName || !isExtensionName(name) {
			return refuseHeader("the header ce-%s cannot be an attribute: use at most %d letters and digits", name, maxHeaderName)
		}
		return asHeaderError(d.extend([]byte(name), appendQuoted(nil, value)))
	default:
		return asHeaderError(d.set(a, []byte(name), appendQuoted(nil, value)))
	}
}

// isExtensionName takes what CloudEvents allow.
func isExtensionName(name string) bool {
	return name != "" && strings.TrimLeft(name, lowerCase+"0123456789") == ""
}

// decodeHeader undoes quotes, and then percent-encoding, once (CloudEvents HTTP binding,
// 3.1.3.2). A percent sign that encodes nothing means itself.
func decodeHeader(value string) (string, bool) {
	if n := len(value); n >= 2 && value[0] == '"' && value[n-1] == '"' {
		value = unquotePairs(value[1 : n-1])
	}
	if strings.IndexByte(value, '%') < 0 {
		return value, utf8.ValidString(value)
	}
	out := make([]byte, 0, len(value))
	for i := 0; i < len(value); i++ {
		if value[i] == '%' && i+2 < len(value) {
			high, ok1 := hexDigit(value[i+1])
			low, ok2 := hexDigit(value[i+2])
			if ok1 && ok2 {
				out = append(out, high<<4|low)
				i += 2
				continue
			}
		}
		out = append(out, value[i])
	}
	return string(out), utf8.Valid(out)
}

// unquotePairs undoes the backslashes of a quoted string.
func unquotePairs(t string) string {
	if strings.IndexByte(t, '\\') < 0 {
		return t
	}
	out := make([]byte, 0, len(t))
	for i := 0; i < len(t); i++ {
		if t[i] == '\\' && i+1 < len(t) {
			i++
		}
		out = append(out, t[i])
	}
	return string(out)
}

// asHeaderError gives a refusal of an attribute that came in a header its own code.
func asHeaderError(err error) error {
	var input *InputError
	if errors.As(err, &input) {
		input.Code = codeHeader
		input.Message += " (in binary mode as a header: ce-NAME)"
	}
	return err
}
