package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// parseJSON reads JSON as the official emulator does: comments and commas before a
// closing bracket are allowed, and so is a byte order mark.
func parseJSON(data []byte) (node, error) {
	clean := blankExtras(data)
	r := &jsonReader{data: clean, tokens: json.NewDecoder(bytes.NewReader(clean)), line: 1}
	r.tokens.UseNumber()
	n, err := r.value(0)
	if err != nil {
		return node{}, err
	}
	if _, err := r.tokens.Token(); !errors.Is(err, io.EOF) {
		return node{}, &syntaxError{r.position(), "something follows the closing bracket"}
	}
	return n, nil
}

// blankExtras overwrites with spaces what JSON does not know, so that the places of
// all else stay as the user sees them.
func blankExtras(data []byte) []byte {
	clean := bytes.Clone(data)
	if bytes.HasPrefix(clean, []byte("\xef\xbb\xbf")) {
		blank(clean[:3])
	}
	comma := -1 // of a comma that only spaces have followed so far
	for i := 0; i < len(clean); {
		end := i + 1
		switch c := clean[i]; {
		case c == '"':
			end = stringEnd(clean, i)
			comma = -1
		case c == '/':
			if end = commentEnd(clean, i); end > i+1 {
				blank(clean[i:end])
			}
		case c == ',':
			comma = i
		case (c == ']' || c == '}') && comma >= 0:
			clean[comma] = ' '
			comma = -1
		case c != ' ' && c != '\t' && c != '\r' && c != '\n':
			comma = -1
		}
		i = end
	}
	return clean
}

// stringEnd is the index behind the string that begins at i.
func stringEnd(data []byte, i int) int {
	for i++; i < len(data) && data[i] != '"'; i++ {
		if data[i] == '\\' {
			i++
		}
	}
	return min(i+1, len(data))
}

// commentEnd is the index behind the comment that begins at i, or i+1 if none does.
func commentEnd(data []byte, i int) int {
	rest := data[i:]
	end := -1
	switch {
	case bytes.HasPrefix(rest, []byte("//")):
		end = bytes.IndexByte(rest, '\n')
	case bytes.HasPrefix(rest, []byte("/*")):
		if end = bytes.Index(rest[2:], []byte("*/")); end >= 0 {
			end += 4
		}
	default:
		return i + 1
	}
	if end < 0 {
		return len(data)
	}
	return i + end
}

func blank(data []byte) {
	for i, c := range data {
		if c != '\n' {
			data[i] = ' '
		}
	}
}

// jsonReader builds nodes from a decoder's tokens and keeps count of lines.
type jsonReader struct {
	data   []byte
	tokens *json.Decoder

	// line is that of data[counted], which is column counted-lineStart+1.
	counted, line, lineStart int
}

// position is where the next token begins.
func (r *jsonReader) position() position {
	at := int(r.tokens.InputOffset())
	for at < len(r.data) && bytes.IndexByte([]byte(" \t\r\n,:"), r.data[at]) >= 0 {
		at++
	}
	return r.positionOf(at)
}

// positionOf counts lines up to an offset; offsets only grow.
func (r *jsonReader) positionOf(at int) position {
	for ; r.counted < min(at, len(r.data)); r.counted++ {
		if r.data[r.counted] == '\n' {
			r.line++
			r.lineStart = r.counted + 1
		}
	}
	return position{r.line, r.counted - r.lineStart + 1}
}

func (r *jsonReader) value(depth int) (node, error) {
	at := r.position()
	if depth > maxDepth {
		return node{}, &syntaxError{at, "nested too deeply"}
	}
	t, err := r.tokens.Token()
	if err != nil {
		return node{}, r.syntax(at, err)
	}
	switch t := t.(type) {
	case nil:
		return node{at: at}, nil
	case json.Delim:
		if t == '[' {
			return r.list(at, depth)
		}
		return r.mapping(at, depth)
	default: // string, json.Number or bool
		return node{at: at, kind: scalar, text: fmt.Sprint(t)}, nil
	}
}

func (r *jsonReader) list(at position, depth int) (node, error) {
	n := node{at: at, kind: list}
	for r.tokens.More() {
		item, err := r.value(depth + 1)
		if err != nil {
			return node{}, err
		}
		n.items = append(n.items, item)
	}
	return n, r.closing()
}

func (r *jsonReader) mapping(at position, depth int) (node, error) {
	n := node{at: at, kind: mapping}
	for r.tokens.More() {
		keyAt := r.position()
		key, err := r.tokens.Token()
		if err != nil {
			return node{}, r.syntax(keyAt, err)
		}
		value, err := r.value(depth + 1)
		if err != nil {
			return node{}, err
		}
		n.fields = append(n.fields, field{keyAt, fmt.Sprint(key), value})
	}
	return n, r.closing()
}

func (r *jsonReader) closing() error {
	at := r.position()
	if _, err := r.tokens.Token(); err != nil {
		return r.syntax(at, err)
	}
	return nil
}

func (r *jsonReader) syntax(at position, err error) error {
	var known *json.SyntaxError
	switch {
	case errors.As(err, &known):
		return &syntaxError{r.positionOf(int(known.Offset) - 1), known.Error()}
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return &syntaxError{r.positionOf(len(r.data)), "the file ends too early"}
	default:
		return &syntaxError{at, err.Error()}
	}
}
