package groups

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/processor"
)

// hasPosition tells a checkpoint from the mere trace of a fence.
func hasPosition(c processor.Checkpoint) bool { return c.Sequence >= 0 || c.Offset != "" }

// doneUpTo is the event up to which all is done, -1 for none. Offsets are sequence
// numbers here; one that is not came from elsewhere and says nothing.
func doneUpTo(c processor.Checkpoint) (sequence int64, known bool) {
	if c.Sequence >= 0 {
		return c.Sequence, true
	}
	n, err := strconv.ParseInt(c.Offset, 10, 64)
	return n, err == nil && n >= -1
}

// pending is how many events of a partition are behind the one that is done. What
// retention has removed is not pending.
func pending(done int64, info broker.PartitionInfo) int64 {
	return max(0, int64(info.Last)-max(done, beforeFirst(info)))
}

// beforeFirst is the number before the oldest event kept; -1 if there never was one.
func beforeFirst(info broker.PartitionInfo) int64 { return max(int64(info.First), 0) - 1 }

// lag also reads the oldest event that is pending, for the time at which it was stored.
func (g group) lag(ctx context.Context, info broker.PartitionInfo, done int64, now time.Time) (*Lag, error) {
	lag := &Lag{Events: pending(done, info)}
	if lag.Events == 0 {
		return lag, nil
	}
	oldest := eventlog.Sequence(max(done, beforeFirst(info)) + 1)
	cursor, err := g.k.broker.Cursor(ctx, g.Hub.Name, g.Group.Name, info.ID, eventlog.At(oldest))
	if err != nil {
		return nil, err
	}
	defer cursor.Close()
	run, err := cursor.TryNext(ctx)
	if err != nil {
		return nil, fmt.Errorf("read event %d of partition %s: %w", oldest, info.ID, err)
	}
	if !run.Time.IsZero() { // else it is not there any more
		lag.Oldest = max(0, now.Sub(run.Time))
	}
	return lag, nil
}
