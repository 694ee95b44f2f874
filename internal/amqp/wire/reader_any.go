package wire

import (
	"encoding/binary"
	"math"
	"time"
)

// ReadAny decodes the next value into the Go type that goes with it (see value.go).
// The result shares nothing with the reader's bytes.
func (r *Reader) ReadAny() (any, error) { return r.any(0) }

// any has depth values around it.
func (r *Reader) any(depth int) (any, error) {
	c, err := r.code("value")
	if err != nil {
		return nil, err
	}
	if c != CodeDescribed {
		return r.anyBody(c, depth)
	}
	if err := r.tooDeep(depth); err != nil {
		return nil, err
	}
	descriptor, err := r.descriptor()
	if err != nil {
		return nil, err
	}
	value, err := r.any(depth + 1)
	if err != nil {
		return nil, err
	}
	return Described{Descriptor: descriptor, Value: value}, nil
}

// anyBody decodes what stands behind a constructor.
func (r *Reader) anyBody(c Code, depth int) (any, error) {
	switch c.widest() {
	case CodeNull:
		return nil, nil
	case CodeBoolean:
		return r.bool(c)
	case CodeUint:
		return r.uint(c)
	case CodeUlong:
		return r.ulong(c)
	case CodeInt:
		return r.int(c)
	case CodeLong:
		return r.long(c)
	case CodeBinary32, CodeString32, CodeSymbol32:
		return r.anyVariable(c)
	case CodeList32:
		return r.anyList(c, depth)
	case CodeMap32:
		return r.anyMap(c, depth)
	case CodeArray32:
		return r.anyArray(c, depth)
	case 0:
		return nil, r.fail(r.off-1, "constructor", ErrMalformed)
	default:
		return r.anyFixed(c)
	}
}

// anyFixed decodes the types that have a single encoding of fixed width.
func (r *Reader) anyFixed(c Code) (any, error) {
	b, err := r.take(1<<(c>>4-widthOne), c.typeName())
	if err != nil {
		return nil, err
	}
	switch c {
	case CodeUbyte:
		return b[0], nil
	case CodeByte:
		return int8(b[0]), nil
	case CodeUshort:
		return binary.BigEndian.Uint16(b), nil
	case CodeShort:
		return int16(binary.BigEndian.Uint16(b)), nil
	case CodeFloat:
		return math.Float32frombits(binary.BigEndian.Uint32(b)), nil
	case CodeChar:
		return Char(binary.BigEndian.Uint32(b)), nil
	case CodeDecimal32:
		return Decimal32(b), nil
	case CodeDouble:
		return math.Float64frombits(binary.BigEndian.Uint64(b)), nil
	case CodeTimestamp:
		return time.UnixMilli(int64(binary.BigEndian.Uint64(b))).UTC(), nil
	case CodeDecimal64:
		return Decimal64(b), nil
	case CodeDecimal128:
		return Decimal128(b), nil
	default: // CodeUUID; widest lets nothing else through
		return UUID(b), nil
	}
}

func (r *Reader) anyVariable(c Code) (any, error) {
	b, err := r.variable(c)
	if err != nil {
		return nil, err
	}
	switch c.widest() {
	case CodeString32:
		return string(b), nil
	case CodeSymbol32:
		return Symbol(b), nil
	default:
		return append([]byte{}, b...), nil // never nil, which would be null
	}
}

func (r *Reader) anyList(c Code, depth int) (any, error) {
	if err := r.tooDeep(depth); err != nil {
		return nil, err
	}
	s, err := r.compound(c)
	if err != nil {
		return nil, err
	}
	list := make([]any, s.Count)
	for i := range list {
		if list[i], err = r.any(depth + 1); err != nil {
			return nil, err
		}
	}
	return list, r.Leave(s)
}

func (r *Reader) anyMap(c Code, depth int) (any, error) {
	if err := r.tooDeep(depth); err != nil {
		return nil, err
	}
	s, err := r.compound(c)
	if err != nil {
		return nil, err
	}
	m := make(Map, s.Count/2)
	for i := range m {
		if m[i].Key, err = r.any(depth + 1); err != nil {
			return nil, err
		}
		if m[i].Value, err = r.any(depth + 1); err != nil {
			return nil, err
		}
	}
	return m, r.Leave(s)
}

func (r *Reader) anyArray(c Code, depth int) (any, error) {
	if err := r.tooDeep(depth); err != nil {
		return nil, err
	}
	head, err := r.array(c)
	if err != nil {
		return nil, err
	}
	a := Array{Of: head.of.widest(), Values: make([]any, head.Count)}
	if head.descriptor != 0 {
		at := Reader{buf: r.buf, off: head.descriptor}
		if a.Descriptor, err = at.descriptor(); err != nil {
			return nil, err
		}
	}
	for i := range a.Values {
		if a.Values[i], err = r.anyBody(head.of, depth+1); err != nil {
			return nil, err
		}
	}
	return a, r.Leave(head.Span)
}

// descriptor decodes a descriptor, its leading zero byte already read.
func (r *Reader) descriptor() (any, error) {
	c, err := r.descriptorCode()
	if err != nil {
		return nil, err
	}
	return r.anyBody(c, 0)
}
