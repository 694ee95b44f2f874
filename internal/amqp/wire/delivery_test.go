package wire

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/Azure/go-amqp"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/eventyard/eventyard/internal/testkit"
)

func deliver(t testing.TB, d *Delivery, stored []byte) []byte {
	t.Helper()
	b, err := AppendDelivery([]byte("before"), d, stored)
	if err != nil || !bytes.HasPrefix(b, []byte("before")) {
		t.Fatalf("% x becomes % x, %v", stored, b, err)
	}
	return b[len("before"):]
}

// reported is what the hub adds, decoded.
func reported(d *Delivery) Map {
	m := Map{
		{Symbol("x-opt-sequence-number"), d.Sequence},
		{Symbol("x-opt-enqueued-time"), time.UnixMilli(d.EnqueuedTime).UTC()},
		{Symbol("x-opt-offset"), strconv.FormatInt(d.Sequence, 10)},
	}
	if d.Key != nil {
		m = append(m, Pair{Symbol("x-opt-partition-key"), string(d.Key)})
	}
	return m
}

// H3, H10: the very bytes.
func TestADeliveredEvent(t *testing.T) {
	data := unhex(t, "00 53 75 a0 01 62")
	d := &Delivery{Sequence: 7, EnqueuedTime: 0x0102030405}
	annotations := "a3 15 782d6f70742d73657175656e63652d6e756d626572 81 00 00 00 00 00 00 00 07" +
		"a3 13 782d6f70742d656e7175657565642d74696d65 83 00 00 00 01 02 03 04 05" +
		"a3 0c 782d6f70742d6f6666736574 a1 01 37"
	want := join(unhex(t, "00 53 72 c1 50 06"+annotations), data)
	testkit.Slices(t, deliver(t, d, data), want, "delivered")
	d.Metrics = &DeliveryMetrics{LastSequence: 15, LastTime: 1, Retrieved: 2}
	metrics := unhex(t, "00 53 71 c1 8e 08"+
		"a3 1d 6c6173745f656e7175657565645f73657175656e63655f6e756d626572 81 00 00 00 00 00 00 00 0f"+
		"a3 16 6c6173745f656e7175657565645f74696d655f757463 83 00 00 00 00 00 00 00 01"+
		"a3 1f 72756e74696d655f696e666f5f72657472696576616c5f74696d655f757463 83 00 00 00 00 00 00 00 02"+
		"a3 14 6c6173745f656e7175657565645f6f6666736574 a1 02 31 35")
	header := section(t, DescriptorHeader, []any{true})
	testkit.Slices(t, deliver(t, d, join(header, data)), join(header, metrics, want), "delivered")
}

