package poison

import (
	"maps"
	"math"
	"strings"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/amqp/message"
	"github.com/eventyard/eventyard/internal/grid/hops"
)

// Read is the other way; false: it is no poison event. The Event is the original again (key,
// partition, sequence, offset, enqueued, too). It believes nothing: anybody may write into a poison
// hub.
func Read(ev event.Event) (Record, bool) {
	p := ev.Properties
	id, _ := p[PropertyID].(string)
	l, ok := parseID(id)
	if !ok {
		return Record{}, false
	}
	l.Group, l.Offset, l.Instance = text(p, PropertyGroup), text(p, PropertyOffset), text(p, PropertyInstance)
	l.Reason, l.Stack = text(p, PropertyReason), text(p, PropertyStack)
	l.Attempts, l.Deaths = count(p, PropertyAttempts), count(p, PropertyDeaths)
	l.Enqueued, _ = p[PropertyEnqueued].(time.Time)
	l.At, _ = p[PropertyAt].(time.Time)
	if l.At.IsZero() {
		l.At = ev.Enqueued
	}
	l.Redriven = redrivenOf(ev)
	l.Reference, _ = p[PropertyReference].(bool)
	l.Event = ev
	l.Event.Key, l.Event.Partition, l.Event.Sequence = text(p, PropertyKey), l.Partition, l.Sequence
	l.Event.Offset, l.Event.Enqueued = l.Offset, l.Enqueued
	l.Event.Properties = nil
	for name, v := range p {
		if isOurs(name) {
			continue
		}
		if l.Event.Properties == nil {
			l.Event.Properties = make(map[string]any, len(p))
		}
		l.Event.Properties[strings.TrimPrefix(name, nested)] = v
	}
	return l, true
}

// Redrive is the event to publish again: as the original, with the two properties of redriven
// events.
func (l Record) Redrive() event.Event {
	ev := message.Again(l.Event)
	ev.Properties = maps.Clone(ev.Properties)
	if ev.Properties == nil {
		ev.Properties = make(map[string]any, 2)
	}
	ev.Properties[PropertyRedriven] = int32(min(l.Redriven, math.MaxInt32-1)) + 1
	ev.Properties[PropertyRedriveFor] = l.Function
	delete(ev.Properties, hops.Name) // whoever redrives what went round has ended the loop, or it ends again
	return ev
}

// redrivenOf is how often an event was redriven.
func redrivenOf(ev event.Event) int { return count(ev.Properties, PropertyRedriven) }

func text(p map[string]any, name string) string {
	s, _ := p[name].(string)
	return s
}

// count reads a number of times, of whatever type it came back with.
func count(p map[string]any, name string) int {
	var n int64
	switch v := p[name].(type) {
	case int:
		n = int64(v)
	case int32:
		n = int64(v)
	case int64:
		n = v
	}
	return int(min(max(n, 0), math.MaxInt32))
}
