package eventgrid

import (
	"net/http"
	"time"

	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/grid/hops"
	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/tracing"
)

// maxEventBytes is how large an event may be: a little more than 1 MiB, as Event Grid has it
// (reference §4).
const maxEventBytes = 1<<20 + 1<<10

// maxEvents is how many one publication may have.
const maxEvents = 5000

// publish stores the events of a request, all or none. Nothing but 200 is a success for the
// official clients, and its body is nothing (reference §5).
func (c *call) publish() error {
	if err := c.store(false); err != nil {
		return err
	}
	return c.reply(http.StatusOK, "", nil)
}

// publishToNamespace is the same as a namespace's clients ask for it. They read the answer as
// JSON (reference §19).
func (c *call) publishToNamespace() error {
	if c.topic.Schema != schema.CloudEvents {
		return &frame.Refusal{
			Status: http.StatusBadRequest, Code: "InvalidRequest",
			Detail: "topic " + c.topic.Name + " takes " + c.topic.Schema.InputName() + ", and this call publishes CloudEvents",
			Next:   "publish to /topics/" + c.topic.Name + "/api/events, or to a topic whose schema is CloudEvents",
		}
	}
	if err := c.store(true); err != nil {
		return err
	}
	return c.reply(http.StatusOK, "application/json", []byte("{}"))
}

// store reads a publication and has it made durable.
func (c *call) store(cloudEventsOnly bool) error {
	body, err := c.body()
	if err != nil {
		return err
	}
	events, err := schema.Read(schema.Publication{
		Kind: c.topic.Schema, Mapping: c.topic.Mapping, TopicID: c.topic.Resource, TopicName: c.topic.Name, Domain: c.topic.Domain != nil,
		Header: c.R.Header, Body: body, Now: time.Now(), NewID: frame.NewID,
		MaxEvents: maxEvents, MaxEventBytes: maxEventBytes, CloudEventsOnly: cloudEventsOnly,
	})
	if err != nil {
		return err
	}
	c.events = len(events)
	if len(events) == 0 { // an empty array: nothing to store is stored
		return nil
	}
	ctx := hops.With(c.R.Context(), hops.OfHeader(c.R.Header))
	ctx, span := traced(ctx, c, events)
	err = c.handler.cfg.Topics.Publish(ctx, c.topic.Name, events, c.handler.cfg.Access.Quota(c.Holder))
	tracing.End(span, err)
	if err != nil {
		return err
	}
	c.handler.metrics.published.WithLabelValues(c.topic.Name, stored).Add(float64(len(events)))
	return nil
}

// inputSchemas are the schemas as OPTIONS tells them.
var inputSchemas = map[schema.Kind]string{
	schema.EventGrid: "EventGridEvent", schema.CloudEvents: "CloudEventV10", schema.Custom: "CustomInputEvent",
}

// publishOptions tells how to publish (reference §1), and what the topic takes to who may publish
// there: to others all names are alike.
func (c *call) publishOptions() error {
	h := c.Header()
	h.Set("Allow", "POST, OPTIONS")
	h.Set("api-supported-versions", publishVersion)
	if c.admitTo(toPublish) == nil {
		h.Set("aeg-input-event-schema", inputSchemas[c.topic.Schema])
	}
	return c.reply(http.StatusOK, "", nil)
}
