package wire

import (
	"bytes"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/eventyard/eventyard/internal/testkit"
)

// anyValue draws a value of any type that AMQP has, nested up to depth.
func anyValue(depth int) *rapid.Generator[any] {
	simple := []*rapid.Generator[any]{
		rapid.Just[any](nil),
		rapid.Bool().AsAny(),
		rapid.Uint8().AsAny(), rapid.Uint16().AsAny(), rapid.Uint32().AsAny(), rapid.Uint64().AsAny(),
		rapid.Int8().AsAny(), rapid.Int16().AsAny(), rapid.Int32().AsAny(), rapid.Int64().AsAny(),
		rapid.Float32().AsAny(), rapid.Float64().AsAny(),
		rapid.Map(rapid.Int32(), func(v int32) any { return Char(v) }),
		rapid.Map(rapid.Int64(), func(ms int64) any { return time.UnixMilli(ms).UTC() }),
		fixedBytes(4, func(b []byte) any { return Decimal32(b) }),
		fixedBytes(8, func(b []byte) any { return Decimal64(b) }),
		fixedBytes(16, func(b []byte) any { return Decimal128(b) }),
		fixedBytes(16, func(b []byte) any { return UUID(b) }),
		rapid.SliceOfN(rapid.Byte(), 0, 300).AsAny(),
		rapid.StringN(-1, -1, 300).AsAny(),
		symbol().AsAny(),
	}
	if depth == 0 {
		return rapid.OneOf(simple...)
	}
	inner := anyValue(depth - 1)
	return rapid.OneOf(append(simple,
		rapid.SliceOfN(inner, 0, 5).AsAny(),
		rapid.Custom(func(t *rapid.T) any {
			m := make(Map, rapid.IntRange(0, 4).Draw(t, "pairs"))
			for i := range m {
				m[i] = Pair{inner.Draw(t, "key"), inner.Draw(t, "value")}
			}
			return m
		}),
		rapid.Custom(func(t *rapid.T) any { return drawArray(t, inner) }),
		rapid.Custom(func(t *rapid.T) any { return Described{descriptor().Draw(t, "descriptor"), inner.Draw(t, "value")} }),
	)...)
}

func fixedBytes(n int, make func([]byte) any) *rapid.Generator[any] {
	return rapid.Map(rapid.SliceOfN(rapid.Byte(), n, n), make)
}

func symbol() *rapid.Generator[Symbol] {
	return rapid.Map(rapid.StringMatching(`[a-z:*-]{0,30}`), func(s string) Symbol { return Symbol(s) })
}

func descriptor() *rapid.Generator[any] {
	return rapid.OneOf(rapid.Uint64().AsAny(), symbol().AsAny())
}

// drawArray takes the type of one value and as many others as are of that type.
func drawArray(t *rapid.T, inner *rapid.Generator[any]) any {
	first := inner.Filter(func(v any) bool { return codeOf(v) != 0 }).Draw(t, "first")
	a := Array{Of: codeOf(first), Values: []any{}}
	for _, v := range append(rapid.SliceOfN(inner, 0, 3).Draw(t, "others"), first, first) {
		if codeOf(v) == a.Of {
			a.Values = append(a.Values, v)
		}
	}
	if rapid.Bool().Draw(t, "described") {
		a.Descriptor = descriptor().Draw(t, "descriptor")
	}
	return a
}

// H3: whatever is written is read as what it was, of the same type, and Skip agrees.
func TestEveryValueComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := anyValue(3).Draw(t, "value")
		prefix := rapid.SliceOfN(rapid.Byte(), 0, 4).Draw(t, "prefix")
		encoded := testkit.Value(AppendAny(bytes.Clone(prefix), want))(t)
		testkit.MustEqual(t, bytes.HasPrefix(encoded, prefix), true, "% x does not begin with % x", encoded, prefix)
		encoded = encoded[len(prefix):]
		r := NewReader(encoded)
		got, err := r.ReadAny()
		if err != nil || r.Len() != 0 || !reflect.DeepEqual(got, want) {
			t.Fatalf("read %#v, %v with %d bytes left; want %#v", got, err, r.Len(), want)
		}
		skip := NewReader(encoded)
		if err := skip.Skip(); err != nil || skip.Len() != 0 {
			t.Fatalf("skip: %v with %d bytes left", err, skip.Len())
		}
	})
}

func TestNoPrefixOfAValueIsAValue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		encoded := testkit.Value(AppendAny(nil, anyValue(2).Draw(t, "value")))(t)
		cut := encoded[:rapid.IntRange(0, len(encoded)-1).Draw(t, "cut")]
		r := NewReader(cut)
		if got, err := r.ReadAny(); err == nil {
			t.Fatalf("% x of % x reads as %#v", cut, encoded, got)
		}
	})
}
