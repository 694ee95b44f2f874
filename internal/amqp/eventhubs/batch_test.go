package eventhubs

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/amqp/wire"
	"github.com/eventyard/eventyard/internal/testkit"
)

func keyed(key any, more ...wire.Pair) wire.Map {
	return append(wire.Map{{Key: wire.Symbol(wire.AnnotationPartitionKey), Value: key}}, more...)
}

func plain(t testing.TB, body string) []byte {
	return encode(t, wire.DescriptorData, []byte(body))
}

// envelope makes a batch of messages.
func envelope(t testing.TB, annotations wire.Map, events ...[]byte) []byte {
	t.Helper()
	var sections []any
	if annotations != nil {
		sections = append(sections, wire.DescriptorMessageAnnotations, annotations)
	}
	for _, e := range events {
		sections = append(sections, wire.DescriptorData, e)
	}
	return encode(t, sections...)
}

// H2: one event or a batch; of the envelope only the key counts.
func TestBatchesAreTakenApart(t *testing.T) {
	first := encode(t, wire.DescriptorMessageAnnotations, keyed("own", wire.Pair{Key: wire.Symbol("x"), Value: "y"}), wire.DescriptorData, []byte("1"))
	stored := encode(t, wire.DescriptorMessageAnnotations, wire.Map{{Key: wire.Symbol("x"), Value: "y"}}, wire.DescriptorData, []byte("1"))
	tests := []struct {
		what   string
		format uint32
		msg    []byte
		key    string
		events []string // key, message, …
	}{
		{"a message is an event", formatMessage, plain(t, "1"), "", []string{"", string(plain(t, "1"))}},
		{"its key is the event's", formatMessage, first, "", []string{"own", string(stored)}},
		{"a batch of one", formatBatch, envelope(t, nil, plain(t, "1")), "", []string{"", string(plain(t, "1"))}},
		{"a batch of two, with a key", formatBatch, envelope(t, keyed("all", wire.Pair{Key: wire.Symbol("z"), Value: 1}), first, plain(t, "2")), "all",
			[]string{"own", string(stored), "", string(plain(t, "2"))}},
		{"a key that is no text is none", formatBatch, envelope(t, keyed([]byte("all")), plain(t, "1")), "", []string{"", string(plain(t, "1"))}},
		{"an empty batch", formatBatch, nil, "", nil},
		{"an empty batch with a key", formatBatch, envelope(t, keyed("all")), "all", nil},
		{"an event without sections", formatBatch, envelope(t, nil, nil), "", []string{"", ""}},
	}
	var b batch
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			testkit.Must(t, b.decode(tt.format, tt.msg))
			var events []string
			for _, e := range b.events {
				events = append(events, string(e.Key), string(e.Message))
			}
			if string(b.key) != tt.key || strings.Join(events, "|") != strings.Join(tt.events, "|") {
				t.Errorf("key %q, events %q\nwant %q, %q", b.key, events, tt.key, tt.events)
			}
			if to, err := b.target(address{partition: "3"}); err != nil || to.Partition != "3" || to.Key != tt.key {
				t.Errorf("target is %+v", to)
			}
		})
	}
}

func TestMessagesThatAreNoEvents(t *testing.T) {
	for what, tt := range map[string]struct {
		format uint32
		msg    []byte
	}{
		"an unknown format":            {5, plain(t, "1")},
		"bytes":                        {formatMessage, []byte("hello")},
		"a batch of a value":           {formatBatch, encode(t, wire.DescriptorValue, "x")},
		"a batch whose second is none": {formatBatch, envelope(t, nil, plain(t, "1"), []byte("hello"))},
		"a batch that is cut off":      {formatBatch, plain(t, "1")[:4]},
		"keys that are no map":         {formatBatch, encode(t, wire.DescriptorMessageAnnotations, "x")},
	} {
		t.Run(what, func(t *testing.T) {
			var b batch
			err := b.decode(tt.format, tt.msg)
			if err == nil {
				t.Fatal("it was taken")
			}
			if reported, _ := judge(somewhere, err); reported.Condition != condDecode {
				t.Errorf("it is told as %s: %v", reported.Condition, err)
			}
		})
	}
}

