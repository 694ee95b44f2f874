package wire

import (
	"errors"
	"fmt"
)

// Why bytes cannot be read. Reader wraps each of them in a *DecodeError.
var (
	// ErrTruncated: the bytes end, or an enclosing value ends, inside a value.
	ErrTruncated = errors.New("bytes end too early")
	// ErrType: there is a well-formed value, of another type than was asked for.
	ErrType = errors.New("wrong type")
	// ErrMalformed: the bytes are no AMQP value.
	ErrMalformed = errors.New("malformed value")
	// ErrTooDeep: values are nested deeper than MaxDepth. AppendAny says so too.
	ErrTooDeep = errors.New("values are nested too deeply")
	// ErrMissing: a list ends before a field that has to be there, or the field is null.
	ErrMissing = errors.New("mandatory field is missing")
	// ErrSection: a message has a section twice, bodies of two kinds, or something that is no
	// section; or a stored message has its sections in another order than Normalize gives them.
	ErrSection = errors.New("section that cannot be here")
)

// Why a Go value cannot be encoded.
var (
	// ErrUnsupported: AMQP has no type for this Go type, or an array holds a value
	// of another type than its own.
	ErrUnsupported = errors.New("no AMQP type for this value")
	// ErrText: a string is not valid UTF-8, or a symbol is not ASCII. Some clients
	// stop reading for good when they meet such text.
	ErrText = errors.New("text is not valid")
)

// DecodeError says where decoding stopped, and why.
type DecodeError struct {
	// Offset counts from the beginning of the reader's bytes.
	Offset int
	// Want is what should have been there.
	Want string
	// Found is the constructor that was there instead; meaningful with ErrType only.
	Found Code
	// Err is one of the errors of this package.
	Err error
}

func (e *DecodeError) Error() string {
	if errors.Is(e.Err, ErrType) {
		return fmt.Sprintf("decode at byte %d: want %s, found %s", e.Offset, e.Want, e.Found)
	}
	return fmt.Sprintf("decode at byte %d: want %s: %v", e.Offset, e.Want, e.Err)
}

func (e *DecodeError) Unwrap() error { return e.Err }
