package hub

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Position is where reading starts. The zero Position is Earliest.
type Position struct {
	kind      positionKind
	sequence  int64
	offset    string
	time      time.Time
	inclusive bool
}

type positionKind uint8

const (
	fromEarliest positionKind = iota
	fromLatest
	fromTime
	fromSequence
	fromOffset
)

var (
	// Earliest is the oldest event kept.
	Earliest = Position{}
	// Latest is behind the newest event.
	Latest = Position{kind: fromLatest}
)

// Since is the first event stored after a time; millisecond grain.
func Since(t time.Time) Position { return Position{kind: fromTime, time: t} }

// At is the event with this sequence number.
func At(sequence int64) Position {
	return Position{kind: fromSequence, sequence: sequence, inclusive: true}
}

// After is the event behind the one with this sequence number; that of the newest event is
// good, and waits for the next. After(-1) is the beginning.
func After(sequence int64) Position { return Position{kind: fromSequence, sequence: sequence} }

// AtOffset is the event with this offset.
func AtOffset(offset string) Position {
	return Position{kind: fromOffset, offset: offset, inclusive: true}
}

// AfterOffset is the event behind the one with this offset.
func AfterOffset(offset string) Position { return Position{kind: fromOffset, offset: offset} }

// Sequence is what At (inclusive) and After are of, for those who implement a hub themselves; ok is
// false for other positions.
func (p Position) Sequence() (sequence int64, inclusive, ok bool) {
	return p.sequence, p.inclusive, p.kind == fromSequence
}

// Offset is what AtOffset (inclusive) and AfterOffset are of.
func (p Position) Offset() (offset string, inclusive, ok bool) {
	return p.offset, p.inclusive, p.kind == fromOffset
}

// Time is what Since is of.
func (p Position) Time() (t time.Time, ok bool) { return p.time, p.kind == fromTime }

// String says it in words.
func (p Position) String() string {
	word := "after"
	if p.inclusive {
		word = "at"
	}
	switch p.kind {
	case fromLatest:
		return "latest"
	case fromTime:
		return "since " + p.time.UTC().Format("2006-01-02T15:04:05.000Z")
	case fromSequence:
		return word + " " + strconv.FormatInt(p.sequence, 10)
	case fromOffset:
		return word + " offset " + p.offset
	default:
		return "earliest"
	}
}

// selector is the filter that a hub gets.
func (p Position) selector() (string, error) {
	op := ">"
	if p.inclusive {
		op = ">="
	}
	field, value := "x-opt-offset", "-1"
	switch p.kind {
	case fromLatest:
		value = "@latest"
	case fromTime:
		field, value = "x-opt-enqueued-time", strconv.FormatInt(p.time.UnixMilli(), 10)
	case fromSequence:
		field, value = "x-opt-sequence-number", strconv.FormatInt(p.sequence, 10)
	case fromOffset:
		value = p.offset
	}
	if value == "" || strings.Contains(value, "'") {
		return "", fmt.Errorf("%w: no hub has an offset %q", ErrOutOfRange, value)
	}
	return fmt.Sprintf("amqp.annotation.%s %s '%s'", field, op, value), nil
}
