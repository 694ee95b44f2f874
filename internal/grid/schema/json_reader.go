package schema

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"unicode/utf8"
)

// maxDepth is how deep an event may be nested, itself included. It bounds the stack that a
// stranger's JSON can use, ours and that of receivers, whose parsers have limits too.
const maxDepth = 256

// reader walks JSON as RFC 8259 has it, without leniency, and decodes nothing: it finds out
// where things begin and end. Strings have to be valid UTF-8.
type reader struct {
	b []byte
	i int
}

// syntaxError is where JSON ends to be JSON.
type syntaxError struct {
	at   int
	what string
}

func (e *syntaxError) Error() string { return fmt.Sprintf("at byte %d: %s", e.at, e.what) }

func (r *reader) fail(what string) error { return &syntaxError{at: r.i, what: what} }

// peek is the next byte; 0, which no JSON has, at the end.
func (r *reader) peek() byte {
	if r.i < len(r.b) {
		return r.b[r.i]
	}
	return 0
}

func (r *reader) space() {
	for r.i < len(r.b) && r.b[r.i] <= ' ' && isSpace(r.b[r.i]) {
		r.i++
	}
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

// end wants nothing but space to follow.
func (r *reader) end() error {
	r.space()
	if r.i < len(r.b) {
		return r.fail("something follows where the JSON should end")
	}
	return nil
}

// value steps over a value that stands depth levels deep.
func (r *reader) value(depth int) error {
	switch r.peek() {
	case '"':
		_, err := r.text()
		return err
	case '{':
		return r.composite('{', '}', depth)
	case '[':
		return r.composite('[', ']', depth)
	case 't':
		return r.word("true")
	case 'f':
		return r.word("false")
	case 'n':
		return r.word("null")
	default:
		return r.number()
	}
}

// raw steps over a value and gives its bytes.
func (r *reader) raw(depth int) ([]byte, error) {
	start := r.i
	err := r.value(depth)
	return r.b[start:r.i:r.i], err
}

// composite steps over an object or array.
func (r *reader) composite(bracket, closing byte, depth int) error {
	if err := r.open(bracket, depth); err != nil {
		return err
	}
	for first := true; ; first = false {
		more, err := r.more(closing, first)
		if err != nil || !more {
			return err
		}
		if bracket == '{' {
			if _, err := r.name(); err != nil {
				return err
			}
		}
		if err := r.value(depth + 1); err != nil {
			return err
		}
	}
}

// open steps into an object or array.
func (r *reader) open(bracket byte, depth int) error {
	if r.peek() != bracket {
		return r.fail("'" + string(rune(bracket)) + "' should stand here")
	}
	if depth > maxDepth {
		return r.fail(fmt.Sprintf("it is nested more than %d levels deep", maxDepth))
	}
	r.i++
	return nil
}

// more steps to the next element, over the comma before it, or out of the object or array.
func (r *reader) more(closing byte, first bool) (bool, error) {
	r.space()
	switch c := r.peek(); {
	case c == closing:
		r.i++
		return false, nil
	case first:
		return true, nil
	case c == ',':
		r.i++
		r.space()
		return true, nil
	default:
		return false, r.fail("',' or '" + string(rune(closing)) + "' should stand here")
	}
}

// name reads a member's name and the colon behind it.
func (r *reader) name() (text, error) {
	if r.peek() != '"' {
		return text{}, r.fail("the name of a member should stand here")
	}
	name, err := r.text()
	if err != nil {
		return text{}, err
	}
	r.space()
	if r.peek() != ':' {
		return text{}, r.fail("':' should stand here")
	}
	r.i++
	r.space()
	return name, nil
}

// text reads a string, at whose opening quote the reader stands.
func (r *reader) text() (text, error) {
	start := r.i + 1
	end := start + plain(r.b[start:])
	if end < len(r.b) && r.b[end] == '"' {
		r.i = end + 1
		return text{r.b[start:end:end], false}, nil
	}
	return r.oddText()
}

// oddText reads a string that is not all plain.
func (r *reader) oddText() (text, error) {
	start, escaped := r.i+1, false
	for r.i = start; ; {
		r.i += plain(r.b[r.i:])
		switch c := r.peek(); {
		case r.i >= len(r.b):
			return text{}, r.fail("a string is not closed")
		case c == '"':
			r.i++
			return text{r.b[start : r.i-1 : r.i-1], escaped}, nil
		case c == '\\':
			n := escapeLen(r.b[r.i:])
			if n == 0 {
				return text{}, r.fail("no such escape in a string")
			}
			r.i, escaped = r.i+n, true
		case c < ' ':
			return text{}, r.fail("a control character in a string has to be escaped")
		default:
			_, n := utf8.DecodeRune(r.b[r.i:])
			if n == 1 {
				return text{}, r.fail("a string is not valid UTF-8")
			}
			r.i += n
		}
	}
}

// plain counts the bytes at the beginning that are a string's and mean themselves: ASCII, no
// quote, backslash or control character. It looks at eight at once: in each test the highest
// bit of a byte is set where it is one of those; a borrow spoils only what is behind a hit.
func plain(b []byte) int {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	n := 0
	for ; len(b)-n >= 8; n += 8 {
		x := binary.LittleEndian.Uint64(b[n:])
		quote, slash := x^(ones*'"'), x^(ones*'\\')
		hit := (x | (x - ones*' ') | (quote - ones) | (slash - ones)) & high
		if hit != 0 {
			return n + bits.TrailingZeros64(hit)/8
		}
	}
	for ; n < len(b); n++ {
		if c := b[n]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			break
		}
	}
	return n
}

// escapeLen is how long the escape is that b begins with; 0 if it is none.
func escapeLen(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if _, ok := hex4(b[2:]); ok {
			return 6
		}
	}
	return 0
}

func (r *reader) word(word string) error {
	if len(r.b)-r.i < len(word) || string(r.b[r.i:r.i+len(word)]) != word {
		return r.fail("a value should stand here")
	}
	r.i += len(word)
	return nil
}

func (r *reader) number() error {
	if r.peek() == '-' {
		r.i++
	}
	if r.peek() == '0' {
		r.i++
	} else if !r.digits() {
		return r.fail("a value should stand here")
	}
	if r.peek() == '.' {
		r.i++
		if !r.digits() {
			return r.fail("a digit should follow the point")
		}
	}
	if c := r.peek(); c == 'e' || c == 'E' {
		r.i++
		if c := r.peek(); c == '+' || c == '-' {
			r.i++
		}
		if !r.digits() {
			return r.fail("an exponent should have a digit")
		}
	}
	return nil
}

func (r *reader) digits() bool {
	i := r.i
	for i < len(r.b) && r.b[i] >= '0' && r.b[i] <= '9' {
		i++
	}
	found := i > r.i
	r.i = i
	return found
}

// validJSON tells whether b is one value, and gives it without the space around it.
func validJSON(b []byte) ([]byte, error) {
	r := reader{b: b}
	r.space()
	// One level is left for the event that it becomes a part of.
	raw, err := r.raw(2)
	if err != nil {
		return nil, err
	}
	return raw, r.end()
}
