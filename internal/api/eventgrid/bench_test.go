package eventgrid

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/quota"
)

// taker stores nothing.
type taker struct{ *memory }

func (taker) Publish(context.Context, string, [][]byte, *quota.Meter) error { return nil }

// BenchmarkPublish is what the listener itself costs for one event.
func BenchmarkPublish(b *testing.B) {
	y := newYard(b, func(c *Config) { c.Topics = taker{c.Topics.(*memory)} })
	body := "[" + event("a") + "]"
	b.ReportAllocs()
	for b.Loop() {
		r := httptest.NewRequest("POST", "https://localhost/topics/orders/api/events?api-version=2018-01-01", strings.NewReader(body))
		withKey(r)
		w := httptest.NewRecorder()
		if y.frame.ServeHTTP(w, r); w.Code != 200 {
			b.Fatal(w.Body)
		}
	}
}
