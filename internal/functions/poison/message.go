package poison

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/amqp/message"
)

// Bounds of a poison event. A hub takes publications of 1 MiB; a little of that is left for what
// the way there adds. Where it is needed for the original, the poison event takes most of it.
const (
	maxBytes       = 1_040_000
	fullBytes      = 1<<20 - 256
	maxReasonBytes = 4 << 10
	maxStackBytes  = 16 << 10
	shortReason    = 200
)

// Message is what is written: the original's body, content type, ids, subject, properties and
// system values, with the poison event's properties beside them; without a key (it goes to a named
// partition), which stands in a property. What of reason and stack is too long is cut. An original
// that leaves too little room goes without stack, then with a short reason, then with nothing but
// its id, and the key, which is the original's. Where even that does not fit, only a reference to
// it goes.
func (l Record) Message() event.Event {
	ev := message.Again(l.Event) // what it is read with is put into properties
	ev.Key, ev.Partition, ev.Sequence, ev.Offset, ev.Enqueued = "", "", 0, "", time.Time{}
	ev = fit(ev)
	l.Reason, l.Stack = cut(l.Reason, maxReasonBytes), cut(l.Stack, maxStackBytes)
	if l.ID == "" {
		l.ID = ID(l.Function, l.Hub, l.Partition, l.Sequence)
	}
	noStack := l
	noStack.Stack = ""
	short := noStack
	short.Reason = cut(l.Reason, shortReason)
	for _, r := range []Record{l, noStack, short} {
		if m := with(ev, r.entries()); encodedBytes(m) <= maxBytes {
			return m
		}
	}
	least := map[string]any{PropertyID: l.ID}
	if l.Event.Key != "" {
		least[PropertyKey] = strings.ToValidUTF8(l.Event.Key, "\uFFFD")
	}
	if m := with(ev, least); encodedBytes(m) <= fullBytes {
		return m
	}
	return l.reference()
}

// tooLarge is what stands before the reason of a poison event without its event.
const tooLarge = "too large to be put away with its event: "

// reference is the poison event of an event that leaves no room for one. Nothing of the event is
// cut: it is left out whole. The body says where it is, as long as its hub keeps it.
func (l Record) reference() event.Event {
	body, err := json.Marshal(struct {
		Hub       string `json:"hub"`
		Partition string `json:"partition"`
		Sequence  int64  `json:"sequence"`
	}{l.Hub, l.Partition, l.Sequence})
	if err != nil {
		panic(fmt.Sprintf("poison: a reference cannot be written: %v", err)) // texts and a number
	}
	l.Reason, l.Redriven = cut(tooLarge+l.Reason, maxReasonBytes), max(l.Redriven, redrivenOf(l.Event))
	l.Event = event.Event{Key: l.Event.Key}
	entries := l.entries()
	entries[PropertyReference] = true
	return event.Event{Body: body, ContentType: "application/json", Properties: entries}
}

// with puts the poison event's properties beside the original's.
func with(ev event.Event, entries map[string]any) event.Event {
	properties := make(map[string]any, len(ev.Properties)+len(entries))
	for name, v := range ev.Properties {
		if isOurs(name) || strings.HasPrefix(name, nested) {
			name = nested + name
		}
		properties[name] = v
	}
	maps.Copy(properties, entries)
	ev.Properties = properties
	return ev
}

// entries are the poison event's properties. What is zero is left out.
func (l Record) entries() map[string]any {
	entries := map[string]any{
		PropertyID: l.ID, PropertyFunction: l.Function, PropertyHub: l.Hub, PropertyPartition: l.Partition, PropertySequence: l.Sequence,
		PropertyAttempts: int32(l.Attempts), PropertyDeaths: int32(l.Deaths),
	}
	for name, text := range map[string]string{
		PropertyGroup: l.Group, PropertyOffset: l.Offset, PropertyKey: l.Event.Key, PropertyReason: l.Reason, PropertyStack: l.Stack,
		PropertyInstance: l.Instance,
	} {
		if text != "" {
			entries[name] = strings.ToValidUTF8(text, "\uFFFD")
		}
	}
	for name, t := range map[string]time.Time{PropertyEnqueued: l.Enqueued, PropertyAt: l.At} {
		if !t.IsZero() {
			entries[name] = t.UTC().Truncate(time.Millisecond)
		}
	}
	if l.Redriven > redrivenOf(l.Event) {
		entries[PropertyRedriven] = int32(l.Redriven)
	}
	return entries
}

// cut shortens text to at most n bytes, and says so. It cuts no character in two.
func cut(text string, n int) string {
	const mark = " [cut]"
	if len(text) <= n {
		return text
	}
	end := n - len(mark)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + mark
}

// encodedBytes is how large an event is that can be encoded.
func encodedBytes(ev event.Event) int {
	b, _ := message.Append(nil, ev)
	return len(b)
}

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
