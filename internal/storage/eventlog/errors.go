package eventlog

import (
	"errors"
	"fmt"
)

// What can go wrong, told apart by what the caller should do next.
var (
	// ErrClosed: the engine has been closed.
	ErrClosed = errors.New("log is closed")
	// ErrRemoved: the log was removed while the handle or cursor was in use.
	ErrRemoved = errors.New("log was removed")
	// ErrEmptyBatch: there is nothing to append.
	ErrEmptyBatch = errors.New("batch has no events")
	// ErrTooLarge: the batch exceeds MaxBatchBytes, or a key MaxKeyBytes.
	ErrTooLarge = errors.New("batch is too large")
	// ErrNoSpace: storage is full. Nothing was stored; reads and retention go on, and
	// the same append succeeds once there is room.
	ErrNoSpace = errors.New("no space left for events")
	// ErrFenced: the partition's writer was replaced before this batch reached the
	// log, or the batch's claim was lost. Nothing was stored; append it again, with a new claim if it
	// had one.
	ErrFenced = errors.New("partition writer was fenced")
	// ErrUnavailable: storage is out of reach, or not ready yet. Nothing was stored; the
	// same call succeeds once it is back.
	ErrUnavailable = errors.New("storage is unavailable")
	// ErrUncertain: storage failed under the batch. It may or may not be stored.
	ErrUncertain = errors.New("outcome of the append is unknown")
)

// PositionError refuses a cursor that would begin past the end.
type PositionError struct {
	Asked Sequence
	// Last is the newest number in the partition, NoSequence if it never had one.
	Last Sequence
}

func (e *PositionError) Error() string {
	return fmt.Sprintf("sequence number %d is ahead of the end: the last one is %d", e.Asked, e.Last)
}

// CorruptError reports stored bytes that are not what was written. Events outside
// First..Next-1 are not affected: a cursor opened at Next goes on behind the damage.
type CorruptError struct {
	// Where says in the engine's own words where the damage is.
	Where string
	// First and Next bound the events that cannot be read; Next is NoSequence where
	// nothing readable follows yet.
	First, Next Sequence
	Reason      string
}

func (e *CorruptError) Error() string { return e.Where + ": " + e.Reason + ": " + e.Lost() }

// Lost says which events cannot be read, without what only those understand who can see the storage.
func (e *CorruptError) Lost() string {
	if e.Next == NoSequence {
		return fmt.Sprintf("event %d and those after it cannot be read", e.First)
	}
	return fmt.Sprintf("events %d to %d cannot be read, go on at %d", e.First, e.Next-1, e.Next)
}
