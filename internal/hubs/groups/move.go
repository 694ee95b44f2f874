package groups

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/parallel"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/processor"
)

// ErrOutOfRange: an operator names an event that the partition does not have yet, or never will.
var ErrOutOfRange = errors.New("no such position in the partition")

// OwnedError: the checkpoint belongs to somebody who is alive. Stop it first, or force.
type OwnedError struct {
	Hub, Group, Partition string
	// Owner has the lease, renewed lately; or, with an empty Owner, Reader reads the
	// partition with an epoch.
	Owner   string
	Renewed time.Time
	Reader  string
}

func (e *OwnedError) Error() string {
	where := fmt.Sprintf("partition %s of group %q of hub %q", e.Partition, e.Group, e.Hub)
	if e.Owner == "" {
		return fmt.Sprintf("%s is being read exclusively by %q: stop it first, or force the move", where, e.Reader)
	}
	return fmt.Sprintf("%s is owned by %q, which renewed its lease at %s: stop it first, or force the move",
		where, e.Owner, e.Renewed.Format(time.RFC3339))
}

// Target is where an operator wants a checkpoint: exactly one of the fields.
type Target struct {
	// Offset and Sequence name the newest event that is done.
	Offset   *string
	Sequence *int64
	// Time: done is what was stored before it.
	Time *time.Time
	// Earliest: nothing is done. Latest: everything is.
	Earliest, Latest bool
}

// Step is one partition's move.
type Step struct {
	Partition string
	To        Target
}

// Moved is what became, or would become, of a checkpoint. From is nil where there was none.
type Moved struct {
	From *processor.Checkpoint
	To   processor.Checkpoint
}

// MoveConfig says how checkpoints are moved.
type MoveConfig struct {
	// Force moves those of partitions that are owned, too: an owner learns it with its next
	// checkpoint, and goes on from where it was moved to only if it heeds that.
	Force bool
	// DryRun finds out what would be done.
	DryRun bool
}

// Move sets checkpoints for an operator (P7). First all steps are looked at: if one cannot be
// done, with an *OwnedError, ErrOutOfRange, ErrInvalid or a *broker.NotFoundError, none is.
// Then each is written by itself, several at once; with an error those that were are returned.
func (k *Registry) Move(ctx context.Context, hub, name string, steps []Step, cfg MoveConfig) ([]Moved, error) {
	g, err := k.find(ctx, processor.Group{Hub: hub, Group: name})
	if err != nil {
		return nil, err
	}
	plan, err := g.plan(ctx, steps, cfg)
	if err != nil || cfg.DryRun {
		return plan, err
	}
	errs := make([]error, len(plan))
	parallel.Each(len(plan), maxAtOnce, func(i int) { plan[i], errs[i] = g.move(ctx, steps[i], plan[i], cfg) })
	var moved []Moved
	for i, err := range errs {
		if err == nil {
			moved = append(moved, plan[i])
		}
	}
	noteMoved(ctx, g, moved)
	return moved, joined(errs)
}

func (g group) plan(ctx context.Context, steps []Step, cfg MoveConfig) ([]Moved, error) {
	owned := map[string]*OwnedError{}
	if !cfg.Force {
		var err error
		if owned, err = g.owned(ctx); err != nil {
			return nil, err
		}
	}
	seen := map[string]bool{}
	plan := make([]Moved, len(steps))
	for i, s := range steps {
		if seen[s.Partition] {
			return nil, fmt.Errorf("partition %s: %w: it is named twice", s.Partition, ErrInvalid)
		}
		seen[s.Partition] = true
		if err := owned[s.Partition]; err != nil {
			return nil, err
		}
		if err := g.has(s.Partition); err != nil {
			return nil, err
		}
		sequence, err := g.resolve(ctx, s)
		if err != nil {
			return nil, err
		}
		record, revision, err := g.checkpoint(ctx, s.Partition)
		if err != nil {
			return nil, err
		}
		plan[i].To = processor.Checkpoint{Partition: s.Partition, Sequence: sequence, Offset: strconv.FormatInt(sequence, 10)}
		if revision > 0 {
			had := record.checkpoint(s.Partition, revision)
			plan[i].To.Version = had.Version
			if hasPosition(had) {
				plan[i].From = &had
			}
		}
	}
	return plan, nil
}

