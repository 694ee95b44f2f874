package amqpjson

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/amqp/wire"
	"github.com/eventyard/eventyard/internal/testkit"
	"pgregory.net/rapid"
)

// H3: every AMQP value has a form in JSON. Where the styles differ, plain is the other one.
func TestValuesAsJSON(t *testing.T) {
	at := time.UnixMilli(1700000000120).UTC()
	tests := []struct {
		what        string
		v           any
		want, plain string
	}{
		{"null", nil, `null`, ``},
		{"boolean", true, `true`, ``},
		{"ubyte", uint8(255), `255`, ``}, {"ushort", uint16(7), `7`, ``}, {"uint", uint32(7), `7`, ``}, {"ulong", uint64(math.MaxUint64), `18446744073709551615`, ``},
		{"byte", int8(-1), `-1`, ``}, {"short", int16(-1), `-1`, ``}, {"int", int32(-1), `-1`, ``}, {"long", int64(math.MinInt64), `-9223372036854775808`, ``},
		{"Go's own integers", []any{-1, uint(1)}, `[-1,1]`, ``},
		{"a whole double keeps its point", 2.0, `2.0`, `2`}, {"double", 0.1, `0.1`, ``}, {"a large double", 1e21, `1e+21`, ``}, {"float", float32(0.1), `0.1`, ``},
		{"not a number", math.NaN(), `"NaN"`, ``}, {"infinity", math.Inf(1), `"Infinity"`, `"+Inf"`}, {"and the other one", math.Inf(-1), `"-Infinity"`, `"-Inf"`},
		{"string", "a\"b", `"a\"b"`, ``}, {"symbol", wire.Symbol("s"), `"s"`, ``}, {"char", wire.Char('é'), `"é"`, ``},
		{"invalid text", "a\xffb", `"a` + "\ufffd" + `b"`, ``},
		{"control characters", "\x01\n\r\t", `"\u0001\n\r\t"`, `"\u0001\u000a\u000d\u0009"`},
		{"binary", []byte{0, 1}, `"AAE="`, ``}, {"timestamp", at, `"2023-11-14T22:13:20.120Z"`, `"2023-11-14T22:13:20.12Z"`},
		{"uuid", [16]byte{0: 0x12, 15: 0xff}, `"12000000-0000-0000-0000-0000000000ff"`, ``},
		{"decimal32", wire.Decimal32{1, 2, 3, 4}, `"01020304"`, ``}, {"decimal64", wire.Decimal64{7: 1}, `"0000000000000001"`, ``},
		{"decimal128", wire.Decimal128{15: 1}, `"00000000000000000000000000000001"`, ``},
		{"list", []any{int64(1), nil, []any{}}, `[1,null,[]]`, ``},
		{"array", wire.Array{Values: []any{"a", "b"}}, `["a","b"]`, ``},
		{"map", wire.Map{{Key: "b", Value: int64(1)}, {Key: wire.Symbol("a"), Value: nil}, {Key: int64(7), Value: true}, {Key: []any{"x"}, Value: wire.Map{}}},
			`{"b":1,"a":null,"7":true,"[\"x\"]":{}}`, ``},
		{"a key that is text in JSON only", wire.Map{{Key: []byte{1}, Value: "x"}}, `{"\"AQ==\"":"x"}`, `{"AQ==":"x"}`},
		{"a Go map", map[string]any{"b": int64(1), "a": map[string]any{}}, `{"a":{},"b":1}`, ``},
		{"described", wire.Described{Descriptor: wire.Symbol("d"), Value: "x"}, `{"descriptor":"d","value":"x"}`, `"x"`},
		{"what nobody knows", struct{ A int }{7}, `"{7}"`, ``},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			if tt.plain == "" {
				tt.plain = tt.want
			}
			for style, want := range map[Style]string{Exact: tt.want, Plain: tt.plain} {
				got := AppendValue([]byte("before"), tt.v, style)
				testkit.Equal(t, string(got), "before"+want, "style %d: got %s, want %s", style, got, want)
				testkit.Equal(t, json.Valid([]byte(want)), true, "style %d: got %s, want %s", style, got, want)
			}
		})
	}
}

func TestScalarsHaveNoParts(t *testing.T) {
	for _, v := range []any{[]any{}, wire.Array{}, wire.Map{}, map[string]any{}, wire.Described{}, struct{}{}} {
		if got, ok := AppendScalar([]byte("x"), v, Plain); ok || string(got) != "x" {
			t.Errorf("%T was written: %s", v, got)
		}
	}
	if got, ok := AppendScalar(nil, int32(7), Plain); !ok || string(got) != "7" {
		t.Errorf("7 was written as %s, %v", got, ok)
	}
}

func TestFieldsThatAreEmptyAreLeftOut(t *testing.T) {
	dst := AppendTextField([]byte(`{"a":1`), "empty", "")
	dst = AppendTextField(dst, "text", []byte("\n"))
	dst = AppendIDField(dst, "none", nil)
	dst = AppendIDField(dst, "number", uint64(7))
	dst = AppendIDField(dst, "uuid", [16]byte{15: 1})
	dst = AppendIDField(dst, "bytes", []byte{1})
	dst = AppendMapField(dst, "nothing", map[string]any{})
	dst = AppendMapField(dst, "map", map[string]any{"b": 1.0, "a": "x"})
	const want = `{"a":1,"text":"\n","number":"7","uuid":"00000000-0000-0000-0000-000000000001","bytes":"AQ==","map":{"a":"x","b":1.0}`
	testkit.Equal(t, string(dst), want, "got  %s", dst)
}

// The escapes agree with the standard library's reading of them.
func TestTextSurvives(t *testing.T) {
	escaped := rapid.StringOf(rapid.RuneFrom([]rune("\x00\x1f\"\\/\n\r\t\u2028\uffffé😀a{}[]")))
	anyBytes := rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), escaped, anyBytes).Draw(t, "text")
		want := string([]rune(text)) // each byte that is not valid becomes U+FFFD
		for _, style := range []Style{Exact, Plain} {
			raw := AppendText(nil, text, style)
			var got string
			if err := json.Unmarshal(raw, &got); err != nil || got != want {
				t.Fatalf("%q came back as %q, %v", text, got, err)
			}
			if other := AppendText(nil, []byte(text), style); string(other) != string(raw) {
				t.Fatalf("as bytes %s, as a string %s", other, raw)
			}
		}
	})
}

// everything is a value of values of all kinds.
func everything() map[string]any {
	return map[string]any{
		"text": strings.Repeat("é\n", 20), "symbol": wire.Symbol("s"), "char": wire.Char('é'), "bytes": []byte("bytes"),
		"time": time.UnixMilli(1700000000123), "uuid": [16]byte{1}, "decimal": wire.Decimal128{1}, "float": 21.5, "whole": float32(2), "not": math.NaN(),
		"list": []any{int8(1), uint64(2), nil, true}, "map": wire.Map{{Key: int64(1), Value: wire.Described{Descriptor: uint64(1), Value: "x"}}},
	}
}

func TestValuesAreWrittenWithoutAllocation(t *testing.T) {
	var buf []byte
	v := any(everything())
	for _, style := range []Style{Exact, Plain} {
		testkit.Equal(t, testing.AllocsPerRun(100, func() { buf = AppendValue(buf[:0], v, style) }), 0, "style %d", style)
	}
}

func BenchmarkAppendValue(b *testing.B) {
	var buf []byte
	v := any(everything())
	b.ReportAllocs()
	for b.Loop() {
		buf = AppendValue(buf[:0], v, Exact)
	}
	b.SetBytes(int64(len(buf)))
}
