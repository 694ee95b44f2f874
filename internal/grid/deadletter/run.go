package deadletter

import (
	"context"
	"maps"
	"slices"
	"sync"
)

// Run writes letters to their targets and removes logs of deleted subscriptions, until ctx ends.
// Where the yard has several nodes Serve does that, and Run only waits.
func (s *Service) Run(ctx context.Context) error {
	if s.whole == nil {
		<-ctx.Done()
		return nil
	}
	s.whole.run(ctx)
	return nil
}

// run is the desk's work, until ctx ends or its shard is lost. One goroutine a subscription that has
// something to be written: a target that hangs holds up nobody else.
func (d *desk) run(ctx context.Context) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	var writers sync.WaitGroup
	defer writers.Wait()
	changed := make(chan struct{}, 1)
	stop := d.s.cfg.Topics.OnChange(func() { ring(changed) })
	defer stop()
	d.catchUp(ctx, &writers)
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.lost:
			end()
			return
		case <-d.begin:
			d.mu.Lock()
			wanted := slices.Collect(maps.Keys(d.wanted))
			clear(d.wanted)
			d.mu.Unlock()
			for _, id := range wanted {
				d.startWriter(ctx, &writers, id)
			}
		case <-changed:
			d.mu.Lock()
			for _, w := range d.writers {
				ring(w.news)
			}
			d.mu.Unlock()
			d.catchUp(ctx, &writers)
		}
	}
}

// ring rings a bell, which has room for one ring, unless it has rung already.
func ring(bell chan struct{}) {
	select {
	case bell <- struct{}{}:
	default:
	}
}

// catchUp looks at all subscriptions: it removes what deleted ones left, and sees to it that all
// that has to be written is. A removal that fails is tried with the next change, or start.
//
// Boxes are listed before the subscriptions are: a box is made for a subscription that exists, so
// that one without is of a deleted one. The other way round it could be of one just made.
func (d *desk) catchUp(ctx context.Context, writers *sync.WaitGroup) {
	d.mu.Lock()
	boxes := slices.Collect(maps.Values(d.boxes))
	d.mu.Unlock()
	known := d.s.cfg.Topics.Snapshot().Subscriptions
	for _, b := range boxes {
		if ctx.Err() != nil {
			return
		}
		if known.Get(b.id) != nil {
			if d.wants(ctx, b) {
				d.startWriter(ctx, writers, b.id)
				continue
			}
			d.mu.Lock()
			writes := d.writers[b.id] != nil
			d.mu.Unlock()
			if !writes {
				d.s.retain(ctx, b, false)
			}
			continue
		}
		deleted, err := d.deleted(ctx, b.id)
		if err == nil && !deleted {
			continue // its definition is on the way here
		}
		if err == nil {
			err = b.remove(ctx, d.s.cfg.Engine)
		}
		if err != nil {
			if ctx.Err() == nil {
				d.s.cfg.Log.Warn("dead letters of a deleted subscription are still there, the next change tries again",
					"subscription", b.id, "error", err)
			}
			continue
		}
		d.mu.Lock()
		delete(d.boxes, b.id)
		delete(d.wanted, b.id)
		d.mu.Unlock()
	}
}

// wants says whether a writer has something to do: to write, or to forget the trouble with a target
// that the subscription has no longer. Where that cannot be known the writer finds out.
func (d *desk) wants(ctx context.Context, b *box) bool {
	counts, err := d.s.Counts(ctx, b.id)
	if err != nil || counts.Unwritten > 0 {
		return true
	}
	sub := d.s.cfg.Topics.Snapshot().Subscriptions.Get(b.id)
	return sub != nil && !written(sub.DeadLetter) && (counts.Problem != "" || !counts.Since.IsZero())
}

func (d *desk) startWriter(ctx context.Context, all *sync.WaitGroup, id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if w := d.writers[id]; w != nil {
		ring(w.bell)
		return
	}
	w := &writer{s: d.s, desk: d, id: id, bell: make(chan struct{}, 1), news: make(chan struct{}, 1)}
	d.writers[id] = w
	all.Go(func() { w.run(ctx) })
}

// endWriter lets a writer go unless somebody rang meanwhile.
func (d *desk) endWriter(w *writer) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	select {
	case <-w.bell:
		return false
	default:
		delete(d.writers, w.id)
		return true
	}
}
