package wire

import (
	"bytes"
	"encoding/hex"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
)

// unhex reads hexadecimal with spaces in it.
func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	testkit.Must(t, err, "test data %q", s)
	return b
}

type vector struct {
	name  string
	hex   string
	value any
	// long marks an encoding that we understand but do not write.
	long bool
}

// vectors has every row of the standard's tables of encodings (§1.6).
func vectors() []vector {
	uuid := UUID{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
	return []vector{
		{name: "null", hex: "40", value: nil},
		{name: "boolean, one byte, true", hex: "56 01", value: true, long: true},
		{name: "boolean, one byte, false", hex: "56 00", value: false, long: true},
		{name: "true", hex: "41", value: true},
		{name: "false", hex: "42", value: false},
		{name: "ubyte", hex: "50 ff", value: uint8(255)},
		{name: "ushort", hex: "60 01 02", value: uint16(0x0102)},
		{name: "uint", hex: "70 01 02 03 04", value: uint32(0x01020304)},
		{name: "uint, small number in full", hex: "70 00 00 00 07", value: uint32(7), long: true},
		{name: "smalluint", hex: "52 ff", value: uint32(255)},
		{name: "uint0", hex: "43", value: uint32(0)},
		{name: "ulong", hex: "80 01 02 03 04 05 06 07 08", value: uint64(0x0102030405060708)},
		{name: "smallulong", hex: "53 75", value: uint64(0x75)},
		{name: "ulong0", hex: "44", value: uint64(0)},
		{name: "byte", hex: "51 80", value: int8(-128)},
		{name: "short", hex: "61 80 00", value: int16(math.MinInt16)},
		{name: "int", hex: "71 80 00 00 00", value: int32(math.MinInt32)},
		{name: "int, just too big to be small", hex: "71 00 00 00 80", value: int32(128)},
		{name: "smallint", hex: "54 80", value: int32(-128)},
		{name: "long", hex: "81 80 00 00 00 00 00 00 00", value: int64(math.MinInt64)},
		{name: "long, small number in full", hex: "81 ff ff ff ff ff ff ff ff", value: int64(-1), long: true},
		{name: "smalllong", hex: "55 7f", value: int64(127)},
		{name: "float", hex: "72 3f 80 00 00", value: float32(1)},
		{name: "double", hex: "82 c0 00 00 00 00 00 00 00", value: float64(-2)},
		{name: "decimal32", hex: "74 22 50 00 01", value: Decimal32{0x22, 0x50, 0, 1}},
		{name: "decimal64", hex: "84 22 34 00 00 00 00 00 01", value: Decimal64{0x22, 0x34, 0, 0, 0, 0, 0, 1}},
		{name: "decimal128", hex: "94 22 07 00 00 00 00 00 00 00 00 00 00 00 00 00 01",
			value: Decimal128{0x22, 0x07, 15: 1}},
		{name: "char", hex: "73 00 01 f4 14", value: Char('🐔')},
		{name: "timestamp", hex: "83 00 00 01 30 4e d8 17 00", value: time.UnixMilli(0x01304ed81700).UTC()},
		{name: "timestamp before 1970", hex: "83 ff ff c7 7c ed d3 28 00", value: time.Time{}},
		{name: "uuid", hex: "98 00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f", value: uuid},
		{name: "vbin8", hex: "a0 02 ca fe", value: []byte{0xca, 0xfe}},
		{name: "vbin8, empty", hex: "a0 00", value: []byte{}},
		{name: "vbin32", hex: "b0 00 00 00 02 ca fe", value: []byte{0xca, 0xfe}, long: true},
		{name: "str8", hex: "a1 04 66 6f c3 b6", value: "foö"},
		{name: "str32", hex: "b1 00 00 00 03 66 6f 6f", value: "foo", long: true},
		{name: "sym8", hex: "a3 03 66 6f 6f", value: Symbol("foo")},
		{name: "sym32", hex: "b3 00 00 00 03 66 6f 6f", value: Symbol("foo"), long: true},
		{name: "list0", hex: "45", value: []any{}, long: true},
		{name: "list8, empty", hex: "c0 01 00", value: []any{}},
		{name: "list8", hex: "c0 04 02 50 01 40", value: []any{uint8(1), nil}},
		{name: "list32", hex: "d0 00 00 00 07 00 00 00 02 50 01 40", value: []any{uint8(1), nil}, long: true},
		{name: "map8", hex: "c1 06 02 a1 01 61 54 05", value: Map{{"a", int32(5)}}},
		{name: "map32", hex: "d1 00 00 00 09 00 00 00 02 a1 01 61 54 05", value: Map{{"a", int32(5)}}, long: true},
		{name: "map with keys of two types", hex: "c1 07 04 44 41 a3 01 61 42",
			value: Map{{uint64(0), true}, {Symbol("a"), false}}},
		{name: "array8 of symbol", hex: "e0 06 02 a3 01 61 01 62",
			value: Array{Of: CodeSymbol32, Values: []any{Symbol("a"), Symbol("b")}}},
		{name: "array32 of symbol", hex: "f0 00 00 00 09 00 00 00 02 a3 01 61 01 62",
			value: Array{Of: CodeSymbol32, Values: []any{Symbol("a"), Symbol("b")}}, long: true},
		{name: "array of int", hex: "e0 0a 02 71 00 00 00 01 ff ff ff ff",
			value: Array{Of: CodeInt, Values: []any{int32(1), int32(-1)}}},
		{name: "array of smallint", hex: "e0 04 02 54 01 ff",
			value: Array{Of: CodeInt, Values: []any{int32(1), int32(-1)}}, long: true},
		{name: "array of boolean", hex: "e0 04 02 56 01 00", value: Array{Of: CodeBoolean, Values: []any{true, false}}},
		{name: "array of true", hex: "e0 02 02 41", value: Array{Of: CodeBoolean, Values: []any{true, true}}, long: true},
		{name: "array of null", hex: "e0 02 03 40", value: Array{Of: CodeNull, Values: []any{nil, nil, nil}}},
		{name: "array of list0", hex: "e0 02 01 45", value: Array{Of: CodeList32, Values: []any{[]any{}}}, long: true},
		{name: "array of list32", hex: "e0 0b 01 d0 00 00 00 05 00 00 00 01 41",
			value: Array{Of: CodeList32, Values: []any{[]any{true}}}},
		{name: "array of map8", hex: "e0 06 01 c1 03 02 43 41",
			value: Array{Of: CodeMap32, Values: []any{Map{{uint32(0), true}}}}, long: true},
		{name: "array of array8", hex: "e0 06 01 e0 03 01 50 07",
			value: Array{Of: CodeArray32, Values: []any{Array{Of: CodeUbyte, Values: []any{uint8(7)}}}}, long: true},
		{name: "described by an int", hex: "00 54 05 a1 01 76", value: Described{int32(5), "v"}},
		{name: "described by a string", hex: "00 a1 01 64 40", value: Described{"d", nil}},
		{name: "array described by an int", hex: "e0 06 01 00 54 09 50 07",
			value: Array{Of: CodeUbyte, Descriptor: int32(9), Values: []any{uint8(7)}}},
		{name: "array of described values", hex: "e0 07 02 00 53 09 50 07 08",
			value: Array{Of: CodeUbyte, Descriptor: uint64(9), Values: []any{uint8(7), uint8(8)}}},
		{name: "array, empty", hex: "e0 02 00 a1", value: Array{Of: CodeString32, Values: []any{}}},
		{name: "array, empty, as the Python client writes it", hex: "e0 01 00",
			value: Array{Of: CodeNull, Values: []any{}}, long: true},
		{name: "described by number", hex: "00 53 75 a0 01 00", value: Described{uint64(0x75), []byte{0}}},
		{name: "described by a large number", hex: "00 80 00 00 46 8c 00 00 00 04 a1 01 61",
			value: Described{uint64(0x468c00000004), "a"}},
		{name: "described by symbol", hex: "00 a3 03 55 52 4c a1 01 61", value: Described{Symbol("URL"), "a"}},
		{name: "described twice", hex: "00 53 01 00 53 02 40", value: Described{uint64(1), Described{uint64(2), nil}}},
	}
}

// H3: values of every AMQP type come back as what they were.
func TestEncodingsOfTheStandard(t *testing.T) {
	for _, v := range vectors() {
		t.Run(v.name, func(t *testing.T) {
			encoded := unhex(t, v.hex)
			r := NewReader(encoded)
			got := testkit.Value(r.ReadAny())(t)
			testkit.Deep(t, got, v.value, "ReadAny =")
			testkit.Equal(t, r.Len(), 0, "ReadAny left")
			r = NewReader(encoded)
			if err := r.Skip(); err != nil || r.Len() != 0 {
				t.Errorf("Skip: %v, left %d bytes", err, r.Len())
			}
			again := testkit.Value(AppendAny(nil, v.value))(t)
			if !v.long && !bytes.Equal(again, encoded) {
				t.Errorf("AppendAny = % x, want % x", again, encoded)
			}
			r = NewReader(again)
			testkit.Deep(t, testkit.Value(r.ReadAny())(t), v.value, "ReadAny of AppendAny =")
		})
	}
}

// The codes of the vectors together are all codes there are.
func TestTheVectorsCoverEveryConstructor(t *testing.T) {
	seen := map[Code]bool{}
	for _, v := range vectors() {
		seen[Code(unhex(t, v.hex)[0])] = true
	}
	for c := range 256 {
		if c := Code(c); (c.valid() || c == CodeDescribed) && !seen[c] {
			t.Errorf("no vector begins with %s", c)
		}
	}
	testkit.Equal(t, len(seen), 39+1, "constructors")
}

func TestEveryShorterEncodingIsTruncated(t *testing.T) {
	for _, v := range vectors() {
		encoded := unhex(t, v.hex)
		for n := range encoded {
			r := NewReader(encoded[:n])
			if got, err := r.ReadAny(); err == nil {
				t.Errorf("%s: the first %d bytes read as %#v", v.name, n, got)
			}
			r = NewReader(encoded[:n])
			if err := r.Skip(); err == nil {
				t.Errorf("%s: the first %d bytes were skipped", v.name, n)
			}
		}
	}
}
