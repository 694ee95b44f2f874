package message

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/amqp/wire"
	"github.com/eventyard/eventyard/internal/testkit"
)

// full has something in every field and place that is stored.
func full() event.Event {
	return event.Event{
		Body:          []byte(`{"open":true}`),
		ContentType:   "application/json",
		MessageID:     [16]byte{1, 2, 3},
		CorrelationID: uint64(7),
		Subject:       "door",
		Properties: map[string]any{
			"nothing": nil, "flag": true, "text": "grün", "bytes": []byte{0, 1},
			"int8": int8(-1), "int16": int16(-2), "int32": int32(-3), "int64": int64(-4),
			"uint8": uint8(1), "uint16": uint16(2), "uint32": uint32(3), "uint64": uint64(4),
			"float32": float32(0.5), "float64": 0.25, "char": event.Char('ß'), "symbol": event.Symbol("s"),
			"uuid": [16]byte{9}, "time": time.UnixMilli(1_700_000_000_123).UTC(), "decimal": event.Decimal64{1},
		},
		System: map[string]any{
			"user-id": []byte("me"), "to": "there", "reply-to": "here", "content-encoding": "gzip",
			"absolute-expiry-time": time.UnixMilli(2_000_000_000_000).UTC(), "creation-time": time.UnixMilli(1).UTC(),
			"group-id": "g", "group-sequence": uint32(5), "reply-to-group-id": "rg",
			"x-opt-mine": int64(7), "other": event.Map{{Key: "k", Value: []any{nil}}},
		},
	}
}

// H3
func TestEveryFieldComesBack(t *testing.T) {
	for name, want := range map[string]event.Event{
		"everything":    full(),
		"text":          event.Text("hello"),
		"no bytes":      event.Bytes(nil),
		"a value":       {Value: event.Map{{Key: event.Symbol("a"), Value: int32(1)}}},
		"a list":        {Value: []any{"a", nil, 1.5}},
		"a binary id":   {Body: []byte{}, MessageID: []byte("id"), CorrelationID: "text"},
		"only the last": {Body: []byte{}, System: map[string]any{"reply-to-group-id": "rg"}},
		"an annotation": {Body: []byte{}, System: map[string]any{"iothub-connection-device-id": "d"}},
		"a large body":  {Body: bytes.Repeat([]byte("x"), 100_000)},
	} {
		t.Run(name, func(t *testing.T) {
			stored, err := Append(nil, want)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				return
			}
			got := testkit.Value(Decode(stored))(t)
			testkit.Diff(t, want, got)
		})
	}
}

// H3: what Append writes is the stored form already, with no trace of what the hub sets.
func TestAppendWritesTheStoredForm(t *testing.T) {
	e := full()
	e.Key, e.Partition, e.Sequence, e.Offset, e.Enqueued = "key", "3", 9, "9", time.Now()
	e.System["x-opt-offset"] = "9"
	e.System["com.microsoft:producer-id"] = int64(1)
	stored := testkit.Value(Append(nil, e))(t)
	again, own, err := wire.Normalize(nil, stored)
	if err != nil || !bytes.Equal(again, stored) || own.Key != nil {
		t.Errorf("normalized: key %q, %v, same bytes: %t", own.Key, err, bytes.Equal(again, stored))
	}
	got := testkit.Value(Decode(stored))(t)
	testkit.Diff(t, full(), got)
}

func TestAppendIsDeterministic(t *testing.T) {
	first := testkit.Value(Append(nil, full()))(t)
	for range 20 {
		testkit.MustEqual(t, string(testkit.Value(Append(nil, full()))(t)), string(first), "the same event gave")
	}
	m := testkit.Value(wire.Sections(first))(t)
	r := wire.NewReader(m.ApplicationProperties)
	section := testkit.Value(r.ReadAny())(t)
	var names []string
	for _, p := range section.(wire.Described).Value.(wire.Map) {
		names = append(names, p.Key.(string))
	}
	testkit.Slices(t, names, slices.Sorted(maps.Keys(full().Properties)),
		"application properties are in the order")
}

// Clients read sections by number from the third byte, and want only those that are set.
func TestAppendWritesNoMoreThanIsSet(t *testing.T) {
	for _, c := range []struct {
		name string
		e    event.Event
		want string
	}{
		{"text", event.Text("hi"), "\x00\x53\x75\xa0\x02hi"},
		{"nothing", event.Event{}, "\x00\x53\x75\xa0\x00"},
		{"a value", event.Event{Value: true}, "\x00\x53\x77\x41"},
		{"a message id", event.Event{MessageID: "m"}, "\x00\x53\x73\xc0\x04\x01\xa1\x01m\x00\x53\x75\xa0\x00"},
		{"a content type, which is a symbol", event.Event{ContentType: "t"},
			"\x00\x53\x73\xc0\x0a\x07\x40\x40\x40\x40\x40\x40\xa3\x01t\x00\x53\x75\xa0\x00"},
		{"an application property", event.Event{Properties: map[string]any{"p": nil}},
			"\x00\x53\x74\xc1\x05\x02\xa1\x01p\x40\x00\x53\x75\xa0\x00"},
		{"an annotation", event.Event{System: map[string]any{"a": true}},
			"\x00\x53\x72\xc1\x05\x02\xa3\x01a\x41\x00\x53\x75\xa0\x00"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := testkit.Value(Append([]byte("before"), c.e))(t)
			testkit.Equal(t, string(got), "before"+c.want, "%s: % x", c.name, got)
		})
	}
}