// H3: the hub's annotations come first, then those of the sender; all else is as stored.
func TestDeliveriesOfStoredMessages(t *testing.T) {
	header := section(t, DescriptorHeader, []any{true, uint8(3)})
	data := section(t, DescriptorData, []byte("body"))
	properties := section(t, DescriptorProperties, []any{"id"})
	one := Map{{Symbol("x-opt-mine"), int32(1)}}
	many := make(Map, 200)
	for i := range many {
		many[i] = Pair{uint64(i), nil}
	}
	annotations := func(m Map) []byte { return section(t, DescriptorMessageAnnotations, m) }
	plain := Delivery{Sequence: 1, EnqueuedTime: 2}
	keyed := func(key string) Delivery { return Delivery{Sequence: 1, EnqueuedTime: 2, Key: []byte(key)} }

	for _, c := range []struct {
		name                 string
		d                    Delivery
		header, mine, stored []byte
		foreign              Map
	}{
		{name: "nothing", d: plain},
		{name: "a body", d: plain, stored: data},
		{name: "header and body", d: plain, header: header, stored: data},
		{name: "a header alone", d: plain, header: header},
		{name: "an empty header", d: plain, header: unhex(t, "00 53 70 45"), stored: data},
		{name: "annotations", d: plain, mine: annotations(one), foreign: one, stored: join(properties, data)},
		{name: "annotations alone", d: keyed("k"), mine: annotations(one), foreign: one},
		{name: "header and annotations", d: plain, header: header, mine: annotations(one), foreign: one, stored: data},
		{name: "an empty map", d: plain, mine: annotations(Map{}), stored: data},
		{name: "a map of the long form", d: plain, mine: unhex(t, "00 53 72 d1 00 00 00 08 00 00 00 02 a3 01 78 43"),
			foreign: Map{{Symbol("x"), uint32(0)}}, stored: data},
		{name: "many annotations", d: plain, mine: annotations(many), foreign: many, stored: data},
		{name: "a key", d: keyed("key"), stored: data},
		{name: "an empty key", d: keyed(""), stored: data},
		{name: "a long key", d: keyed(strings.Repeat("k", 128)), stored: data},
		{name: "a very long key", d: keyed(strings.Repeat("k", 300)), mine: annotations(one), foreign: one, stored: data},
		{name: "the largest numbers", d: Delivery{Sequence: 1<<63 - 1, EnqueuedTime: 1<<63 - 1}, stored: data},
		{name: "the smallest numbers", d: Delivery{Sequence: -1 << 63, EnqueuedTime: -1 << 63}, stored: data},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := deliver(t, &c.d, join(c.header, c.mine, c.stored))
			want := join(c.header, section(t, DescriptorMessageAnnotations, append(reported(&c.d), c.foreign...)), c.stored)
			testkit.Equal(t, decoded(t, got), decoded(t, want), "delivered % x, want % x", got, want)
			m, err := Sections(got)
			if err != nil || m.longDescriptor || !bytes.Equal(m.Header, c.header) || !bytes.Equal(m.Tail, c.stored) {
				t.Errorf("delivered %+v, %v; want the header % x and the rest % x", m, err, c.header, c.stored)
			}
		})
	}
}

// decoded writes a message's values again, each in our own encoding, to compare by.
func decoded(t testing.TB, msg []byte) string {
	t.Helper()
	var out []byte
	for r := NewReader(msg); r.Len() > 0; {
		v, err := r.ReadAny()
		testkit.Must(t, err)
		if out, err = AppendAny(out, v); err != nil {
			t.Fatal(err)
		}
	}
	return string(out)
}

// From a small map to a large one there is no length at which something is wrong.
func TestDeliveriesAtEveryLength(t *testing.T) {
	data := section(t, DescriptorData, []byte("x"))
	for n := range 300 {
		d := &Delivery{Sequence: 1, Key: bytes.Repeat([]byte("k"), n)}
		m, err := Sections(deliver(t, d, data))
		testkit.Must(t, err, "key of %d bytes", n)
		if own, err := m.Own(); err != nil || !bytes.Equal(own.Key, d.Key) {
			t.Fatalf("key of %d bytes: read %q, %v", n, own.Key, err)
		}
	}
}

func TestWhatNormalizeDoesNotWriteIsNotDelivered(t *testing.T) {
	data := section(t, DescriptorData, []byte("x"))
	header := section(t, DescriptorHeader, []any{true})
	for _, c := range []struct {
		name   string
		stored []byte
		err    error
	}{
		{"delivery annotations", join(section(t, DescriptorDeliveryAnnotations, Map{}), data), ErrSection},
		{"two headers", join(header, header, data), ErrSection},
		{"a header behind annotations", join(section(t, DescriptorMessageAnnotations, Map{}), header), ErrSection},
		{"a performative", section(t, DescriptorTransfer, []any{}), ErrSection},
		{"a name for a descriptor", symbolic(data, "amqp:data:binary"), ErrSection},
		{"two bytes", []byte{0x00, 0x53}, ErrSection},
		{"no section", []byte("hello"), ErrSection},
		{"a header that is a map", section(t, DescriptorHeader, Map{}), ErrType},
		{"annotations that are a list", join(header, section(t, DescriptorMessageAnnotations, []any{})), ErrType},
		{"a header cut off", header[:len(header)-1], ErrTruncated},
		{"annotations without their map", unhex(t, "00 53 72"), ErrTruncated},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := AppendDelivery([]byte("before"), &Delivery{}, c.stored)
			if !errors.Is(err, c.err) || string(got) != "before" {
				t.Errorf("%s: delivered %q, %v; want nothing and %v", c.name, got, err, c.err)
			}
		})
	}
}

