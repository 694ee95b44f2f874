package filter

import (
	"bytes"

	"github.com/eventyard/eventyard/internal/grid/schema"
)

type kind byte

const (
	missing kind = iota
	null
	boolean
	number
	str
	array
	object
	broken // what is no JSON
)

// value is what an event has for a key. Forms of it that conditions ask for are made when
// first asked for.
type value struct {
	kind kind
	// attribute: it is the envelope's, whose numbers and booleans are also texts.
	attribute bool
	// escaped: text is as JSON writes it, and has escapes.
	escaped bool
	made    form
	// text is the inside of a string, else raw JSON.
	text []byte

	num      num
	folded   []byte
	reversed []byte   // folded, from the end
	haystack haystack // folded, to be searched
	elements elements
	// room has the bytes of forms that differ from text. It is kept from event to event.
	room []byte
}

// form is a set of forms that a value has been brought into.
type form byte

const (
	asNum form = 1 << iota
	asFolded
	asReversed
	asElements
)

// has says whether a form is there, and notes that it will be.
func (v *value) has(f form) bool {
	had := v.made&f != 0
	v.made |= f
	return had
}

// setJSON takes raw JSON without space around it.
func (v *value) setJSON(raw []byte) {
	v.kind, v.text = kindOf(raw), raw
	if v.kind == str {
		v.text = raw[1 : len(raw)-1]
		v.escaped = bytes.IndexByte(v.text, '\\') >= 0
	}
}

func kindOf(raw []byte) kind {
	if len(raw) == 0 {
		return broken
	}
	switch c := raw[0]; {
	case c == '"' && len(raw) > 1 && raw[len(raw)-1] == '"':
		return str
	case c == '-' || isDigit(c):
		return number
	case c == '[':
		return array
	case c == '{':
		return object
	}
	switch string(raw) {
	case "null":
		return null
	case "true", "false":
		return boolean
	}
	return broken
}

// isTrue is for booleans.
func (v *value) isTrue() bool { return v.text[0] == 't' }

// asNumber gives the value if it is a number.
func (v *value) asNumber() (num, bool) {
	if v.kind != number {
		return num{}, false
	}
	if !v.has(asNum) {
		n, ok := parseNum(v.text)
		if !ok {
			v.kind = broken
			return num{}, false
		}
		v.num = n
	}
	return v.num, true
}

func (v *value) isText() bool {
	return v.kind == str || v.attribute && (v.kind == number || v.kind == boolean)
}

// fold gives a text without its case; false if the value is none.
func (v *value) fold() ([]byte, bool) {
	if !v.isText() {
		return nil, false
	}
	if !v.has(asFolded) {
		v.folded = v.foldText()
		v.haystack.text = v.folded
	}
	return v.folded, true
}

// foldText copies only what folding changes.
func (v *value) foldText() []byte {
	text := v.text
	if v.escaped {
		start := len(v.room)
		v.room = schema.AppendUnescaped(v.room, text)
		text = v.room[start:]
	}
	if unfolded(text) < 0 {
		return text
	}
	start := len(v.room)
	v.room = appendFolded(v.room, text)
	return v.room[start:]
}

// reverse gives a folded text from its end, so that suffixes are prefixes.
func (v *value) reverse() []byte {
	if !v.has(asReversed) {
		start := len(v.room)
		for i := len(v.folded) - 1; i >= 0; i-- {
			v.room = append(v.room, v.folded[i])
		}
		v.reversed = v.room[start:]
	}
	return v.reversed
}

// keptRoom bounds the room that is kept from one event to the next.
const keptRoom = 4 << 10

// reset forgets the event, so that its bytes can go, and keeps room for the next.
func (v *value) reset() {
	v.elements.reset()
	*v = value{elements: v.elements, room: keepRoom(v.room)}
}

// keepRoom empties room, and lets go of it where it is large.
func keepRoom(room []byte) []byte {
	if cap(room) > keptRoom {
		return nil
	}
	return room[:0]
}
