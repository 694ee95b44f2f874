package v1

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// What is sent is stored exactly or refused. encoding/json puts U+FFFD in the place
// of what is no Unicode, without a word; the types here refuse it.

// text is a JSON string.
type text string

func (t *text) UnmarshalJSON(raw []byte) error {
	if err := checkUnicode(raw); err != nil {
		return err
	}
	return json.Unmarshal(raw, (*string)(t))
}

// object is a JSON object whose numbers are left as they were written.
type object map[string]any

func (o *object) UnmarshalJSON(raw []byte) error { return decodeExactly(raw, (*map[string]any)(o)) }

// decodeExactly decodes valid JSON, leaving numbers as they were written.
func decodeExactly(raw []byte, v any) error {
	if err := checkUnicode(raw); err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	return dec.Decode(v)
}

// checkUnicode refuses valid JSON whose strings no text can hold: bytes that are not
// UTF-8, and escaped surrogates without their other half.
func checkUnicode(raw []byte) error {
	const next = "send text as valid Unicode, and bytes as bodyBase64"
	if !utf8.Valid(raw) {
		return badRequest(next, "the JSON holds bytes that are not UTF-8")
	}
	for {
		at := bytes.IndexByte(raw, '\\')
		if at < 0 {
			return nil
		}
		raw = raw[at:]
		first, escaped := surrogate(raw)
		if !escaped {
			raw = raw[len(`\n`):] // also passes the backslash that is itself escaped
			continue
		}
		second, _ := surrogate(raw[len(`\ud800`):])
		if utf16.DecodeRune(first, second) == utf8.RuneError {
			return badRequest(next, `the JSON holds %s, which is half of a character`, raw[:len(`\ud800`)])
		}
		raw = raw[len(`\ud800\udc00`):]
	}
}

// surrogate reads an escaped half of a character, if raw begins with one.
func surrogate(raw []byte) (rune, bool) {
	if len(raw) < len(`\ud800`) || raw[0] != '\\' || raw[1] != 'u' {
		return 0, false
	}
	code, err := strconv.ParseUint(string(raw[2:6]), 16, 32)
	return rune(code), err == nil && utf16.IsSurrogate(rune(code))
}
