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
	"github.com/eventyard/eventyard/internal/parallel"
	"github.com/eventyard/eventyard/processor"
)

// AliveWithin is how long after its last renewal an owner or instance is taken to be
// alive in what operators are shown: by the yard's clock, and longer than a lease
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
	// Checkpoint is nil if there is none. Container is the one with the blob that it is, where a
	// processor of another library has saved it; empty: it is the yard's own.
	Checkpoint *processor.Checkpoint
	Container  string
	// First and Last are the oldest event kept and the newest; see broker.PartitionInfo.
	First, Last int64
	// Lag is nil where it is not known: the checkpoint does not name an event, or somebody reads
	// whose checkpoint is elsewhere.
	Lag *Lag
	// Beyond: the checkpoint is behind the newest event, and cannot be right.
	Beyond bool
	// Readers are those that read the partition now, at whichever node and whatever store they use.
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
	// Present: it has an entry of its own. Owners that are no processors of ours have none.
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
func (k *Registry) Table(ctx context.Context, hub, name string) (Table, error) {
	g, err := k.find(ctx, processor.Group{Hub: hub, Group: name})
	if err != nil {
		return Table{}, err
	}
	all, err := g.observe(ctx)
	if err != nil {
		return Table{}, err
	}
	t := Table{
		Namespace: k.broker.Namespace(), Hub: g.Hub.Name, Group: g.Group.Name, At: now(),
		Partitions: make([]Row, g.Hub.Partitions),
	}
	ids, errs := g.Hub.PartitionIDs(), make([]error, len(t.Partitions))
	parallel.Each(len(ids), maxAtOnce, func(i int) { t.Partitions[i], errs[i] = g.row(ctx, all, ids[i], t.At) })
	t.Instances = all.instances(t.At)
	return t, joined(errs)
}

// observation is what a table is made of.
type observation struct {
	leases      map[string]processor.Lease
	checkpoints map[string]processor.Checkpoint
	foreign     map[string]Foreign // the newest of each partition
	readers     map[string][]broker.ReceiverInfo
	next        map[string]string
	presence    []datedEntry
}

// observe reads all that is known of a group. An entry that is not of the form expected was
// written by something else, and left out.
func (g group) observe(ctx context.Context) (observation, error) {
	o := observation{
		leases: map[string]processor.Lease{}, checkpoints: map[string]processor.Checkpoint{},
		readers: map[string][]broker.ReceiverInfo{}, next: map[string]string{},
	}
	leases, presence, err := g.renewed(ctx)
	if err != nil {
		return o, err
	}
	o.presence = presence
	for _, l := range leases {
		o.leases[l.Partition] = l
	}
	checkpoints, err := g.checkpoints(ctx)
	if err != nil {
		return o, err
	}
	for _, c := range checkpoints {
		if hasPosition(c) {
			o.checkpoints[c.Partition] = c
		}
	}
	if o.foreign, err = foreignOf(ctx, g); err != nil {
		return o, err
	}
	receivers, err := g.k.broker.Receivers(ctx, g.Hub.Name, g.Group.Name)
	if err != nil {
		return o, err
	}
	for _, reader := range receivers {
		o.readers[reader.Partition] = append(o.readers[reader.Partition], reader)
	}
	next, err := g.dated(ctx, nextPrefix)
	if err != nil {
		return o, err
	}
	for _, e := range next {
		var wanted struct {
			Instance string `json:"instance"`
		}
		if json.Unmarshal(e.Value, &wanted) == nil {
			o.next[strings.TrimPrefix(e.key, nextPrefix)] = wanted.Instance
		}
	}
	return o, nil
}

// renewed gives the leases, and the presences of instances. A lease counts as renewed when its
// owner last wrote that it is present: one that is alone in the yard's own process renews its
// leases in memory.
func (g group) renewed(ctx context.Context) ([]processor.Lease, []datedEntry, error) {
	leases, err := g.leases(ctx)
	if err != nil {
		return nil, nil, err
	}
	presence, err := g.dated(ctx, presencePrefix)
	for _, e := range presence {
		if said(e.Value).Ended { // others have put it
			continue
		}
		for i := range leases {
			if l := &leases[i]; presencePrefix+l.Owner == e.key && e.Put.After(l.Renewed) {
				l.Renewed = e.Put
			}
		}
	}
	return leases, presence, err
}

func (g group) row(ctx context.Context, o observation, partition string, now time.Time) (Row, error) {
	info, err := g.k.broker.Partition(ctx, g.Hub.Name, partition)
	if err != nil {
		return Row{}, err
	}
	row := Row{
		Partition: partition, Lease: o.leases[partition], Next: o.next[partition], Readers: o.readers[partition],
		First: int64(info.First), Last: int64(info.Last),
	}
	row.Alive = alive(row.Lease, now)
	done := beforeFirst(info)
	known := row.Lease.Owner != "" || len(row.Readers) == 0 || pending(done, info) == 0
	c, found := o.checkpoints[partition]
	if f, there := o.foreign[partition]; !found && there {
		c, found, row.Container = f.Checkpoint, true, f.Container
	}
	if found {
		row.Checkpoint = &c
		done, known = doneUpTo(c)
	}
	if !known {
		return row, nil
	}
	row.Beyond = row.Checkpoint != nil && done > row.Last
	row.Lag, err = g.lag(ctx, info, done, now)
	return row, err
}

// foreignOf gives the newest checkpoint of each partition that processors of other libraries have saved
// since there is this hub: those from before are of another one of its name.
func foreignOf(ctx context.Context, g group) (map[string]Foreign, error) {
	if g.k.foreign == nil {
		return nil, nil
	}
	all, err := g.k.foreign(ctx, g.Hub.Name, g.Group.Name)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil { // what is known without them is still worth telling
		g.k.complaints.Do(func() {
			g.k.log.Warn("checkpoints in blobs cannot be read, and groups are shown without them", "hub", g.Hub.Name, "group", g.Group.Name, "error", err)
		})
	}
	newest := map[string]Foreign{}
	for _, c := range all {
		if had, found := newest[c.Partition]; hasPosition(c.Checkpoint) && !c.Updated.Before(g.Hub.Created) && (!found || c.Updated.After(had.Updated)) {
			newest[c.Partition] = c
		}
	}
	return newest, nil
}

func alive(l processor.Lease, now time.Time) bool {
	return l.Owner != "" && now.Sub(l.Renewed) < AliveWithin
}

// instances are those present and those who own something, by id.
func (o observation) instances(now time.Time) []Instance {
	byID := map[string]*Instance{}
	get := func(id string) *Instance {
		if byID[id] == nil {
			byID[id] = &Instance{ID: id}
		}
		return byID[id]
	}
	for _, e := range o.presence {
		said := said(e.Value)
		if said.Ended {
			continue
		}
		i := get(strings.TrimPrefix(e.key, presencePrefix))
		i.Present, i.Seen, i.Started = true, e.Put, said.Started
	}
	for _, l := range o.leases {
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
		found, err := k.find(ctx, processor.Group{Hub: hub.Name, Group: g.Name})
		if err != nil {
			return used, err
		}
		checkpoints, err := found.checkpoints(ctx)
		if err != nil {
			return used, err
		}
		foreign, err := foreignOf(ctx, found)
		if err != nil {
			return used, err
		}
		if slices.ContainsFunc(checkpoints, hasPosition) || len(foreign) > 0 {
			used = append(used, g.Name)
		}
	}
	return used, nil
}
