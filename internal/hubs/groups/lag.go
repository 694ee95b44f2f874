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

// lag also tells for how long the oldest event that is pending has been stored. That event is read
// when it was not the oldest before: its time never changes, and a group at rest costs nothing.
func (g group) lag(ctx context.Context, info broker.PartitionInfo, done int64, now time.Time) (*Lag, error) {
	lag := &Lag{Events: pending(done, info)}
	if lag.Events == 0 {
		return lag, nil
	}
	oldest := eventlog.Sequence(max(done, beforeFirst(info)) + 1)
	at, err := g.k.oldest.Of(g.Prefix+info.ID, int64(oldest), func() (time.Time, error) { return storedAt(ctx, g, info.ID, oldest) })
	if err != nil {
		return nil, err
	}
	if !at.IsZero() { // else it is not there any more
		lag.Oldest = max(0, now.Sub(at))
	}
	return lag, nil
}

// storedAt reads an event for its time; zero where it is not there any more.
func storedAt(ctx context.Context, g group, partition string, number eventlog.Sequence) (time.Time, error) {
	cursor, err := g.k.broker.Cursor(ctx, g.Hub.Name, g.Group.Name, partition, eventlog.At(number))
	if err != nil {
		return time.Time{}, err
	}
	defer cursor.Close()
	run, err := cursor.TryNext(ctx)
	if err != nil {
		return time.Time{}, fmt.Errorf("read event %d of partition %s: %w", number, partition, err)
	}
	return run.Time, nil
}

// GroupLag is how far a group is behind, all partitions together.
type GroupLag struct {
	Hub, Group string
	// Events are behind its checkpoints; Oldest is how long the oldest of them has been waiting.
	Events int64
	Oldest time.Duration
	// Alive is how many instances are, and Seen when one of them last was; zero: never.
	Alive int
	Seen  time.Time
	// Unowned is how many partitions have events behind their checkpoint and nobody who reads them.
	Unowned int
}

// Lags tells of all groups that have a checkpoint, of the hubs that match, up to so many partitions in
// all; more: of some it does not, since there are too many. What cannot be read is left out.
func (k *Registry) Lags(ctx context.Context, match func(hub string) bool, most int) (all []GroupLag, more bool) {
	for _, hub := range k.broker.Hubs() {
		if !match(hub.Name) {
			continue
		}
		used, err := k.used(ctx, hub)
		if err != nil {
			k.log.Debug("the lag of groups cannot be told", "hub", hub.Name, "error", err)
		}
		for _, group := range used {
			if most -= hub.Partitions; most < 0 {
				return all, true
			}
			if t, err := k.Table(ctx, hub.Name, group); err == nil {
				all = append(all, lagOf(t))
			}
		}
	}
	return all, false
}

// lagOf sums up a table.
func lagOf(t Table) GroupLag {
	g := GroupLag{Hub: t.Hub, Group: t.Group, Events: t.TotalLag()}
	for _, row := range t.Partitions {
		if row.Lag != nil {
			g.Oldest = max(g.Oldest, row.Lag.Oldest)
			if row.Lag.Events > 0 && !row.Alive && len(row.Readers) == 0 {
				g.Unowned++
			}
		}
	}
	for _, i := range t.Instances {
		if i.Alive {
			g.Alive++
		}
		if i.Seen.After(g.Seen) {
			g.Seen = i.Seen
		}
	}
	return g
}
