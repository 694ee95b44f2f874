package processor

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/hub"
)

// State of a partition at this instance.
type State string

const (
	Starting State = "starting" // owned, not yet reading
	Running  State = "running"
	Retrying State = "retrying" // a batch has failed and comes again
	Draining State = "draining" // to be handed over, or the processor stops
	Stalled  State = "stalled"  // no progress for too long
	Faulted  State = "faulted"  // cannot be read: see the error
	Closed   State = "closed"   // given up
)

// Status is what an instance knows about a partition of its own.
type Status struct {
	Partition string
	State     State
	Since     time.Time
	Epoch     int64
	// Done is the newest event handled, Saved the stored checkpoint; -1 if none.
	Done, Saved int64
	// Lag is how many events are behind Done, LagTime how much older it is than the newest.
	Lag     int64
	LagTime time.Duration
	Attempt int // of the batch that is handled
	// Err is the last error, nil after a success.
	Err error
}

// position is where an event is in its partition.
type position struct {
	seq    int64 // -1: none
	offset string
	at     time.Time
}

var nowhere = position{seq: -1}

func positionOf(ev *event.Event) position {
	return position{seq: ev.Sequence, offset: ev.Offset, at: ev.Enqueued}
}

// lag is how far done is behind the newest event: in events, and in time by the hub's
// own clock. With nothing done it counts from before, the event before the first one to be
// done. Where nothing is known about the newest there is none.
func lag(done, before position, newest hub.LastEnqueued) (int64, time.Duration) {
	from := max(done.seq, before.seq)
	behind := newest.Sequence - from
	if behind <= 0 {
		return 0, 0
	}
	if done.at.IsZero() || done.seq < before.seq {
		return behind, 0
	}
	return behind, max(newest.Enqueued.Sub(done.at), 0)
}

// sortByPartition puts "2" before "10".
func sortByPartition[T any](list []T, id func(T) string) {
	slices.SortFunc(list, func(a, b T) int {
		x, errX := strconv.Atoi(id(a))
		y, errY := strconv.Atoi(id(b))
		if errX == nil && errY == nil {
			return cmp.Compare(x, y)
		}
		return cmp.Compare(id(a), id(b))
	})
}
