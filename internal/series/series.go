// Package series keeps the last day of what a yard does, in memory: how many events a second were
// published, read and delivered, what waits, how far groups are behind. Once a second a sampler looks at
// the counters that there are anyway (sampler.go), so that nothing is added to the path of an event, and a
// store puts what it found into rings of three widths (ring.go, store.go): a second for 15 minutes, 10
// seconds for 2 hours, a minute for 24 hours. Longer history is Prometheus' to keep.
//
// Rings and store are pure: they are given the time. Each node has a store of its own; Merge makes one
// series of those of several.
package series

import (
	"slices"
	"strings"
	"time"
)

// Of says what a series tells.
type Of string

// What there is. Rates are per second.
const (
	Published   Of = "published"    // events stored
	Bytes       Of = "bytes"        // bytes of these
	Read        Of = "read"         // events given to readers
	Delivered   Of = "delivered"    // events delivered to subscribers
	Failed      Of = "failed"       // events whose delivery failed, each time
	Dead        Of = "dead"         // events that became dead letters
	Waiting     Of = "waiting"      // events that wait to be delivered, or for another try
	Calls       Of = "calls"        // calls of functions
	FailedCalls Of = "failed-calls" // those that failed
	Lag         Of = "lag"          // events behind a group's checkpoints
	LagSeconds  Of = "lag-seconds"  // how long the oldest of these has been waiting
)

// Form is how a kind of series is made, and what of.
type Form struct {
	Of   Of
	Unit string
	// Gauge: a value as it stands; others are counters, told as what they rise by in a second.
	Gauge bool
	// Most: of several the largest counts, and not their sum.
	Most bool
	// By is what can be told apart, each with what it lies in; empty always means all together.
	By []string
}

// Forms are all kinds, in the order in which people are told of them.
var Forms = []Form{
	{Of: Published, Unit: "events/s", By: []string{"hub", "topic"}},
	{Of: Bytes, Unit: "bytes/s", By: []string{"hub"}},
	{Of: Read, Unit: "events/s", By: []string{"hub", "group"}},
	{Of: Delivered, Unit: "events/s", By: []string{"topic", "hub", "subscription"}},
	{Of: Failed, Unit: "events/s", By: []string{"topic", "hub", "subscription"}},
	{Of: Dead, Unit: "events/s", By: []string{"topic", "hub", "subscription"}},
	{Of: Waiting, Unit: "events", Gauge: true, By: []string{"topic", "hub", "subscription"}},
	{Of: Calls, Unit: "calls/s", By: []string{"function"}},
	{Of: FailedCalls, Unit: "calls/s", By: []string{"function"}},
	{Of: Lag, Unit: "events", Gauge: true, Most: true, By: []string{"hub", "group"}},
	{Of: LagSeconds, Unit: "s", Gauge: true, Most: true, By: []string{"hub", "group"}},
}

// FormOf finds a kind.
func FormOf(of Of) (Form, bool) {
	i := slices.IndexFunc(Forms, func(f Form) bool { return f.Of == of })
	if i < 0 {
		return Form{}, false
	}
	return Forms[i], true
}

// Key names a series: what it tells, and of what. All but Of may be empty.
type Key struct {
	Of    Of     `json:"of"`
	Hub   string `json:"hub,omitempty"`
	Group string `json:"group,omitempty"`
	// Topic may be DOMAIN:TOPIC.
	Topic        string `json:"topic,omitempty"`
	Subscription string `json:"subscription,omitempty"`
	Function     string `json:"function,omitempty"`
}

// Parts are the names that the key has, by what they name.
func (k Key) Parts() (parts []string) {
	for _, p := range []struct{ name, value string }{
		{"hub", k.Hub}, {"group", k.Group}, {"topic", k.Topic}, {"subscription", k.Subscription}, {"function", k.Function},
	} {
		if p.value != "" {
			parts = append(parts, p.name)
		}
	}
	return parts
}

// parent is the series that this one is a part of; false for that of the whole yard.
func (k Key) parent() (Key, bool) {
	domain, _, ofDomain := strings.Cut(k.Topic, ":")
	switch {
	case k.Subscription != "":
		k.Subscription = ""
	case k.Group != "":
		k.Group = ""
	case ofDomain:
		k.Topic = domain
	case k.Hub == "" && k.Topic == "" && k.Function == "":
		return k, false
	default:
		k.Hub, k.Topic, k.Function = "", "", ""
	}
	return k, true
}

// depth is how many series this one is a part of.
func (k Key) depth() (n int) {
	for more := true; more; n++ {
		k, more = k.parent()
	}
	return n - 1
}

// Sample is a counter or a gauge as it stands.
type Sample struct {
	Key   Key
	Value float64
}

// How long each ring reaches back, and how far its points are apart.
const (
	fineStep, fineCount     = time.Second, 15 * 60
	middleStep, middleCount = 10 * time.Second, 2 * 60 * 6
	coarseStep, coarseCount = time.Minute, 24 * 60
)

// MaxSpan is how far back series reach.
const MaxSpan = coarseCount * coarseStep

// MaxSeries is how many are kept, of about 12 kB each.
const MaxSeries = 1000
