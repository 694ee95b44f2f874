package wire

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

// typedReads is every read of one type, by the widest code of what it reads.
func typedReads() map[Code]func(*Reader) (any, error) {
	return map[Code]func(*Reader) (any, error){
		CodeBoolean:   func(r *Reader) (any, error) { return r.ReadBool() },
		CodeUbyte:     func(r *Reader) (any, error) { return r.ReadUbyte() },
		CodeUshort:    func(r *Reader) (any, error) { return r.ReadUshort() },
		CodeUint:      func(r *Reader) (any, error) { return r.ReadUint() },
		CodeUlong:     func(r *Reader) (any, error) { return r.ReadUlong() },
		CodeShort:     func(r *Reader) (any, error) { return r.ReadShort() },
		CodeInt:       func(r *Reader) (any, error) { return r.ReadInt() },
		CodeLong:      func(r *Reader) (any, error) { return r.ReadLong() },
		CodeTimestamp: func(r *Reader) (any, error) { return r.ReadTimestamp() },
		CodeBinary32:  func(r *Reader) (any, error) { return r.ReadBinary() },
		CodeString32:  func(r *Reader) (any, error) { return r.ReadString() },
		CodeSymbol32:  func(r *Reader) (any, error) { return r.ReadSymbol() },
	}
}

// A typed read takes all encodings of its own type, and says so of any other.
func TestTypedReadsTakeTheirTypeOnly(t *testing.T) {
	for of, read := range typedReads() {
		for _, v := range vectors() {
			encoded := unhex(t, v.hex)
			r := NewReader(encoded)
			got, err := read(&r)
			if Code(encoded[0]).widest() != of {
				var decode *DecodeError
				if !errors.As(err, &decode) || !errors.Is(err, ErrType) || decode.Offset != 0 {
					t.Errorf("%s read as %s: error %v, want wrong type at 0", v.name, of, err)
				}
				continue
			}
			want := v.value
			if of == CodeTimestamp {
				whole := NewReader(encoded)
				want, _ = whole.ReadTimestamp()
			}
			if err != nil || !reflect.DeepEqual(got, want) || r.Len() != 0 {
				t.Errorf("%s: read %#v, %v with %d bytes left; want %#v", v.name, got, err, r.Len(), want)
			}
		}
	}
}

func TestTextWithoutCopyIsThatText(t *testing.T) {
	r := NewReader(AppendSymbol(AppendString(nil, "text"), "name"))
	text := testkit.Value(r.ReadStringBytes())(t)
	testkit.Equal(t, string(text), "text", "ReadStringBytes = %q", text)
	testkit.Equal(t, r.Offset(), 6, "Offset")
	testkit.Equal(t, len(r.Rest()), 6, "Rest bytes")
	name, err := r.ReadSymbolBytes()
	testkit.Must(t, err)
	testkit.Equal(t, string(name), "name", "ReadSymbolBytes = %q", name)
}

func TestTryNullReadsNothingElse(t *testing.T) {
	r := NewReader(AppendUint(AppendNull(nil), 0))
	testkit.Equal(t, r.TryNull(), true, "want one null, and then none")
	testkit.Equal(t, r.TryNull(), false, "want one null, and then none")
	testkit.Equal(t, testkit.Value(r.Peek())(t), CodeUint0, "Peek =")
	if _, err := r.ReadUint(); err != nil || r.TryNull() {
		t.Errorf("ReadUint: %v; or a null at the end", err)
	}
	testkit.ErrorIs(t, testkit.Err(r.Peek()), ErrTruncated, "Peek at the end")
}

