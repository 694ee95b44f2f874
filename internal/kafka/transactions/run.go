package transactions

import (
	"context"
	"errors"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/kafka/record"
	"github.com/eventyard/eventyard/internal/kafka/transactions/txn"
	"github.com/eventyard/eventyard/internal/sleep"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta/mirror"
)

const (
	// lookInterval is how often Run looks at all transactions, and foldInterval at the offsets in them.
	lookInterval = time.Second
	foldInterval = 5 * time.Second
	// grace is how long a decision may take until Run carries it out: whoever has made it does so at once.
	grace = 2 * time.Second
	// holdupAge is how long readers wait until somebody looks whether the transaction is known that they wait for.
	holdupAge = 10 * time.Second
	// releaseTimeout bounds one try to end a transaction that nobody knows.
	releaseTimeout = 5 * time.Second
	// pause is the least between two looks.
	pause = 100 * time.Millisecond
	// finishes is how many are carried out at once by Run. Those that wait for a hub that does not answer keep their place.
	finishes = 64
)

// Run aborts transactions that take too long, carries out what was decided and not carried out, and forgets
// transactional ids that nobody has used for long, until ctx ends. Then it waits for what is under way.
func (c *Coordinator) Run(ctx context.Context) error {
	following := make(chan struct{})
	go func() {
		defer close(following)
		_ = c.table.Run(ctx) // it ends with ctx alone
	}()
	var ends sync.WaitGroup
	fold, release := errand{last: time.Now()}, errand{last: time.Now()}
	for start := true; ; {
		next := time.Now().Add(lookInterval)
		if !start {
			next = c.look(ctx, time.Now(), false, &ends)
		} else if err := c.table.Load(ctx); err == nil {
			next, start = c.look(ctx, time.Now(), true, &ends), false
		} else if ctx.Err() == nil {
			c.cfg.Log.Warn("transactions cannot be looked at; trying again", "error", err)
		}
		if !start && c.begun() {
			fold.start(&ends, foldInterval, func() {
				if err := c.cfg.Groups.Stages.FoldAll(ctx, c.cfg.Retention); err != nil && ctx.Err() == nil {
					c.cfg.Log.Debug("offsets of transactions are written later", "error", err)
				}
			})
		}
		if !start {
			release.start(&ends, holdupAge, func() {
				if err := c.release(ctx); err != nil && ctx.Err() == nil {
					c.cfg.Log.Warn("whether readers wait in vain for the end of a transaction is not known; trying again", "error", err)
				}
			})
		}
		if sleep.For(ctx, max(pause, time.Until(next)), nil) != nil {
			break
		}
	}
	<-following
	ends.Wait()
	c.mu.Lock()
	c.stopped = true
	c.mu.Unlock()
	c.work.Wait()
	return nil
}

// errand is what Run does now and then, beside everything else: one at a time.
type errand struct {
	last time.Time
	busy atomic.Bool
}

// start does it if the last one was begun so long ago, and is over.
func (e *errand) start(under *sync.WaitGroup, every time.Duration, do func()) {
	if time.Since(e.last) < every || !e.busy.CompareAndSwap(false, true) {
		return
	}
	e.last = time.Now()
	under.Go(func() {
		defer e.busy.Store(false)
		do()
	})
}

// begun: what was decided before the start was tried by now. Before that nothing is said about old offsets: they may be
// of a transaction that is to be carried out.
func (c *Coordinator) begun() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.first) == 0
}

// look begins what is due, and says when to look again. At a start everything that was decided is due. It waits for none
// of it: one hub that does not answer is not to keep others waiting.
func (c *Coordinator) look(ctx context.Context, now time.Time, start bool, ends *sync.WaitGroup) (next time.Time) {
	next = now.Add(lookInterval)
	due := make(map[string]bool)
	c.forgetEnded()
	for _, item := range c.table.Items() {
		id, err := idOf(item.Key)
		if err != nil || !c.cfg.Mine(id) {
			continue
		}
		t := item.Value
		switch {
		case t.State == txn.Ongoing && t.Due().After(now):
			next = earlier(next, t.Due())
		case t.State == txn.Ongoing, t.State.Decided() && (start || now.Sub(t.Changed) >= grace):
			due[id] = true
			if c.enter(id, start) {
				ends.Go(func() {
					defer c.leave(id)
					c.end(ctx, id)
				})
			}
		case t.State.Decided():
			next = earlier(next, t.Changed.Add(grace))
		case now.Sub(t.Changed) >= c.cfg.Retention:
			c.forget(ctx, item)
		}
	}
	c.passed(due)
	return next
}

