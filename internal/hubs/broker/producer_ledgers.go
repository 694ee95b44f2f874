package broker

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

const (
	// saveInterval is how far apart the snapshots of busy partitions are: what is stored
	// in that time is what a start after a crash has to read. Where producers are not busy
	// but others are, it may be saveSlackBytes.
	saveInterval   = 10 * time.Second
	saveSlackBytes = 4 << 20
	// lastSaveTimeout bounds what Run does after its context has ended.
	lastSaveTimeout = 3 * time.Second
)

// ledgers are those of all partitions that have producers.
type ledgers struct {
	mu  sync.Mutex
	all map[eventlog.PartitionID]*ledger // guarded by mu
}

func newLedgers() *ledgers { return &ledgers{all: make(map[eventlog.PartitionID]*ledger)} }

// of gives the ledger of a partition. It reads nothing yet.
func (ls *ledgers) of(b *Broker, h *hub, number int, p eventlog.Partition) *ledger {
	id := eventlog.PartitionID{Log: h.log, Number: number}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l := ls.all[id]
	if l == nil {
		l = newLedger(b, h, number, p)
		ls.all[id] = l
	}
	return l
}

// forget drops those of a log that is gone.
func (ls *ledgers) forget(log string) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for id := range ls.all {
		if id.Log == log {
			delete(ls.all, id)
		}
	}
}

// live gives those whose logs are in use, and forgets the others.
func (ls *ledgers) live(hubs map[string]*hub) []*ledger {
	logs := make(map[string]bool, len(hubs))
	for _, h := range hubs {
		logs[h.log] = true
	}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	live := make([]*ledger, 0, len(ls.all))
	for id, l := range ls.all {
		if !logs[id.Log] {
			delete(ls.all, id)
			continue
		}
		live = append(live, l)
	}
	return live
}

// keepLedgers writes snapshots until ctx ends, and once more then.
func (b *Broker) keepLedgers(ctx context.Context) {
	if err := b.openLedgers(ctx); err != nil && ctx.Err() == nil {
		b.log.Warn("producers are looked up when they come", "error", err)
	}
	ticker := time.NewTicker(saveInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			b.tendLedgers(ctx, saveSlackBytes)
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastSaveTimeout)
			defer cancel()
			b.settleLedgers(last)
			b.tendLedgers(last, 0)
			return
		}
	}
}

// openLedgers takes the ledgers of earlier lives into care: while nobody writes their
// snapshots, what has to be read for the next producer grows with all that is published.
func (b *Broker) openLedgers(ctx context.Context) error {
	entries, err := b.meta.List(ctx, producersPrefix)
	if err != nil {
		return fmt.Errorf("list producers: %w", err)
	}
	byLog := make(map[string]*hub)
	for _, h := range b.hubs.all() {
		byLog[h.log] = h
	}
	for _, e := range entries {
		log, partition := ofProducerKey(e.Key)
		h := byLog[log]
		if h == nil || h.broken != nil {
			continue
		}
		if number, err := h.partitionNumber(partition); err == nil {
			b.ledgers.of(b, h, number, h.partitions[number])
		}
	}
	b.tendLedgers(ctx, saveSlackBytes)
	return nil
}

// tendLedgers writes the snapshots that are behind, by more than slack bytes where no
// producer has done anything. One that cannot be written costs
// time at the next start, nothing else, so that the others go on.
func (b *Broker) tendLedgers(ctx context.Context, slack int64) {
	var failed int
	var first error
	for _, l := range b.ledgers.live(b.hubs.all()) {
		if err := l.tend(ctx, slack); err != nil && ctx.Err() == nil {
			first = fmt.Errorf("%s/%d: %w", l.hub.Name, l.number, err)
			failed++
		}
	}
	if failed > 0 {
		b.log.Warn("producers were not written down, the next start may take longer", "partitions", failed, "error", first)
	}
}

// settleLedgers waits until nothing of producers is under way.
func (b *Broker) settleLedgers(ctx context.Context) {
	for _, l := range b.ledgers.live(b.hubs.all()) {
		if l.settle(ctx) != nil {
			return
		}
	}
}

// tend brings the snapshot up to the end of the log, if that is worth it.
func (l *ledger) tend(ctx context.Context, slack int64) error {
	if err := l.takeTurn(ctx); err != nil {
		return err
	}
	defer l.endTurn()
	if err := l.load(ctx); err != nil {
		return err
	}
	if err := l.settleDoubts(ctx); err != nil {
		return err
	}
	// In this order: what is below the bounds and of a producer has landed by now, or is
	// in the air or in doubt, which the floor allows for.
	bounds, err := l.partition.Bounds(ctx)
	if err != nil {
		return err
	}
	l.mu.Lock()
	l.forgetUnusedLocked(time.Now())
	l.seen = max(l.seen, bounds.Next)
	floor, changes := l.floorLocked(), l.changes
	l.mu.Unlock()
	if changes == l.savedChanges && (floor == l.saved || l.grown(bounds) <= slack) {
		return nil
	}
	if err := l.save(ctx); err != nil {
		return err
	}
	l.savedBytes = bounds.Bytes
	return nil
}

// grown is about how many bytes of the log are behind the snapshot. Where there are fewer
// than there were, retention has removed some, and nobody knows.
func (l *ledger) grown(bounds eventlog.Bounds) int64 {
	if bounds.Bytes < l.savedBytes {
		return math.MaxInt64
	}
	return bounds.Bytes - l.savedBytes
}

// settleDoubts sees to those who do not come back: while there is doubt, the snapshot
// cannot move.
func (l *ledger) settleDoubts(ctx context.Context) error {
	l.mu.Lock()
	var doubtful []*account
	for _, a := range l.accounts {
		if a.doubt != nil {
			doubtful = append(doubtful, a)
		}
	}
	l.mu.Unlock()
	for _, a := range doubtful {
		if err := l.settleDoubt(ctx, a); err != nil {
			return err
		}
	}
	return nil
}

// settle waits until all flights have landed.
func (l *ledger) settle(ctx context.Context) error {
	for {
		l.mu.Lock()
		var air *flight
		for _, a := range l.accounts {
			if a.air != nil {
				air = a.air
			}
		}
		l.mu.Unlock()
		if air == nil {
			return nil
		}
		if err := until(ctx, air.landed); err != nil {
			return err
		}
	}
}
