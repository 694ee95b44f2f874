package schema

import (
	"bytes"

	"github.com/eventyard/eventyard/tracing"
)

// TraceContext is the trace that an event belongs to: what a CloudEvent says in its extensions, or what was
// filled in.
func (e *Envelope) TraceContext() tracing.Context {
	if e.Trace.Valid() {
		return e.Trace
	}
	parent, state := "", ""
	for _, x := range e.Extensions {
		switch {
		case !isText(x.Value):
		case string(x.Name) == tracing.Parent:
			parent = string(textOf(x.Value))
		case string(x.Name) == tracing.State:
			state = string(textOf(x.Value))
		}
	}
	return tracing.Parse(parent, state)
}

// AppendTraced writes a stored CloudEvent that says nothing of its trace with what is to be said of it. Its
// order is another than that of other events, which makes no difference but for a little time. Others are
// written as they are.
func AppendTraced(dst, stored []byte, trace tracing.Context) []byte {
	if !trace.Valid() || len(stored) < 2 || saysTrace(stored) {
		return append(dst, stored...)
	}
	if bytes.Contains(stored, []byte(tracing.State)) {
		trace.State = "" // nothing is said twice
	}
	dst = appendTrace(append(dst, '{'), trace)
	return append(append(dst, ','), stored[1:]...)
}

// saysTrace looks at the event only where the word occurs in it.
func saysTrace(stored []byte) bool {
	if !bytes.Contains(stored, []byte(tracing.Parent)) {
		return false
	}
	var e Envelope
	if e.Scan(CloudEventForm, stored) != nil {
		return true // it is not understood, and left alone
	}
	return has(e.Extensions, tracing.Parent)
}

func has(extensions []Member, name string) bool {
	for _, x := range extensions {
		if string(x.Name) == name {
			return true
		}
	}
	return false
}

// setTrace has a CloudEvent say what its properties do, unless it says something itself.
func (d *draft) setTrace(trace tracing.Context) {
	if !trace.Valid() || has(d.extensions, tracing.Parent) {
		return
	}
	// One too many is left out, and so is a state that is there without a parent.
	_ = d.extend([]byte(tracing.Parent), appendQuoted(nil, trace.TraceParent()))
	if trace.State != "" {
		_ = d.extend([]byte(tracing.State), appendQuoted(nil, trace.State))
	}
}

// appendTrace writes it as further members; none is nothing.
func appendTrace(dst []byte, trace tracing.Context) []byte {
	if !trace.Valid() {
		return dst
	}
	dst = appendTextMember(dst, tracing.Parent, trace.TraceParent())
	if trace.State != "" {
		dst = appendTextMember(dst, tracing.State, trace.State)
	}
	return dst
}
