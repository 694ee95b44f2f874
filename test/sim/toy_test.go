package sim

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/hubs/balance"
	"github.com/eventyard/eventyard/processor"
)

// flaw is something that a processor could do wrong.
type flaw int

const (
	sound         flaw = iota
	sameEpoch          // acquires without raising the epoch
	trustsItself       // goes on when it cannot prove its lease
	skipsOne           // begins one event too late
	savesFirst         // saves, then works
	savesSeldom        // saves now and then, and not before it gives a partition up
	givesUpFailed      // goes on past a failed batch
	callsTwice         // two calls at once
	takes              // takes what it should ask for
	keeps              // does not give up what it is asked for
	vanishes           // stops without releasing anything
)

// toy is as small a processor as can be, for the harness to be tested on: polling, one goroutine
// for each partition, no retry of anything.
type toy struct {
	run   *run
	hub   processor.Hub
	cfg   processor.Config
	group processor.Group
	flaw  flaw

	presence processor.Version
	seen     map[string]sight // by partition, and by "presence/…"
	own      map[string]*hold
}

type sight struct {
	version processor.Version
	since   time.Time
}

// hold is a partition that it owns.
type hold struct {
	mu     sync.Mutex
	lease  processor.Lease // guarded by mu
	proven time.Time       // guarded by mu

	stop  context.CancelFunc // no further call
	lost  context.CancelFunc // and the present one is to end
	ended chan struct{}
}

func (f flaw) body(ctx context.Context, r *run, h processor.Hub, cfg processor.Config) error {
	y := &toy{
		run: r, hub: h, cfg: cfg, flaw: f, group: r.world.group(),
		seen: map[string]sight{}, own: map[string]*hold{},
	}
	for ctx.Err() == nil {
		y.round()
		select {
		case <-time.After(cfg.Renew / 2):
		case <-ctx.Done():
		}
	}
	for p := range y.own {
		y.give(p, f != vanishes)
	}
	y.cfg.Store.Remove(context.Background(), y.group, processor.Entry{Key: "presence/" + r.id, Version: y.presence})
	return nil
}

// dead tells whether a record has not changed for a lease.
func (y *toy) dead(key string, v processor.Version) bool {
	if s, ok := y.seen[key]; ok && s.version == v {
		return time.Since(s.since) > y.cfg.Lease
	}
	y.seen[key] = sight{v, time.Now()}
	return false
}

func (y *toy) round() {
	ctx, done := context.WithTimeout(context.Background(), y.cfg.Renew/2)
	defer done()
	y.renew(ctx)
	y.show(ctx)
	entries, err := y.cfg.Store.Entries(ctx, y.group, "")
	if err != nil {
		return
	}
	leases, err := y.cfg.Store.Leases(ctx, y.group)
	if err != nil {
		return
	}
	y.follow(ctx, entries, leases)
}

// renew drops what it no longer has.
func (y *toy) renew(ctx context.Context) {
	start := time.Now()
	var all []processor.Lease
	for _, h := range y.own {
		all = append(all, h.lease)
	}
	if len(all) == 0 {
		return
	}
	renewed, err := y.cfg.Store.Claim(ctx, y.group, all)
	for _, lease := range renewed {
		y.own[lease.Partition].prove(lease, start.Add(y.cfg.Lease))
		delete(y.seen, lease.Partition)
	}
	for p, h := range y.own {
		if h.over() {
			y.give(p, true)
			continue
		}
		lost := err == nil && !slices.ContainsFunc(renewed, func(l processor.Lease) bool { return l.Partition == p })
		if lost || time.Now().After(h.proven) && y.flaw != trustsItself {
			y.give(p, false)
		}
	}
}

func (h *hold) prove(lease processor.Lease, until time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lease, h.proven = lease, until
}

// over tells that the pump has ended by itself.
func (h *hold) over() bool {
	select {
	case <-h.ended:
		return true
	default:
		return false
	}
}

func (h *hold) now() (processor.Lease, time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lease, h.proven
}

// show writes its presence; where the answer was lost it reads it first.
func (y *toy) show(ctx context.Context) {
	key := "presence/" + y.run.id
	f, err := y.cfg.Store.Put(ctx, y.group, processor.Entry{Key: key, Value: []byte("{}"), Version: y.presence})
	if y.presence = f.Version; err == nil {
		return
	}
	entries, _ := y.cfg.Store.Entries(ctx, y.group, "presence/")
	for _, f := range entries {
		if f.Key == key {
			y.presence = f.Version
		}
	}
}

// follow does what balance says.
func (y *toy) follow(ctx context.Context, entries []processor.Entry, leases []processor.Lease) {
	view := balance.View{Self: y.run.id, Live: []string{y.run.id}, Greedy: y.cfg.Strategy == processor.Greedy}
	next := map[string]processor.Entry{}
	for _, f := range entries {
		if id, ok := strings.CutPrefix(f.Key, "presence/"); ok && !y.dead(f.Key, f.Version) {
			view.Live = append(view.Live, id)
		} else if p, ok := strings.CutPrefix(f.Key, "next/"); ok {
			next[p] = f
		}
	}
	known := map[string]processor.Lease{}
	for _, lease := range leases {
		known[lease.Partition] = lease
	}
	info, err := y.hub.Info(ctx)
	if err != nil {
		return
	}
	for _, id := range info.Partitions {
		view.Partitions = append(view.Partitions, y.part(id, known[id], string(next[id].Value), view.Live))
	}
	y.handOver(view)
	y.carryOut(ctx, balance.Decide(view), known, next)
}

