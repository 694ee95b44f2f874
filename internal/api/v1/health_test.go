package v1

import (
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"syscall"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/testkit"
)

// counted is the number of requests so far.
func (y *yard) counted(route, method, class string) float64 {
	return testutil.ToFloat64(y.handler.metrics.Requests.WithLabelValues(route, method, class))
}

// A yard is ready when it says so, and no longer when it stops; healthy it is throughout.
func TestReadiness(t *testing.T) {
	var starting error = &NotReady{Text: "reading partitions"}
	y := newYard(t, func(c *Config) { c.Ready = func() error { return starting } })
	y.want(200, "GET", "/healthz", nil)
	testkit.Equal(t, y.refused(503, "not-ready", "GET", "/readyz", nil).Detail, "reading partitions",
		"it says")
	starting = nil
	y.want(200, "GET", "/readyz", nil)
	y.want(200, "HEAD", "/readyz", nil)
	y.stopping()
	y.refused(503, "stopping", "GET", "/readyz", nil)
	y.want(200, "GET", "/healthz", nil)
}

// R5: anybody may ask whether the yard is ready, and hears nothing of the machine, nor what other servers say. The
// log does, once.
func TestReadinessHidesTheMachine(t *testing.T) {
	var log strings.Builder
	why := fmt.Errorf("stopped: %w", &fs.PathError{Op: "write", Path: "/srv/yard/nats/1.blk", Err: syscall.ENOSPC})
	y := newYard(t, func(c *Config) {
		c.Ready, c.Log = func() error { return why }, slog.New(slog.NewTextHandler(&log, nil))
	})
	for range 3 {
		testkit.Equal(t, y.refused(503, "not-ready", "GET", "/readyz", nil).Detail, "it cannot serve at present")
	}
	testkit.Equal(t, strings.Count(log.String(), "/srv/yard/nats/1.blk"), 1, "times in the log")
	why = &NotReady{Text: "the disk is full", Cause: why}
	testkit.Equal(t, y.refused(503, "not-ready", "GET", "/readyz", nil).Detail, "the disk is full")
	testkit.Equal(t, strings.Count(log.String(), "/srv/yard/nats/1.blk"), 2, "times in the log")
}

// Who asks is told who answers.
func TestInfo(t *testing.T) {
	y := newYard(t, func(c *Config) {
		c.Listeners = func() map[string]string { return map[string]string{"http": "127.0.0.1:8080"} }
	})
	got := read[admin.Info](t, y.want(200, "GET", "/api/v1", nil))
	if got.Name != "eventyard" || got.Version != "1.2.3" || got.Namespace != "eventyard" || got.Engine != "disk" || got.Listeners["http"] != "127.0.0.1:8080" {
		t.Errorf("got %+v", got)
	}
	if doc := y.want(200, "GET", got.OpenAPI, nil); !strings.HasPrefix(string(doc.body), "{") {
		t.Error("the document is not where it is said to be")
	}
}

// Requests are counted by route, never by path: a hub's name makes no new series.
func TestRequestsAreCountedByRoute(t *testing.T) {
	y := newYard(t)
	y.hub("orders", 1)
	y.want(200, "GET", "/api/v1/hubs/orders", nil)
	y.want(404, "GET", "/api/v1/hubs/nowhere", nil)
	y.want(201, "POST", "/orders/messages", "x", "Content-Type", "text/plain")
	y.want(404, "GET", "/nothing", nil)
	y.want(405, "BREW", "/api/v1/hubs/orders", nil)
	for _, tt := range []struct{ route, method, class string }{
		{"/api/v1/hubs/{hub}", "GET", "2xx"},
		{"/api/v1/hubs/{hub}", "GET", "4xx"},
		{"/{hub}/messages", "POST", "2xx"},
		{"none", "GET", "4xx"},
		{"/api/v1/hubs/{hub}", "other", "4xx"},
	} {
		t.Run(tt.method+" "+tt.route+" "+tt.class, func(t *testing.T) {
			testkit.Equal(t, y.counted(tt.route, tt.method, tt.class), 1, "requests")
		})
	}
	shown := string(y.want(200, "GET", "/metrics", nil).body)
	for _, name := range []string{"eventyard_http_requests_total", "eventyard_http_request_duration_seconds_bucket", "eventyard_http_tail_readers 0"} {
		if !strings.Contains(shown, name) {
			t.Errorf("/metrics does not show %s", name)
		}
	}
	if strings.Contains(shown, "nowhere") {
		t.Error("a name from a path is in the metrics")
	}
	problems, err := testutil.GatherAndLint(y.handler.cfg.Registry)
	testkit.Must(t, err)
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}
