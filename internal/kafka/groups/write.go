package groups

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/kafka/groups/classic"
	"github.com/eventyard/eventyard/internal/parallel"
	"github.com/eventyard/eventyard/internal/sleep"
	"github.com/eventyard/eventyard/internal/storage/meta"
)

// commit is changes of offsets that are to be stored.
type commit struct {
	// set are the new positions by shard; nil ones are removed.
	set  map[shard]map[int32]*Position
	errs map[shard]error // of shards that were not stored; read after done is closed
	err  error           // of all
	done chan struct{}
}

func (c *commit) end(err error) {
	c.err = err
	close(c.done)
}

// round is one write: what a group had to be stored when it began.
type round struct {
	wanted  uint64
	entry   entry // the group's
	save    bool  // it is to be written
	parked  []classic.Answer
	commits []*commit
	shards  []shard // that the commits change
	emptied []bool  // of these: nothing is in them any more, and they were deleted
}

// writeLocked has somebody write what there is to be written.
func (g *group) writeLocked() {
	if g.writing || g.over != nil || !g.dueLocked() {
		return
	}
	g.writing, g.idle = true, make(chan struct{})
	g.coordinator.work.Go(g.write)
}

// dueLocked: something waits to be stored, and it was not tried in vain already.
func (g *group) dueLocked() bool {
	return g.wanted > g.tried || len(g.parked) > 0 || len(g.commits) > 0
}

// write stores what there is, round by round, until there is nothing more. It is the only one of its group.
func (g *group) write() {
	for {
		r, more := g.begin()
		if !more {
			return
		}
		revision, err := g.store(&r)
		g.finish(r, revision, err)
	}
}

// begin takes together what has come.
func (g *group) begin() (round, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.over != nil || !g.dueLocked() {
		g.writing = false
		close(g.idle)
		g.noteLocked()
		return round{}, false
	}
	r := round{wanted: g.wanted, entry: g.entry, save: g.wanted > g.saved, parked: g.parked, commits: g.commits}
	g.parked, g.commits, g.tried = nil, nil, g.wanted
	r.entry.Shards = slices.Clone(g.entry.Shards)
	for _, c := range r.commits {
		for s := range c.set {
			if !slices.Contains(r.shards, s) {
				r.shards = append(r.shards, s)
			}
			if !slices.Contains(r.entry.Shards, s) {
				r.entry.Shards, r.save = append(r.entry.Shards, s), true
			}
		}
	}
	g.kind.store(&r.entry)
	switch {
	case r.entry.members() > 0: // who is about to join is not stored yet
		r.entry.Empty = time.Time{}
	case r.entry.Empty.IsZero():
		r.entry.Empty = time.Now()
	}
	if g.revision == 0 {
		r.entry.Node, r.entry.Epoch, r.entry.By = g.coordinator.cfg.Node, time.Now().UnixMilli(), g.account
	}
	r.entry.Write++
	return r, true
}

// store writes a round: the group first, since shards have to be listed there before they are made.
func (g *group) store(r *round) (meta.Revision, error) {
	// Whether it is stored does not depend on the patience of a client.
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	g.mu.Lock()
	revision := g.revision
	g.mu.Unlock()
	if r.save {
		if revision == 0 && (len(r.entry.Shards) > 0 || r.entry.Empty.IsZero()) && !g.coordinator.room(r.entry.By) {
			return 0, ErrTooManyGroups
		}
		var err error
		if revision, err = g.put(ctx, r.entry, revision); err != nil {
			return 0, err
		}
	}
	errs := make([]error, len(r.shards))
	r.emptied = make([]bool, len(r.shards))
	parallel.Each(len(r.shards), 8, func(i int) { r.emptied[i], errs[i] = g.putOffsets(ctx, r, r.shards[i]) })
	if slices.Contains(errs, errMissing) { // its hub was deleted, or the group was by another coordinator
		r.save = true
		var err error
		if revision, err = g.put(ctx, r.entry, revision); err != nil {
			return 0, err
		}
		parallel.Each(len(r.shards), 8, func(i int) {
			if errs[i] == errMissing {
				r.emptied[i], errs[i] = g.putOffsets(ctx, r, r.shards[i])
			}
		})
	}
	if slices.Contains(r.emptied, true) { // the group is not about their hubs any more
		r.entry.Shards = slices.DeleteFunc(r.entry.Shards, func(s shard) bool {
			i := slices.Index(r.shards, s)
			return i >= 0 && r.emptied[i]
		})
		r.save = true
		var err error
		if revision, err = g.put(ctx, r.entry, revision); err != nil {
			return 0, err
		}
	}
	for i, err := range errs {
		if errors.Is(err, ErrNotCoordinator) {
			return revision, err
		}
		for _, c := range r.commits {
			if _, concerned := c.set[r.shards[i]]; concerned && err != nil {
				if c.errs == nil {
					c.errs = make(map[shard]error)
				}
				c.errs[r.shards[i]] = err
			}
		}
	}
	return revision, nil
}

