package event

import (
	"maps"

	"github.com/eventyard/eventyard/tracing"
)

// Trace is the point in a trace that the event was published in, as its publisher says in the property
// traceparent, or in Diagnostic-Id as older SDKs do; none where it says nothing.
func (e *Event) Trace() tracing.Context { return tracing.OfProperties(e.Properties) }

// SetTrace has the event say so; none changes nothing. The map of its properties is copied, as others may
// have it too.
func (e *Event) SetTrace(c tracing.Context) {
	if c.Valid() {
		e.Properties = c.SetProperties(maps.Clone(e.Properties))
	}
}