func (y *toy) part(id string, lease processor.Lease, next string, live []string) balance.Partition {
	part := balance.Partition{ID: id, Owner: lease.Owner, Next: next}
	mine := y.own[id] != nil
	if !mine && (lease.Owner == y.run.id || lease.Owner != "" && y.dead(id, lease.Version)) {
		part.Owner = ""
	}
	if !slices.Contains(live, part.Next) {
		part.Next = ""
	}
	if part.Owner != "" && y.flaw == takes {
		part.Foreign = true
	}
	return part
}

// handOver gives what others ask for.
func (y *toy) handOver(view balance.View) {
	for i, part := range view.Partitions {
		if y.own[part.ID] != nil && part.Next != "" && part.Next != y.run.id && y.flaw != keeps {
			y.give(part.ID, true)
			view.Partitions[i].Owner = ""
		}
	}
}

func (y *toy) carryOut(ctx context.Context, plan balance.Plan, known map[string]processor.Lease, next map[string]processor.Entry) {
	for _, p := range plan.Ask {
		y.cfg.Store.Put(ctx, y.group, processor.Entry{Key: "next/" + p, Value: []byte(y.run.id), Version: next[p].Version})
	}
	for _, p := range plan.Withdraw {
		y.cfg.Store.Remove(ctx, y.group, next[p])
	}
	y.claim(ctx, append(plan.Claim, plan.Take...), known)
	for _, p := range plan.Claim {
		if next[p].Version != "" {
			y.cfg.Store.Remove(ctx, y.group, next[p])
		}
	}
}

func (y *toy) claim(ctx context.Context, partitions []string, known map[string]processor.Lease) {
	if len(partitions) == 0 {
		return
	}
	start := time.Now()
	var wanted []processor.Lease
	for _, p := range partitions {
		lease := known[p]
		lease.Partition, lease.Owner = p, y.run.id
		if y.flaw != sameEpoch || lease.Epoch == 0 {
			lease.Epoch++
		}
		wanted = append(wanted, lease)
	}
	got, _ := y.cfg.Store.Claim(ctx, y.group, wanted)
	for _, lease := range got {
		h := &hold{lease: lease, proven: start.Add(y.cfg.Lease), ended: make(chan struct{})}
		stopping, stop := context.WithCancel(context.Background())
		calls, lost := context.WithCancel(context.Background())
		h.stop, h.lost = stop, lost
		y.own[lease.Partition] = h
		go y.pump(stopping, calls, h)
	}
}

// give ends a partition, gracefully or not.
func (y *toy) give(p string, gracefully bool) {
	h := y.own[p]
	h.stop()
	if !gracefully {
		h.lost()
	}
	select {
	case <-h.ended:
	case <-time.After(5 * time.Second):
		h.lost()
		<-h.ended
	}
	h.lost()
	delete(y.own, p)
	if lease, _ := h.now(); gracefully && y.flaw != vanishes {
		lease.Owner = ""
		y.cfg.Store.Claim(context.Background(), y.group, []processor.Lease{lease})
	}
}

// pump reads and calls. Every error but the handler's ends it, and the partition is released.
func (y *toy) pump(stopping, calls context.Context, h *hold) {
	defer close(h.ended)
	lease, _ := h.now()
	c, err := y.cfg.Store.Begin(stopping, y.group, lease)
	if err != nil {
		return
	}
	from := c.Sequence
	if y.flaw == skipsOne {
		from++
	}
	r, err := y.hub.Open(stopping, hub.ReadConfig{Partition: lease.Partition, Group: y.cfg.Group, From: hub.After(from), Epoch: hub.Exclusive(lease.Epoch)})
	if err != nil {
		return
	}
	defer r.Close(context.Background())
	for n := 1; stopping.Err() == nil; n++ {
		events, err := r.Next(stopping, nil, y.cfg.MaxBatch)
		if err != nil {
			return
		}
		for attempt := 1; ; attempt++ {
			c, err = y.call(calls, h, events, attempt, c, n)
			if err == nil || y.flaw == givesUpFailed {
				break
			}
			if !errors.Is(err, errWork) || stopping.Err() != nil {
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
}

func (y *toy) call(calls context.Context, h *hold, events []event.Event, attempt int, c processor.Checkpoint, n int) (processor.Checkpoint, error) {
	lease, proven := h.now()
	ctx, done := context.WithDeadline(calls, proven.Add(-time.Nanosecond))
	if y.flaw == trustsItself {
		ctx, done = context.WithCancel(calls)
	}
	defer done()
	if ctx.Err() != nil {
		return c, ctx.Err()
	}
	save := func(context.Context) (err error) {
		if y.flaw == savesSeldom && n%5 != 0 {
			return nil
		}
		c.Partition, c.Sequence, c.Epoch = lease.Partition, events[len(events)-1].Sequence, lease.Epoch
		c, err = y.cfg.Store.Save(context.Background(), y.group, lease, c)
		return err
	}
	if y.flaw == savesFirst {
		save(ctx)
	}
	one := func() error {
		return safely(func() error {
			return y.run.work(&call{run: y.run, partition: lease.Partition, epoch: lease.Epoch, attempt: attempt, events: events, ctx: ctx})
		})
	}
	if y.flaw == callsTwice {
		var second sync.WaitGroup
		defer second.Wait()
		second.Go(func() { one() })
	}
	if err := one(); err != nil {
		return c, err
	}
	return c, save(ctx)
}

// safely makes an error of a panic.
func safely(do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errWork
		}
	}()
	return do()
}
