// Package event has the one type that every part of Eventyard speaks: what a program
// publishes to a hub and what it reads from one.
package event

import "time"

// Event is one event. To publish, fill in the upper half and leave the lower one alone:
//
//	e := event.Text("door opened")
//	e.Key = "home-42" // same key, same partition, same order
//	e.Properties = map[string]any{"sensor": "front door", "battery": 0.87}
//
// An event that was read has both. Publishing it again takes its System values along;
// partition, sequence number, offset and time are new.
//
// Events travel as AMQP 1.0 messages, and values keep their types on the way: an int32 comes back
// as an int32, a time.Time as a time.Time in UTC, to the millisecond. The values that may stand in
// Value, Properties and System are nil, bool, all sizes of integers (int and uint come back with 64
// bits), float32, float64, string, []byte, [16]byte (a UUID), time.Time, []any, and the types of
// this package. Strings have to be valid UTF-8.
type Event struct {
	// Key is the partition key: events with the same key go to the same partition
	// and keep their order. Empty means none.
	Key string

	// Body is the event's payload. It is nil when the body is no bytes but a value;
	// an event published with neither has an empty Body when read.
	Body []byte
	// Value is the payload of senders that use AMQP's other kinds of body: a single
	// value, or a sequence of lists, which is given as a []any of []any. To publish
	// one leave Body nil. It is always sent as a single value.
	Value any

	// ContentType is the media type of the body, such as "application/json".
	ContentType string
	// MessageID identifies the event for its sender: a string, uint64, [16]byte
	// (a UUID), []byte, or nil for none. The hub does not look for duplicates.
	MessageID any
	// CorrelationID is another event's MessageID, of the same types.
	CorrelationID any
	// Subject says what the event is about.
	Subject string

	// Properties are the application's own, by name.
	Properties map[string]any

	// What follows is set by the hub on events that were read.

	// Partition is the id of the partition, "0" to one less than their number.
	Partition string
	// Sequence numbers the events of a partition, without gaps, from 0.
	Sequence int64
	// Offset marks the event's position in its partition. Take it as opaque.
	Offset string
	// Enqueued is when the hub stored the event. It never goes backwards inside a partition.
	Enqueued time.Time

	// System holds the rest of what the sender set, by AMQP names: the standard properties that
	// have no field here ("to", "reply-to", "user-id", "content-encoding", "absolute-expiry-time",
	// "creation-time", "group-id", "group-sequence", "reply-to-group-id"), and message annotations
	// other than the hub's.
	System map[string]any
}

// Text makes an event of some text.
func Text(s string) Event { return Event{Body: []byte(s)} }

// Bytes makes an event of some bytes, which it does not copy. Nil is an empty body.
func Bytes(b []byte) Event {
	if b == nil {
		b = []byte{}
	}
	return Event{Body: b}
}
