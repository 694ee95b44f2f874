package wire

import "time"

// The Go types of decoded values. A type of AMQP has one Go type and no two share
// one, so that a value read and written again is of the type it was:
//
//	null       nil              float       float32         uuid    UUID ([16]byte)
//	boolean    bool             double      float64         binary  []byte
//	ubyte      uint8            decimal32   Decimal32       string  string
//	ushort     uint16           decimal64   Decimal64       symbol  Symbol
//	uint       uint32           decimal128  Decimal128      list    []any
//	ulong      uint64           char        Char            map     Map
//	byte       int8             timestamp   time.Time, UTC  array   Array
//	short      int16
//	int        int32            a described value           Described
//	long       int64

// Symbol is a name from some constrained domain: ASCII text that is not a string.
type Symbol string

// Char is one Unicode character. It is not a rune, which Go cannot distinguish from an int32.
type Char rune

// UUID is an RFC 4122 identifier in network order. Being an alias it needs no
// conversion to and from the [16]byte of other packages.
type UUID = [16]byte

// The decimals of IEEE 754-2008, as the bytes of their encoding: they pass through
// unchanged, and nobody here calculates with them.
type (
	Decimal32  [4]byte
	Decimal64  [8]byte
	Decimal128 [16]byte
)

// Pair is one entry of a Map.
type Pair struct {
	Key, Value any
}

// Map holds its entries in the order of the wire, because keys may be of any type,
// also of one that a Go map cannot have as its key, and order may matter.
type Map []Pair

// Array is a sequence of values of one type.
type Array struct {
	// Of names the type of the elements by its widest constructor (CodeUint, never
	// CodeSmallUint). The encoder picks the encoding.
	Of Code
	// Descriptor, when not nil, is as in Described and describes every element.
	Descriptor any
	// Values are of the Go type that goes with Of.
	Values []any
}

// Described is a value with the descriptor that gives it its meaning.
type Described struct {
	// Descriptor is a Symbol or a uint64. The standard reserves all other types; those that hold
	// no other values are taken and written as well, because there are clients that use them.
	Descriptor any
	Value      any
}

// codeOf is the widest constructor of the type that goes with a Go value; zero for
// described values, which have none of their own, and for what AMQP cannot express.
func codeOf(v any) Code {
	switch v.(type) {
	case nil:
		return CodeNull
	case bool:
		return CodeBoolean
	case uint8:
		return CodeUbyte
	case uint16:
		return CodeUshort
	case uint32:
		return CodeUint
	case uint64, uint:
		return CodeUlong
	case int8:
		return CodeByte
	case int16:
		return CodeShort
	case int32:
		return CodeInt
	case int64, int:
		return CodeLong
	case float32:
		return CodeFloat
	case float64:
		return CodeDouble
	case Decimal32:
		return CodeDecimal32
	case Decimal64:
		return CodeDecimal64
	case Decimal128:
		return CodeDecimal128
	case Char:
		return CodeChar
	case time.Time:
		return CodeTimestamp
	case UUID:
		return CodeUUID
	case []byte:
		return CodeBinary32
	case string:
		return CodeString32
	case Symbol:
		return CodeSymbol32
	case []any:
		return CodeList32
	case Map:
		return CodeMap32
	case Array:
		return CodeArray32
	default:
		return 0
	}
}
