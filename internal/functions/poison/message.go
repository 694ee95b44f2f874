package poison

import (
	"maps"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/amqp/message"
)

// Bounds of a poison event. A hub takes publications of 1 MiB; a little of that is left for what the way there adds. Where it is
// needed for the original, the poison event takes most of it.
const (
	maxBytes       = 1_040_000
	fullBytes      = 1<<20 - 256
	maxReasonBytes = 4 << 10
	maxStackBytes  = 16 << 10
	shortReason    = 200
)

// Message is what is written: the original's body, content type, ids, subject, properties and system values, with the poison event's properties
// beside them; without a key (it goes to a named partition), which stands in a property. What of reason and stack is too long is
// cut. An original that leaves too little room goes without stack, then with a short reason, then with
// nothing but its id, and the key, which is the original's. Where even that does not fit, only a reference to it goes.
func (l Record) Message() event.Event {
	ev := fit(original(l.Event))
	l.Reason, l.Stack = cut(l.Reason, maxReasonBytes), cut(l.Stack, maxStackBytes)
	if l.ID == "" {
		l.ID = ID(l.Function, l.Hub, l.Partition, l.Sequence)
	}
	for _, entries := range []func() map[string]any{l.entries, l.withoutStack, l.inShort} {
		if m := with(ev, entries()); encodedBytes(m) <= maxBytes {
			return m
		}
	}
	if m := with(ev, l.least()); encodedBytes(m) <= fullBytes {
		return m
	}
	return l.reference()
}

// original is what of an event is written again. What it is read with is put into properties.
func original(ev event.Event) event.Event {
	ev.Key, ev.Partition, ev.Sequence, ev.Offset, ev.Enqueued = "", "", 0, "", time.Time{}
	return ev
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

func (l Record) withoutStack() map[string]any {
	l.Stack = ""
	return l.entries()
}

func (l Record) inShort() map[string]any {
	l.Reason = cut(l.Reason, shortReason)
	return l.withoutStack()
}

func (l Record) least() map[string]any {
	entries := map[string]any{PropertyID: l.ID}
	if l.Event.Key != "" {
		entries[PropertyKey] = strings.ToValidUTF8(l.Event.Key, "\uFFFD")
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
