// Package schema knows the shapes that grid events have: Event Grid's, CloudEvents 1.0
// (structured, batched, binary) and custom ones with a mapping. It reads publications into
// the stored form, looks at stored events without decoding them, and writes what is
// delivered and what is dead-lettered. It is pure: bytes in, bytes out.
//
// The stored form is one JSON object per event, in one of two forms. Its data, if any, is
// the last member and stands there byte for byte as it was sent, so that a look at the
// envelope ends before it. What a subscription is told in addition (topic, versions) is
// written at delivery and not stored.
package schema

import (
	"fmt"
	"strings"
)

// Kind is a schema: what a topic takes, or what a subscription is given.
type Kind string

const (
	EventGrid   Kind = "eventgrid"
	CloudEvents Kind = "cloudevents"
	Custom      Kind = "custom"
)

// Form tells how a stored event is written: as an Event Grid envelope (also for custom
// topics: the mapped envelope, with the whole original as data) or as a CloudEvent.
type Form byte

const (
	EventGridForm  Form = 1
	CloudEventForm Form = 2
)

func (f Form) String() string {
	switch f {
	case EventGridForm:
		return "Event Grid form"
	case CloudEventForm:
		return "CloudEvents form"
	default:
		return fmt.Sprintf("form %d", byte(f))
	}
}

// ParseKind reads a schema's name as people write it: eventgrid, EventGridSchema, cloudevents,
// CloudEventSchemaV1_0, custom, CustomEventSchema, CustomInputSchema, in any case.
func ParseKind(text string) (Kind, error) {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "eventgrid", "eventgridschema":
		return EventGrid, nil
	case "cloudevents", "cloudeventschemav1_0":
		return CloudEvents, nil
	case "custom", "customeventschema", "custominputschema":
		return Custom, nil
	default:
		return "", fmt.Errorf("schema %q: use eventgrid, cloudevents or custom", text)
	}
}

// Form is how events of a topic with this schema are stored.
func (k Kind) Form() Form {
	if k == CloudEvents {
		return CloudEventForm
	}
	return EventGridForm
}

// InputName and OutputName are the spellings of management APIs: CustomEventSchema for a
// topic, CustomInputSchema for a subscription.
func (k Kind) InputName() string {
	if k == Custom {
		return "CustomEventSchema"
	}
	return k.OutputName()
}

func (k Kind) OutputName() string {
	switch k {
	case EventGrid:
		return "EventGridSchema"
	case CloudEvents:
		return "CloudEventSchemaV1_0"
	case Custom:
		return "CustomInputSchema"
	default:
		return string(k)
	}
}

// Compatible says why events of a topic with schema in cannot be delivered as out; nil if
// they can (reference §7). Outputs of a source hub are EventGrid or CloudEvents; in is
// CloudEvents there but EventGrid is allowed (hub = true).
func Compatible(in, out Kind, hub bool) error {
	switch {
	case out != EventGrid && out != CloudEvents && out != Custom:
		return fmt.Errorf("delivery schema %q: use eventgrid, cloudevents or custom", out)
	case out == CloudEvents:
		return nil
	case out == EventGrid && (hub || in != CloudEvents):
		return nil
	case out == EventGrid:
		return fmt.Errorf("events of a topic with %s cannot be delivered in %s, which has no place for extension attributes: use %s",
			in.InputName(), out.OutputName(), CloudEvents.OutputName())
	case hub:
		return fmt.Errorf("events of a hub cannot be delivered in %s, which needs a topic with %s: use %s or %s",
			out.OutputName(), Custom.InputName(), CloudEvents.OutputName(), EventGrid.OutputName())
	case in != Custom:
		return fmt.Errorf("events of a topic with %s cannot be delivered in %s, which needs a topic with %s: use %s",
			in.InputName(), out.OutputName(), Custom.InputName(), DefaultOutput(in).OutputName())
	default:
		return nil
	}
}

// DefaultOutput is what a subscription gets that asks for nothing.
func DefaultOutput(in Kind) Kind {
	if in == CloudEvents {
		return CloudEvents
	}
	return EventGrid
}

// ContentType is that of a delivery (reference §9).
func ContentType(out Kind, batched bool) string {
	switch {
	case out != CloudEvents:
		return "application/json; charset=utf-8"
	case batched:
		return "application/cloudevents-batch+json; charset=utf-8"
	default:
		return "application/cloudevents+json; charset=utf-8"
	}
}
