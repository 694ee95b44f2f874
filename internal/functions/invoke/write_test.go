package invoke

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/testkit"
)

// hundred is a batch of a hundred small events.
func hundred() Call {
	events := make([]event.Event, 100)
	for i := range events {
		events[i] = event.Event{Body: fmt.Appendf(nil, `{"order":%d,"total":129.95,"rush":true}`, i), Key: "customer-42", ContentType: "application/json"}
	}
	return callOf(events...)
}

// FuzzWrite: whatever an event is, it is JSON, and has its id and its bytes.
func FuzzWrite(f *testing.F) {
	for _, body := range []string{"", "hello", `{"n":1}`, "\xff\x00", `"text"`, `{"specversion":"1.0","id":"1","source":"/s","type":"t","hub":5,"originalhub":null,"data":{}}`} {
		for _, contentType := range []string{"", "application/json", "text/plain", "application/cloudevents+json", "\x00"} {
			f.Add([]byte(body), contentType, "key", "hub")
		}
	}
	f.Fuzz(func(t *testing.T, body []byte, contentType, key, property string) {
		ev := event.Event{
			Body: body, ContentType: contentType, Key: key, Subject: property, MessageID: property,
			Properties: map[string]any{property: key, "cloudEvents:" + property: body, "cloudEvents:specversion": contentType}, System: map[string]any{key: property},
		}
		call := callOf(ev)
		var events []struct {
			ID, Sequence string
			Attempt      int
		}
		if err := json.Unmarshal([]byte(written(t, CloudEvents, call)), &events); err != nil || len(events) != 1 ||
			events[0].ID != "billing/orders/3/17" || events[0].Sequence != "17" || events[0].Attempt != 2 {
			t.Errorf("wrote %+v, %v", events, err)
		}
		var batch struct {
			Events []struct {
				SequenceNumber int64
				Body           json.RawMessage
				BodyBase64     []byte
			}
		}
		if err := json.Unmarshal([]byte(written(t, EventHubs, call)), &batch); err != nil || len(batch.Events) != 1 || batch.Events[0].SequenceNumber != 17 {
			t.Fatalf("wrote %+v, %v", batch, err)
		}
		var text string
		got := batch.Events[0].BodyBase64
		if json.Unmarshal(batch.Events[0].Body, &text) == nil {
			got = []byte(text)
		} else if got == nil {
			return // JSON, which may have lost white space around it
		}
		if string(got) != string(body) && body != nil {
			t.Errorf("the body is %q, want %q", got, body)
		}
	})
}

func BenchmarkWrite(b *testing.B) {
	call := hundred()
	for _, f := range []Format{CloudEvents, EventHubs} {
		b.Run(string(f), func(b *testing.B) {
			b.ReportAllocs()
			p := &page{}
			for b.Loop() {
				p.body = p.body[:0]
				testkit.Must(b, p.write(f, &call))
			}
			b.SetBytes(int64(len(p.body)))
		})
	}
}

func BenchmarkDo(b *testing.B) {
	s := serve(b, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusNoContent)
	})
	for name, call := range map[string]Call{"3": threeEvents(), "100": hundred()} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			c := caller(b, Config{URL: s.URL})
			began := time.Now()
			for b.Loop() {
				if a, err := c.Do(b.Context(), call); err != nil || a.Status != http.StatusNoContent {
					b.Fatal(a, err)
				}
			}
			b.ReportMetric(float64(b.N*len(call.Events))/time.Since(began).Seconds(), "events/s")
		})
	}
}
