package processor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/internal/hubs/balance"
)

// Table is who owns what of a group, and how far it has come.
type Table struct {
	Group
	Partitions []Row
	Instances  []Instance
	// At is when it was read. While it is, things change.
	At time.Time
}

// Row is one partition.
type Row struct {
	Partition string
	// Lease has no version if the partition was never owned, and no owner if it is free.
	Lease Lease
	// Next is the instance that has asked for the partition; empty: none.
	Next string
	// Checkpoint is nil if there is none.
	Checkpoint *Checkpoint
	// First and Last are the oldest event kept and the newest; -1 if there never was one.
	First, Last int64
	// Lag is nil where the checkpoint does not name the event.
	Lag *Lag
}

// Lag is what is not yet done.
type Lag struct {
	// Events is how many; without a checkpoint all that are kept.
	Events int64
	// Oldest is how long the oldest of them has been waiting, by this machine's clock; -1 where
	// that is not known: it is read for it, and an owner's reader lets no other read beside it in
	// its group.
	Oldest time.Duration
}

// Instance is a processor that is present, or owns a partition. Whether it lives shows only in
// time: an instance that does rewrites its leases and its presence.
type Instance struct {
	ID string
	// Present: it has announced itself. Owners that are no processors of ours have not.
	Present bool
	// Leaving: it stops.
	Leaving bool
	// Started is by its own clock, Renewed that of its newest lease by the store's; zero where
	// there is none. A store other than a yard may show when a lease was written that is renewed by
	// its owner's presence.
	Started, Renewed time.Time
	// Partitions is how many it owns.
	Partitions int
}

// TotalLag is over all partitions whose lag is known.
func (t Table) TotalLag() (events int64) {
	for _, row := range t.Partitions {
		if row.Lag != nil {
			events += row.Lag.Events
		}
	}
	return events
}

// Recommended is how many instances the lag is worth, each with so many events: a number that
// spreads the partitions evenly, 0 without lag.
func (t Table) Recommended(target int64) int {
	return balance.Recommend(int(min(t.TotalLag(), math.MaxInt)), int(min(target, math.MaxInt)), len(t.Partitions))
}

// Inspect gives the table of a group in whatever store; nil means that of the yard which has the
// hub, and an empty group $Default. It changes nothing, and what it asks the hub for disturbs no
// owner.
func Inspect(ctx context.Context, h Hub, store Store, group string) (Table, error) {
	store, err := storeOf(h, store)
	if err != nil {
		return Table{}, fmt.Errorf("inspect: %w", err)
	}
	t := Table{Group: Group{Namespace: h.Namespace(), Hub: h.Name(), Group: cmp.Or(group, "$Default")}}
	info, err := h.Info(ctx)
	if err != nil {
		return Table{}, fmt.Errorf("inspect %s/%s: ask for the hub's partitions: %w", t.Hub, t.Group.Group, err)
	}
	r, err := newRecords(ctx, store, t.Group)
	if err != nil {
		return Table{}, fmt.Errorf("inspect %s/%s: %w", t.Hub, t.Group.Group, err)
	}
	t.At = time.Now()
	t.Instances = r.instances()
	t.Partitions = make([]Row, len(info.Partitions))
	errs := make([]error, len(info.Partitions))
	slots := make(chan struct{}, maxAttaching)
	var all sync.WaitGroup
	for i, id := range info.Partitions {
		slots <- struct{}{}
		all.Go(func() {
			t.Partitions[i], errs[i] = r.row(ctx, h, id)
			<-slots
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return Table{}, fmt.Errorf("inspect %s/%s: %w", t.Hub, t.Group.Group, err)
	}
	return t, nil
}

// records are what a table is made of.
type records struct {
	group       Group
	leases      map[string]Lease
	checkpoints map[string]Checkpoint
	nexts       map[string]string
	presences   []Entry
}

func newRecords(ctx context.Context, store Store, g Group) (records, error) {
	r := records{group: g, leases: map[string]Lease{}, checkpoints: map[string]Checkpoint{}, nexts: map[string]string{}}
	presences, nexts, leases, err := readRecords(ctx, store, g)
	if err != nil {
		return r, err
	}
	checkpoints, err := store.Checkpoints(ctx, g)
	if err != nil {
		return r, fmt.Errorf("read checkpoints: %w", err)
	}
	r.presences = presences
	for _, f := range nexts {
		partition, instance := decodeNext(f)
		r.nexts[partition] = instance
	}
	for _, l := range leases {
		r.leases[l.Partition] = l
	}
	for _, c := range checkpoints {
		r.checkpoints[c.Partition] = c
	}
	return r, nil
}

// instances are those present and those who own something, by id.
func (r records) instances() []Instance {
	byID := map[string]*Instance{}
	for _, f := range r.presences {
		if id, p := decodePresence(f); !p.Ended {
			byID[id] = &Instance{ID: id, Present: true, Leaving: p.Leaving, Started: p.Started}
		}
	}
	for _, l := range r.leases {
		if l.Owner == "" {
			continue
		}
		i := byID[l.Owner]
		if i == nil {
			i = &Instance{ID: l.Owner}
			byID[l.Owner] = i
		}
		i.Partitions++
		if l.Renewed.After(i.Renewed) {
			i.Renewed = l.Renewed
		}
	}
	list := make([]Instance, 0, len(byID))
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		list = append(list, *byID[id])
	}
	return list
}

func (r records) row(ctx context.Context, h Hub, id string) (Row, error) {
	info, err := h.Partition(ctx, id)
	if err != nil {
		return Row{}, fmt.Errorf("ask for the bounds of partition %s: %w", id, err)
	}
	row := Row{Partition: id, Lease: r.leases[id], Next: r.nexts[id], First: info.First, Last: info.Last}
	row.Lease.Partition = id
	done := int64(-1)
	if c := r.checkpoints[id]; c.Version != "" && (c.Sequence >= 0 || c.Offset != "") {
		row.Checkpoint = &c
		if done = c.Sequence; done < 0 {
			return row, nil // an offset shows the hub, but not us, how many are behind it
		}
	}
	row.Lag = &Lag{}
	// What retention has removed is not counted.
	if from := max(done, info.First-1); !info.Empty && from < info.Last {
		row.Lag.Events = info.Last - from
		row.Lag.Oldest = waiting(ctx, h, hub.ReadConfig{Partition: id, Group: r.group.Group, From: hub.At(from + 1)})
	}
	return row, nil
}

// waiting is how long the event to be read there has been waiting; -1: it cannot be read. A reader
// that shows no epoch disturbs none that shows one: it is refused.
func waiting(ctx context.Context, h Hub, cfg hub.ReadConfig) time.Duration {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	cfg.Prefetch, cfg.Name = 1, "inspect"
	r, err := h.Open(ctx, cfg)
	if err != nil {
		return -1
	}
	defer r.Close(context.WithoutCancel(ctx))
	events, err := r.Next(ctx, nil, 1)
	if err != nil || len(events) == 0 {
		return -1
	}
	return max(time.Since(events[0].Enqueued), 0)
}
