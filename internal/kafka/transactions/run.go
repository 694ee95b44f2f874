package transactions

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/kafka/record"
	"github.com/eventyard/eventyard/internal/kafka/transactions/txn"
	"github.com/eventyard/eventyard/internal/sleep"
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
	// pause is the least between two looks.
	pause = 100 * time.Millisecond
	// finishes is how many are carried out at once by Run.
	finishes = 16
)

// Run aborts transactions that take too long, carries out what was decided and not carried out, and forgets
// transactional ids that nobody has used for long, until ctx ends. Then it waits for what is under way.
func (c *Coordinator) Run(ctx context.Context) error {
	following := make(chan struct{})
	go func() {
		defer close(following)
		_ = c.table.Run(ctx) // it ends with ctx alone
	}()
	for start, folded, released := true, time.Now(), time.Now(); ; {
		next := time.Now().Add(lookInterval)
		if !start {
			next = c.look(ctx, time.Now(), false)
		} else if err := c.table.Load(ctx); err == nil {
			next, start = c.look(ctx, time.Now(), true), false
		} else if ctx.Err() == nil {
			c.cfg.Log.Warn("transactions cannot be looked at; trying again", "error", err)
		}
		if !start && time.Since(folded) >= foldInterval { // what was decided before the start is carried out by now
			folded = time.Now()
			if err := c.cfg.Groups.Stages.FoldAll(ctx, c.cfg.Retention); err != nil && ctx.Err() == nil {
				c.cfg.Log.Debug("offsets of transactions are written later", "error", err)
			}
		}
		if !start && time.Since(released) >= holdupAge {
			released = time.Now()
			if err := c.release(ctx); err != nil && ctx.Err() == nil {
				c.cfg.Log.Warn("whether readers wait in vain for the end of a transaction is not known; trying again", "error", err)
			}
		}
		if sleep.For(ctx, max(pause, time.Until(next)), nil) != nil {
			break
		}
	}
	<-following
	c.mu.Lock()
	c.stopped = true
	c.mu.Unlock()
	c.work.Wait()
	return nil
}

// look does what is due, and says when to look again. At a start everything that was decided is due.
func (c *Coordinator) look(ctx context.Context, now time.Time, start bool) (next time.Time) {
	next = now.Add(lookInterval)
	c.forgetEnded()
	var work sync.WaitGroup
	room := make(chan struct{}, finishes)
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
			room <- struct{}{}
			work.Go(func() {
				defer func() { <-room }()
				c.end(ctx, id)
			})
		case t.State.Decided():
			next = earlier(next, t.Changed.Add(grace))
		case now.Sub(t.Changed) >= c.cfg.Retention:
			c.forget(ctx, item)
		}
	}
	work.Wait()
	return next
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// end ends a transaction that takes too long, or was decided.
func (c *Coordinator) end(ctx context.Context, id string) {
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
	if err != nil || len(waiting) == 0 {
		return err
	}
	for _, h := range waiting {
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
			return err
		}
		word := record.Marker(h.Frame.Producer.ID, h.Frame.Producer.Epoch, false, time.Now())
		err := c.cfg.Broker.EndTransaction(ctx, h.Log, h.Partition, word, known)
		if err != nil && !errors.Is(err, errKnown) {
			return err
		}
		if err == nil {
			c.cfg.Log.Warn("a transaction that nobody knows any more is aborted, since readers wait for it",
				"hub", broker.HubOf(c.cfg.Broker, h.Log), "partition", h.Partition, "first", int64(h.Frame.First))
		}
	}
	return nil
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
