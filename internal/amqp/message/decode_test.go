package message

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/amqp/wire"
	"github.com/eventyard/eventyard/internal/testkit"
)

// section encodes one section as a sender would.
func section(t testing.TB, d wire.Descriptor, value any) []byte {
	t.Helper()
	return testkit.Value(wire.AppendAny(wire.AppendDescriptor(nil, d), value))(t)
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// H3: a foreign client's message, through the stored form, is shown as it was sent.
func TestAForeignMessageIsShownAsItWasSent(t *testing.T) {
	sent := join(
		section(t, wire.DescriptorHeader, []any{true, uint8(4), uint32(60_000), nil, uint32(2)}),
		section(t, wire.DescriptorDeliveryAnnotations, wire.Map{{Key: wire.Symbol("hop"), Value: true}}),
		section(t, wire.DescriptorMessageAnnotations, wire.Map{
			{Key: wire.Symbol("x-opt-partition-key"), Value: "home-42"},
			{Key: wire.Symbol("x-opt-mine"), Value: int16(3)},
			{Key: uint64(5), Value: "numbered"},
		}),
		section(t, wire.DescriptorProperties, []any{
			wire.UUID{7}, []byte("user"), "to", "subject", "reply", uint64(9), wire.Symbol("text/plain"), wire.Symbol("gzip"),
			time.UnixMilli(5).UTC(), time.UnixMilli(6).UTC(), "group", uint32(8), "reply group",
		}),
		section(t, wire.DescriptorApplicationProperties, wire.Map{{Key: "n", Value: int32(1)}, {Key: "n64", Value: int64(1)}}),
		section(t, wire.DescriptorData, []byte("first,")),
		section(t, wire.DescriptorData, []byte("second")),
		section(t, wire.DescriptorFooter, wire.Map{{Key: wire.Symbol("crc"), Value: uint32(1)}}),
	)
	stored, own, err := wire.Normalize(nil, sent)
	testkit.Must(t, err)
	testkit.MustEqual(t, string(own.Key), "home-42", "key %q", own.Key)
	got, err := Decode(stored)
	want := event.Event{
		Body:          []byte("first,second"),
		ContentType:   "text/plain",
		MessageID:     [16]byte{7},
		CorrelationID: uint64(9),
		Subject:       "subject",
		Properties:    map[string]any{"n": int32(1), "n64": int64(1)},
		System: map[string]any{
			"user-id": []byte("user"), "to": "to", "reply-to": "reply", "content-encoding": "gzip",
			"absolute-expiry-time": time.UnixMilli(5).UTC(), "creation-time": time.UnixMilli(6).UTC(),
			"group-id": "group", "group-sequence": uint32(8), "reply-to-group-id": "reply group",
			"x-opt-mine": int16(3), "5": "numbered",
		},
	}
	testkit.Must(t, err)
	testkit.Diff(t, want, got)
}

// H3
func TestKindsOfBody(t *testing.T) {
	data := section(t, wire.DescriptorData, []byte("x"))
	for _, c := range []struct {
		name   string
		stored []byte
		body   []byte
		value  any
		single bool
	}{
		{"none", nil, nil, nil, false},
		{"one data section", data, []byte("x"), nil, true},
		{"one in front of a footer", join(data, section(t, wire.DescriptorFooter, wire.Map{})), []byte("x"), nil, true},
		{"an empty data section", section(t, wire.DescriptorData, []byte{}), []byte{}, nil, true},
		{"a data section that holds null", section(t, wire.DescriptorData, nil), nil, nil, true},
		{"null between data sections", join(data, section(t, wire.DescriptorData, nil), data), []byte("xx"), nil, false},
		{"a sequence that is null", section(t, wire.DescriptorSequence, nil), nil, []any{nil}, false},
		{"a value with an int for its descriptor", section(t, wire.DescriptorValue, wire.Described{Descriptor: int32(5), Value: "v"}), nil,
			wire.Described{Descriptor: int32(5), Value: "v"}, false},
		{"several data sections", join(data, data, data), []byte("xxx"), nil, false},
		{"one sequence", section(t, wire.DescriptorSequence, []any{"a"}), nil, []any{[]any{"a"}}, false},
		{"two sequences", join(section(t, wire.DescriptorSequence, []any{"a"}), section(t, wire.DescriptorSequence, []any{})), nil,
			[]any{[]any{"a"}, []any{}}, false},
		{"a value", section(t, wire.DescriptorValue, int32(7)), nil, int32(7), false},
		{"a value of bytes", section(t, wire.DescriptorValue, []byte("b")), nil, []byte("b"), false},
		{"a value of null", section(t, wire.DescriptorValue, nil), nil, nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := testkit.Value(Decode(c.stored))(t)
			testkit.Diff(t, event.Event{Body: c.body, Value: c.value}, got)
			body, single := Body(c.stored)
			if single != c.single || single && !bytes.Equal(body, c.body) {
				t.Errorf("%s: Body = %q, %t; want %q, %t", c.name, body, single, c.body, c.single)
			}
		})
	}
}

