// Package hops counts how often yards have passed an event on, so that a loop of subscriptions
// ends: a delivery that feeds its own source, by a webhook to the yard's own address, by a hub, or
// by both in turn. The count goes with the event: as a header of requests to webhooks, as an
// application property in hubs and in topics' logs, and with what waits in retry logs. It is pure.
package hops

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
)

// Max is how many hops an event may make. Chains that people make on purpose have a few; and
// where a source has several subscriptions to itself each hop multiplies the events.
const Max = 8

// Name is that of the header and of the application property. An event without has made none.
const Name = "Eventyard-Hops"

// Advice is for who finds an event that has made too many.
var Advice = fmt.Sprintf("the event was passed on %d times: subscriptions or functions feed each other in a loop; "+
	"change an endpoint or a filter of theirs, then redrive it", Max)

// OfHeader is what a request says of its events.
func OfHeader(h http.Header) int { return parse(h.Get(Name)) }

// OfProperties is what a hub's event says of itself.
func OfProperties(properties map[string]any) int {
	v, ok := properties[Name]
	if !ok {
		return 0
	}
	return parse(fmt.Sprint(v)) // an integer of any size, or a text, by who passed it on
}

// parse takes what is no count for none: the header is anybody's to send, and says something of
// the sender's own events only.
func parse(text string) int {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return 0
	}
	return int(n)
}

type key struct{}

// With notes the count of events that are published with a context.
func With(ctx context.Context, n int) context.Context {
	if n <= 0 {
		return ctx
	}
	return context.WithValue(ctx, key{}, n)
}

// Of is the count that With noted.
func Of(ctx context.Context) int {
	n, _ := ctx.Value(key{}).(int)
	return n
}
