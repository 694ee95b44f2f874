package otlp

import (
	"context"
	"log/slog"
	"sync/atomic"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"golang.org/x/time/rate"
)

// queue is where spans wait to be sent. It is OpenTelemetry's own, which drops what has no room in it without a
// word: here that is counted, and told of.
type queue struct {
	sdk.SpanProcessor
	room     int64
	waiting  atomic.Int64
	dropped  atomic.Int64 // had no room
	unsent   atomic.Int64 // could not be sent
	complain rate.Sometimes
	log      *slog.Logger
}

func newQueue(sends sdk.SpanExporter, log *slog.Logger) *queue {
	q := &queue{log: log, complain: rate.Sometimes{First: 1, Interval: complainEvery}}
	q.SpanProcessor = sdk.NewBatchSpanProcessor(&taker{sends, q}, func(o *sdk.BatchSpanProcessorOptions) { q.room = int64(o.MaxQueueSize) })
	return q
}

// OnEnd takes a span if there is room for it.
func (q *queue) OnEnd(s sdk.ReadOnlySpan) {
	if !s.SpanContext().IsSampled() {
		return
	}
	if q.waiting.Add(1) <= q.room {
		q.SpanProcessor.OnEnd(s)
		return
	}
	q.waiting.Add(-1)
	q.dropped.Add(1)
	q.complain.Do(func() {
		q.log.Warn("there are more spans than can be sent, and some are dropped; events are not affected. "+
			"Keep fewer with --otlp-sample, or raise OTEL_BSP_MAX_QUEUE_SIZE", "queue", q.room)
	})
}

// taker takes spans from the queue and sends them.
type taker struct {
	sdk.SpanExporter
	from *queue
}

// ExportSpans makes room first: what is being sent waits no more.
func (t *taker) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	t.from.waiting.Add(-int64(len(spans)))
	err := t.SpanExporter.ExportSpans(ctx, spans)
	if err != nil {
		t.from.unsent.Add(int64(len(spans)))
	}
	return err
}