// finish tells those who wait how a round has ended.
func (g *group) finish(r round, revision meta.Revision, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err == nil {
		g.coordinator.metrics.commits.Add(float64(len(r.commits)))
		if r.save {
			if g.revision == 0 {
				g.coordinator.counted(r.entry.By, 1)
			}
			g.coordinator.cfg.noteMembers(g.id, g.entry, r.entry, g.kind.Topics())
			g.entry, g.revision, g.saved = r.entry, revision, r.wanted
		}
	}
	for _, c := range r.commits {
		c.end(err)
	}
	if errors.Is(err, ErrNotCoordinator) {
		g.coordinator.cfg.Log.Info("Kafka group has another coordinator", "group", g.id)
		g.giveUpLocked(err)
	} else if err != nil {
		g.coordinator.cfg.Log.Warn("Kafka group could not be stored, its members try again", "group", g.id, "error", err)
	}
	g.answerLocked(r.parked, err)
	if errors.Is(err, ErrTooManyGroups) && g.revision == 0 {
		g.giveUpLocked(err) // another account may have room for a group of that name
	}
}

// again: a write may have been made although it was not acknowledged, or was refused for it. Who repeats it by
// what is there now finds out.
func again(err error) bool {
	return errors.Is(err, meta.ErrConflict) || errors.Is(err, meta.ErrUncertain)
}

// put writes the group's entry. Where it was changed meanwhile by anybody but ourselves the group is another
// coordinator's.
func (g *group) put(ctx context.Context, e entry, expected meta.Revision) (meta.Revision, error) {
	store, key, value := g.coordinator.cfg.Meta, groupKey(g.id), encode(e)
	for try := 1; ; try++ {
		revision, err := store.CompareAndSet(ctx, key, expected, value)
		if err == nil || !again(err) || try == tries {
			return revision, wrap(err, "store group %.80q", g.id)
		}
		there, got := store.Get(ctx, key)
		switch {
		case errors.Is(got, meta.ErrNotFound) && expected == 0 && errors.Is(err, meta.ErrUncertain):
		case errors.Is(got, meta.ErrNotFound):
			return 0, ErrNotCoordinator
		case got != nil:
			return 0, wrap(got, "store group %.80q", g.id)
		default:
			now, bad := decodeEntry(there)
			if bad != nil || now.Epoch != e.Epoch || now.Write > e.Write || now.Node != e.Node {
				return 0, ErrNotCoordinator
			}
			expected = there.Revision
		}
		if err := sleep.About(ctx, 20*time.Millisecond); err != nil {
			return 0, err
		}
	}
}

// errMissing: a shard is to be made in a round that has not written the entry.
var errMissing = errors.New("a shard that is listed is not there")

// putOffsets writes what a round changes of one shard. One that is not there is made only in a round that has written
// the entry, and so knows that the group is still this coordinator's. One in which nothing is left is deleted, before the
// entry ceases to list it: whoever has coordinated the group before has to write the entry to make it again.
func (g *group) putOffsets(ctx context.Context, r *round, s shard) (emptied bool, err error) {
	store, key := g.coordinator.cfg.Meta, s.key(g.id)
	for try := 1; ; try++ {
		o, expected, err := readOffsets(ctx, store, key)
		if err != nil {
			return false, wrap(err, "store offsets of group %.80q", g.id)
		}
		if o.Epoch > r.entry.Epoch {
			return false, ErrNotCoordinator
		}
		if expected == 0 && !r.save {
			return false, errMissing
		}
		o.Epoch = r.entry.Epoch
		for _, c := range r.commits {
			for partition, position := range c.set[s] {
				if position == nil {
					delete(o.Partitions, partition)
				} else {
					o.Partitions[partition] = *position
				}
			}
		}
		var revision meta.Revision
		if emptied = len(o.Partitions) == 0; emptied && expected != 0 {
			if err = store.Delete(ctx, key, expected); errors.Is(err, meta.ErrNotFound) {
				err = nil
			}
		} else if !emptied {
			revision, err = store.CompareAndSet(ctx, key, expected, encode(o))
		}
		if err == nil && expected == 0 && !emptied && broker.LogGone(ctx, g.coordinator.cfg.Broker, s.Log) {
			_ = store.Delete(ctx, key, revision) // else the broker's sweep of deleted hubs does
			return false, &broker.NotFoundError{Kind: broker.KindHub, Name: s.Log}
		}
		if err == nil || !again(err) || try == tries {
			return emptied && err == nil, wrap(err, "store offsets of group %.80q", g.id)
		}
		if err := sleep.About(ctx, 20*time.Millisecond); err != nil {
			return false, err
		}
	}
}

// readOffsets reads a shard; one that is not there has no offsets.
func readOffsets(ctx context.Context, store meta.Store, key string) (offsets, meta.Revision, error) {
	e, err := store.Get(ctx, key)
	if errors.Is(err, meta.ErrNotFound) {
		return offsets{Partitions: make(map[int32]Position)}, 0, nil
	}
	if err != nil {
		return offsets{}, 0, err
	}
	o, err := decodeOffsets(e)
	return o, e.Revision, err
}

func wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", append(args, err)...)
}
