package groups

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/eventyard/eventyard/internal/parallel"
	"github.com/eventyard/eventyard/internal/sleep"
)

// Run watches the time of all groups until ctx ends. Then it answers all who wait, and waits for what is being
// stored. It takes over at once those groups that have members, whose time-outs have to run.
func (c *Coordinator) Run(ctx context.Context) error {
	c.work.Go(func() { c.adopt(ctx) })
	looked, adopted, swept := time.Now(), time.Now(), time.Now()
	interval := restInterval
	if c.cfg.Several {
		interval = lookInterval
	}
	for {
		now := time.Now()
		c.ring(now)
		if now.Sub(looked) >= interval {
			looked = now
			c.look(now)
		}
		if c.cfg.Several && now.Sub(adopted) >= adoptInterval {
			adopted = now
			c.work.Go(func() { c.adopt(ctx) })
		}
		if now.Sub(swept) >= sweepInterval {
			swept = now
			c.sweep(ctx, now)
		}
		next := looked.Add(interval)
		c.mu.Lock()
		if !c.alarm.IsZero() && c.alarm.Before(next) {
			next = c.alarm
		}
		c.mu.Unlock()
		if sleep.For(ctx, time.Until(next), c.wake) != nil {
			break
		}
	}
	c.mu.Lock()
	c.stopped = true
	c.mu.Unlock()
	for _, g := range c.loadedGroups() {
		g.giveUp(ErrStopping)
	}
	c.mu.Lock()
	loading := slices.Collect(maps.Values(c.all))
	c.mu.Unlock()
	for _, g := range loading { // no others come, and none of these begins to write any more
		<-g.loaded
		g.giveUp(ErrStopping)
	}
	c.work.Wait()
	return nil
}

// ring has all groups do what is due, and sets the alarm anew.
func (c *Coordinator) ring(now time.Time) {
	c.mu.Lock()
	var due []*group
	c.alarm = time.Time{}
	for _, g := range c.all {
		switch {
		case g.due.IsZero():
		case !now.Before(g.due):
			g.due = time.Time{} // it is set again when it has been seen to
			due = append(due, g)
		case c.alarm.IsZero() || g.due.Before(c.alarm):
			c.alarm = g.due
		}
	}
	c.mu.Unlock()
	for _, g := range due {
		g.tick(now)
	}
}

// look gives up groups that have become another node's, and forgets those that nobody uses.
func (c *Coordinator) look(now time.Time) {
	c.mu.Lock()
	c.restLocked(now, restTime, "")
	c.mu.Unlock()
	for _, g := range c.loadedGroups() {
		if !c.cfg.Mine(g.id) {
			g.giveUp(ErrNotCoordinator)
		}
	}
}

// adoptAtOnce is how many groups are taken over at a time: each takes a few writes, and clients that ask for others
// meanwhile are not to wait for all.
const adoptAtOnce = 16

// adopt takes over those groups of this node's that have members. There is one at a time.
func (c *Coordinator) adopt(ctx context.Context) {
	if !c.adopting.TryLock() {
		return // it goes on with what it has found
	}
	defer c.adopting.Unlock()
	mine, err := c.entries(ctx)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		c.cfg.Log.Warn("Kafka groups could not be looked for, those with members are taken over when they are next heard of", "error", err)
		return
	}
	maps.DeleteFunc(mine, func(_ string, e entry) bool { return !e.Empty.IsZero() })
	ids := slices.Sorted(maps.Keys(mine))
	parallel.Each(len(ids), adoptAtOnce, func(i int) {
		if ctx.Err() != nil {
			return
		}
		g, err := c.enter(ids[i], mine[ids[i]].By)
		if err != nil {
			c.cfg.Log.Warn("Kafka group could not be taken over", "group", ids[i], "error", err)
			return
		}
		<-g.loaded // within storeTimeout
	})
}

// sweep deletes groups that have been without members for as long as offsets are kept, and in which nobody has
// committed since.
func (c *Coordinator) sweep(ctx context.Context, now time.Time) {
	mine, err := c.entries(ctx)
	if err != nil {
		c.cfg.Log.Warn("expired Kafka groups could not be looked for, trying again later", "error", err)
		return
	}
	for id, e := range mine {
		if e.Empty.IsZero() || now.Sub(e.Empty) < c.cfg.Retention {
			continue
		}
		switch err := c.expire(ctx, id, e, now); {
		case errors.Is(err, errKept), errors.Is(err, ErrNotFound):
		case err != nil:
			c.cfg.Log.Warn("expired Kafka group could not be deleted, trying again later", "group", id, "error", err)
		default:
			c.cfg.Log.Info("expired Kafka group deleted", "group", id)
		}
	}
}

// errKept: somebody has committed in the group, or has joined it, not long ago.
var errKept = errors.New("the group has not expired")

// expire deletes a group if nobody has committed for as long as offsets are kept. It looks at first without loading
// the group, and again when nobody can commit any more unseen.
func (c *Coordinator) expire(ctx context.Context, id string, e entry, now time.Time) error {
	check := func(ctx context.Context, e entry) error {
		expired, err := c.expired(ctx, id, e, now)
		if err == nil && (!expired || e.Empty.IsZero() || now.Sub(e.Empty) < c.cfg.Retention) {
			err = errKept
		}
		return err
	}
	if err := check(ctx, e); err != nil {
		return err
	}
	g, err := c.find(ctx, id, false)
	if err == nil {
		err = c.delete(ctx, g, check)
	}
	if errors.Is(err, ErrNotEmpty) || errors.Is(err, ErrNotCoordinator) {
		return errKept
	}
	return err
}

// expired: nobody has committed for as long as offsets are kept.
func (c *Coordinator) expired(ctx context.Context, id string, e entry, now time.Time) (bool, error) {
	for _, s := range e.Shards {
		o, _, err := readOffsets(ctx, c.cfg.Meta, s.key(id))
		if err != nil {
			return false, err
		}
		for _, p := range o.Partitions {
			if now.Sub(p.Time) < c.cfg.Retention {
				return false, nil
			}
		}
	}
	return true, nil
}
