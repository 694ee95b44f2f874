package eventlog

import (
	"fmt"
	"time"
)

// Position says where a cursor begins. The zero value is Earliest.
type Position struct {
	kind positionKind
	seq  Sequence
	time time.Time
}

type positionKind uint8

const (
	earliest positionKind = iota
	latest
	atSequence
	sinceTime
	sinceCreated
	greatestCreated
)

// Earliest begins at the oldest event kept.
func Earliest() Position { return Position{} }

// Latest begins behind the newest event.
func Latest() Position { return Position{kind: latest} }

// At begins with the event of this number.
func At(s Sequence) Position { return Position{kind: atSequence, seq: s} }

// After begins behind the event of this number.
func After(s Sequence) Position { return Position{kind: atSequence, seq: s + 1} }

// Since begins with the first event enqueued at this time or later.
func Since(t time.Time) Position { return Position{kind: sinceTime, time: t} }

// SinceCreated begins with the first batch that has an event created at this time or later: with its
// first event, since only who knows the batch's form can tell which of them it is. It begins behind
// the newest event where there is none. Create times need not rise with the numbers.
func SinceCreated(t time.Time) Position { return Position{kind: sinceCreated, time: t} }

// GreatestCreated begins with the first batch that has the greatest create time of all, as
// SinceCreated does. It may have to look at every part of the partition.
func GreatestCreated() Position { return Position{kind: greatestCreated} }

// IsEarliest reports whether the position is the oldest event.
func (p Position) IsEarliest() bool { return p.kind == earliest }

// IsLatest reports whether the position is behind the newest event.
func (p Position) IsLatest() bool { return p.kind == latest }

// Sequence is the number of an At or After position.
func (p Position) Sequence() (Sequence, bool) { return p.seq, p.kind == atSequence }

// Time is the time of a Since position.
func (p Position) Time() (time.Time, bool) { return p.time, p.kind == sinceTime }

// Created is the time of a SinceCreated position.
func (p Position) Created() (time.Time, bool) { return p.time, p.kind == sinceCreated }

// IsGreatestCreated reports whether the position is where the greatest create time is.
func (p Position) IsGreatestCreated() bool { return p.kind == greatestCreated }

func (p Position) String() string {
	switch p.kind {
	case latest:
		return "latest"
	case atSequence:
		return fmt.Sprintf("sequence %d", p.seq)
	case sinceCreated:
		return "created since " + p.time.UTC().Format(time.RFC3339Nano)
	case greatestCreated:
		return "greatest create time"
	case sinceTime:
		return p.time.UTC().Format(time.RFC3339Nano)
	default:
		return "earliest"
	}
}
