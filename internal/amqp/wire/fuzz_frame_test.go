package wire

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/eventyard/eventyard/internal/testkit"
)

// FuzzFrame: whatever reads as a performative can be written, and then reads as the same.
func FuzzFrame(f *testing.F) {
	for _, v := range exactVectors() {
		dst, frame := BeginFrame(nil, FrameAMQP, 1)
		f.Add(EndFrame(append(dst, unhex(f, v.hex)...), frame))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := ReadFrameHeader(b)
		if err != nil {
			return
		}
		if h.DataOffset < FrameHeaderBytes || uint64(h.Size) < uint64(h.DataOffset) {
			t.Fatalf("header %+v", h)
		}
		end := int(min(uint64(h.Size), uint64(len(b))))
		if end < h.DataOffset {
			return
		}
		body := b[h.DataOffset:end:end]
		first, c, rest, err := readBody(body)
		if err != nil {
			return
		}
		testkit.MustEqual(t, bytes.HasSuffix(body, rest), true, "% x is no end of % x", rest, body)
		encoded := c.append(nil, first)
		checkFullList(t, encoded, c.descriptor, c.fields)
		second, _, left, err := readBody(encoded)
		if err != nil || len(left) != 0 {
			t.Fatalf("%+v written as % x: %v, % x left", first, encoded, err, left)
		}
		testkit.MustDiff(t, writable(first), second, cmpopts.EquateNaNs(), cmpopts.EquateEmpty())
		if again := c.append(nil, second); !bytes.Equal(again, encoded) {
			t.Fatalf("written % x, then % x", encoded, again)
		}
	})
}

// writable is what is left of a stranger's performative when we write it.
func writable(v any) any {
	switch v := v.(type) {
	case Open:
		v.Properties = writableMap(v.Properties)
		return v
	case Begin:
		v.Properties = writableMap(v.Properties)
		return v
	case Attach:
		v.Properties = writableMap(v.Properties)
		return v
	case Disposition:
		if v.State.Outcome == OutcomeOther {
			v.State.Outcome = OutcomeNone
		}
		v.State.Error = writableError(v.State.Error)
		return v
	case Detach:
		v.Error = writableError(v.Error)
		return v
	case End:
		return End{writableError(v.Error)}
	case Close:
		return Close{writableError(v.Error)}
	default:
		return v
	}
}

func writableMap(m Map) Map {
	if _, err := AppendAny(nil, m); err != nil {
		return nil
	}
	return m
}

func writableError(e *Error) *Error {
	if e == nil {
		return nil
	}
	return &Error{e.Condition, strings.ToValidUTF8(e.Description, "\ufffd")}
}

// FuzzDelivery: what Normalize stores is delivered with nothing lost and the hub's own
// annotations in front, and nothing that it would not store does harm.
func FuzzDelivery(f *testing.F) {
	for _, msg := range messages(f) {
		f.Add(msg, int64(7), int64(1_700_000_000_000), []byte("key"), true)
		f.Add(msg, int64(-1), int64(0), []byte(nil), false)
	}
	f.Fuzz(func(t *testing.T, msg []byte, sequence, enqueued int64, key []byte, metrics bool) {
		d := &Delivery{Sequence: sequence, EnqueuedTime: enqueued}
		if len(key) > 0 {
			d.Key = key
		}
		if metrics {
			d.Metrics = &DeliveryMetrics{LastSequence: sequence, LastTime: enqueued}
		}
		if got, err := AppendDelivery([]byte("x"), d, msg); err != nil && string(got) != "x" {
			t.Fatalf("after %v there is % x", err, got)
		}
		stored, _, err := Normalize(nil, msg)
		if err != nil {
			return
		}
		delivered, err := AppendDelivery(nil, d, stored)
		testkit.Must(t, err, "stored % x", stored)
		checkDelivered(t, d, stored, delivered)
	})
}

func checkDelivered(t *testing.T, d *Delivery, stored, delivered []byte) {
	was := testkit.Value(Sections(stored))(t)
	is, err := Sections(delivered)
	testkit.Must(t, err, "delivered % x", delivered)
	testkit.MustEqual(t, bytes.Equal(is.Header, was.Header), true, "stored % x, delivered % x", stored, delivered)
	testkit.MustEqual(t, bytes.Equal(is.Tail, was.Tail), true, "stored % x, delivered % x", stored, delivered)
	testkit.MustEqual(t, (d.Metrics != nil), (is.DeliveryAnnotations != nil),
		"metrics %v, delivered % x", d.Metrics, is.DeliveryAnnotations)
	want := slices.Concat(reported(d), annotationsOf(t, was))
	testkit.MustDiff(t, want, annotationsOf(t, is), cmpopts.EquateNaNs(), cmpopts.EquateEmpty())
	own, err := is.Own()
	if err != nil || !bytes.Equal(own.Key, d.Key) || own.Producer != (ProducerMark{}) {
		t.Fatalf("delivered with %+v, %v", own, err)
	}
}

// annotationsOf decodes the message annotations.
func annotationsOf(t *testing.T, m Message) Map {
	if m.MessageAnnotations == nil {
		return nil
	}
	r := NewReader(m.MessageAnnotations)
	v := testkit.Value(r.ReadAny())(t)
	return v.(Described).Value.(Map)
}
