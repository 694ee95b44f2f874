package hub

import (
	"bytes"
	"testing"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/amqp/message"
	"github.com/eventyard/eventyard/internal/amqp/wire"
	"github.com/eventyard/eventyard/internal/testkit"
)

// deliver makes of an event what a yard sends to a reader.
func deliver(t testing.TB, ev event.Event, sequence int64) []byte {
	t.Helper()
	stored, err := message.Append(nil, ev)
	testkit.Must(t, err)
	d := wire.Delivery{Sequence: sequence, EnqueuedTime: 1700000000000, Metrics: &wire.DeliveryMetrics{LastSequence: 99, LastTime: 1700000000001}}
	if ev.Key != "" {
		d.Key = []byte(ev.Key)
	}
	raw, err := wire.AppendDelivery(nil, &d, stored)
	testkit.Must(t, err)
	return raw
}

var samples = map[string]event.Event{
	"plain":   {Body: bytes.Repeat([]byte("b"), 1000)},
	"empty":   {Body: []byte{}},
	"keyed":   {Key: "home-42", Body: []byte("b")},
	"typical": {Key: "home-42", Body: bytes.Repeat([]byte("b"), 1000), MessageID: "0123456789abcdef", ContentType: "application/json", Properties: map[string]any{"sensor": "front door", "n": int32(7)}},
	"system":  {Key: "k", Body: []byte("b"), System: map[string]any{"to": "t", "x-mine": event.Symbol("s")}},
	"value":   {Value: event.Map{{Key: "k", Value: event.Char('c')}}},
}

// H3
func TestEventsAreDecodedAsTheyAreDelivered(t *testing.T) {
	for name, want := range samples {
		t.Run(name, func(t *testing.T) {
			raw := deliver(t, want, 7)
			var got event.Event
			metrics, err := decodeEvent(&got, raw)
			testkit.Must(t, err)
			want.Sequence, want.Offset, want.Enqueued = 7, "7", time.UnixMilli(1700000000000).UTC()
			testkit.Diff(t, want, got)
			last, ok := decodeMetrics(metrics)
			if wantLast := (LastEnqueued{Sequence: 99, Offset: "99", Enqueued: time.UnixMilli(1700000000001).UTC()}); !ok || last != wantLast {
				t.Errorf("metrics are %+v, %v", last, ok)
			}
			// Who appends to a body must not write into what is behind it.
			if cap(got.Body) != len(got.Body) && want.Value == nil && name != "value" {
				t.Errorf("a body of %d has room for %d", len(got.Body), cap(got.Body))
			}
		})
	}
}

// H2: what is sent reads as the same event, with the key beside whatever annotations there are.
func TestEventsAreEncodedWithTheirKey(t *testing.T) {
	for name, want := range samples {
		t.Run(name, func(t *testing.T) {
			encoded, err := appendEvent([]byte("before"), &want, label{key: want.Key})
			testkit.Must(t, err)
			var got event.Event
			testkit.Must(t, testkit.Err(decodeEvent(&got, encoded[len("before"):])))
			got.Sequence, got.Enqueued = 0, time.Time{} // the hub's
			testkit.Diff(t, want, got)
		})
	}
}

// What a batch says about its size is never less than what goes over the wire.
func TestTheSizeOfABatchIsNoLie(t *testing.T) {
	for _, key := range []string{"", "k", string(bytes.Repeat([]byte("k"), 200)), string(bytes.Repeat([]byte("k"), 300))} {
		b := newBatch(key, "")
		for _, size := range []int{0, 10, 200, 255, 256, 5000} {
			ev := event.Bytes(make([]byte, size))
			testkit.Must(t, b.add(&ev))
		}
		encoded, err := b.message().MarshalBinary()
		testkit.Must(t, err)
		if over := b.Bytes() - len(encoded); over < 0 || over > 16 {
			t.Errorf("key of %d: says %d, is %d", len(key), b.Bytes(), len(encoded))
		}
	}
}

// Nothing that a hub can send breaks a reader.
func FuzzDecodeEvent(f *testing.F) {
	for _, ev := range samples {
		f.Add(deliver(f, ev, 1))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var ev event.Event
		metrics, err := decodeEvent(&ev, bytes.Clone(raw))
		if err != nil {
			return
		}
		decodeMetrics(metrics)
		// The general decoder finds the same, where an event is a message that can be kept.
		want, err := message.Decode(raw)
		testkit.Must(t, err, "decoded what cannot be decoded")
		if !bytes.Equal(ev.Body, want.Body) || len(ev.Properties) != len(want.Properties) || len(ev.System) != len(want.System) {
			t.Fatalf("decoded %+v, want %+v", ev, want)
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	for _, name := range []string{"plain", "typical"} {
		b.Run(name, func(b *testing.B) {
			raw := deliver(b, samples[name], 123456)
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			var ev event.Event
			for b.Loop() {
				testkit.Must(b, testkit.Err(decodeEvent(&ev, raw)))
			}
		})
	}
}

func BenchmarkEncode(b *testing.B) {
	for _, name := range []string{"plain", "typical"} {
		b.Run(name, func(b *testing.B) {
			ev := samples[name]
			var dst []byte
			b.ReportAllocs()
			for b.Loop() {
				var err error
				if dst, err = appendEvent(dst[:0], &ev, label{key: ev.Key}); err != nil {
					b.Fatal(err)
				}
			}
			b.SetBytes(int64(len(dst)))
		})
	}
}
