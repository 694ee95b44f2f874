package invoke

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/eventyard/eventyard/internal/grid/hops"
	"github.com/eventyard/eventyard/tracing"
)

// blank is what requests are made of: WithContext is the only way to give them a context.
var blank = &http.Request{Method: http.MethodPost, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}

// headerOf is what all requests have in common, and what this one is about.
func (c *Caller) headerOf(ctx context.Context, call *Call) http.Header {
	first, last := call.Events[0].Sequence, call.Events[len(call.Events)-1].Sequence
	own := [...]struct{ name, value string }{
		{"Eventyard-Function", headerText(call.Function)},
		{"Eventyard-Hub", headerText(call.Hub)},
		{"Eventyard-Group", headerText(call.Group)},
		{"Eventyard-Partition", headerText(call.Partition)},
		{"Eventyard-Attempt", strconv.Itoa(call.Attempt)},
		{"Eventyard-Epoch", strconv.FormatInt(call.Epoch, 10)},
		{"Eventyard-First-Sequence", strconv.FormatInt(first, 10)},
		{"Eventyard-Last-Sequence", strconv.FormatInt(last, 10)},
		{hops.Name, strconv.Itoa(hopsOf(call.Events) + 1)},
		// With this one net/http knows that to repeat the request on another connection does no
		// harm.
		{"Idempotency-Key", headerText(string(appendKey(nil, call)))},
	}
	h := make(http.Header, len(c.header)+len(own))
	for name, values := range c.header {
		h[name] = values
	}
	values := make([]string, len(own))
	for i, o := range own {
		values[i] = o.value
		h[o.name] = values[i : i+1 : i+1]
	}
	traceOf(ctx, call).SetHeader(h)
	return h
}

// traceOf is the span of the call, or the trace of its only event. Those of several events are with each of
// them: a request has one.
func traceOf(ctx context.Context, call *Call) tracing.Context {
	if c := tracing.Of(ctx); c.Valid() || len(call.Events) > 1 {
		return c
	}
	return call.Events[0].Trace()
}

// headerText is text that can stand in a header. Names of functions, hubs and groups are; an Azure
// hub's group may be odd.
func headerText(t string) string {
	for i := range len(t) {
		if t[i] < ' ' || t[i] > '~' {
			return url.PathEscape(t)
		}
	}
	return t
}

// appendKey is the same for the same events and no others: the stable id of the first, and the
// sequence number of the last. Lanes and divided batches leave events out in between; then a hash
// of all numbers follows.
func appendKey(dst []byte, call *Call) []byte {
	events := call.Events
	first, last := events[0].Sequence, events[len(events)-1].Sequence
	dst = call.appendID(dst, first)
	dst = strconv.AppendInt(append(dst, '-'), last, 10)
	if last-first == int64(len(events)-1) {
		return dst
	}
	const offset, prime = 14695981039346656037, 1099511628211 // FNV-1a
	hash := uint64(offset)
	for i := range events {
		for n, shift := uint64(events[i].Sequence), 0; shift < 64; shift += 8 {
			hash = (hash ^ (n>>shift)&0xff) * prime
		}
	}
	return strconv.AppendUint(append(dst, '-'), hash, 16)
}

// appendID writes the stable id of an event: function/hub/partition/sequence.
func (c *Call) appendID(dst []byte, sequence int64) []byte {
	for _, part := range [...]string{c.Function, c.Hub, c.Partition} {
		dst = append(append(dst, part...), '/')
	}
	return strconv.AppendInt(dst, sequence, 10)
}