func numbered(t testing.TB, id any, epoch any, number any) []byte {
	return encode(t, wire.DescriptorMessageAnnotations, wire.Map{
		{Key: wire.Symbol(wire.AnnotationProducerID), Value: id},
		{Key: wire.Symbol(wire.AnnotationProducerEpoch), Value: epoch},
		{Key: wire.Symbol(wire.AnnotationProducerSequence), Value: number},
	}, wire.DescriptorData, []byte("x"))
}

func TestNumbersOfAProducer(t *testing.T) {
	const id, epoch = int64(7), int16(2)
	event := func(n int32) []byte { return numbered(t, id, epoch, n) }
	tests := []struct {
		what   string
		events [][]byte
		first  int32
		good   bool
	}{
		{"one", [][]byte{event(5)}, 5, true},
		{"several that follow each other", [][]byte{event(5), event(6), event(7)}, 5, true},
		{"zero follows the largest", [][]byte{event(math.MaxInt32 - 1), event(math.MaxInt32), event(0), event(1)}, math.MaxInt32 - 1, true},
		{"a gap", [][]byte{event(5), event(7)}, 0, false},
		{"a repeat", [][]byte{event(5), event(5)}, 0, false},
		{"none", [][]byte{plain(t, "x")}, 0, false},
		{"none on the second", [][]byte{event(5), plain(t, "x")}, 0, false},
		{"another producer", [][]byte{numbered(t, int64(8), epoch, int32(5))}, 0, false},
		{"another epoch", [][]byte{numbered(t, id, int16(3), int32(5))}, 0, false},
		{"another epoch on the second", [][]byte{event(5), numbered(t, id, int16(3), int32(6))}, 0, false},
		{"a number of another type", [][]byte{numbered(t, id, epoch, int64(5))}, 0, false},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			var b batch
			testkit.Must(t, b.decode(formatBatch, envelope(t, nil, tt.events...)))
			first, err := b.numbers.check(id, epoch)
			if first != tt.first || (err == nil) != tt.good || err != nil && !errors.Is(err, errNumbers) {
				t.Errorf("first is %d, %v", first, err)
			}
			for _, e := range b.events {
				testkit.Equal(t, bytes.Contains(e.Message, []byte("producer")), false, "the numbers are stored with the event")
			}
		})
	}
}

// What was decoded before is let go, so that no message's bytes are kept alive.
func TestABatchLetsGo(t *testing.T) {
	var b batch
	testkit.Must(t, b.decode(formatMessage, encode(t, wire.DescriptorMessageAnnotations, keyed("k"), wire.DescriptorData, []byte("x"))))
	events := b.events
	b.reset()
	if events[0].Key != nil || events[0].Message != nil || len(b.events) != 0 || b.key != nil {
		t.Error("an event is kept")
	}
	testkit.Must(t, b.decode(formatMessage, plain(t, strings.Repeat("x", 2*maxKeptBytes))))
	b.reset()
	if cap(b.buf) > maxKeptBytes {
		t.Errorf("%d bytes are kept", cap(b.buf))
	}
}

// Decoding allocates nothing once it has grown.
func TestDecodingAllocatesNothing(t *testing.T) {
	event := encode(t, wire.DescriptorMessageAnnotations, keyed("own"), wire.DescriptorProperties, []any{"id"}, wire.DescriptorData, []byte("body"))
	events := make([][]byte, 100)
	for i := range events {
		events[i] = event
	}
	msg := envelope(t, keyed("all"), events...)
	var b batch
	if n := testing.AllocsPerRun(100, func() {
		testkit.Check(t, b.decode(formatBatch, msg))
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzBatch(f *testing.F) {
	f.Add(uint32(0), plain(f, "x"))
	f.Add(formatBatch, envelope(f, keyed("k"), plain(f, "1"), numbered(f, int64(1), int16(1), int32(1))))
	f.Fuzz(func(t *testing.T, format uint32, msg []byte) {
		var b batch
		if b.decode(format, msg) != nil {
			return
		}
		stored := 0
		for _, e := range b.events {
			stored += len(e.Message)
			testkit.Must(t, testkit.Err(wire.AppendDelivery(nil, &wire.Delivery{}, e.Message)),
				"what was stored cannot be delivered")
		}
		if stored > len(msg) {
			t.Fatalf("%d bytes have become %d", len(msg), stored)
		}
		_, _ = b.numbers.check(1, 1)
	})
}
