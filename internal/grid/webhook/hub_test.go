package webhook

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/amqp/message"
	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/quota"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/testkit"
)

// hubs is a broker that keeps what is published, or fails as told.
type hubs struct {
	fail   func(context.Context) error
	hub    string
	target broker.Target
	events []eventlog.Event
}

func (h *hubs) Publish(ctx context.Context, hub string, to broker.Target, events []eventlog.Event) (broker.Published, error) {
	if h.fail != nil {
		if err := h.fail(ctx); err != nil {
			return broker.Published{}, err
		}
	}
	h.hub, h.target, h.events = hub, to, events
	return broker.Published{Count: len(events)}, nil
}

func toHub(output schema.Kind, headers ...topics.Header) *topics.Subscription {
	return subscription("", output, func(s *topics.Settings) { s.Webhook, s.Hub, s.Headers, s.MaxEvents = nil, "Archive", headers, 10 })
}

func TestEventsIntoAHub(t *testing.T) {
	h := &hubs{}
	c := New(Config{Broker: h})
	o := prepare(t, c, toHub(schema.EventGrid,
		topics.Header{Name: "env", Value: "prod"}, topics.Header{Name: "region", Field: "data.region"}, topics.Header{Name: "none", Field: "data.none"}))
	second := eventGrid(2)
	second.Attempts = 3
	got := c.Deliver(t.Context(), o, []*pending.Delivery{eventGrid(1), second})
	if got.Outcome != retry.Delivered || got.Err != "" || got.Status != 0 || got.Late != nil {
		t.Fatalf("%+v", got)
	}
	if h.hub != "Archive" || h.target != (broker.Target{}) || len(h.events) != 2 {
		t.Fatalf("%d events to %s, %+v", len(h.events), h.hub, h.target)
	}
	ids := map[any]bool{}
	for i, e := range h.events {
		m, err := message.Decode(e.Message)
		testkit.Must(t, err)
		n := i + 1
		want := fmt.Sprintf(`{"topic":%q,"id":"e%d","subject":"orders/%d","eventType":"order.placed","eventTime":"2026-01-02T03:04:05Z","dataVersion":"1.%d","metadataVersion":"1","data":{"total":%d,"region":"eu"}}`, topic, n, n, n, n)
		if string(m.Body) != want || m.ContentType != "application/json; charset=utf-8" || e.Key != nil {
			t.Errorf("event %d is %s (%s, key %q)", n, m.Body, m.ContentType, e.Key)
		}
		ids[m.Properties["aeg-output-event-id"]] = true
		delete(m.Properties, "aeg-output-event-id")
		testkit.Diff(t, map[string]any{
			"aeg-event-type": "Notification", "aeg-subscription-name": "BILLING-1", "aeg-metadata-version": "1", "aeg-data-version": fmt.Sprint("1.", n),
			"aeg-delivery-count": []string{"0", "3"}[i], "env": "prod", "region": "eu", "Eventyard-Hops": int32(1),
		}, m.Properties)
	}
	testkit.Equal(t, len(ids), 2, "ids are %v", ids)
}

// A CloudEvent in a hub says so by its content type, and can feed subscriptions again.
func TestCloudEventsIntoAHub(t *testing.T) {
	h := &hubs{}
	c := New(Config{Broker: h})
	testkit.MustEqual(t, c.Deliver(t.Context(), prepare(t, c, toHub(schema.CloudEvents)), []*pending.Delivery{cloudEvent(1)}).Outcome, retry.Delivered)
	m, err := message.Decode(h.events[0].Message)
	if err != nil || string(m.Body) != string(cloudEvent(1).Event) || m.ContentType != "application/cloudevents+json; charset=utf-8" || m.Properties["aeg-metadata-version"] != "1.0" {
		t.Errorf("%v: %s %s %v", err, m.ContentType, m.Body, m.Properties)
	}
	if _, there := m.Properties["aeg-data-version"]; there {
		t.Error("a CloudEvent has a data version")
	}
}

