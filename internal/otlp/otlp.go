// Package otlp sends spans to an OpenTelemetry collector, by OTLP over HTTP, with OpenTelemetry's own
// library. It is behind the hook of package tracing, and only the command imports it: programs that use the
// public packages, or run a yard inside, do not depend on that library.
//
// Spans wait in a bounded queue and are sent in the background. What has no room, or cannot be sent, is
// dropped, counted and told of: events never wait for their spans.
package otlp

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/time/rate"

	"github.com/eventyard/eventyard/internal/config"
	"github.com/eventyard/eventyard/tracing"
)

// flushTime is how long what is left may take to be sent when the yard has stopped.
const flushTime = 3 * time.Second

// complainEvery bounds how often it is logged that spans cannot be sent.
const complainEvery = time.Minute

// Config says where spans go. What it leaves open is as the environment variables of OpenTelemetry say:
// OTEL_EXPORTER_OTLP_HEADERS, OTEL_RESOURCE_ATTRIBUTES, OTEL_BSP_MAX_QUEUE_SIZE and the like.
type Config struct {
	// Endpoint is the base URL of the collector, such as http://localhost:4318; empty: as
	// OTEL_EXPORTER_OTLP_ENDPOINT says.
	Endpoint string
	// Sample is the share of traces that are kept, of those that begin here; nil: as OTEL_TRACES_SAMPLER
	// says, or all. Others are kept if who began them says so.
	Sample *float64
	// Version and Node name this yard among what is traced.
	Version, Node string
	Log           *slog.Logger
}

// Wanted tells whether spans are to be sent: somewhere, and not turned off.
func (c Config) Wanted() bool {
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") || os.Getenv("OTEL_TRACES_EXPORTER") == "none" {
		return false
	}
	return c.To() != ""
}

// To is the URL that spans are sent to; empty where nothing says it.
func (c Config) To() string {
	written, from := c.written()
	if written == "" || from == tracesEndpoint {
		return written
	}
	to, err := url.JoinPath(written, "v1", "traces")
	if err != nil {
		return written // which no check lets pass
	}
	return to
}

// The variables that name a collector: the first all of its URL.
const (
	tracesEndpoint = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	baseEndpoint   = "OTEL_EXPORTER_OTLP_ENDPOINT"
)

// written is what says where spans go, as it was written, and where it stands.
func (c Config) written() (text, from string) {
	if c.Endpoint != "" {
		return c.Endpoint, "otlp.endpoint"
	}
	if text := os.Getenv(tracesEndpoint); text != "" {
		return text, tracesEndpoint
	}
	return os.Getenv(baseEndpoint), baseEndpoint
}

// Exporter makes spans and sends them. It is a tracing.Tracer, and counts what it drops.
type Exporter struct {
	queue    *queue
	provider *sdk.TracerProvider
	tracer   trace.Tracer
	log      *slog.Logger
}

// Open makes one. It asks nobody: a collector that is not there is found out when the first spans are sent,
// and tried again. The error is a config.Problem where what is to be its address is none.
func Open(ctx context.Context, cfg Config) (*Exporter, error) {
	written, from := cfg.written()
	if err := config.CheckCollector(written); err != nil {
		return nil, &config.Problem{Origin: from, Reason: err.Error()}
	}
	var to []otlptracehttp.Option
	if cfg.Endpoint != "" { // else the library reads the variables
		to = append(to, otlptracehttp.WithEndpointURL(cfg.To()))
	}
	if protocol := os.Getenv("OTEL_EXPORTER_OTLP_PROTOCOL"); strings.HasPrefix(protocol, "grpc") {
		cfg.Log.Warn("spans are sent by OTLP over HTTP, whatever OTEL_EXPORTER_OTLP_PROTOCOL says: name the collector's port for that", "protocol", protocol)
	}
	// What cannot be sent is told by a handler that the whole process shares.
	complain := &rate.Sometimes{First: 1, Interval: complainEvery}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		complain.Do(func() { cfg.Log.Warn("spans could not be sent and are dropped; events are not affected", "error", err) })
	}))
	sends, err := otlptracehttp.New(ctx, to...)
	if err != nil {
		return nil, fmt.Errorf("send spans: %w", err)
	}
	waiting := newQueue(sends, cfg.Log)
	options := []sdk.TracerProviderOption{sdk.WithSpanProcessor(waiting), sdk.WithResource(cfg.resource(ctx))}
	if cfg.Sample != nil {
		options = append(options, sdk.WithSampler(sdk.ParentBased(sdk.TraceIDRatioBased(*cfg.Sample))))
	}
	provider := sdk.NewTracerProvider(options...)
	tracer := provider.Tracer("github.com/eventyard/eventyard", trace.WithInstrumentationVersion(cfg.Version))
	return &Exporter{waiting, provider, tracer, cfg.Log}, nil
}

// resource says who we are; the environment knows better.
func (c Config) resource(ctx context.Context) *resource.Resource {
	own := []attribute.KeyValue{attribute.String("service.name", "eventyard"), attribute.String("service.version", c.Version)}
	if c.Node != "" {
		own = append(own, attribute.String("service.instance.id", c.Node))
	}
	all, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(own...), resource.WithFromEnv())
	if err != nil { // what could be read is there
		c.Log.Warn("the attributes of spans in the environment are wrong: check OTEL_RESOURCE_ATTRIBUTES", "error", err)
	}
	return all
}

// Dropped is how many spans had no room in the queue, and Unsent how many could not be sent or were refused.
func (e *Exporter) Dropped() int64 { return e.queue.dropped.Load() }

// Unsent is explained with Dropped.
func (e *Exporter) Unsent() int64 { return e.queue.unsent.Load() }

// Close sends what is left, as far as that does not take long.
func (e *Exporter) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), flushTime)
	defer cancel()
	if err := e.provider.Shutdown(ctx); err != nil {
		e.log.Warn("the last spans could not be sent", "error", err)
	}
}

var _ tracing.Tracer = (*Exporter)(nil)
