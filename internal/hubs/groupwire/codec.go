package groupwire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// EncodeRequest writes a request's body. Errors: ErrTooLarge, ErrMalformed.
func EncodeRequest(r Request) ([]byte, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	return encode(r, MaxRequestBytes)
}

// DecodeRequest reads a request's body. Errors: ErrTooLarge, ErrMalformed.
func DecodeRequest[T Request](body []byte) (T, error) {
	var r, none T
	if err := decode(body, MaxRequestBytes, &r, true); err != nil {
		return none, err
	}
	if err := r.check(); err != nil {
		return none, err
	}
	return r, nil
}

// GroupOf gives the group that a request names, whatever else is in it; empty if it names none.
func GroupOf(body []byte) string {
	var a About
	if len(body) > MaxRequestBytes || json.Unmarshal(body, &a) != nil {
		return ""
	}
	return a.Group
}

// EncodeReply writes a reply's body. Error: ErrTooLarge.
func EncodeReply(r any) ([]byte, error) { return encode(r, MaxReplyBytes) }

// DecodeReply reads a reply's body. Errors: ErrTooLarge, ErrMalformed.
func DecodeReply[T any](body []byte) (T, error) {
	var r, none T
	if err := decode(body, MaxReplyBytes, &r, false); err != nil {
		return none, err
	}
	return r, nil
}

func encode(v any, limit int) ([]byte, error) {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)              // six bytes for one
	if err := e.Encode(v); err != nil { // a time beyond the year 9999
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	body := bytes.TrimSuffix(text.Bytes(), []byte("\n"))
	if len(body) > limit {
		return nil, tooLarge(len(body), limit)
	}
	return body, nil
}

func decode(body []byte, limit int, into any, strict bool) error {
	if len(body) > limit {
		return tooLarge(len(body), limit)
	}
	d := json.NewDecoder(bytes.NewReader(body))
	if strict {
		d.DisallowUnknownFields()
	}
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: something follows the value", ErrMalformed)
	}
	return nil
}

func tooLarge(size, limit int) error {
	return fmt.Errorf("%w: it has %d bytes, at most %d are allowed", ErrTooLarge, size, limit)
}