// A sender's slip makes no event unreadable.
func TestIllTypedPropertiesAreShownAsTheyAre(t *testing.T) {
	stored := join(
		section(t, wire.DescriptorMessageAnnotations, wire.Map{
			{Key: "string", Value: 1.5}, {Key: wire.Symbol("to"), Value: "an annotation"}, {Key: wire.Symbol("x-opt-offset"), Value: "7"},
		}),
		section(t, wire.DescriptorProperties, []any{
			int32(1), "user", wire.Symbol("to"), int32(2), nil, true, "text/plain", int32(3), nil, nil, nil, nil, nil, "one too many",
		}),
		section(t, wire.DescriptorApplicationProperties, wire.Map{{Key: wire.Symbol("s"), Value: 1.5}, {Key: nil, Value: true}}),
		section(t, wire.DescriptorData, []byte("x")),
	)
	got, err := Decode(stored)
	want := event.Event{
		Body:        []byte("x"),
		ContentType: "text/plain", // a string, where the standard has a symbol
		Properties:  map[string]any{"s": 1.5, "<nil>": true},
		System: map[string]any{
			"string": 1.5, "message-id": int32(1), "user-id": "user", "to": "to",
			"subject": int32(2), "correlation-id": true, "content-encoding": int32(3),
		},
	}
	testkit.Must(t, err)
	testkit.Diff(t, want, got)
}

func TestDecodedEventsOutliveTheBuffer(t *testing.T) {
	for name, e := range map[string]event.Event{
		"bytes": full(),
		"value": {Value: []any{[]byte("bytes"), "text", event.Symbol("symbol"), [16]byte{1}}},
	} {
		t.Run(name, func(t *testing.T) {
			stored := testkit.Value(Append(nil, e))(t)
			got := testkit.Value(Decode(stored))(t)
			for i := range stored {
				stored[i] = 0xff
			}
			testkit.Diff(t, e, got)
		})
	}
}

func TestWhatIsNoMessageIsRefused(t *testing.T) {
	_, err := Decode([]byte("hello"))
	if _, ok := errors.AsType[*wire.DecodeError](err); !ok {
		t.Errorf("error %v, want a decode error", err)
	}
	if _, single := Body([]byte("hello")); single {
		t.Error("Body found one")
	}
}

// A message taken apart already gives the same event, without a copy of a single data section.
func TestSectionsGiveTheSameEvent(t *testing.T) {
	data := section(t, wire.DescriptorData, []byte("x"))
	stored := testkit.Value(Append(nil, full()))(t)
	for name, stored := range map[string][]byte{
		"everything": stored, "two data sections": join(data, data), "a value": section(t, wire.DescriptorValue, true), "nothing": nil,
	} {
		t.Run(name, func(t *testing.T) {
			m := testkit.Value(wire.Sections(stored))(t)
			want := testkit.Value(Decode(stored))(t)
			got := event.Event{Key: "of the last event"}
			testkit.Must(t, DecodeSections(&got, m))
			testkit.Diff(t, want, got)
			if m.BodyCount == 1 && len(got.Body) > 0 && &got.Body[0] != &m.Body[len(m.Body)-len(got.Body)] {
				t.Error("the body is a copy")
			}
		})
	}
}

