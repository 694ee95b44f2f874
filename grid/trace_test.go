package grid

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/tracing"
)

// V6: who publishes in a context with a trace says so, and who receives is called in one.
func TestTheTraceGoesAlong(t *testing.T) {
	trace := tracing.Parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "a=1")
	heard := make(chan tracing.Context, 1)
	handler := testkit.Value(NewHandler(func(ctx context.Context, _ []Delivery) error {
		heard <- tracing.Of(ctx)
		return nil
	}, HandlerConfig{}))(t)
	s := httptest.NewServer(handler) // it takes what a client publishes, as an endpoint would
	defer s.Close()
	client := testkit.Value(NewClient(Config{Endpoint: s.URL, Key: "0123456789abcdef", HTTPClient: &http.Client{}}))(t)
	for _, want := range []tracing.Context{trace, {}} {
		testkit.Must(t, client.Publish(tracing.With(t.Context(), want), Event{ID: "1", Type: "t", Subject: "s"}))
		testkit.Equal(t, <-heard, want)
	}
}
