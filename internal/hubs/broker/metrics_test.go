package broker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/testkit"
)

// H2: what was published can be counted, by hub, and what failed by reason; what was read by hub and
// group (H4), until either is gone.
func TestMetrics(t *testing.T) {
	y := newYard(t)
	registry := prometheus.NewPedanticRegistry()
	b := open(t, Config{Engine: y.Engine, Meta: y.Memory, Metrics: registry})
	mustCreate(t, b, "Orders", 3)
	mustCreate(t, b, "other", 1)
	mustCreate(t, b, "brief", 1)
	mustPublish(t, b, "brief", Target{}, "x")
	mustPublish(t, b, "orders", Target{}, "12345", "67")
	mustPublish(t, b, "ORDERS", Target{Key: "key"}, "1")
	testkit.Must(t, testkit.Err(b.UpdateHub(t.Context(), "orders", forEver())))
	b.Publish(t.Context(), "nowhere", Target{}, events("x"))
	b.Publish(t.Context(), "orders", Target{Key: strings.Repeat("k", 129)}, events("x"))
	for _, group := range []string{"billing", "gone"} {
		testkit.Must(t, testkit.Err(b.CreateGroup(t.Context(), "orders", group)))
	}
	b.Reads("ORDERS", "$default").Add(2)
	b.Reads("orders", "billing").Add(3)
	b.Reads("orders", "gone").Add(4)
	b.Reads("brief", DefaultGroup).Add(5)
	b.Reads("nowhere", DefaultGroup).Add(6)
	testkit.Must(t, b.DeleteGroup(t.Context(), "orders", "gone"))
	testkit.Must(t, b.DeleteHub(t.Context(), "brief"))
	want := `
# HELP eventyard_broker_hubs Number of hubs.
# TYPE eventyard_broker_hubs gauge
eventyard_broker_hubs 2
# HELP eventyard_broker_partitions Number of partitions of all hubs.
# TYPE eventyard_broker_partitions gauge
eventyard_broker_partitions 4
# HELP eventyard_broker_publish_failures_total Publications that ended in an error, by reason.
# TYPE eventyard_broker_publish_failures_total counter
eventyard_broker_publish_failures_total{reason="hub_not_found"} 1
eventyard_broker_publish_failures_total{reason="key_too_long"} 1
# HELP eventyard_broker_published_bytes_total Bytes of the events stored since this node started, by hub.
# TYPE eventyard_broker_published_bytes_total counter
eventyard_broker_published_bytes_total{hub="Orders"} 35
eventyard_broker_published_bytes_total{hub="other"} 0
# HELP eventyard_broker_published_events_total Events stored since this node started, by hub.
# TYPE eventyard_broker_published_events_total counter
eventyard_broker_published_events_total{hub="Orders"} 3
eventyard_broker_published_events_total{hub="other"} 0
# HELP eventyard_broker_read_events_total Events given to readers by this node since it started, by hub and consumer group, over whichever protocol.
# TYPE eventyard_broker_read_events_total counter
eventyard_broker_read_events_total{group="$Default",hub="Orders"} 2
eventyard_broker_read_events_total{group="billing",hub="Orders"} 3
# HELP eventyard_broker_receivers Number of receivers that have a slot at a partition.
# TYPE eventyard_broker_receivers gauge
eventyard_broker_receivers 0
# HELP eventyard_broker_repeated_events_total Events that producers sent again and that were not stored again.
# TYPE eventyard_broker_repeated_events_total counter
eventyard_broker_repeated_events_total 0
`
	testkit.Check(t, testutil.GatherAndCompare(registry, strings.NewReader(want)))
	if _, err := Open(t.Context(), Config{Engine: y.Engine, Meta: y.Memory, Metrics: registry}); err == nil {
		t.Error("two brokers share one registry")
	}
}

func TestFailureReasons(t *testing.T) {
	for want, err := range map[string]error{
		"uncertain":           fmt.Errorf("%w: %w", eventlog.ErrNoSpace, eventlog.ErrUncertain),
		"hub_not_found":       hubNotFound("x"),
		"partition_not_found": &NotFoundError{Kind: KindPartition},
		"key_too_long":        ErrKeyTooLong,
		"key_invalid":         ErrInvalidKey,
		"producer_fenced":     ErrProducerFenced,
		"out_of_order":        ErrOutOfOrder,
		"form":                eventlog.ErrForm,
		"too_large":           eventlog.ErrTooLarge,
		"empty":               eventlog.ErrEmptyBatch,
		"no_space":            eventlog.ErrNoSpace,
		"unavailable":         fmt.Errorf("%w: %w", eventlog.ErrUnavailable, context.DeadlineExceeded),
		"fenced":              eventlog.ErrFenced,
		"removed":             eventlog.ErrRemoved,
		"closed":              eventlog.ErrClosed,
		"canceled":            context.Canceled,
		"other":               errors.New("whatever"),
	} {
		testkit.Equal(t, failureReason(fmt.Errorf("publish: %w", err)), want, "%v", err)
	}
}
