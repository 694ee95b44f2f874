// Package tracing is how a trace goes along with events: from who publishes them to who reads them, to
// functions, webhooks and dead letters. A Context says where in which trace an event was made, in the
// words of W3C Trace Context; events carry it in properties, requests in headers. That costs no
// configuration. A Tracer makes spans of what is done with events: it is a hook, so that nothing here
// depends on a library for traces, and nil, which is the usual one, costs nothing.
package tracing

import (
	"context"
	"encoding/hex"
	"net/http"
	"strings"
)

// The names under which a trace is carried: as headers of HTTP, as extension attributes of CloudEvents,
// and as application properties of a hub's events.
const (
	Parent = "traceparent"
	State  = "tracestate"
	// DiagnosticID is the property in which older SDKs of Event Hubs have what is traceparent now.
	DiagnosticID = "Diagnostic-Id"
)

// maxState is how long a tracestate may be; a longer one is not carried (Trace Context, 3.3.1.5).
const maxState = 512

// The flags that are known. Others are not passed on (Trace Context, 3.2.2.5).
const (
	flagSampled = 1
	flagsKnown  = 3 // that the trace's id is random, besides
)

// Context is a point in a trace: the span that something was done in. The zero Context is none.
type Context struct {
	TraceID [16]byte
	SpanID  [8]byte
	Flags   byte
	// State is what makers of traces keep for themselves, as tracestate has it; empty: nothing.
	State string
}

// Valid tells a Context from none.
func (c Context) Valid() bool { return c.TraceID != [16]byte{} && c.SpanID != [8]byte{} }

// Sampled tells whether somebody keeps the spans of this trace.
func (c Context) Sampled() bool { return c.Flags&flagSampled != 0 }

// Trace is the id of the trace as people see it, in hexadecimal; empty for none.
func (c Context) Trace() string {
	if !c.Valid() {
		return ""
	}
	return hex.EncodeToString(c.TraceID[:])
}

// lengths and places of the parts of a traceparent: version-trace-span-flags.
const (
	parentBytes = 55
	atTrace     = 3
	atSpan      = 36
	atFlags     = 53
)

// TraceParent is the context as traceparent has it; empty for none.
func (c Context) TraceParent() string {
	if !c.Valid() {
		return ""
	}
	text := [parentBytes]byte{0: '0', 1: '0', atTrace - 1: '-', atSpan - 1: '-', atFlags - 1: '-'}
	hex.Encode(text[atTrace:], c.TraceID[:])
	hex.Encode(text[atSpan:], c.SpanID[:])
	hex.Encode(text[atFlags:], []byte{c.Flags & flagsKnown})
	return string(text[:])
}

// Parse reads a traceparent and a tracestate. What is no traceparent is none, without an error: it is
// anybody's to send, and no reason to refuse an event. A tracestate that cannot be one is left out.
func Parse(parent, state string) Context {
	var c Context
	var version, flags [1]byte
	switch {
	case len(parent) < parentBytes, parent[2] != '-', parent[atSpan-1] != '-', parent[atFlags-1] != '-':
		return Context{}
	case !unhex(version[:], parent[:2]), version[0] == 0xff:
		return Context{}
	case len(parent) > parentBytes && (version[0] == 0 || parent[parentBytes] != '-'): // a later version may go on
		return Context{}
	case !unhex(c.TraceID[:], parent[atTrace:atSpan-1]), !unhex(c.SpanID[:], parent[atSpan:atFlags-1]), !unhex(flags[:], parent[atFlags:parentBytes]):
		return Context{}
	case !c.Valid():
		return Context{}
	}
	c.Flags = flags[0] & flagsKnown
	if len(state) <= maxState && strings.IndexFunc(state, func(r rune) bool { return r < ' ' || r > '~' }) < 0 {
		c.State = state
	}
	return c
}

// unhex reads hexadecimal in lower case, which is the only one allowed.
func unhex(dst []byte, text string) bool {
	for i := range dst {
		high, low := digit(text[2*i]), digit(text[2*i+1])
		if high|low > 0xf {
			return false
		}
		dst[i] = high<<4 | low
	}
	return true
}

func digit(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10
	}
	return 0xff
}

// OfHeader is what a request says of the trace that it is of.
func OfHeader(h http.Header) Context {
	parents := h["Traceparent"]
	if len(parents) != 1 { // of two nobody knows which is meant
		return Context{}
	}
	return Parse(parents[0], strings.Join(h["Tracestate"], ","))
}

// SetHeader has a request say so; none changes nothing.
func (c Context) SetHeader(h http.Header) {
	if !c.Valid() {
		return
	}
	h["Traceparent"] = []string{c.TraceParent()}
	delete(h, "Tracestate")
	if c.State != "" {
		h["Tracestate"] = []string{c.State}
	}
}

// parents are the properties that may have a traceparent, the one that counts most first: the plain
// one, those of a CloudEvent in binary mode, and the one of old.
var parents = [...]struct{ parent, state string }{
	{Parent, State},
	{"cloudEvents:" + Parent, "cloudEvents:" + State},
	{"cloudEvents_" + Parent, "cloudEvents_" + State},
	{DiagnosticID, State},
}

// OfProperties is what the application properties of a hub's event say.
func OfProperties(properties map[string]any) Context {
	if len(properties) == 0 {
		return Context{}
	}
	for _, p := range parents {
		if c := Parse(text(properties[p.parent]), text(properties[p.state])); c.Valid() {
			return c
		}
	}
	return Context{}
}

// text is the value of a property that says something of a trace: text, or bytes, which is what the headers
// of Kafka's clients become. Anything else says nothing.
func text(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case []byte:
		return string(v)
	}
	return ""
}

// InProperties tells whether they say anything of a trace, be it nonsense: then it is left as it is.
func InProperties(properties map[string]any) bool {
	for _, p := range parents {
		if _, there := properties[p.parent]; there {
			return true
		}
	}
	return false
}

// SetProperties has the properties of an event say so. The map is made if it is nil; none changes
// nothing.
func (c Context) SetProperties(properties map[string]any) map[string]any {
	if !c.Valid() {
		return properties
	}
	if properties == nil {
		properties = make(map[string]any, 2)
	}
	properties[Parent] = c.TraceParent()
	delete(properties, State)
	if c.State != "" {
		properties[State] = c.State
	}
	return properties
}

type key struct{}

// With gives a context in which something of that trace is done. None changes nothing.
func With(ctx context.Context, c Context) context.Context {
	if !c.Valid() {
		return ctx
	}
	return context.WithValue(ctx, key{}, c)
}

// Of is what With noted, none otherwise. In the handler of a function it is the span of the call or, where
// there are no spans, the trace of the event if the call has but one.
func Of(ctx context.Context) Context {
	c, _ := ctx.Value(key{}).(Context)
	return c
}