// move writes one step. Where a checkpoint was saved or begun meanwhile, the step is looked at
// again: whoever did it may own the partition now.
func (g group) move(ctx context.Context, s Step, m Moved, cfg MoveConfig) (Moved, error) {
	const tries = 16
	for try := 1; ; try++ {
		forced, err := g.force(ctx, m.To)
		if err == nil {
			m.To = forced
			return m, nil
		}
		if !errors.Is(err, processor.ErrConflict) || try == tries {
			return m, fmt.Errorf("move checkpoint of partition %s: %w", s.Partition, err)
		}
		again, err := g.plan(ctx, []Step{s}, cfg)
		if err != nil {
			return m, err
		}
		m = again[0]
	}
}

// owned gives the partitions that somebody alive has.
func (g group) owned(ctx context.Context) (map[string]*OwnedError, error) {
	leases, _, err := g.renewed(ctx)
	if err != nil {
		return nil, err
	}
	readers, err := g.k.broker.Receivers(ctx, g.Hub.Name, g.Group.Name)
	if err != nil {
		return nil, err
	}
	owned := map[string]*OwnedError{}
	for _, r := range readers {
		if r.Epoch != nil {
			owned[r.Partition] = &OwnedError{Hub: g.Hub.Name, Group: g.Group.Name, Partition: r.Partition, Reader: r.Name}
		}
	}
	for _, l := range leases {
		if alive(l, now()) {
			owned[l.Partition] = &OwnedError{Hub: g.Hub.Name, Group: g.Group.Name, Partition: l.Partition, Owner: l.Owner, Renewed: l.Renewed}
		}
	}
	return owned, nil
}

// resolve finds the newest event that is to count as done; -1 for none.
func (g group) resolve(ctx context.Context, s Step) (int64, error) {
	if err := s.To.check(s.Partition); err != nil {
		return 0, err
	}
	info, err := g.k.broker.Partition(ctx, g.Hub.Name, s.Partition)
	if err != nil {
		return 0, err
	}
	switch to := s.To; {
	case to.Earliest:
		return beforeFirst(info), nil
	case to.Latest:
		return int64(info.Last), nil
	case to.Time != nil: // the newest event stored before it
		cursor, err := g.k.broker.Cursor(ctx, g.Hub.Name, g.Group.Name, s.Partition, eventlog.Since(*to.Time))
		if err != nil {
			return 0, err
		}
		defer cursor.Close()
		return min(int64(cursor.At())-1, int64(info.Last)), nil
	case to.Sequence != nil:
		return inRange(info, *to.Sequence)
	default:
		sequence, err := strconv.ParseInt(*to.Offset, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("partition %s: offset %.64q: %w: offsets of this yard are numbers", s.Partition, *to.Offset, ErrInvalid)
		}
		return inRange(info, sequence)
	}
}

// check wants exactly one field.
func (t Target) check(partition string) error {
	set := 0
	for _, is := range []bool{t.Offset != nil, t.Sequence != nil, t.Time != nil, t.Earliest, t.Latest} {
		if is {
			set++
		}
	}
	if set != 1 {
		return fmt.Errorf("partition %s: %w: say one of offset, sequence, time, earliest and latest", partition, ErrInvalid)
	}
	return nil
}

// inRange refuses what is beyond the newest event: a processor could not begin there. What
// retention has removed can be named: reading goes on at the oldest event kept.
func inRange(info broker.PartitionInfo, sequence int64) (int64, error) {
	if sequence < -1 || sequence > int64(info.Last) {
		return 0, fmt.Errorf("partition %s: %d: %w: the newest event is %d, and -1 stands before the first",
			info.ID, sequence, ErrOutOfRange, info.Last)
	}
	return sequence, nil
}
