package broker

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/eventyard/eventyard/internal/cluster"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

const (
	// saveInterval is how far apart the snapshots of busy partitions are: what is stored
	// in that time is what a start after a crash has to read. Where producers are not busy
	// but others are, it may be saveSlackBytes.
	saveInterval   = 10 * time.Second
	saveSlackBytes = 4 << 20
	// lastSaveTimeout bounds what run does after its context has ended.
	lastSaveTimeout = 3 * time.Second
)

// ledgers are those of all partitions that have producers.
//
// Of several nodes one keeps the snapshot of a partition close to the end of its log, which takes
// reading all of it, and so do those who have producers there. The others keep nothing in memory.
type ledgers struct {
	broker *Broker
	// keeps reports whether it is for this node to keep a partition's snapshot, be there producers
	// here or not. Nil: it always is.
	keeps func(eventlog.PartitionID) bool
	// changed is closed when keeps may answer otherwise; nil: it never does.
	changed func() <-chan struct{}
	// rest is how long a producer has done nothing until this node may leave it to others.
	rest time.Duration

	census *census

	mu  sync.Mutex
	all map[eventlog.PartitionID]*ledger // guarded by mu
}

// of gives the ledger of a partition. It reads nothing yet.
func (ls *ledgers) of(h *hub, number int) *ledger {
	id := eventlog.PartitionID{Log: h.log, Number: number}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l := ls.all[id]
	if l == nil {
		l = &ledger{
			broker: ls.broker, hub: h, number: number, partition: h.partitions[number],
			accounts: accounts{
				repeats: ls.broker.metrics.repeats, limit: maxProducers, sole: h.partitions[number].Sole(), byID: make(map[int64]*account),
				census: ls.census,
			},
			turn: make(chan struct{}, 1),
		}
		ls.all[id] = l
	}
	return l
}

// forget drops those of a log that is gone.
func (ls *ledgers) forget(log string) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.dropLocked(func(id eventlog.PartitionID) bool { return id.Log == log })
}

// live gives those whose logs are in use, and forgets the others.
func (ls *ledgers) live() []*ledger {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	logs := ls.broker.hubs.byLog() // not before: the hub of a ledger that is made in between would not be there
	ls.dropLocked(func(id eventlog.PartitionID) bool { return logs[id.Log] == nil })
	return slices.Collect(maps.Values(ls.all))
}

func (ls *ledgers) dropLocked(which func(eventlog.PartitionID) bool) {
	for id, l := range ls.all {
		if which(id) {
			delete(ls.all, id)
			l.leave()
		}
	}
}

// run writes snapshots until ctx ends, and once more then.
func (ls *ledgers) run(ctx context.Context) {
	ticker := time.NewTicker(saveInterval)
	defer ticker.Stop()
	for changed := ls.adopt(ctx); ctx.Err() == nil; {
		ls.tend(ctx, saveSlackBytes)
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
		select {
		case <-changed:
			changed = ls.adopt(ctx)
		default:
		}
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastSaveTimeout)
	defer cancel()
	ls.drain(last)
	ls.tend(last, 0)
}

// drain waits until nothing of producers is under way.
func (ls *ledgers) drain(ctx context.Context) {
	for _, l := range ls.live() {
		if l.drain(ctx, nil) != nil {
			return
		}
	}
}

// adopt takes the ledgers of earlier lives into care, and those of nodes that are gone: while nobody
// writes their snapshots, what has to be read for the next producer grows with all that is
// published. It gives a channel that is closed when that is to be done again; nil: never.
func (ls *ledgers) adopt(ctx context.Context) (again <-chan struct{}) {
	if ls.changed != nil {
		again = ls.changed()
	}
	entries, err := ls.broker.meta.List(ctx, producersPrefix)
	if err != nil {
		if ctx.Err() == nil {
			ls.broker.log.Warn("producers are looked up when they come", "error", err)
		}
		return again
	}
	hubs := ls.broker.hubs.byLog()
	for _, e := range entries {
		log, partition := ofProducerKey(e.Key)
		h := hubs[log]
		if h == nil || h.broken != nil {
			continue
		}
		number, err := h.partitionNumber(partition)
		if err == nil && ls.isKept(eventlog.PartitionID{Log: log, Number: number}) {
			ls.of(h, number)
		}
	}
	return again
}

func (ls *ledgers) isKept(id eventlog.PartitionID) bool { return ls.keeps == nil || ls.keeps(id) }

// nodeFor says which node keeps the snapshot of a partition: one of those that live, all of which say
// the same once they see the same, and few partitions change theirs when a node comes or goes.
func nodeFor(live []cluster.Node, id eventlog.PartitionID) (chosen string) {
	var highest uint64
	for _, node := range live {
		h := fnv.New64a()
		fmt.Fprintf(h, "%s/%d/%s", id.Log, id.Number, node.ID)
		if sum := h.Sum64(); chosen == "" || sum > highest {
			chosen, highest = node.ID, sum
		}
	}
	return chosen
}

// tend writes the snapshots that are behind; see ledger.tend. One that cannot be written costs
// time at the next start, nothing else, so that the others go on.
func (ls *ledgers) tend(ctx context.Context, slack int64) {
	var failed int
	var last error
	for _, l := range ls.live() {
		if !ls.isKept(eventlog.PartitionID{Log: l.hub.log, Number: l.number}) && l.rest(ctx, ls.rest) {
			continue
		}
		if err := l.tend(ctx, slack); err != nil && ctx.Err() == nil {
			last = fmt.Errorf("%s/%d: %w", l.hub.Name, l.number, err)
			failed++
		}
	}
	ls.trim()
	if failed > 0 {
		ls.broker.log.Warn("producers were not written down, the next start may take longer", "partitions", failed, "error", last)
	}
}