func TestPartitionKeys(t *testing.T) {
	for name, x := range map[string]struct {
		header topics.Header
		want   string
	}{
		"none":                  {topics.Header{Name: "other", Value: "x"}, ""},
		"one for all":           {topics.Header{Name: "PartitionKey", Value: "all"}, "all"},
		"one of the event":      {topics.Header{Name: "partitionkey", Field: "data.region"}, "eu"},
		"a number":              {topics.Header{Name: "PartitionKey", Field: "data.total"}, "1"},
		"one that is not there": {topics.Header{Name: "PartitionKey", Field: "data.none"}, ""},
		"one that is no text":   {topics.Header{Name: "PartitionKey", Field: "data"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := &hubs{}
			c := New(Config{Broker: h})
			o := prepare(t, c, toHub(schema.EventGrid, x.header))
			c.Deliver(t.Context(), o, []*pending.Delivery{eventGrid(1)})
			testkit.Equal(t, h.target.Key, x.want, "the key")
			if x.header.Field == "data.total" && o.Group(eventGrid(1)) == o.Group(eventGrid(2)) {
				t.Error("events of different keys may share a batch")
			}
		})
	}
}

func TestWhatHubsAnswer(t *testing.T) {
	for name, x := range map[string]struct {
		err     error
		outcome retry.Outcome
		status  int
	}{
		"there is no such hub":   {&broker.NotFoundError{Kind: broker.KindHub, Name: "archive"}, retry.NotFound, 404},
		"too large":              {eventlog.ErrTooLarge, retry.PayloadTooLarge, 413},
		"a key that is too long": {broker.ErrKeyTooLong, retry.BadRequest, 400},
		"a key that is no text":  {broker.ErrInvalidKey, retry.BadRequest, 400},
		"a used up quota":        {&quota.Error{What: "hub"}, retry.Busy, 429},
		"no room":                {eventlog.ErrNoSpace, retry.Full, 0},
		"storage out of reach":   {eventlog.ErrUnavailable, retry.Busy, 503},
		"nobody knows":           {eventlog.ErrUncertain, retry.GenericError, 0},
		"the engine is closed":   {eventlog.ErrClosed, retry.Canceled, 0},
		"something else":         {errors.New("disk on fire"), retry.GenericError, 0},
	} {
		t.Run(name, func(t *testing.T) {
			c := New(Config{Broker: &hubs{fail: func(context.Context) error { return fmt.Errorf("publish: %w", x.err) }}})
			got := c.Deliver(t.Context(), prepare(t, c, toHub(schema.EventGrid)), []*pending.Delivery{eventGrid(1)})
			if got.Outcome != x.outcome || got.Status != x.status || got.Err == "" {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestAHubThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(Config{Broker: &hubs{fail: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }}})
		o := prepare(t, c, toHub(schema.EventGrid))
		if got := c.Deliver(t.Context(), o, []*pending.Delivery{eventGrid(1)}); got.Outcome != retry.TimedOut || got.Took != 30*time.Second {
			t.Errorf("%+v", got)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		testkit.Equal(t, c.Deliver(ctx, o, []*pending.Delivery{eventGrid(1)}).Outcome, retry.Canceled)
	})
}

func TestHubEventsThatCannotBeWritten(t *testing.T) {
	h := &hubs{}
	c := New(Config{Broker: h})
	o := prepare(t, c, toHub(schema.EventGrid))
	bad := packed(1, schema.EventGridForm, "nonsense")
	if got := c.Deliver(t.Context(), o, []*pending.Delivery{bad}); got.Outcome != retry.BadRequest || got.Err == "" {
		t.Errorf("%+v", got)
	}
	if got := c.Deliver(t.Context(), o, []*pending.Delivery{eventGrid(1), bad}); got.Outcome != retry.PayloadTooLarge || h.events != nil {
		t.Errorf("%+v, %d events", got, len(h.events))
	}
}
