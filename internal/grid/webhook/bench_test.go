package webhook

import (
	"bytes"
	"io"
	"net/http"
	"testing"

	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/grid/signature"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/testkit"
)

// What a delivery costs beside a bare http.Client that posts the same bytes with the same
// headers, all of them ready.
func BenchmarkDeliver(b *testing.B) {
	server := newReceiver(b, nil)
	server.answer = func(w http.ResponseWriter, r *http.Request) {
		server.mu.Lock()
		defer server.mu.Unlock()
		server.got, server.bodies = server.got[:0], server.bodies[:0]
	}
	c := newSender(b)
	key, err := signature.New(signature.HMAC)
	testkit.Must(b, err)
	hundred := make([]*pending.Delivery, 100)
	for i := range hundred {
		hundred[i] = eventGrid(i)
	}
	b.Run("bare client", func(b *testing.B) { benchmarkBare(b, c, server.url) })
	for _, x := range []struct {
		name   string
		output schema.Kind
		change func(*topics.Settings)
		batch  []*pending.Delivery
	}{
		{"event grid", schema.EventGrid, nil, []*pending.Delivery{eventGrid(1)}},
		{"cloud event", schema.CloudEvents, nil, []*pending.Delivery{cloudEvent(1)}},
		{"signed", schema.EventGrid, func(s *topics.Settings) { s.Keys = []signature.Key{key} }, []*pending.Delivery{eventGrid(1)}},
		{"hundred", schema.EventGrid, func(s *topics.Settings) { s.MaxEvents = 100 }, hundred},
	} {
		b.Run(x.name, func(b *testing.B) {
			o := prepare(b, c, subscription(server.url, x.output, x.change))
			b.ReportAllocs()
			for b.Loop() {
				if r := c.Deliver(b.Context(), o, x.batch); r.Outcome != retry.Delivered {
					b.Fatalf("%+v", r)
				}
			}
		})
	}
}

func benchmarkBare(b *testing.B, c *Sender, url string) {
	w := newWriter()
	header, err := w.request(prepare(b, c, subscription(url, schema.EventGrid, nil)), []*pending.Delivery{eventGrid(1)}, pending.Delivery{}.Due)
	testkit.Must(b, err)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}}
	defer client.CloseIdleConnections()
	b.ReportAllocs()
	for b.Loop() {
		r, _ := http.NewRequestWithContext(b.Context(), "POST", url, bytes.NewReader(w.body))
		r.Header = header
		a, err := client.Do(r)
		testkit.Must(b, err)
		io.Copy(io.Discard, a.Body)
		a.Body.Close()
	}
}

// BenchmarkWrite is what is done for a request before it is sent.
func BenchmarkWrite(b *testing.B) {
	c := newSender(b)
	for name, output := range map[string]schema.Kind{"event grid": schema.EventGrid, "cloud event": schema.CloudEvents} {
		b.Run(name, func(b *testing.B) {
			o := prepare(b, c, subscription("http://127.0.0.1/", output, nil))
			batch := []*pending.Delivery{eventGrid(1)}
			b.ReportAllocs()
			for b.Loop() {
				w := newWriter()
				testkit.Must(b, testkit.Err(w.request(o, batch, batch[0].Published)))
				w.free()
			}
		})
	}
}
