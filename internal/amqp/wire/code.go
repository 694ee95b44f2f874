package wire

import (
	"cmp"
	"fmt"
)

// Code is the constructor byte that begins every encoded value (§1.2, §1.6). Its
// upper half says how many bytes follow, so that values of unknown meaning could be
// skipped; its lower half distinguishes the type from others of that width.
type Code byte

// The constructors of the AMQP type system, by the width of what follows.
const (
	// CodeDescribed begins a described value: descriptor, then the value itself.
	CodeDescribed Code = 0x00

	// Nothing follows.
	CodeNull   Code = 0x40
	CodeTrue   Code = 0x41
	CodeFalse  Code = 0x42
	CodeUint0  Code = 0x43
	CodeUlong0 Code = 0x44
	CodeList0  Code = 0x45

	// One byte.
	CodeUbyte      Code = 0x50
	CodeByte       Code = 0x51
	CodeSmallUint  Code = 0x52
	CodeSmallUlong Code = 0x53
	CodeSmallInt   Code = 0x54
	CodeSmallLong  Code = 0x55
	CodeBoolean    Code = 0x56

	// Two bytes.
	CodeUshort Code = 0x60
	CodeShort  Code = 0x61

	// Four bytes.
	CodeUint      Code = 0x70
	CodeInt       Code = 0x71
	CodeFloat     Code = 0x72
	CodeChar      Code = 0x73
	CodeDecimal32 Code = 0x74

	// Eight bytes.
	CodeUlong     Code = 0x80
	CodeLong      Code = 0x81
	CodeDouble    Code = 0x82
	CodeTimestamp Code = 0x83
	CodeDecimal64 Code = 0x84

	// Sixteen bytes.
	CodeDecimal128 Code = 0x94
	CodeUUID       Code = 0x98

	// A length of one byte, then so many bytes.
	CodeBinary8 Code = 0xa0
	CodeString8 Code = 0xa1
	CodeSymbol8 Code = 0xa3

	// A length of four bytes, then so many bytes.
	CodeBinary32 Code = 0xb0
	CodeString32 Code = 0xb1
	CodeSymbol32 Code = 0xb3

	// Size and count of one byte each, then the elements.
	CodeList8 Code = 0xc0
	CodeMap8  Code = 0xc1

	// Size and count of four bytes each, then the elements.
	CodeList32 Code = 0xd0
	CodeMap32  Code = 0xd1

	// Size and count, then one constructor for all elements, then the elements.
	CodeArray8  Code = 0xe0
	CodeArray32 Code = 0xf0
)

// The upper half of a code, which gives the width of what follows (§1.2).
const (
	widthNone       = 0x4
	widthOne        = 0x5
	widthTwo        = 0x6
	widthFour       = 0x7
	widthEight      = 0x8
	widthSixteen    = 0x9
	widthVariable8  = 0xa
	widthVariable32 = 0xb
	widthCompound8  = 0xc
	widthCompound32 = 0xd
	widthArray8     = 0xe
	widthArray32    = 0xf
)

// widest gives the code that stands for the type whatever the encoding: of several
// encodings the one that can hold every value. Zero means that there is no such code.
func (c Code) widest() Code { return widestCodes[c] }

// A table, and not a switch: it is looked at for every value that is read.
var widestCodes = [256]Code{
	CodeNull: CodeNull,
	CodeTrue: CodeBoolean, CodeFalse: CodeBoolean, CodeBoolean: CodeBoolean,
	CodeUbyte:  CodeUbyte,
	CodeUshort: CodeUshort,
	CodeUint0:  CodeUint, CodeSmallUint: CodeUint, CodeUint: CodeUint,
	CodeUlong0: CodeUlong, CodeSmallUlong: CodeUlong, CodeUlong: CodeUlong,
	CodeByte:     CodeByte,
	CodeShort:    CodeShort,
	CodeSmallInt: CodeInt, CodeInt: CodeInt,
	CodeSmallLong: CodeLong, CodeLong: CodeLong,
	CodeFloat:      CodeFloat,
	CodeDouble:     CodeDouble,
	CodeDecimal32:  CodeDecimal32,
	CodeDecimal64:  CodeDecimal64,
	CodeDecimal128: CodeDecimal128,
	CodeChar:       CodeChar,
	CodeTimestamp:  CodeTimestamp,
	CodeUUID:       CodeUUID,
	CodeBinary8:    CodeBinary32, CodeBinary32: CodeBinary32,
	CodeString8: CodeString32, CodeString32: CodeString32,
	CodeSymbol8: CodeSymbol32, CodeSymbol32: CodeSymbol32,
	CodeList0: CodeList32, CodeList8: CodeList32, CodeList32: CodeList32,
	CodeMap8: CodeMap32, CodeMap32: CodeMap32,
	CodeArray8: CodeArray32, CodeArray32: CodeArray32,
}

// valid reports whether the code begins a plain, undescribed value.
func (c Code) valid() bool { return c.widest() != 0 }

// String names the type and the code, for error texts.
func (c Code) String() string { return fmt.Sprintf("%s (0x%02x)", c.typeName(), byte(c)) }

func (c Code) typeName() string {
	if c == CodeDescribed {
		return "described value"
	}
	return cmp.Or(typeNames[c.widest()], "unknown constructor")
}

// typeNames has a name for each widest code.
var typeNames = [256]string{
	CodeNull: "null", CodeBoolean: "boolean", CodeUbyte: "ubyte", CodeUshort: "ushort",
	CodeUint: "uint", CodeUlong: "ulong", CodeByte: "byte", CodeShort: "short", CodeInt: "int",
	CodeLong: "long", CodeFloat: "float", CodeDouble: "double", CodeDecimal32: "decimal32",
	CodeDecimal64: "decimal64", CodeDecimal128: "decimal128", CodeChar: "char",
	CodeTimestamp: "timestamp", CodeUUID: "uuid", CodeBinary32: "binary", CodeString32: "string",
	CodeSymbol32: "symbol", CodeList32: "list", CodeMap32: "map", CodeArray32: "array",
}
