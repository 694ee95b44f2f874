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
	testkit.That(t, e.Unsent() >= 3 && e.Dropped() == 0, "%d are counted as unsent, %d as dropped", e.Unsent(), e.Dropped())
}

// V6: what there is no room for is dropped, counted, and told of once.
func TestWhatHasNoRoomIsDropped(t *testing.T) {
	t.Setenv("OTEL_BSP_MAX_QUEUE_SIZE", "4")
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "3600000") // milliseconds: it sends when a batch is full, which none is
	t.Setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "4")
	var log testkit.Buffer
	release := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	t.Cleanup(s.Close)
	e := testkit.Value(Open(t.Context(), Config{Endpoint: s.URL, Log: slog.New(slog.NewTextHandler(&log, nil))}))(t)
	t.Cleanup(e.Close)
	defer close(release)
	// Four are taken to be sent, and four wait for that to end; the others have no room, whenever the four are taken.
	const spans = 20
	for range spans {
		_, span := e.Start(t.Context(), tracing.Beginning{Name: "publish orders", Parent: publisher})
		span.End(nil)
	}
	testkit.That(t, e.Dropped() >= spans-8 && e.Dropped() <= spans-4, "%d of %d are dropped", e.Dropped(), spans)
	testkit.Equal(t, strings.Count(log.String(), "more spans than can be sent"), 1, "of %s", log.String())
}

// V6: an address in the environment is judged as one in the configuration, and the yard says what it is.
func TestWhereSpansGo(t *testing.T) {
	for name, x := range map[string]struct {
		endpoint string
		env      map[string]string
		to, err  string
	}{
		"the configuration":             {"http://collector:4318", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "nonsense"}, "http://collector:4318/v1/traces", ""},
		"a path":                        {"http://collector:4318/x/", nil, "http://collector:4318/x/v1/traces", ""},
		"the environment":               {"", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}, "http://collector:4318/v1/traces", ""},
		"the environment, for traces":   {"", map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://collector:4318/x"}, "http://collector:4318/x", ""},
		"no URL":                        {"", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "localhost:4318"}, "", "OTEL_EXPORTER_OTLP_ENDPOINT: "},
		"no URL, for traces":            {"", map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "collector"}, "", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "},
		"a password in the environment": {"", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://me:hunter2@collector"}, "", "OTEL_EXPORTER_OTLP_HEADERS"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, name := range []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"} {
				t.Setenv(name, x.env[name])
			}
			cfg := Config{Endpoint: x.endpoint, Log: testkit.Quiet()}
			e, err := Open(t.Context(), cfg)
			if x.err == "" {
				testkit.Must(t, err)
				e.Close()
				testkit.Equal(t, cfg.To(), x.to)
				return
			}
			testkit.That(t, err != nil && strings.Contains(err.Error(), x.err) && !strings.Contains(err.Error(), "hunter2"), "the error is %v", err)
		})
	}
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
