package v1

import (
	"fmt"
	"net/http"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/amqp/message"
	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/tracing"
)

// outbox gathers the events of one publication in the form the log keeps.
type outbox struct {
	// limit bounds the publication's size as stored.
	limit  int
	bytes  int
	events []eventlog.Event
	// arena holds the encoded events one behind the other. When it grows, earlier
	// events go on pointing into the old array, which nobody writes to again.
	arena []byte
	// mixed: some of the events have another key than the first, or none.
	mixed bool
	// trace is what events get that say nothing of theirs; none: they have none. traces is at least how many of the
	// bytes are for that: they are no reason to refuse the events.
	trace  tracing.Context
	traces int
	// begin begins the publication's span with what its first event says; nil: there is none, or span is it.
	begin func(own tracing.Context) tracing.Span
	span  tracing.Span
}

// newOutbox is that of a request to a hub, of whose trace its events are.
func (d *Handler) newOutbox(r *http.Request, hub string) outbox {
	asked := tracing.OfHeader(r.Header)
	box := outbox{limit: d.cfg.MaxEventBytes, trace: asked}
	if d.cfg.Tracer != nil {
		box.begin = func(own tracing.Context) tracing.Span {
			parent := asked
			if !parent.Valid() {
				parent = own
			}
			_, span := d.cfg.Tracer.Start(r.Context(), tracing.Beginning{
				Name: "send " + hub, Kind: tracing.Producer, Parent: parent, Attributes: []tracing.Attribute{
					{Key: tracing.KeySystem, Value: tracing.System}, {Key: tracing.KeyOperation, Value: "send"},
					{Key: tracing.KeyDestination, Value: hub},
				},
			})
			return span
		}
	}
	return box
}

// end ends the span, if there is one.
func (o *outbox) end(err error) {
	if o.span != nil {
		o.span.Set(tracing.Attribute{Key: tracing.KeyEvents, Value: len(o.events)})
		o.span.End(err)
	}
}

func (o *outbox) add(ev event.Event) error {
	if o.begin != nil {
		o.span, o.begin = o.begin(ev.Trace()), nil
		if begun := o.span.Context(); o.trace.Valid() || begun.Sampled() { // of a trace that nobody keeps nobody has to know
			o.trace = begun
		}
	}
	from := len(o.arena)
	arena, err := o.encode(ev)
	if err != nil {
		return badRequest("see /api/v1/openapi.json for what an event may hold",
			"event %d cannot be stored: %v", len(o.events), err)
	}
	stored := eventlog.Event{Message: arena[from:len(arena):len(arena)]}
	if ev.Key != "" {
		stored.Key = []byte(ev.Key)
	}
	o.arena = arena
	o.events = append(o.events, stored)
	size := eventlog.EventOverheadBytes + len(stored.Key) + len(stored.Message)
	o.bytes += size
	o.mixed = o.mixed || ev.Key != o.firstKey()
	if size > o.limit {
		return &frame.Refusal{
			Status: http.StatusRequestEntityTooLarge, Code: "too-large", Title: "An event is too large",
			Detail: fmt.Sprintf("event %d takes %d bytes as stored, and an event may take %d bytes", len(o.events)-1, size, o.limit),
			Next:   "nothing was stored; send a smaller body, or the body in parts",
		}
	}
	if o.bytes-o.traces > o.limit {
		return fmt.Errorf("%w: the events take more than %d bytes as stored", eventlog.ErrTooLarge, o.limit)
	}
	return nil
}

// traceBytes is what a trace takes at most in an event, beside its state.
const traceBytes = 128

// encode appends an event to the arena, with as much of the trace as there is room for.
func (o *outbox) encode(ev event.Event) ([]byte, error) {
	trace := o.trace
	if !trace.Valid() || tracing.InProperties(ev.Properties) {
		return message.Append(o.arena, ev)
	}
	room := eventlog.MaxBatchBytes - o.limit - o.traces
	if traceBytes+len(trace.State) > room {
		trace.State = ""
	}
	cost, traced := traceBytes+len(trace.State), ev
	traced.SetTrace(trace)
	arena, err := message.Append(o.arena, traced)
	if err != nil || cost > room || eventlog.EventOverheadBytes+len(ev.Key)+len(arena)-len(o.arena) > o.limit {
		return message.Append(o.arena, ev)
	}
	o.traces += cost
	return arena, nil
}

func (o *outbox) firstKey() string {
	if len(o.events) == 0 {
		return ""
	}
	return string(o.events[0].Key)
}

// target decides where the events go. They are stored whole or not at all, hence in
// one partition; so without a partition's name they must share one key (H2).
func (o *outbox) target(partition, key string) (broker.Target, error) {
	own := o.firstKey()
	switch {
	case partition != "":
		return broker.Target{Partition: partition, Key: key}, nil
	case o.mixed:
		return broker.Target{}, badRequest("send the events of each key in a request of their own, or name a partition",
			"the events have different partition keys: one request goes to one partition, so all of them must share one key")
	case key != "" && own != "" && key != own:
		return broker.Target{}, badRequest("give the key in one place only",
			"the request's partition key is %q and that of its events %q", key, own)
	case key == "":
		key = own
	}
	return broker.Target{Key: key}, nil
}
