package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/processor"
)

const (
	// saveEvery is how often a consumer saves its state, and so how much a kill has read twice.
	saveEvery = time.Second
	// finishAfter is how long after the end of a period, by the events' own time, its blob is
	// written, as a share of the period. What comes later is merged in.
	finishAfter = 6
)

// consumer adds up readings by home and period.
type consumer struct {
	settings
	out     *mouth
	storage *storage
	finish  atomic.Bool // every period is to be finished, once everything is read
}

// Consumer is the process `demo consumer`.
func Consumer(ctx context.Context, in io.Reader, out io.Writer) error {
	ctx, s, orders, err := listen(ctx, in)
	if err != nil {
		return err
	}
	storage, err := openStorage(s)
	if err != nil {
		return err
	}
	client, err := hub.Dial(ctx, s.Connection, hub.Config{Name: s.Name})
	if err != nil {
		return err
	}
	defer client.Close()
	c := &consumer{settings: s, out: &mouth{w: out}, storage: storage}
	go c.obey(ctx, orders)
	p := processor.New(client.Hub(sensorsHub), processor.Config{
		Group: aggregatorGroup, ID: s.Name, Lease: s.Lease,
		MaxBatch: 500, Prefetch: 1500,
		MaxWait: saveEvery, CallWhenIdle: true, // so that an idle partition is saved as well
		OnError: c.out.trouble,
	})
	c.out.say(account{Ready: true})
	return p.RunHost(ctx, func(string) processor.Worker { return &aggregator{consumer: c} })
}

// obey carries out orders until ctx ends.
func (c *consumer) obey(ctx context.Context, orders <-chan order) {
	for {
		select {
		case o := <-orders:
			c.finish.Store(o.Finish)
		case <-ctx.Done():
			return
		}
	}
}

// aggregator adds up the readings of one partition. It first saves its state, with the number of the
// newest event in it, and then its checkpoint: an event that comes again after a crash is known by
// its number, and one that was stored twice by its home, sensor and period.
type aggregator struct {
	*consumer
	state   *state
	newest  time.Time // time of the newest reading
	saved   time.Time
	dirty   bool  // the state has changed since
	handled int64 // number of the newest event
	marked  int64 // that of the checkpoint, if it was written here
}

// Open loads the state and writes it back under the epoch of this lease: from then on whoever had
// the partition before can no longer replace it.
func (a *aggregator) Open(ctx context.Context, p *processor.Partition) error {
	for {
		st, err := a.storage.load(ctx, p.ID())
		if err != nil {
			return err
		}
		if st.epoch > p.Epoch() {
			return fmt.Errorf("open partition %s: %w", p.ID(), errFenced)
		}
		st.epoch = p.Epoch()
		err = a.storage.save(ctx, st)
		if errors.Is(err, errFenced) {
			continue // it was saved once more meanwhile
		}
		a.state, a.saved, a.handled, a.marked = st, time.Now(), -1, -1
		return err
	}
}

// ProcessEvents counts a batch, and saves every now and then. A batch that comes again, because
// saving has failed, changes nothing.
func (a *aggregator) ProcessEvents(ctx context.Context, b *processor.Batch) error {
	if n := len(b.Events); n > 0 {
		first, last := b.Events[0], b.Events[n-1]
		if b.Attempt == 1 {
			a.out.say(account{Read: &read{Partition: b.Partition.ID(), From: first.Sequence, To: last.Sequence, Behind: time.Since(last.Enqueued)}})
		}
		for _, ev := range b.Events {
			a.count(ev)
		}
	}
	idle := len(b.Events) == 0
	if time.Since(a.saved) < saveEvery && !idle {
		return nil
	}
	return a.save(ctx, b.Partition, idle && a.finish.Load())
}

// count adds an event that is not in the state yet.
func (a *aggregator) count(ev event.Event) {
	a.handled = ev.Sequence
	if ev.Sequence <= a.state.sequence {
		return
	}
	a.state.sequence, a.dirty = ev.Sequence, true
	var r reading
	if err := json.Unmarshal(ev.Body, &r); err != nil {
		return // somebody else sends to this hub, too
	}
	s, known := sensorOf(r.Sensor)
	if !known {
		return
	}
	period := periodOf(r.At, a.Every).Unix()
	t := a.state.open[period]
	if t == nil {
		t = newTally()
		a.state.open[period] = t
	}
	t.add(r.Home, s, r.Value)
	if r.At.After(a.newest) {
		a.newest = r.At
	}
}

// save finishes the periods that are over, or all, saves the state, then the checkpoint.
func (a *aggregator) save(ctx context.Context, p *processor.Partition, all bool) error {
	if err := a.finishPeriods(ctx, all); err != nil {
		return err
	}
	if a.dirty {
		if err := a.storage.save(ctx, a.state); err != nil {
			return err
		}
		a.saved, a.dirty = time.Now(), false
	}
	if a.handled <= a.marked {
		return nil
	}
	if err := p.Checkpoint(ctx); err != nil {
		return err
	}
	a.marked = a.handled
	return nil
}

// finishAtOnce is how many periods are finished between two saves of the state, the oldest first: a
// consumer that is far behind saves what it has done before it goes on.
const finishAtOnce = 4

func (a *aggregator) finishPeriods(ctx context.Context, all bool) error {
	over := a.newest.Add(-a.Every - a.Every/finishAfter)
	periods := slices.Sorted(maps.Keys(a.state.open))
	for _, period := range periods[:min(len(periods), finishAtOnce)] {
		if time.Unix(period, 0).After(over) && !all {
			return nil
		}
		if err := a.storage.finish(ctx, a.state.partition, period, a.state.open[period]); err != nil {
			return err
		}
		delete(a.state.open, period)
		a.dirty = true
	}
	return nil
}

// ProcessError reports what goes wrong; the processor goes on by itself.
func (a *aggregator) ProcessError(_ context.Context, _ *processor.Partition, err error) {
	a.out.trouble(err)
}

// Close saves what there is, so that the next owner reads nothing twice.
func (a *aggregator) Close(ctx context.Context, p *processor.Partition, why processor.Reason) error {
	if why == processor.LeaseLost {
		return nil // it is another's now
	}
	return a.save(ctx, p, false)
}
