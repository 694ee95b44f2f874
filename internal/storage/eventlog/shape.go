package eventlog

import (
	"fmt"
	"time"
)

// Shape is what a log is provided with; see [Engine.Provide].
type Shape struct {
	// Partitions have the numbers 0 to Partitions-1; there is one at least.
	Partitions int
	// Kind says what the log is for.
	Kind Kind
	// Retention is that of each partition.
	Retention Retention
}

// Check says what is wrong with a shape that no engine takes; nil if nothing is.
func (s Shape) Check() error {
	switch {
	case s.Partitions < 1:
		return fmt.Errorf("%d partitions, the least is 1", s.Partitions)
	case s.Kind < 0 || int(s.Kind) >= len(kindNames):
		return fmt.Errorf("%v of a log is not known", s.Kind)
	case s.Retention.Age < 0 || s.Retention.Bytes < 0:
		return fmt.Errorf("retention %v, %d bytes: use zero to keep for ever", s.Retention.Age, s.Retention.Bytes)
	}
	return nil
}

// Kind says what a log is for. An engine whose logs share storage puts those together that lose
// their oldest events at about the same time: what is shared is removed from its beginning on, as
// far as all allow.
type Kind int

// The kinds of logs. The zero value is a hub's.
const (
	KindHub Kind = iota
	KindTopic
	// Retry logs by how long entries wait: up to a minute, up to an hour, longer.
	KindRetryShort
	KindRetryMedium
	KindRetryLong
	KindParked
	KindDeadLetters
)

var kindNames = [...]string{
	KindHub: "hub", KindTopic: "topic", KindRetryShort: "retry-short", KindRetryMedium: "retry-medium",
	KindRetryLong: "retry-long", KindParked: "parked", KindDeadLetters: "dead-letters",
}

// String is the kind's name, fit for names of storage.
func (k Kind) String() string {
	if k < 0 || int(k) >= len(kindNames) {
		return fmt.Sprintf("kind %d", int(k))
	}
	return kindNames[k]
}

// RetryKind is the kind of a retry log whose entries wait for so long at most.
func RetryKind(wait time.Duration) Kind {
	switch {
	case wait <= time.Minute:
		return KindRetryShort
	case wait <= time.Hour:
		return KindRetryMedium
	}
	return KindRetryLong
}