func TestDescriptorsAreUnderstoodInEveryForm(t *testing.T) {
	for _, c := range []struct {
		name string
		hex  string
		want Descriptor
		err  error
	}{
		{name: "small number", hex: "00 53 75", want: DescriptorData},
		{name: "large number", hex: "00 80 00 00 00 00 00 00 00 75", want: DescriptorData},
		{name: "zero", hex: "00 44", want: 0},
		{name: "short symbol", hex: "00 a3 10 61 6d 71 70 3a 64 61 74 61 3a 62 69 6e 61 72 79", want: DescriptorData},
		{name: "long symbol", hex: "00 b3 00 00 00 0f 61 6d 71 70 3a 66 6f 6f 74 65 72 3a 6d 61 70", want: DescriptorFooter},
		{name: "unknown symbol", hex: "00 a3 01 61", err: ErrMalformed},
		{name: "string", hex: "00 a1 01 61", err: ErrType},
		{name: "no descriptor", hex: "53 75", err: ErrType},
		{name: "nothing", hex: "", err: ErrTruncated},
		{name: "nothing behind the zero", hex: "00", err: ErrTruncated},
		{name: "cut symbol", hex: "00 a3 02 61", err: ErrTruncated},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := NewReader(unhex(t, c.hex))
			got, err := r.ReadDescriptor()
			if !errors.Is(err, c.err) || got != c.want {
				t.Errorf("%s: %#x, %v; want %#x, %v", c.name, got, err, c.want, c.err)
			}
		})
	}
}

// What strangers send is refused with its place, and is never believed.
func TestMalformedValuesAreRefused(t *testing.T) {
	for _, c := range []struct {
		name   string
		hex    string
		offset int
		err    error
	}{
		{"nothing", "", 0, ErrTruncated},
		{"unknown constructor", "3f", 0, ErrMalformed},
		{"unknown constructor of known width", "5f 00", 0, ErrMalformed},
		{"boolean of 2", "56 02", 1, ErrMalformed},
		{"string past the end", "a1 05 61", 2, ErrTruncated},
		{"string of 4 GiB", "b1 ff ff ff ff 61", 5, ErrTruncated},
		{"list past the end", "c0 09 01 40", 1, ErrTruncated},
		{"list of 4 GiB", "d0 ff ff ff ff 00 00 00 01 40", 1, ErrTruncated},
		{"list smaller than its own count", "c0 00 00", 1, ErrMalformed},
		{"list of four billion elements", "d0 00 00 00 05 ff ff ff ff 40", 1, ErrMalformed},
		{"list of more elements than bytes", "c0 02 02 40", 1, ErrMalformed},
		{"list with a byte too many", "c0 03 01 40 40", 5, ErrMalformed},
		{"element that leaves its list", "c0 02 01 50 40", 4, ErrMalformed},
		{"map of three", "c1 04 03 40 40 40", 1, ErrMalformed},
		{"array of two billion nulls", "f0 00 00 00 05 7f ff ff ff 40", 1, ErrMalformed},
		{"array of more elements than bytes", "e0 03 05 50 01", 1, ErrMalformed},
		{"array without constructor", "e0 01 01", 3, ErrTruncated},
		{"array whose constructor is outside", "e0 01 01 50 01", 1, ErrMalformed},
		{"array of described described values", "e0 06 01 00 53 01 00 40", 6, ErrMalformed},
		{"array with a bad boolean", "e0 03 01 56 07", 4, ErrMalformed},
		{"null as descriptor", "00 40 40", 1, ErrType},
		{"a list as descriptor", "00 45 40", 1, ErrType},
		{"a described value as descriptor", "00 00 53 01 40 40", 1, ErrType},
		{"a descriptor of no type", "00 3f 40", 1, ErrMalformed},
		{"a descriptor cut off", "00 71 00 40", 2, ErrTruncated},
		{"descriptor without value", "00 53 01", 3, ErrTruncated},
	} {
		t.Run(c.name, func(t *testing.T) {
			skip, read := NewReader(unhex(t, c.hex)), NewReader(unhex(t, c.hex))
			_, readErr := read.ReadAny()
			for _, err := range []error{skip.Skip(), readErr} {
				var decode *DecodeError
				if !errors.Is(err, c.err) || !errors.As(err, &decode) || decode.Offset != c.offset {
					t.Errorf("error %v, want %v at byte %d", err, c.err, c.offset)
				}
			}
		})
	}
}

