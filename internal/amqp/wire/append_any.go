package wire

import (
	"fmt"
	"time"
	"unicode/utf8"
)

// AppendAny writes a Go value as the AMQP type that goes with it (see value.go). An
// int becomes a long, a uint a ulong. Times lose what is finer than a millisecond.
// After an error dst is returned as it was.
//
// Errors: ErrUnsupported, ErrText, ErrTooDeep.
func AppendAny(dst []byte, v any) ([]byte, error) {
	out, err := appendAny(dst, v, 0)
	if err != nil {
		return dst, err
	}
	return out, nil
}

// appendAny has depth values around it.
func appendAny(dst []byte, v any, depth int) ([]byte, error) {
	switch v := v.(type) {
	case string:
		return AppendString(dst, v), checkString(v)
	case Symbol:
		return AppendSymbol(dst, v), checkSymbol(v)
	case []any, Map, Array, Described:
		if depth >= MaxDepth {
			return dst, ErrTooDeep
		}
		return appendNested(dst, v, depth+1)
	default:
		if out, ok := appendSimple(dst, v); ok {
			return out, nil
		}
		return dst, fmt.Errorf("encode %T: %w", v, ErrUnsupported)
	}
}

// appendSimple writes what cannot be invalid.
func appendSimple(dst []byte, v any) ([]byte, bool) {
	switch v := v.(type) {
	case nil:
		return AppendNull(dst), true
	case bool:
		return AppendBool(dst, v), true
	case uint8:
		return AppendUbyte(dst, v), true
	case uint16:
		return AppendUshort(dst, v), true
	case uint32:
		return AppendUint(dst, v), true
	case uint64:
		return AppendUlong(dst, v), true
	case int8:
		return AppendSbyte(dst, v), true
	case int16:
		return AppendShort(dst, v), true
	case int32:
		return AppendInt(dst, v), true
	case int64:
		return AppendLong(dst, v), true
	case int:
		return AppendLong(dst, int64(v)), true
	case uint:
		return AppendUlong(dst, uint64(v)), true
	case float32:
		return AppendFloat(dst, v), true
	case float64:
		return AppendDouble(dst, v), true
	case Decimal32:
		return AppendDecimal32(dst, v), true
	case Decimal64:
		return AppendDecimal64(dst, v), true
	case Decimal128:
		return AppendDecimal128(dst, v), true
	case Char:
		return AppendChar(dst, v), true
	case time.Time:
		return AppendTimestamp(dst, v.UnixMilli()), true
	case UUID:
		return AppendUUID(dst, v), true
	case []byte:
		return AppendBinary(dst, v), true
	default:
		return dst, false
	}
}

// appendNested writes a value that holds others, depth of them around those.
func appendNested(dst []byte, v any, depth int) (_ []byte, err error) {
	switch v := v.(type) {
	case []any:
		dst, mark := BeginList(dst)
		if dst, err = appendList(dst, v, depth); err != nil {
			return dst, err
		}
		return EndList(dst, mark, len(v)), nil
	case Map:
		dst, mark := BeginMap(dst)
		if dst, err = appendPairs(dst, v, depth); err != nil {
			return dst, err
		}
		return EndMap(dst, mark, len(v)), nil
	case Array:
		dst, mark := begin(dst)
		if dst, err = appendArray(dst, v, depth); err != nil {
			return dst, err
		}
		return EndArray(dst, mark, len(v.Values)), nil
	case Described:
		if dst, err = appendDescriptor(dst, v.Descriptor); err != nil {
			return dst, err
		}
		return appendAny(dst, v.Value, depth)
	default:
		return dst, fmt.Errorf("encode %T: %w", v, ErrUnsupported)
	}
}

func appendList(dst []byte, list []any, depth int) (_ []byte, err error) {
	for i, v := range list {
		if dst, err = appendAny(dst, v, depth); err != nil {
			return dst, fmt.Errorf("element %d: %w", i, err)
		}
	}
	return dst, nil
}

func appendPairs(dst []byte, m Map, depth int) (_ []byte, err error) {
	for i, p := range m {
		if dst, err = appendAny(dst, p.Key, depth); err != nil {
			return dst, fmt.Errorf("key %d: %w", i, err)
		}
		if dst, err = appendAny(dst, p.Value, depth); err != nil {
			return dst, fmt.Errorf("value %d: %w", i, err)
		}
	}
	return dst, nil
}

// appendDescriptor begins a described value.
func appendDescriptor(dst []byte, descriptor any) ([]byte, error) {
	switch d := descriptor.(type) {
	case uint64:
		return AppendDescriptor(dst, Descriptor(d)), nil
	case nil, []any, Map, Array, Described:
		return dst, fmt.Errorf("encode descriptor of type %T: %w", descriptor, ErrUnsupported)
	default:
		return appendAny(append(dst, byte(CodeDescribed)), d, 0)
	}
}

func checkString(s string) error {
	if !utf8.ValidString(s) {
		return fmt.Errorf("encode string %q: %w", s, ErrText)
	}
	return nil
}

func checkSymbol(s Symbol) error {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return fmt.Errorf("encode symbol %q: %w", s, ErrText)
		}
	}
	return nil
}
