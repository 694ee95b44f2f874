package wire

import (
	"encoding/binary"
	"fmt"
	"math"
)

// The elements of an array share one constructor and therefore one encoding: what
// stands in front of them is chosen by looking at all of them.

// appendArray writes what follows size and count: the constructor, and the elements.
func appendArray(dst []byte, a Array, depth int) (_ []byte, err error) {
	if !a.Of.valid() || a.Of.widest() != a.Of {
		return dst, fmt.Errorf("encode array of %s: %w", a.Of, ErrUnsupported)
	}
	if a.Of == CodeNull && len(a.Values) > maxFreeElements {
		return dst, fmt.Errorf("encode array of %d nulls: %w", len(a.Values), ErrUnsupported)
	}
	if a.Descriptor != nil {
		if dst, err = appendDescriptor(dst, a.Descriptor); err != nil {
			return dst, err
		}
	}
	of := elementCode(a)
	dst = append(dst, byte(of))
	for i, v := range a.Values {
		if dst, err = appendElement(dst, of, v, depth); err != nil {
			return dst, fmt.Errorf("element %d: %w", i, err)
		}
	}
	return dst, nil
}

// elementCode takes the smaller form for text and bytes when every element fits. For
// all else the widest does: arrays of numbers are rare.
func elementCode(a Array) Code {
	switch a.Of {
	case CodeBinary32, CodeString32, CodeSymbol32:
	default:
		return a.Of
	}
	for _, v := range a.Values {
		if lengthOf(v) > math.MaxUint8 {
			return a.Of
		}
	}
	return a.Of - (widthVariable32-widthVariable8)<<4
}

func lengthOf(v any) int {
	switch v := v.(type) {
	case string:
		return len(v)
	case Symbol:
		return len(v)
	case []byte:
		return len(v)
	default:
		return 0
	}
}

// appendElement writes one value without its constructor, exactly as of asks for it.
func appendElement(dst []byte, of Code, v any, depth int) ([]byte, error) {
	if codeOf(v) != of.widest() {
		return dst, fmt.Errorf("encode %T in array of %s: %w", v, of, ErrUnsupported)
	}
	switch v := v.(type) {
	case bool:
		if v {
			return append(dst, 1), nil
		}
		return append(dst, 0), nil
	case uint32:
		return binary.BigEndian.AppendUint32(dst, v), nil
	case uint64:
		return binary.BigEndian.AppendUint64(dst, v), nil
	case uint:
		return binary.BigEndian.AppendUint64(dst, uint64(v)), nil
	case int32:
		return binary.BigEndian.AppendUint32(dst, uint32(v)), nil
	case int64:
		return binary.BigEndian.AppendUint64(dst, uint64(v)), nil
	case int:
		return binary.BigEndian.AppendUint64(dst, uint64(v)), nil
	case string:
		return append(appendElementLength(dst, of, len(v)), v...), checkString(v)
	case Symbol:
		return append(appendElementLength(dst, of, len(v)), v...), checkSymbol(v)
	case []byte:
		return append(appendElementLength(dst, of, len(v)), v...), nil
	case []any, Map, Array:
		return appendNestedElement(dst, v, depth)
	default:
		// The types with one encoding only: the whole value, less its constructor.
		out, _ := appendSimple(dst, v)
		return append(dst, out[len(dst)+1:]...), nil
	}
}

func appendElementLength(dst []byte, of Code, n int) []byte {
	if of>>4 == widthVariable8 {
		return append(dst, byte(n))
	}
	return binary.BigEndian.AppendUint32(dst, uint32(n))
}

// appendNestedElement writes size and count in four bytes each, then the contents.
func appendNestedElement(dst []byte, v any, depth int) (_ []byte, err error) {
	if depth >= MaxDepth {
		return dst, ErrTooDeep
	}
	at, count := len(dst), 0
	dst = append(dst, 0, 0, 0, 0, 0, 0, 0, 0)
	switch v := v.(type) {
	case []any:
		count = len(v)
		dst, err = appendList(dst, v, depth+1)
	case Map:
		count = 2 * len(v)
		dst, err = appendPairs(dst, v, depth+1)
	case Array:
		count = len(v.Values)
		dst, err = appendArray(dst, v, depth+1)
	}
	binary.BigEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
	binary.BigEndian.PutUint32(dst[at+4:], uint32(count))
	return dst, err
}