// Sections that nobody has checked are refused, whatever is wrong with them.
func TestBrokenSectionsAreRefused(t *testing.T) {
	for name, broken := range map[string]string{
		"no bytes": "", "no descriptor": "\x40", "no value": "\x00\x53\x74", "a value of no type": "\x00\x53\x74\x3f",
		"a map without its key":   "\x00\x53\x74\xc1\x03\x02\x3f\x40",
		"a map without its value": "\x00\x53\x74\xc1\x03\x02\x40\x3f",
		"a list of nothing":       "\x00\x53\x73\xc0\x02\x01\x3f",
	} {
		b := []byte(broken)
		for _, m := range []wire.Message{
			{MessageAnnotations: b}, {Properties: b}, {ApplicationProperties: b},
			{Body: b, BodyKind: wire.BodyData, BodyCount: 1}, {Body: append(b, 0), BodyKind: wire.BodyData, BodyCount: 2},
			{Body: b, BodyKind: wire.BodySequence, BodyCount: 1}, {Body: b, BodyKind: wire.BodyValue, BodyCount: 1},
		} {
			var e event.Event
			if _, ok := errors.AsType[*wire.DecodeError](DecodeSections(&e, m)); !ok {
				t.Errorf("%s: %+v gives %+v", name, m, e)
			}
		}
	}
}

// What the scanner lets through can be decoded; events that can be written again stay
// what they are.
func FuzzDecode(f *testing.F) {
	stored, err := Append(nil, full())
	testkit.Must(f, err)
	f.Add(stored)
	f.Add(section(f, wire.DescriptorSequence, []any{"a", nil}))
	f.Add(section(f, wire.DescriptorData, nil))
	f.Add(section(f, wire.DescriptorValue, wire.Described{Descriptor: int32(5), Value: "v"}))
	f.Add(join(section(f, wire.DescriptorFooter, wire.Map{}), section(f, wire.DescriptorData, []byte("x"))))
	f.Add(join(section(f, wire.DescriptorProperties, []any{int32(1)}), section(f, wire.DescriptorValue, wire.Map{{Key: nil, Value: 1}})))
	f.Fuzz(func(t *testing.T, stored []byte) {
		_, sectionsErr := wire.Sections(stored)
		e, err := Decode(stored)
		testkit.MustEqual(t, (err == nil), (sectionsErr == nil), "Sections says %v, Decode", sectionsErr)
		if err != nil {
			return
		}
		if body, single := Body(stored); single && !bytes.Equal(body, e.Body) {
			t.Fatalf("Body = %q, Decode has %q", body, e.Body)
		}
		written, err := Append(nil, e)
		if err != nil {
			return // a sender's slip that we do not repeat
		}
		again, err := Decode(written)
		testkit.Must(t, err, "cannot decode % x", written)
		// Compared as bytes, because NaN differs from itself.
		testkit.MustEqual(t, string(testkit.Value(Append(nil, again))(t)), string(written))
	})
}

func TestBodyDoesNotAllocate(t *testing.T) {
	stored := testkit.Value(Append(nil, full()))(t)
	testkit.Equal(t, testing.AllocsPerRun(100, func() { _, _ = Body(stored) }), 0, "Body allocates")
}

// plain is an event as the HTTP listener and the command line send them.
func plain() event.Event {
	e := event.Bytes(make([]byte, 1024))
	e.ContentType, e.MessageID, e.Subject = "application/json", "6f1c1f6e", "motion"
	e.Properties = map[string]any{"sensor": "front", "battery": 0.87}
	return e
}

func BenchmarkAppend(b *testing.B) {
	e, dst := plain(), make([]byte, 0, 4096)
	b.ReportAllocs()
	for b.Loop() {
		var err error
		if dst, err = Append(dst[:0], e); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	stored, err := Append(nil, plain())
	testkit.Must(b, err)
	b.ReportAllocs()
	for b.Loop() {
		testkit.Must(b, testkit.Err(Decode(stored)))
	}
}

func BenchmarkBody(b *testing.B) {
	stored, err := Append(nil, plain())
	testkit.Must(b, err)
	b.ReportAllocs()
	for b.Loop() {
		if _, single := Body(stored); !single {
			b.Fatal("no body")
		}
	}
}
