package traces

import (
	"encoding/hex"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	otlptrace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/test/parts"
)

var collectorProgram = flag.String("collector", "", "the program of test/collector: spans then come through OpenTelemetry's own Collector")

// receiver takes spans by OTLP over HTTP: of the yard, or of the Collector, by which they have gone then.
type receiver struct {
	url string

	mu      sync.Mutex
	spans   []*otlptrace.Span // guarded by mu
	service string            // guarded by mu: who sent them
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{}
	s := httptest.NewServer(r)
	t.Cleanup(s.Close)
	r.url = s.URL
	if *collectorProgram != "" {
		r.url = startCollector(t, s.URL)
	}
	return r
}

// startCollector puts the Collector before a receiver, and says where it receives.
func startCollector(t *testing.T, before string) (url string) {
	t.Helper()
	p := parts.NewProgram(t.TempDir(), *collectorProgram, before)
	t.Cleanup(func() { _ = p.End("TERM") })
	testkit.Must(t, p.Start(func(printed string) bool {
		line, _, whole := strings.Cut(printed, "\n")
		url = line
		return whole
	}))
	return url
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(q.Body)
	var request collector.ExportTraceServiceRequest
	if err != nil || q.URL.Path != "/v1/traces" || q.Header.Get("Content-Type") != "application/x-protobuf" || proto.Unmarshal(body, &request) != nil {
		http.Error(w, "not OTLP", http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, of := range request.ResourceSpans {
		r.service = value(of.Resource.Attributes, "service.name").GetStringValue()
		for _, scope := range of.ScopeSpans {
			r.spans = append(r.spans, scope.Spans...)
		}
	}
	answer, _ := proto.Marshal(&collector.ExportTraceServiceResponse{})
	w.Header().Set("Content-Type", "application/x-protobuf")
	_, _ = w.Write(answer)
}

func value(all []*common.KeyValue, key string) *common.AnyValue {
	for _, kv := range all {
		if kv.Key == key {
			return kv.Value
		}
	}
	return nil
}

// of gives the spans of a trace, in the order in which they began.
func (r *receiver) of(trace string) []*otlptrace.Span {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []*otlptrace.Span
	for _, s := range r.spans {
		if hex.EncodeToString(s.TraceId) == trace {
			all = append(all, s)
		}
	}
	slices.SortStableFunc(all, func(a, b *otlptrace.Span) int { return int(a.StartTimeUnixNano) - int(b.StartTimeUnixNano) })
	return all
}

// one is the only span of a name in a trace.
func one(t *testing.T, spans []*otlptrace.Span, name string) *otlptrace.Span {
	t.Helper()
	all := named(spans, name)
	testkit.MustEqual(t, len(all), 1, "spans %q among %v", name, names(spans))
	return all[0]
}

func named(spans []*otlptrace.Span, name string) (all []*otlptrace.Span) {
	for _, s := range spans {
		if s.Name == name {
			all = append(all, s)
		}
	}
	return all
}

func names(spans []*otlptrace.Span) (all []string) {
	for _, s := range spans {
		all = append(all, s.Name)
	}
	return all
}

func number(s *otlptrace.Span, key string) int64 { return value(s.Attributes, key).GetIntValue() }

func text(s *otlptrace.Span, key string) string { return value(s.Attributes, key).GetStringValue() }

func id(span []byte) string { return hex.EncodeToString(span) }
