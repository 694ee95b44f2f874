package wire

import (
	"encoding/binary"
	"math"
)

// Span is a list or map that is being read.
//
//	fields, err := r.EnterList()
//	for range fields.Count { … one read each … }
//	err = r.Leave(fields)
//
// That an element does not reach past its list is checked when the list is left; until
// then the reader may be inside bytes that belong to something else, which harms nobody.
type Span struct {
	// Count is the number of values inside; in a map each pair is two. There is at
	// least one byte for each, so that it is safe to allocate by.
	Count int
	end   int
}

// EnterList reads the beginning of a list.
func (r *Reader) EnterList() (Span, error) { return r.enter(CodeList32) }

// EnterMap reads the beginning of a map.
func (r *Reader) EnterMap() (Span, error) { return r.enter(CodeMap32) }

// Leave checks that exactly the elements of the list or map have been read.
func (r *Reader) Leave(s Span) error {
	if r.off != s.end {
		return r.fail(s.end, "end of elements", ErrMalformed)
	}
	return nil
}

func (r *Reader) enter(want Code) (Span, error) {
	if r.off == len(r.buf) || Code(r.buf[r.off]).widest() != want {
		return Span{}, r.unexpected(want)
	}
	c := Code(r.buf[r.off])
	r.off++
	return r.compound(c)
}

// compound reads size and count of a list or map.
func (r *Reader) compound(c Code) (Span, error) {
	if s, ok := r.smallCompound(c); ok {
		return s, nil
	}
	at := r.off
	s, err := r.span(c)
	if err != nil {
		return Span{}, err
	}
	if s.Count > s.end-r.off {
		return Span{}, r.fail(at, "count that fits the size", ErrMalformed)
	}
	if c.widest() == CodeMap32 && s.Count%2 != 0 {
		return Span{}, r.fail(at, "even count of a map", ErrMalformed)
	}
	return s, nil
}

// smallCompound reads a size and a count of one byte each if all is well with them; most
// lists and maps are of that form.
func (r *Reader) smallCompound(c Code) (Span, bool) {
	if c>>4 != widthCompound8 || r.Len() < 2 {
		return Span{}, false
	}
	size, count := int(r.buf[r.off])-1, int(r.buf[r.off+1])
	if count > size || size > r.Len()-2 || c == CodeMap8 && count%2 != 0 {
		return Span{}, false
	}
	r.off += 2
	return Span{Count: count, end: r.off + size}, true
}

// span reads size and count. The size counts the bytes of the count as well.
func (r *Reader) span(c Code) (Span, error) {
	var size, count, countBytes uint32
	at := r.off
	switch c >> 4 {
	case widthNone:
		return Span{end: r.off}, nil
	case widthCompound8, widthArray8:
		b, err := r.take(2, "size and count")
		if err != nil {
			return Span{}, err
		}
		size, count, countBytes = uint32(b[0]), uint32(b[1]), 1
	default:
		b, err := r.take(8, "size and count")
		if err != nil {
			return Span{}, err
		}
		size, count, countBytes = binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:]), 4
	}
	if size < countBytes || count > math.MaxInt32 {
		return Span{}, r.fail(at, "size and count", ErrMalformed)
	}
	if size -= countBytes; uint64(size) > uint64(r.Len()) {
		return Span{}, r.fail(at, c.typeName(), ErrTruncated)
	}
	return Span{Count: int(count), end: r.off + int(size)}, nil
}

// array is the beginning of an array.
type array struct {
	Span
	of Code
	// descriptor is the offset of the elements' descriptor, zero if they have none.
	descriptor int
}

// array reads the beginning of an array, up to its first element.
func (r *Reader) array(c Code) (array, error) {
	at := r.off
	s, err := r.span(c)
	if err != nil {
		return array{}, err
	}
	a := array{Span: s, of: CodeNull}
	if s.Count == 0 && r.off == s.end {
		// The standard wants a constructor here too; the Python client writes none.
		return a, nil
	}
	if err := r.elementCode(&a); err != nil {
		return array{}, err
	}
	switch room := s.end - r.off; {
	case room < 0:
		return array{}, r.fail(at, "constructor inside the array", ErrMalformed)
	case a.of>>4 == widthNone:
		if r.free += s.Count; r.free > maxFreeElements {
			return array{}, r.fail(at, "fewer elements without bytes", ErrMalformed)
		}
	case s.Count > room:
		return array{}, r.fail(at, "count that fits the size", ErrMalformed)
	}
	return a, nil
}

// elementCode reads the constructor that all elements share.
func (r *Reader) elementCode(a *array) error {
	at := r.off
	c, err := r.code("constructor of elements")
	if err != nil {
		return err
	}
	if c == CodeDescribed {
		a.descriptor = r.off
		if err := r.skipDescriptor(); err != nil {
			return err
		}
		at = r.off
		if c, err = r.code("constructor of elements"); err != nil {
			return err
		}
	}
	if !c.valid() {
		return r.fail(at, "constructor of elements", ErrMalformed)
	}
	a.of = c
	return nil
}
