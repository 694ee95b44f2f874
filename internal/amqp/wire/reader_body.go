package wire

import "encoding/binary"

// What stands behind a constructor. The elements of an array have no constructors of
// their own, so everything here is given the code instead of reading it.

// fail builds the error for something that began at an offset.
func (r *Reader) fail(at int, want string, err error) error {
	return &DecodeError{Offset: at, Want: want, Err: err}
}

// wrong builds the error for a constructor that is not the one asked for.
func (r *Reader) wrong(at int, found Code, want string) error {
	if !found.valid() && found != CodeDescribed {
		return r.fail(at, want, ErrMalformed)
	}
	return &DecodeError{Offset: at, Want: want, Found: found, Err: ErrType}
}

// code reads a constructor.
func (r *Reader) code(want string) (Code, error) {
	if r.off == len(r.buf) {
		return 0, r.fail(r.off, want, ErrTruncated)
	}
	c := Code(r.buf[r.off])
	r.off++
	return c, nil
}

// take reads n bytes.
func (r *Reader) take(n int, want string) ([]byte, error) {
	if n > len(r.buf)-r.off {
		return nil, r.fail(r.off, want, ErrTruncated)
	}
	b := r.buf[r.off : r.off+n : r.off+n]
	r.off += n
	return b, nil
}

// fixed reads a value of a type that has one encoding only.
func (r *Reader) fixed(want Code, width int) ([]byte, error) {
	if r.off == len(r.buf) || Code(r.buf[r.off]) != want {
		return nil, r.unexpected(want)
	}
	r.off++
	if width > r.Len() {
		return nil, r.truncated(want)
	}
	r.off += width
	return r.buf[r.off-width : r.off : r.off], nil
}

// bytes reads a binary, string or symbol, named by its widest code.
func (r *Reader) bytes(want Code) ([]byte, error) {
	if r.off == len(r.buf) || Code(r.buf[r.off]).widest() != want {
		return nil, r.unexpected(want)
	}
	c := Code(r.buf[r.off])
	r.off++
	return r.variable(c)
}

// unexpected builds the error for a next value that is not of the type wanted, or none.
func (r *Reader) unexpected(want Code) error {
	if r.off == len(r.buf) {
		return r.truncated(want)
	}
	return r.wrong(r.off, Code(r.buf[r.off]), want.typeName())
}

// truncated builds the error for a value that is cut off here.
func (r *Reader) truncated(want Code) error { return r.fail(r.off, want.typeName(), ErrTruncated) }

// variable reads a length and so many bytes.
func (r *Reader) variable(c Code) ([]byte, error) {
	n, ok := r.length(c)
	if !ok || n > r.Len() {
		return nil, r.truncated(c)
	}
	r.off += n
	return r.buf[r.off-n : r.off : r.off], nil
}

// length reads the length of a value, and reports whether it is there at all.
func (r *Reader) length(c Code) (n int, ok bool) {
	if c>>4 == widthVariable8 {
		if r.off == len(r.buf) {
			return 0, false
		}
		r.off++
		return int(r.buf[r.off-1]), true
	}
	if r.Len() < 4 {
		return 0, false
	}
	long := binary.BigEndian.Uint32(r.buf[r.off:])
	r.off += 4
	return int(long), uint64(long) <= uint64(r.Len()) // compared wide: an int may have 32 bits
}

func (r *Reader) bool(c Code) (bool, error) {
	switch c {
	case CodeTrue:
		return true, nil
	case CodeFalse:
		return false, nil
	case CodeBoolean:
		b, err := r.take(1, "boolean")
		if err != nil {
			return false, err
		}
		if b[0] > 1 {
			return false, r.fail(r.off-1, "boolean of 0 or 1", ErrMalformed)
		}
		return b[0] == 1, nil
	default:
		return false, r.wrong(r.off-1, c, "boolean")
	}
}

func (r *Reader) uint(c Code) (uint32, error) {
	n, err := r.whole(c, CodeUint)
	return uint32(n), err
}

func (r *Reader) ulong(c Code) (uint64, error) { return r.whole(c, CodeUlong) }

func (r *Reader) int(c Code) (int32, error) {
	n, err := r.whole(c, CodeInt)
	return int32(n), err
}

func (r *Reader) long(c Code) (int64, error) {
	n, err := r.whole(c, CodeLong)
	return int64(n), err
}

// whole reads the bytes of a whole number: none, one, or the full width of its type.
func (r *Reader) whole(c, want Code) (uint64, error) {
	if c.widest() != want {
		return 0, r.wrong(r.off-1, c, want.typeName())
	}
	width := int(fixedLengths[c]) - 1
	if width > r.Len() {
		return 0, r.truncated(want)
	}
	b := r.buf[r.off : r.off+width]
	r.off += width
	switch {
	case width == 0:
		return 0, nil
	case width == 4:
		return uint64(binary.BigEndian.Uint32(b)), nil
	case width == 8:
		return binary.BigEndian.Uint64(b), nil
	case c == CodeSmallInt || c == CodeSmallLong:
		return uint64(int8(b[0])), nil
	default:
		return uint64(b[0]), nil
	}
}