func TestErrorsSayWhereAndWhat(t *testing.T) {
	list, err := AppendAny(nil, []any{"a", int32(7)})
	testkit.Must(t, err)
	r := NewReader(list)
	testkit.Must(t, testkit.Err(r.EnterList()))
	testkit.Must(t, testkit.Err(r.ReadString()))
	_, err = r.ReadUint()
	if got, want := fmt.Sprint(err), "decode at byte 6: want uint, found int (0x54)"; got != want {
		t.Errorf("error %q, want %q", got, want)
	}
	r = NewReader(list[:5])
	if got, want := fmt.Sprint(r.Skip()), "decode at byte 1: want list: bytes end too early"; got != want {
		t.Errorf("error %q, want %q", got, want)
	}
}

func TestLeaveWantsExactlyTheElements(t *testing.T) {
	m := testkit.Value(AppendAny(nil, Map{{"a", "b"}}))(t)
	r := NewReader(m)
	entries := testkit.Value(r.EnterMap())(t)
	testkit.MustEqual(t, entries.Count, 2, "EnterMap = %+v", entries)
	testkit.ErrorIs(t, r.Leave(entries), ErrMalformed, "leaving early")
	for range entries.Count {
		testkit.Must(t, r.Skip())
	}
	testkit.Check(t, r.Leave(entries), "leaving at the end")
	r = NewReader(m)
	testkit.ErrorIs(t, testkit.Err(r.EnterList()), ErrType, "a map entered as a list")
}

// nest wraps a value in n others, of every kind that nests.
func nest(n int, wrap func(any) any) any {
	var v any = true
	for range n {
		v = wrap(v)
	}
	return v
}

func TestNestingIsBounded(t *testing.T) {
	arrayOf := func(v any) any {
		return Array{Of: codeOf(v), Values: []any{v}}
	}
	for name, wrap := range map[string]func(any) any{
		"lists":            func(v any) any { return []any{v} },
		"map values":       func(v any) any { return Map{{"k", v}} },
		"map keys":         func(v any) any { return Map{{v, "v"}} },
		"arrays":           arrayOf,
		"described values": func(v any) any { return Described{uint64(1), v} },
	} {
		t.Run(name, func(t *testing.T) {
			encoded, err := AppendAny(nil, nest(MaxDepth, wrap))
			if err != nil {
				t.Errorf("%s: encode at the limit: %v", name, err)
				return
			}
			r := NewReader(encoded)
			testkit.Check(t, testkit.Err(r.ReadAny()), "%s: read at the limit", name)
			testkit.ErrorIs(t, testkit.Err(AppendAny(nil, nest(MaxDepth+1, wrap))), ErrTooDeep,
				"%s: encode past the limit", name)
		})
	}
	deep := []byte(strings.Repeat("\x00\x53\x01", MaxDepth+1) + "\x40")
	skip, read := NewReader(deep), NewReader(deep)
	testkit.ErrorIs(t, skip.Skip(), ErrTooDeep, "Skip past the limit")
	testkit.ErrorIs(t, testkit.Err(read.ReadAny()), ErrTooDeep, "ReadAny past the limit")
}

// Many small arrays of elements without bytes are no way around the limit on one.
func TestElementsWithoutBytesAreCountedTogether(t *testing.T) {
	nulls := Array{Of: CodeNull, Values: make([]any, maxFreeElements)}
	one := testkit.Value(AppendAny(nil, nulls))(t)
	r := NewReader(append(one, "\xe0\x02\x01\x40"...))
	testkit.Check(t, testkit.Err(r.ReadAny()), "as many as allowed")
	testkit.ErrorIs(t, testkit.Err(r.ReadAny()), ErrMalformed, "one more")
}

func TestCodesHaveNames(t *testing.T) {
	for c := range 256 {
		c := Code(c)
		known := c.valid() || c == CodeDescribed
		if got := strings.HasPrefix(c.String(), "unknown"); got == known {
			t.Errorf("%#x is called %q", byte(c), c)
		}
	}
	testkit.Equal(t, CodeString8.String(), "string (0xa1)", "str8 is called")
}

func TestNaNKeepsItsBits(t *testing.T) {
	const quiet = 0x7fc00123
	encoded := AppendFloat(nil, math.Float32frombits(quiet))
	r := NewReader(encoded)
	v := testkit.Value(r.ReadAny())(t)
	testkit.Equal(t, math.Float32bits(v.(float32)), quiet)
}
