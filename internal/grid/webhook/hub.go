package webhook

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/amqp/message"
	"github.com/eventyard/eventyard/internal/grid/hops"
	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/quota"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// errTimeout: the hub did not store events in time.
var errTimeout = errors.New("the hub did not answer in time")

// publish puts a batch into a hub, each as an event of its own, whole or not at all.
func (c *Sender) publish(ctx context.Context, o *Order, batch []*pending.Delivery) Result {
	began := time.Now()
	events, key, err := o.hubEvents(batch)
	if err != nil {
		return undeliverable(retry.BadRequest, err.Error(), began, len(batch))
	}
	ctx, cancel := context.WithTimeoutCause(ctx, o.timeout, errTimeout)
	defer cancel()
	_, err = c.cfg.Broker.Publish(ctx, o.hub, broker.Target{Key: key}, events)
	r := Result{Outcome: retry.Delivered, Began: began, Took: time.Since(began)}
	if err != nil {
		r.Outcome, r.Status = hubOutcome(ctx, err)
		r.Err = err.Error()
	}
	if full, ok := errors.AsType[*quota.Error](err); ok {
		r.RetryAfter, r.Untried = full.Pause(), true
	}
	return r
}

// hubEvents writes events as a hub keeps them: in the delivery schema, one object each, with the
// headers of a webhook as application properties. The key is that of all of them.
func (o *Order) hubEvents(batch []*pending.Delivery) (events []eventlog.Event, key string, err error) {
	w := newWriter()
	defer w.free()
	events = make([]eventlog.Event, len(batch))
	for i, p := range batch {
		if err := w.scan(o, p); err != nil {
			return nil, "", err
		}
		if i == 0 {
			key = o.key.value
			if o.key.field != "" {
				if text, ok := scalar(w.envelope.Field(o.key.field)); ok {
					key = text
				}
			}
		}
		if w.body, err = schema.AppendEvent(w.body[:0], &w.envelope, o.output); err != nil {
			return nil, "", err
		}
		if events[i].Message, err = message.Append(nil, event.Event{
			Body: w.body, ContentType: schema.ContentType(o.output, false), Properties: w.properties(o, batch[i:i+1]),
		}); err != nil {
			return nil, "", err
		}
	}
	return events, key, nil
}

// properties are those that Event Grid gives events that it sends to Event Hubs.
func (w *writer) properties(o *Order, one []*pending.Delivery) map[string]any {
	all := maps.Clone(o.properties)
	all["aeg-delivery-count"] = countValue(one[0].Attempts)[0]
	all["aeg-output-event-id"] = w.identity(one)
	if o.output == schema.EventGrid {
		all["aeg-data-version"] = string(w.envelope.DataVersion)
	}
	for _, d := range o.dynamic {
		if text, ok := scalar(w.envelope.Field(d.field)); ok {
			all[d.name] = text
		}
	}
	all[hops.Name] = int32(one[0].Hops + 1)
	return w.envelope.TraceContext().SetProperties(all)
}

// hubOutcome puts a broker's error into the words of deliveries. What may have been stored
// counts as failed: it comes once more.
func hubOutcome(ctx context.Context, err error) (retry.Outcome, int) {
	var missing *broker.NotFoundError
	var full *quota.Error
	switch cause := context.Cause(ctx); {
	case errors.As(err, &full):
		return retry.Busy, http.StatusTooManyRequests
	case errors.As(err, &missing):
		return retry.NotFound, http.StatusNotFound
	case errors.Is(err, eventlog.ErrTooLarge):
		return retry.PayloadTooLarge, http.StatusRequestEntityTooLarge
	case errors.Is(err, broker.ErrKeyTooLong), errors.Is(err, broker.ErrInvalidKey):
		return retry.BadRequest, http.StatusBadRequest
	case errors.Is(err, eventlog.ErrUnavailable):
		return retry.Busy, http.StatusServiceUnavailable
	case errors.Is(err, eventlog.ErrNoSpace):
		return retry.Full, 0
	case cause == errTimeout:
		return retry.TimedOut, 0
	case cause != nil, errors.Is(err, eventlog.ErrClosed):
		return retry.Canceled, 0
	}
	return retry.GenericError, 0
}