// passed forgets of the start what is not due any more: somebody else has ended it, for whom there was no room here.
func (c *Coordinator) passed(due map[string]bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.first, func(id string, _ bool) bool { return !due[id] && !c.ending[id] })
}

// enter says whether a transaction is to be ended now: it is not being, and there is room.
func (c *Coordinator) enter(id string, start bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if start {
		c.first[id] = true
	}
	if c.ending[id] || len(c.ending) >= finishes {
		return false
	}
	c.ending[id] = true
	return true
}

func (c *Coordinator) leave(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.ending, id)
	delete(c.first, id)
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// end ends a transaction that takes too long, or was decided.
func (c *Coordinator) end(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(ctx, 2*finishTimeout)
	defer cancel()
	expired := false
	_, err := c.change(ctx, id, func(t txn.Transaction) (txn.Transaction, error) {
		if t, expired = t.Expire(time.Now()); !expired {
			return t, errSame
		}
		return t, nil
	})
	if expired && err == nil {
		c.cfg.Log.Info("a transaction took too long and is aborted", "transaction", id)
	}
	if err == nil {
		err = c.finish(ctx, id)
	}
	if err != nil && ctx.Err() == nil {
		_ = c.delayed(id, err)
	}
}

// forget deletes a transactional id that nobody has used for long.
func (c *Coordinator) forget(ctx context.Context, item mirror.Item[txn.Transaction]) {
	if err := c.table.Delete(ctx, item); err != nil && !mirror.GoneOrChanged(err) && ctx.Err() == nil {
		c.cfg.Log.Warn("a transactional id that nobody uses stays for now", "error", err)
	}
}

// release aborts transactions that readers wait for and nobody knows: those of a log that is newer than the entries, as
// after a restore, or whose end was lost with the power. Nothing else would ever decide them.
func (c *Coordinator) release(ctx context.Context) error {
	waiting, err := c.cfg.Broker.Holdups(ctx, holdupAge)
	errs := []error{err} // of some, which are not to keep others waiting
	for _, h := range waiting {
		if ctx.Err() != nil {
			break
		}
		known := func(ctx context.Context) error {
			open, err := c.producers(ctx)
			if err == nil && open[holder{h.Log, int32(h.Partition), h.Frame.Producer.ID}] {
				err = errKnown
			}
			return err
		}
		if err := known(ctx); errors.Is(err, errKnown) {
			continue
		} else if err != nil {
			errs = append(errs, err)
			continue
		}
		word := record.Marker(h.Frame.Producer.ID, h.Frame.Producer.Epoch, false, time.Now())
		err := c.releaseOne(ctx, h, word, known)
		if err != nil && !errors.Is(err, errKnown) {
			errs = append(errs, err)
		}
		if err == nil {
			c.cfg.Log.Warn("a transaction that nobody knows any more is aborted, since readers wait for it",
				"hub", broker.HubOf(c.cfg.Broker, h.Log), "partition", h.Partition, "first", int64(h.Frame.First))
		}
	}
	return errors.Join(errs...)
}

func (c *Coordinator) releaseOne(ctx context.Context, h broker.Holdup, word eventlog.Batch, known func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, releaseTimeout)
	defer cancel()
	return c.cfg.Broker.EndTransaction(ctx, h.Log, h.Partition, word, known)
}

// errKnown: somebody will end the transaction.
var errKnown = errors.New("the transaction goes on")

// holder is a producer with a transaction in a partition.
type holder struct {
	log      string
	number   int32
	producer int64
}

// producers gives those whose transactions are not ended.
func (c *Coordinator) producers(ctx context.Context) (map[holder]bool, error) {
	if c.cfg.Several {
		if err := c.table.Fresh(ctx, prefix); err != nil {
			return nil, err
		}
	}
	items, err := c.table.List(ctx, prefix)
	if err != nil {
		return nil, err
	}
	all := make(map[holder]bool)
	for _, item := range items {
		for _, p := range item.Value.Partitions {
			all[holder{p.Log, p.Number, item.Value.Producer}] = true
		}
	}
	return all, nil
}
