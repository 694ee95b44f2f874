package wire

import (
	"encoding/binary"
	"math"
)

// Every Append function writes one value with its constructor, in the smallest encoding that holds
// it, behind dst. Like the built-in append they allocate only when dst has no room. Lengths past 4
// GiB, which AMQP cannot express, are the caller's to prevent; no message comes near.

// AppendNull writes null.
func AppendNull(dst []byte) []byte { return append(dst, byte(CodeNull)) }

// AppendBool writes a boolean.
func AppendBool(dst []byte, v bool) []byte {
	if v {
		return append(dst, byte(CodeTrue))
	}
	return append(dst, byte(CodeFalse))
}

// AppendUbyte writes a ubyte.
func AppendUbyte(dst []byte, v uint8) []byte { return append(dst, byte(CodeUbyte), v) }

// AppendUshort writes a ushort.
func AppendUshort(dst []byte, v uint16) []byte {
	return binary.BigEndian.AppendUint16(append(dst, byte(CodeUshort)), v)
}

// AppendUint writes a uint.
func AppendUint(dst []byte, v uint32) []byte {
	switch {
	case v == 0:
		return append(dst, byte(CodeUint0))
	case v <= math.MaxUint8:
		return append(dst, byte(CodeSmallUint), byte(v))
	default:
		return binary.BigEndian.AppendUint32(append(dst, byte(CodeUint)), v)
	}
}

// AppendUlong writes a ulong.
func AppendUlong(dst []byte, v uint64) []byte {
	switch {
	case v == 0:
		return append(dst, byte(CodeUlong0))
	case v <= math.MaxUint8:
		return append(dst, byte(CodeSmallUlong), byte(v))
	default:
		return binary.BigEndian.AppendUint64(append(dst, byte(CodeUlong)), v)
	}
}

// AppendSbyte writes a byte, which in AMQP is signed.
func AppendSbyte(dst []byte, v int8) []byte { return append(dst, byte(CodeByte), byte(v)) }

// AppendShort writes a short.
func AppendShort(dst []byte, v int16) []byte {
	return binary.BigEndian.AppendUint16(append(dst, byte(CodeShort)), uint16(v))
}

// AppendInt writes an int.
func AppendInt(dst []byte, v int32) []byte {
	if v == int32(int8(v)) {
		return append(dst, byte(CodeSmallInt), byte(v))
	}
	return binary.BigEndian.AppendUint32(append(dst, byte(CodeInt)), uint32(v))
}

// AppendLong writes a long.
func AppendLong(dst []byte, v int64) []byte {
	if v == int64(int8(v)) {
		return append(dst, byte(CodeSmallLong), byte(v))
	}
	return binary.BigEndian.AppendUint64(append(dst, byte(CodeLong)), uint64(v))
}

// AppendFloat writes a float.
func AppendFloat(dst []byte, v float32) []byte {
	return binary.BigEndian.AppendUint32(append(dst, byte(CodeFloat)), math.Float32bits(v))
}

// AppendDouble writes a double.
func AppendDouble(dst []byte, v float64) []byte {
	return binary.BigEndian.AppendUint64(append(dst, byte(CodeDouble)), math.Float64bits(v))
}

// AppendDecimal32 writes a decimal32.
func AppendDecimal32(dst []byte, v Decimal32) []byte {
	return append(append(dst, byte(CodeDecimal32)), v[:]...)
}

// AppendDecimal64 writes a decimal64.
func AppendDecimal64(dst []byte, v Decimal64) []byte {
	return append(append(dst, byte(CodeDecimal64)), v[:]...)
}

// AppendDecimal128 writes a decimal128.
func AppendDecimal128(dst []byte, v Decimal128) []byte {
	return append(append(dst, byte(CodeDecimal128)), v[:]...)
}

// AppendChar writes a char.
func AppendChar(dst []byte, v Char) []byte {
	return binary.BigEndian.AppendUint32(append(dst, byte(CodeChar)), uint32(v))
}

// AppendTimestamp writes a timestamp, given in milliseconds since 1970 UTC.
func AppendTimestamp(dst []byte, ms int64) []byte {
	return binary.BigEndian.AppendUint64(append(dst, byte(CodeTimestamp)), uint64(ms))
}

// AppendUUID writes a uuid.
func AppendUUID(dst []byte, v UUID) []byte {
	return append(append(dst, byte(CodeUUID)), v[:]...)
}

// AppendBinary writes a binary. Nil is an empty one; null is [AppendNull].
func AppendBinary(dst []byte, v []byte) []byte {
	return append(appendLength(dst, CodeBinary8, CodeBinary32, len(v)), v...)
}

// AppendString writes a string. It has to be valid UTF-8; see [ErrText].
func AppendString(dst []byte, v string) []byte {
	return append(appendLength(dst, CodeString8, CodeString32, len(v)), v...)
}

// AppendStringBytes writes a string that is not one of Go's. It has to be valid UTF-8 as well.
func AppendStringBytes(dst, v []byte) []byte {
	return append(appendLength(dst, CodeString8, CodeString32, len(v)), v...)
}

// AppendSymbol writes a symbol. It has to be ASCII; see [ErrText].
func AppendSymbol(dst []byte, v Symbol) []byte {
	return append(appendLength(dst, CodeSymbol8, CodeSymbol32, len(v)), v...)
}

func appendLength(dst []byte, small, large Code, n int) []byte {
	if n <= math.MaxUint8 {
		return append(dst, byte(small), byte(n))
	}
	return binary.BigEndian.AppendUint32(append(dst, byte(large)), uint32(n))
}
