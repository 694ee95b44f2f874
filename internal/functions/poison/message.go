package poison

import (
	"maps"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/amqp/message"
)

// Bounds of a letter. A hub takes publications of 1 MiB; a little of that is left for what the way there adds. Where it is
// needed for the original, the letter takes most of it.
const (
	maxBytes       = 1_040_000
	fullBytes      = 1<<20 - 256
	maxReasonBytes = 4 << 10
	maxStackBytes  = 16 << 10
	shortReason    = 200
)

// Message is what is written: the original's body, content type, ids, subject, properties and system values, with the letter's properties
// beside them; without a key (it goes to a named partition), which stands in a property. What of reason and stack is too long is
// cut. An original that leaves too little room goes without stack, then with a short reason, then with
// nothing but its id, and the key, which is the original's. Where even that does not fit, only a reference to it goes.
func (l Letter) Message() event.Event {
	ev := fit(original(l.Event))
	l.Reason, l.Stack = cut(l.Reason, maxReasonBytes), cut(l.Stack, maxStackBytes)
	if l.ID == "" {
		l.ID = ID(l.Function, l.Hub, l.Partition, l.Sequence)
	}
	for _, facts := range []func() map[string]any{l.facts, l.withoutStack, l.inShort} {
		if m := with(ev, facts()); encodedBytes(m) <= maxBytes {
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

// with puts the letter's properties beside the original's.
func with(ev event.Event, facts map[string]any) event.Event {
	properties := make(map[string]any, len(ev.Properties)+len(facts))
	for name, v := range ev.Properties {
		if isOurs(name) || strings.HasPrefix(name, nested) {
			name = nested + name
		}
		properties[name] = v
	}
	maps.Copy(properties, facts)
	ev.Properties = properties
	return ev
}

// facts are the letter's properties. What is zero is left out.
func (l Letter) facts() map[string]any {
	facts := map[string]any{
		PropertyID: l.ID, PropertyFunction: l.Function, PropertyHub: l.Hub, PropertyPartition: l.Partition, PropertySequence: l.Sequence,
		PropertyAttempts: int32(l.Attempts), PropertyDeaths: int32(l.Deaths),
	}
	for name, text := range map[string]string{
		PropertyGroup: l.Group, PropertyOffset: l.Offset, PropertyKey: l.Event.Key, PropertyReason: l.Reason, PropertyStack: l.Stack,
		PropertyInstance: l.Instance,
	} {
		if text != "" {
			facts[name] = strings.ToValidUTF8(text, "\uFFFD")
		}
	}
	for name, t := range map[string]time.Time{PropertyEnqueued: l.Enqueued, PropertyAt: l.At} {
		if !t.IsZero() {
			facts[name] = t.UTC().Truncate(time.Millisecond)
		}
	}
	if l.Redriven > redrivenOf(l.Event) {
		facts[PropertyRedriven] = int32(l.Redriven)
	}
	return facts
}

func (l Letter) withoutStack() map[string]any {
	l.Stack = ""
	return l.facts()
}

func (l Letter) inShort() map[string]any {
	l.Reason = cut(l.Reason, shortReason)
	return l.withoutStack()
}

func (l Letter) least() map[string]any {
	facts := map[string]any{PropertyID: l.ID}
	if l.Event.Key != "" {
		facts[PropertyKey] = strings.ToValidUTF8(l.Event.Key, "\uFFFD")
	}
	return facts
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