func TestEventsThatCannotBeEncodedAreRefused(t *testing.T) {
	for _, c := range []struct {
		name string
		e    event.Event
		err  error
		says string
	}{
		{"two bodies", event.Event{Body: []byte{}, Value: 1}, ErrTwoBodies, ""},
		{"a body value without a type", event.Event{Value: struct{}{}}, wire.ErrUnsupported, "body value"},
		{"a body too deep", event.Event{Value: deep(wire.MaxDepth + 1)}, wire.ErrTooDeep, "body value"},
		{"a message id of another type", event.Event{MessageID: 7}, ErrPropertyType, "property message-id"},
		{"a correlation id that is a symbol", event.Event{CorrelationID: event.Symbol("x")}, ErrPropertyType, "property correlation-id"},
		{"a subject that is not UTF-8", event.Event{Subject: "\xff"}, wire.ErrText, "property subject"},
		{"a content type that is not ASCII", event.Event{ContentType: "ä"}, wire.ErrText, "property content-type"},
		{"an application property without a type", event.Event{Properties: map[string]any{"p": struct{}{}}}, wire.ErrUnsupported, `application property "p"`},
		{"a name that is not UTF-8", event.Event{Properties: map[string]any{"\xff": 1}}, wire.ErrText, "application property"},
		{"a time that is a number", event.Event{System: map[string]any{"creation-time": 7}}, ErrPropertyType, "property creation-time"},
		{"a group sequence of another size", event.Event{System: map[string]any{"group-sequence": uint64(7)}}, ErrPropertyType, "property group-sequence"},
		{"a subject among the system values", event.Event{System: map[string]any{"subject": "s"}}, ErrPropertyField, `system value "subject"`},
		{"an annotation whose name is not ASCII", event.Event{System: map[string]any{"ä": 1}}, wire.ErrText, "system value"},
		{"an annotation without a type", event.Event{System: map[string]any{"a": struct{}{}}}, wire.ErrUnsupported, `system value "a"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, err := Append([]byte("before"), c.e)
			if !errors.Is(err, c.err) || string(out) != "before" || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %q, %v; want what was there before, %v, and the words %q", c.name, out, err, c.err, c.says)
			}
		})
	}
}

func deep(n int) any {
	var v any
	for range n {
		v = []any{v}
	}
	return v
}

func anyEvent() *rapid.Generator[event.Event] {
	id := rapid.OneOf(
		rapid.Just[any](nil), rapid.String().AsAny(), rapid.Uint64().AsAny(), rapid.SliceOf(rapid.Byte()).AsAny(),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 16, 16), func(b []byte) any { return [16]byte(b) }),
	)
	value := rapid.OneOf(
		rapid.Bool().AsAny(), rapid.Int32().AsAny(), rapid.Int64().AsAny(), rapid.Uint8().AsAny(), rapid.Float64().AsAny(),
		rapid.String().AsAny(), rapid.SliceOf(rapid.Byte()).AsAny(),
		rapid.Map(rapid.Int64(), func(ms int64) any { return time.UnixMilli(ms).UTC() }),
		rapid.Map(rapid.StringMatching(`[a-z]*`), func(s string) any { return event.Symbol(s) }),
		rapid.SliceOf(rapid.Int32().AsAny()).AsAny(),
	)
	return rapid.Custom(func(t *rapid.T) event.Event {
		e := event.Event{
			ContentType:   rapid.StringMatching(`[ -~]*`).Draw(t, "content type"),
			MessageID:     id.Draw(t, "message id"),
			CorrelationID: id.Draw(t, "correlation id"),
			Subject:       rapid.String().Draw(t, "subject"),
			Properties:    rapid.MapOf(rapid.String(), value).Draw(t, "properties"),
			System:        rapid.MapOf(rapid.StringMatching(`x-[a-z]+`), value).Draw(t, "annotations"),
		}
		if rapid.Bool().Draw(t, "has standard properties") {
			e.System["group-sequence"] = rapid.Uint32().Draw(t, "group sequence")
			e.System["reply-to"] = rapid.String().Draw(t, "reply to")
		}
		if rapid.Bool().Draw(t, "is a value") {
			e.Value = value.Draw(t, "value")
		} else {
			e.Body = rapid.SliceOf(rapid.Byte()).Draw(t, "body")
		}
		return e
	})
}

// H3: of whatever an event is made, it comes back as it was.
func TestEveryEventComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := anyEvent().Draw(t, "event")
		stored := testkit.Value(Append(nil, want))(t)
		got := testkit.Value(Decode(stored))(t)
		if len(want.Properties) == 0 { // an empty map is not stored
			want.Properties = nil
		}
		if len(want.System) == 0 {
			want.System = nil
		}
		testkit.MustDiff(t, want, got)
		body, single := Body(stored)
		if single != (want.Value == nil) || !bytes.Equal(body, want.Body) {
			t.Fatalf("Body = %q, %t; want %q", body, single, want.Body)
		}
	})
}