// H8: another's decoder finds in a delivery what was stored and what the hub tells.
func TestDeliveriesAreReadByAnotherDecoder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sent, foreign := drawMessage(t)
		encoded := testkit.Value(sent.MarshalBinary())(t)
		stored, _, err := Normalize(nil, encoded)
		testkit.Must(t, err)
		d := drawDelivery(t)
		delivered := testkit.Value(AppendDelivery(nil, d, stored))(t)
		var got amqp.Message
		testkit.Must(t, got.UnmarshalBinary(delivered), "% x", delivered)
		if want := oracleAnnotations(reported(d), foreign); !cmp.Equal(got.Annotations, want) {
			t.Fatalf("annotations %s", cmp.Diff(want, got.Annotations))
		}
		if want := oracleMetrics(d.Metrics); !cmp.Equal(got.DeliveryAnnotations, want) {
			t.Fatalf("delivery annotations %s", cmp.Diff(want, got.DeliveryAnnotations))
		}
		got.Annotations, got.DeliveryAnnotations, sent.Annotations = nil, nil, nil
		if sent.Header != nil {
			sent.Header.DeliveryCount = 0
		}
		testkit.Deep(t, &got, sent, "delivered")
	})
}

func drawMessage(t *rapid.T) (*amqp.Message, amqp.Annotations) {
	m := &amqp.Message{Data: [][]byte{rapid.SliceOfN(rapid.Byte(), 1, 300).Draw(t, "body")}}
	if rapid.Bool().Draw(t, "header") {
		m.Header = &amqp.MessageHeader{Durable: true, Priority: rapid.Uint8().Draw(t, "priority"),
			DeliveryCount: rapid.Uint32().Draw(t, "delivery count")}
	}
	if rapid.Bool().Draw(t, "properties") {
		m.Properties = &amqp.MessageProperties{MessageID: rapid.Uint64().Draw(t, "id")}
		m.ApplicationProperties = map[string]any{"a": text().Draw(t, "a")}
	}
	foreign := amqp.Annotations{}
	for range rapid.IntRange(0, 3).Draw(t, "annotations") {
		foreign["x-mine-"+rapid.StringMatching("[a-z]{0,40}").Draw(t, "name")] = text().Draw(t, "value")
	}
	m.Annotations = amqp.Annotations{AnnotationPartitionKey: "another", AnnotationProducerEpoch: int16(1)}
	for k, v := range foreign {
		m.Annotations[k] = v
	}
	return m, foreign
}

func drawDelivery(t *rapid.T) *Delivery {
	d := &Delivery{Sequence: rapid.Int64().Draw(t, "sequence"), EnqueuedTime: rapid.Int64Range(-1<<45, 1<<45).Draw(t, "time")}
	if rapid.Bool().Draw(t, "keyed") {
		d.Key = []byte(text().Draw(t, "key"))
	}
	if rapid.Bool().Draw(t, "metrics") {
		d.Metrics = &DeliveryMetrics{LastSequence: rapid.Int64().Draw(t, "last"),
			LastTime: rapid.Int64Range(0, 1<<45).Draw(t, "last time"), Retrieved: rapid.Int64Range(0, 1<<45).Draw(t, "retrieved")}
	}
	return d
}

func oracleAnnotations(ours Map, foreign amqp.Annotations) amqp.Annotations {
	a := amqp.Annotations{}
	for _, p := range ours {
		a[string(p.Key.(Symbol))] = p.Value
	}
	for k, v := range foreign {
		a[k] = v
	}
	return a
}

func oracleMetrics(m *DeliveryMetrics) amqp.Annotations {
	if m == nil {
		return nil
	}
	return amqp.Annotations{
		"last_enqueued_sequence_number":   m.LastSequence,
		"last_enqueued_offset":            strconv.FormatInt(m.LastSequence, 10),
		"last_enqueued_time_utc":          time.UnixMilli(m.LastTime).UTC(),
		"runtime_info_retrieval_time_utc": time.UnixMilli(m.Retrieved).UTC(),
	}
}
