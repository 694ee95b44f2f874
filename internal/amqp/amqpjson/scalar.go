package amqpjson

import (
	"math"
	"strconv"
	"time"

	"github.com/eventyard/eventyard/internal/amqp/wire"
)

// AppendScalar writes a value that has no parts; it says false for others, and writes nothing.
func AppendScalar(dst []byte, v any, style Style) ([]byte, bool) {
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...), true
	case bool:
		return strconv.AppendBool(dst, v), true
	case string:
		return AppendText(dst, v, style), true
	case wire.Symbol:
		return AppendText(dst, string(v), style), true
	case wire.Char:
		return AppendText(dst, string(rune(v)), style), true
	case []byte:
		return AppendBase64(dst, v), true
	case time.Time:
		return append(v.UTC().AppendFormat(append(dst, '"'), style.timeLayout()), '"'), true
	case wire.UUID:
		return appendUUID(dst, v), true
	case wire.Decimal32:
		return appendHex(dst, v[:]), true
	case wire.Decimal64:
		return appendHex(dst, v[:]), true
	case wire.Decimal128:
		return appendHex(dst, v[:]), true
	case float32:
		return appendFloat(dst, float64(v), 32, style), true
	case float64:
		return appendFloat(dst, v, 64, style), true
	}
	return appendInteger(dst, v)
}

func appendInteger(dst []byte, v any) ([]byte, bool) {
	switch v := v.(type) {
	case int8:
		return strconv.AppendInt(dst, int64(v), 10), true
	case int16:
		return strconv.AppendInt(dst, int64(v), 10), true
	case int32:
		return strconv.AppendInt(dst, int64(v), 10), true
	case int64:
		return strconv.AppendInt(dst, v, 10), true
	case int:
		return strconv.AppendInt(dst, int64(v), 10), true
	case uint8:
		return strconv.AppendUint(dst, uint64(v), 10), true
	case uint16:
		return strconv.AppendUint(dst, uint64(v), 10), true
	case uint32:
		return strconv.AppendUint(dst, uint64(v), 10), true
	case uint64:
		return strconv.AppendUint(dst, v, 10), true
	case uint:
		return strconv.AppendUint(dst, uint64(v), 10), true
	}
	return dst, false
}

// appendFloat writes what is not finite as text: JSON has no word for it.
func appendFloat(dst []byte, f float64, bits int, style Style) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return AppendText(dst, infinite(f, style), style)
	}
	at := len(dst)
	dst = strconv.AppendFloat(dst, f, 'g', -1, bits)
	if style == Plain {
		return dst
	}
	for _, c := range dst[at:] {
		if c == '.' || c == 'e' {
			return dst
		}
	}
	// With a point it is sent back as the float that it was.
	return append(dst, '.', '0')
}

// infinite names what is not finite.
func infinite(f float64, style Style) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case style == Plain && f > 0:
		return "+Inf"
	case style == Plain:
		return "-Inf"
	case f > 0:
		return "Infinity"
	default:
		return "-Infinity"
	}
}
