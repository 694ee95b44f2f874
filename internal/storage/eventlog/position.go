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

// IsEarliest reports whether the position is the oldest event.
func (p Position) IsEarliest() bool { return p.kind == earliest }

// IsLatest reports whether the position is behind the newest event.
func (p Position) IsLatest() bool { return p.kind == latest }

// Sequence is the number of an At or After position.
func (p Position) Sequence() (Sequence, bool) { return p.seq, p.kind == atSequence }

// Time is the time of a Since position.
func (p Position) Time() (time.Time, bool) { return p.time, p.kind == sinceTime }

func (p Position) String() string {
	switch p.kind {
	case latest:
		return "latest"
	case atSequence:
		return fmt.Sprintf("sequence %d", p.seq)
	case sinceTime:
		return p.time.UTC().Format(time.RFC3339Nano)
	default:
		return "earliest"
	}
}
