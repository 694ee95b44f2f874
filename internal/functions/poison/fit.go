package poison

import (
	"fmt"
	"maps"
	"strings"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/amqp/message"
)

// misplaced is put before the name of a system value that its sender gave a type it may not have:
// it can be read, but not written, and goes among the properties.
const misplaced = "poison-system-"

// fit gives an event that can be written. Nearly always that is the event itself. Else it was
// changed by the function, which may put anything into it, or came from a sender that does not keep
// to the standard: what cannot be written is put into words, since a poison event that can never be
// written would keep its partition standing for good.
func fit(ev event.Event) event.Event {
	if writable(ev) {
		return ev
	}
	if ev.Body != nil || !writable(event.Event{Value: ev.Value}) {
		if ev.Body == nil {
			ev.Body = []byte(words(ev.Value))
		}
		ev.Value = nil
	}
	if !writable(event.Event{MessageID: ev.MessageID}) {
		ev.MessageID = words(ev.MessageID)
	}
	if !writable(event.Event{CorrelationID: ev.CorrelationID}) {
		ev.CorrelationID = words(ev.CorrelationID)
	}
	if !writable(event.Event{ContentType: ev.ContentType}) {
		ev.ContentType = "" // it is written in ASCII
	}
	ev.Subject = strings.ToValidUTF8(ev.Subject, "\uFFFD")
	properties := make(map[string]any, len(ev.Properties))
	for name, v := range ev.Properties {
		if !writable(event.Event{Properties: map[string]any{"": v}}) {
			v = words(v)
		}
		properties[strings.ToValidUTF8(name, "\uFFFD")] = v
	}
	system := maps.Clone(ev.System)
	for name, v := range ev.System {
		if writable(event.Event{System: map[string]any{name: v}}) {
			continue
		}
		delete(system, name)
		if !writable(event.Event{Properties: map[string]any{"": v}}) {
			v = words(v)
		}
		properties[misplaced+strings.ToValidUTF8(name, "\uFFFD")] = v
	}
	ev.Properties, ev.System = properties, system
	return ev
}

func words(v any) string { return strings.ToValidUTF8(fmt.Sprint(v), "\uFFFD") }

func writable(ev event.Event) bool {
	_, err := message.Append(nil, ev)
	return err == nil
}
