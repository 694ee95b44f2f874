package groups

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/balance"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/processor"
)

// AliveWithin is how long after its last renewal an owner or instance is taken to be
// alive, where an operator has to be told: by the yard's clock, and longer than a lease
// usually lasts. Processors themselves judge by what they observe.
const AliveWithin = time.Minute

// Table is the ownership of a group at one moment (P6).
type Table struct {
	Namespace, Hub, Group string
	Partitions            []Row
	Instances             []Instance
	// At is when it was so.
	At time.Time
}

// Row is one partition.
type Row struct {
	Partition string
	// Lease has no version if the partition was never owned, and no owner if it is free.
	Lease processor.Lease
	// Alive: the lease has an owner that renewed it lately.
	Alive bool
	// Next is the instance that has asked for the partition; empty: none.
	Next string
	// Checkpoint is nil if there is none.
	Checkpoint *processor.Checkpoint
	// First and Last are the oldest event kept and the newest; see broker.PartitionInfo.
	First, Last int64
	// Lag is nil where the checkpoint does not tell the event.
	Lag *Lag
	// Beyond: the checkpoint is behind the newest event, and cannot be right.
	Beyond bool
	// Readers are those that read the partition at this node now, whatever store they use.
	Readers []broker.ReceiverInfo
}

// Lag is what is not yet done.
type Lag struct {
	// Events is how many; without a checkpoint all that are kept.
	Events int64
	// Oldest is how long the oldest of them has been waiting.
	Oldest time.Duration
}

// Instance is a processor that has shown itself, or owns a partition.
type Instance struct {
	ID string
	// Present: it has told of itself. Owners that are no processors of ours have not.
	Present bool
	// Seen is when it last did, or renewed a lease; Started is what it says itself.
	Seen, Started time.Time
	Alive         bool
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

// Recommended is how many instances the lag is worth, each with so many events.
func (t Table) Recommended(targetPerInstance int) int {
	return balance.Recommend(int(min(t.TotalLag(), math.MaxInt)), targetPerInstance, len(t.Partitions))
}

// Table gathers what there is to know of a group. It is not one moment in the strict sense:
// while it is read, things change.
func (k *Registry) Table(ctx context.Context, hub, group string) (Table, error) {
	at, err := k.find(ctx, processor.Group{Hub: hub, Group: group})
	if err != nil {
		return Table{}, err
	}
	records, err := k.read(ctx, at)
	if err != nil {
		return Table{}, err
	}
	t := Table{
		Namespace: k.broker.Namespace(), Hub: at.Hub.Name, Group: at.Group.Name, At: now(),
		Partitions: make([]Row, at.Hub.Partitions),
	}
	ids, errs := at.Hub.PartitionIDs(), make([]error, len(t.Partitions))
	atOnce(len(ids), func(i int) { t.Partitions[i], errs[i] = k.row(ctx, at, records, ids[i], t.At) })
	t.Instances = records.instances(t.At)
	return t, joined(errs)
}

// records is what a table is made of.
type records struct {
	leases      map[string]processor.Lease
	checkpoints map[string]processor.Checkpoint
	readers     map[string][]broker.ReceiverInfo
	next        map[string]string
	presence    []datedEntry
}

func (k *Registry) read(ctx context.Context, at location) (records, error) {
	r := records{
		leases: map[string]processor.Lease{}, checkpoints: map[string]processor.Checkpoint{},
		readers: map[string][]broker.ReceiverInfo{}, next: map[string]string{},
	}
	leases, err := k.leases(ctx, at)
	if err != nil {
		return r, err
	}
	for _, l := range leases {
		r.leases[l.Partition] = l
	}
	checkpoints, err := k.checkpoints(ctx, at)
	if err != nil {
		return r, err
	}
	for _, c := range checkpoints {
		if hasPosition(c) {
			r.checkpoints[c.Partition] = c
		}
	}
	receivers, err := k.broker.Receivers(ctx, at.Hub.Name, at.Group.Name)
	if err != nil {
		return r, err
	}
	for _, reader := range receivers {
		r.readers[reader.Partition] = append(r.readers[reader.Partition], reader)
	}
	return r, k.readEntries(ctx, at, &r)
}

// readEntries takes what processors tell each other. What is not of the form expected was
// written by something else, and left out.
func (k *Registry) readEntries(ctx context.Context, at location, r *records) (err error) {
	next, err := k.stored(ctx, at, nextPrefix)
	if err != nil {
		return err
	}
	for _, f := range next {
		var wanted struct {
			Instance string `json:"instance"`
		}
		if json.Unmarshal(f.Value, &wanted) == nil {
			r.next[strings.TrimPrefix(f.key, nextPrefix)] = wanted.Instance
		}
	}
	r.presence, err = k.stored(ctx, at, presencePrefix)
	return err
}

// Keys of the entries that processors write.
const (
	nextPrefix     = "next/"
	presencePrefix = "presence/"
)

func (k *Registry) row(ctx context.Context, at location, r records, partition string, now time.Time) (Row, error) {
	info, err := k.broker.Partition(ctx, at.Hub.Name, partition)
	if err != nil {
		return Row{}, err
	}
	row := Row{
		Partition: partition, Lease: r.leases[partition], Next: r.next[partition], Readers: r.readers[partition],
		First: int64(info.First), Last: int64(info.Last),
	}
	row.Alive = alive(row.Lease, now)
	if c, found := r.checkpoints[partition]; found {
		row.Checkpoint = &c
	}
	done, known := beforeFirst(info), true
	if row.Checkpoint != nil {
		done, known = doneUpTo(*row.Checkpoint)
	}
	if !known {
		return row, nil
	}
	row.Beyond = row.Checkpoint != nil && done > row.Last
	row.Lag, err = k.lag(ctx, at, info, done, now)
	return row, err
}

func alive(l processor.Lease, now time.Time) bool {
	return l.Owner != "" && now.Sub(l.Renewed) < AliveWithin
}

// instances are those present and those who own something, by id.
func (r records) instances(now time.Time) []Instance {
	byID := map[string]*Instance{}
	get := func(id string) *Instance {
		if byID[id] == nil {
			byID[id] = &Instance{ID: id}
		}
		return byID[id]
	}
	for _, f := range r.presence {
		i := get(strings.TrimPrefix(f.key, presencePrefix))
		i.Present, i.Seen = true, f.Put
		var reported struct {
			Started time.Time `json:"started"`
		}
		if json.Unmarshal(f.Value, &reported) == nil {
			i.Started = reported.Started
		}
	}
	for _, l := range r.leases {
		if l.Owner == "" {
			continue
		}
		i := get(l.Owner)
		i.Partitions++
		if l.Renewed.After(i.Seen) {
			i.Seen = l.Renewed
		}
	}
	all := make([]Instance, 0, len(byID))
	for _, i := range byID {
		i.Alive = now.Sub(i.Seen) < AliveWithin
		all = append(all, *i)
	}
	slices.SortFunc(all, func(a, b Instance) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// used gives those groups of a hub that have a checkpoint.
func (k *Registry) used(ctx context.Context, hub broker.Hub) (used []string, err error) {
	groups, err := k.broker.Groups(ctx, hub.Name)
	if err != nil {
		return nil, fmt.Errorf("groups of hub %q: %w", hub.Name, err)
	}
	for _, g := range groups {
		checkpoints, err := k.Checkpoints(ctx, processor.Group{Hub: hub.Name, Group: g.Name})
		if err != nil {
			return used, err
		}
		if slices.ContainsFunc(checkpoints, hasPosition) {
			used = append(used, g.Name)
		}
	}
	return used, nil
}
