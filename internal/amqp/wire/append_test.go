package wire

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
)

// The small forms end where their one byte of size does.
func TestCompoundsGrowIntoTheLargeForm(t *testing.T) {
	for _, c := range []struct {
		name  string
		bytes int // of a binary that is the only element, head not counted
		want  Code
	}{
		{"a small list", 10, CodeList8},
		{"the largest small list", 252, CodeList8},
		{"the smallest large list", 253, CodeList32},
		{"a large list", 70_000, CodeList32},
	} {
		t.Run(c.name, func(t *testing.T) {
			encoded := testkit.Value(AppendAny(nil, []any{make([]byte, c.bytes)}))(t)
			testkit.Equal(t, Code(encoded[0]), c.want, "%s", c.name)
			r := NewReader(encoded)
			if err := r.Skip(); err != nil || r.Len() != 0 {
				t.Errorf("%s: skip: %v with %d bytes left", c.name, err, r.Len())
			}
		})
	}
	many := testkit.Value(AppendAny(nil, make([]any, 256)))(t)
	testkit.Equal(t, Code(many[0]), CodeList32, "256 nulls")
}

// Writers nest: an inner value that shrinks to its small form leaves the outer whole.
func TestWritersNest(t *testing.T) {
	dst := []byte{0xff} // what was there before stays
	dst, outer := BeginList(dst)
	dst = AppendString(dst, "first")
	dst, inner := BeginMap(dst)
	dst = AppendBool(AppendSymbol(dst, "k"), true)
	dst = EndMap(dst, inner, 1)
	dst, array := BeginArray(dst, CodeUbyte)
	dst = append(dst, 1, 2, 3)
	dst = EndArray(dst, array, 3)
	dst = EndList(dst, outer, 3)

	r := NewReader(dst[1:])
	got, err := r.ReadAny()
	want := []any{"first", Map{{Symbol("k"), true}}, Array{Of: CodeUbyte, Values: []any{uint8(1), uint8(2), uint8(3)}}}
	if err != nil || !reflect.DeepEqual(got, want) || dst[0] != 0xff || r.Len() != 0 {
		t.Errorf("read %#v, %v with %d bytes left; want %#v", got, err, r.Len(), want)
	}
}

// The Python client reads the third byte for the number and cannot read list0.
func TestDescribedListsAreWrittenAsEveryClientReadsThem(t *testing.T) {
	dst, list := BeginList(AppendDescriptor(nil, 0x24))
	if got, want := EndList(dst, list, 0), []byte{0, 0x53, 0x24, 0xc0, 1, 0}; !bytes.Equal(got, want) {
		t.Errorf("an empty described list is % x, want % x", got, want)
	}
	if got, want := AppendDescriptor(nil, 0), []byte{0, 0x53, 0}; !bytes.Equal(got, want) {
		t.Errorf("descriptor zero is % x, want % x", got, want)
	}
	if got := AppendDescriptor(nil, 0x468c00000004); Code(got[1]) != CodeUlong {
		t.Errorf("a large descriptor is % x, want a ulong", got)
	}
}

func TestGoValuesWithoutATypeOfTheirOwnTakeTheNearest(t *testing.T) {
	at := time.Date(2024, 5, 6, 7, 8, 9, 123_456_789, time.FixedZone("", 3600))
	for _, c := range []struct{ value, want any }{
		{int(7), int64(7)},
		{uint(7), uint64(7)},
		{at, at.Truncate(time.Millisecond).UTC()},
		{[]byte(nil), []byte{}},
		{[]any(nil), []any{}},
		{Map(nil), Map{}},
		{Array{Of: CodeLong, Values: []any{int(7)}}, Array{Of: CodeLong, Values: []any{int64(7)}}},
		{Array{Of: CodeUlong, Values: []any{uint(7)}}, Array{Of: CodeUlong, Values: []any{uint64(7)}}},
	} {
		t.Run(fmt.Sprintf("%#v", c.value), func(t *testing.T) {
			r := NewReader(testkit.Value(AppendAny(nil, c.value))(t))
			testkit.Deep(t, testkit.Value(r.ReadAny())(t), c.want, "it came back as")
		})
	}
}

func TestWhatCannotBeEncodedIsRefused(t *testing.T) {
	for _, c := range []struct {
		name  string
		value any
		err   error
	}{
		{"a Go map", map[string]any{}, ErrUnsupported},
		{"a struct", struct{}{}, ErrUnsupported},
		{"a Go slice of another type", []string{"a"}, ErrUnsupported},
		{"something unknown in a list", []any{1, []any{struct{}{}}}, ErrUnsupported},
		{"something unknown in a map", Map{{"k", struct{}{}}}, ErrUnsupported},
		{"something unknown as a key", Map{{struct{}{}, "v"}}, ErrUnsupported},
		{"a descriptor that is a list", Described{[]any{}, nil}, ErrUnsupported},
		{"a descriptor that is described", Described{Described{uint64(1), nil}, nil}, ErrUnsupported},
		{"a descriptor of no type of ours", Described{struct{}{}, nil}, ErrUnsupported},
		{"no descriptor", Described{nil, nil}, ErrUnsupported},
		{"an array of nothing", Array{}, ErrUnsupported},
		{"an array by a small code", Array{Of: CodeSmallUint}, ErrUnsupported},
		{"an array of described values without descriptor", Array{Of: CodeDescribed}, ErrUnsupported},
		{"a string in an array of symbols", Array{Of: CodeSymbol32, Values: []any{Symbol("a"), "b"}}, ErrUnsupported},
		{"a described value in an array", Array{Of: CodeUint, Values: []any{Described{uint64(1), uint32(1)}}}, ErrUnsupported},
		{"an array described by a map", Array{Of: CodeUint, Descriptor: Map{}}, ErrUnsupported},
		{"an array of too many nulls", Array{Of: CodeNull, Values: make([]any, maxFreeElements+1)}, ErrUnsupported},
		{"a string that is not UTF-8", "a\xff", ErrText},
		{"such a string in an array", Array{Of: CodeString32, Values: []any{"\xff"}}, ErrText},
		{"a symbol that is not ASCII", Symbol("ä"), ErrText},
		{"such a symbol in an array", Array{Of: CodeSymbol32, Values: []any{Symbol("ä")}}, ErrText},
		{"such a descriptor", Described{Symbol("ä"), nil}, ErrText},
	} {
		t.Run(c.name, func(t *testing.T) {
			dst := []byte("before")
			out, err := AppendAny(dst, c.value)
			if !errors.Is(err, c.err) || string(out) != "before" {
				t.Errorf("%s: %q, %v; want what was there before and %v", c.name, out, err, c.err)
			}
		})
	}
}

func TestLongTextInArraysTakesTheLargeForm(t *testing.T) {
	long := strings.Repeat("x", 256)
	for _, want := range []Array{
		{Of: CodeString32, Values: []any{"short", long}},
		{Of: CodeSymbol32, Values: []any{Symbol(long), Symbol("")}},
		{Of: CodeBinary32, Values: []any{[]byte(long)}},
	} {
		encoded := testkit.Value(AppendAny(nil, want))(t)
		r := NewReader(encoded)
		testkit.Deep(t, testkit.Value(r.ReadAny())(t), want, "array of %s came back as", want.Of)
	}
}
