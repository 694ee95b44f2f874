// Package amqpjson writes AMQP's values, and text, as the JSON that comes closest. JSON has
// fewer types: bytes are base64, times and UUIDs text, decimals the hex of their encoding. All
// functions append to a buffer and make nothing in between: they run for every event.
package amqpjson

import "time"

// Style is what the JSON of different places differs in. What has been written is stored, signed
// and relied on: so no style may become the other.
type Style uint8

const (
	// Exact is for those who are shown a hub's event, and may send it again as what it was. A
	// whole double keeps its point; what is described keeps its descriptor; a key that is no text
	// is named by its JSON, quotes and all; times are in whole milliseconds, as hubs keep them.
	Exact Style = iota
	// Plain is for the data of events that are delivered: a whole double is written without a
	// point, of what is described only the value, and a key as its text where it has one. Control
	// characters have only the long escape, \u000a.
	Plain
)

func (s Style) timeLayout() string {
	if s == Plain {
		return time.RFC3339Nano
	}
	return "2006-01-02T15:04:05.000Z07:00"
}
