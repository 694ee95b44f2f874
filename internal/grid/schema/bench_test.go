package schema

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/testkit"
)

const benchTopic = "/subscriptions/5c3a7d52-3f0a-4d3c-9d53-2b9f3b1c8a10/resourceGroups/yard/providers/Microsoft.EventGrid/topics/orders"

// benchEventGrid is an event of about a kibibyte, as an SDK sends it.
func benchEventGrid() []byte {
	return fmt.Appendf(nil, `{"id":"3f0a4d3c-9d53-2b9f-3b1c-8a105c3a7d52","subject":"/orders/2026/11/42","eventType":"Order.Placed",`+
		`"eventTime":"2026-11-15T12:00:00.1234567Z","dataVersion":"1.0","data":%s}`, benchData(800))
}

func benchCloudEvent() []byte {
	return fmt.Appendf(nil, `{"specversion":"1.0","id":"3f0a4d3c-9d53-2b9f-3b1c-8a105c3a7d52","source":"/shops/berlin","type":"com.example.order.placed",`+
		`"subject":"/orders/2026/11/42","time":"2026-11-15T12:00:00.1234567Z","datacontenttype":"application/json",`+
		`"traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01","data":%s}`, benchData(650))
}

// benchData is an object of about n bytes with the usual mix of members.
func benchData(n int) []byte {
	var b strings.Builder
	b.WriteString(`{"number":42,"total":129.95,"rush":true,"customer":{"name":"Ada Lovelace","city":"London"},"lines":[`)
	for i := 0; b.Len() < n-50; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"sku":"SKU-%04d","quantity":%d,"price":9.99}`, i, i%5+1)
	}
	b.WriteString(`],"note":"leave at the listener"}`)
	return []byte(b.String())
}

func benchPublication(kind Kind, event []byte, count int) Publication {
	body := append([]byte{'['}, bytes.Join(slicesOf(event, count), []byte{','})...)
	p := Publication{
		Kind: kind, TopicID: benchTopic, TopicName: "orders", Body: append(body, ']'),
		Header: http.Header{"Content-Type": {"application/json"}}, Now: time.Unix(1794744000, 0),
		Mapping: Mapping{ID: Field{Source: "number"}, EventType: Field{Default: "order"}},
		NewID:   func() string { return "1" },
	}
	if kind == CloudEvents {
		p.Header.Set("Content-Type", "application/cloudevents-batch+json; charset=utf-8")
	}
	return p
}

func slicesOf(b []byte, n int) [][]byte {
	all := make([][]byte, n)
	for i := range all {
		all[i] = b
	}
	return all
}

// stored is what Read makes of the first event of a publication.
func stored(t testing.TB, p Publication) []byte {
	t.Helper()
	events := testkit.Value(Read(p))(t)
	return events[0]
}

func BenchmarkRead(b *testing.B) {
	for name, p := range map[string]Publication{
		"eventgrid/1":     benchPublication(EventGrid, benchEventGrid(), 1),
		"eventgrid/100":   benchPublication(EventGrid, benchEventGrid(), 100),
		"cloudevents/100": benchPublication(CloudEvents, benchCloudEvent(), 100),
		"custom/100":      benchPublication(Custom, benchData(1024), 100),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(p.Body)))
			b.ReportAllocs()
			for b.Loop() {
				testkit.Must(b, testkit.Err(Read(p)))
			}
		})
	}
}

func BenchmarkScan(b *testing.B) {
	for name, c := range map[string]struct {
		form   Form
		stored []byte
	}{
		"eventgrid":   {EventGridForm, stored(b, benchPublication(EventGrid, benchEventGrid(), 1))},
		"cloudevents": {CloudEventForm, stored(b, benchPublication(CloudEvents, benchCloudEvent(), 1))},
	} {
		b.Run(name, func(b *testing.B) {
			var e Envelope
			b.SetBytes(int64(len(c.stored)))
			b.ReportAllocs()
			for b.Loop() {
				testkit.Must(b, e.Scan(c.form, c.stored))
			}
		})
	}
}

func BenchmarkField(b *testing.B) {
	e := Envelope{Topic: benchTopic}
	testkit.Must(b, e.Scan(EventGridForm, stored(b, benchPublication(EventGrid, benchEventGrid(), 1))))
	for _, path := range []string{"subject", "data.total", "data.customer.city", "data.note", "data.missing"} {
		b.Run(path, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				e.Field(path)
			}
		})
	}
}

func BenchmarkAppendEvent(b *testing.B) {
	e := Envelope{Topic: benchTopic}
	testkit.Must(b, e.Scan(EventGridForm, stored(b, benchPublication(EventGrid, benchEventGrid(), 1))))
	for _, out := range []Kind{EventGrid, CloudEvents} {
		b.Run(string(out), func(b *testing.B) {
			var dst []byte
			b.ReportAllocs()
			for b.Loop() {
				dst, _ = AppendEvent(dst[:0], &e, out)
			}
		})
	}
}

func BenchmarkFromHub(b *testing.B) {
	e := HubEvent{
		Namespace: "yard", Hub: "orders", Partition: "3", Sequence: 1841, Enqueued: time.Unix(1794744000, 0), Key: "customer-42",
		Event: event.Event{Body: benchData(1024), ContentType: "application/json"},
	}
	var dst []byte
	b.ReportAllocs()
	for b.Loop() {
		dst, _ = FromHub(dst[:0], e)
	}
}
