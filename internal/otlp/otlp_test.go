package otlp

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/tracing"
)

var publisher = tracing.Parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "a=1,wrong,=")

// open gives an exporter to a collector that answers with a status, and how often it has.
func open(t *testing.T, cfg Config, status int) (e *Exporter, asked *atomic.Int64) {
	t.Helper()
	asked = new(atomic.Int64)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		asked.Add(1)
	}))
	t.Cleanup(s.Close)
	cfg.Endpoint = s.URL
	if cfg.Log == nil {
		cfg.Log = testkit.Quiet()
	}
	e = testkit.Value(Open(t.Context(), cfg))(t)
	t.Cleanup(e.Close)
	return e, asked
}

// V6: what the collector does not take is dropped, and the log says so once.
func TestWhatCannotBeSentIsDropped(t *testing.T) {
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "1") // milliseconds
	var log testkit.Buffer
	e, asked := open(t, Config{Log: slog.New(slog.NewTextHandler(&log, nil))}, http.StatusBadRequest)
	testkit.Eventually(t, "the collector is asked again and again", func() bool {
		_, span := e.Start(t.Context(), tracing.Beginning{Name: "publish orders", Parent: publisher})
		span.End(nil)
		return asked.Load() > 3
	})
	testkit.Equal(t, strings.Count(log.String(), "spans could not be sent"), 1, "of %s", log.String())
}

// V6: who began a trace decides whether it is kept; of those that begin here the yard does.
func TestSampling(t *testing.T) {
	e, _ := open(t, Config{Sample: new(0.0)}, http.StatusOK)
	_, first := e.Start(t.Context(), tracing.Beginning{Name: "publish orders", Kind: tracing.Producer})
	testkit.That(t, first.Context().Valid() && !first.Context().Sampled(), "a trace begins with %+v", first.Context())
	links := []tracing.Context{first.Context()}
	ctx, child := e.Start(t.Context(), tracing.Beginning{Name: "deliver billing", Parent: publisher, Links: links, Attributes: []tracing.Attribute{
		{Key: "text", Value: "x"}, {Key: "number", Value: 1}, {Key: "large", Value: int64(1)}, {Key: "is", Value: true}, {Key: "odd", Value: 1.5},
	}})
	testkit.That(t, child.Context().Sampled() && child.Context().TraceID == publisher.TraceID && child.Context().SpanID != publisher.SpanID, "a trace goes on with %+v", child.Context())
	_, root := e.Start(ctx, tracing.Beginning{Name: "publish others"})
	testkit.That(t, root.Context().TraceID != publisher.TraceID, "without a parent a trace begins, whatever the context has")
	for _, s := range []tracing.Span{root, child, first} {
		s.End(nil)
	}
}

func TestWhoWantsSpans(t *testing.T) {
	for name, x := range map[string]struct {
		endpoint string
		env      map[string]string
		want     bool
	}{
		"nobody":                      {"", nil, false},
		"the configuration":           {"http://localhost:4318", nil, true},
		"the environment":             {"", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:4318"}, true},
		"the environment, for traces": {"", map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://localhost:4318/x"}, true},
		"nobody, by force":            {"http://localhost:4318", map[string]string{"OTEL_SDK_DISABLED": "true"}, false},
		"nobody, of traces":           {"http://localhost:4318", map[string]string{"OTEL_TRACES_EXPORTER": "none"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			for _, name := range []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_SDK_DISABLED", "OTEL_TRACES_EXPORTER"} {
				t.Setenv(name, x.env[name])
			}
			testkit.Equal(t, Config{Endpoint: x.endpoint}.Wanted(), x.want)
		})
	}
}
