// Package retrylog keeps pending deliveries that wait, durably, without timers or sorted sets: a
// log for each wait of a ladder, whose head is always the next due, and a parked log (a log as
// well) for each subscription that cannot take what is due. Cursors move along watermarks: an entry
// is passed when whoever took it says that its fate is durable elsewhere. After a crash some
// entries are handed out again, never too few.
//
// # Jitter
//
// Because of it a retry log's entries do not fall due in the order in which they were put. So the
// reader of a retry log keeps a little more than is due in a heap. The heap is bounded. While it is
// full, entries behind it may be handed out late, but never after the time that the longest jitter
// would have made it: all that was put before them is due by then, and out of the heap. (Where a
// release has given a retry log a shorter wait, those with the longer one are before them.)
//
// # The clock
//
// Entries are due by the wall clock, because they outlive the process and the machine may sleep.
// One that is set forward makes them due early, by as much, and within a minute. One that was set
// back would make them wait, perhaps for years: so no entry, once read, waits for longer than about
// twice its retry log's wait, and what is put after the clock was set back is due in time.
//
// # What it costs
//
// What waits costs disk, and of memory 8 MiB or so for all retry logs together (1 MiB for those of a
// shard, of which a node may hold many). An entry that is
// not done keeps its log from its number on: all that was put behind it stays on disk, and is
// handed out again by the next process, done or not. There is no other bound to either. So whoever
// takes entries is not to keep one for long, but to put it somewhere else: into another retry log,
// or behind the others on its parked log. Of what is done a log keeps up to 1 MiB.
//
// # What is stored
//
// Logs are "grid-tiers", partition n for the nth wait of the ladder, and "shelf-ID", partition 0.
// Where the yard has several nodes each shard has retry logs of its own, "grid-tiers-SHARD". Each batch holds stored pending deliveries. They are trimmed by their cursors alone. The cursors
// of all retry logs are one entry, those of parked logs are spread over 64, so that however many
// parked logs are in use the store has little to write. A log without a cursor has never been used:
// the first Put writes the cursor before it writes the log, and nobody opens logs that do not
// exist, of which there would be thousands.
//
// # Who may touch what
//
// Run's own goroutine alone reads retry logs ahead. A second one saves cursors, a third counts what
// there was at the start. A queue's mu guards its watermark, which Done moves from any goroutine.
// Locks are taken in this order: Logs.mu, queue.opening, book.mu, queue.mu, counts.mu; Metrics.mu before the last; none but
// opening and book.mu, which have no part in reading or Done, is held while storage works.
package retrylog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/grid/shards"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta"
)

// Config is what retry logs work with.
type Config struct {
	Engine eventlog.Engine
	Meta   meta.Store
	// Ladder is the waits; required, rising.
	Ladder []time.Duration
	// Jitter spreads waits: a pending delivery's is wait * (1 + Spread * Jitter()), Jitter in [-1,
	// 1]. nil Jitter: none; Spread zero: 0.1. Many goroutines may call it at once.
	Jitter func() float64
	Spread float64
	// Held is the shard that the logs are of, where the yard has several nodes: they are for its
	// subscriptions alone, and Open is how its holder begins. nil: those of all subscriptions, whose
	// only user is this process.
	Held *shards.Held
	// Log takes what an operator should know; nil means slog.Default().
	Log *slog.Logger
	// Metrics count what is put, falls due and waits, with those of other shards; nil means nobody does.
	Metrics *Metrics
}

const defaultSpread = 0.1

func (c Config) withDefaults() Config {
	c.Spread = cmp.Or(c.Spread, defaultSpread)
	if c.Jitter == nil {
		c.Jitter = func() float64 { return 0 }
	}
	c.Log = cmp.Or(c.Log, slog.Default())
	return c
}

func (c Config) validate() error {
	switch {
	case c.Engine == nil || c.Meta == nil:
		return errors.New("retry logs need an engine and a meta store")
	case len(c.Ladder) == 0 || c.Ladder[0] <= 0:
		return errors.New("retry logs need a ladder of waits, each longer than nothing")
	case !slices.IsSorted(c.Ladder) || len(slices.Compact(slices.Clone(c.Ladder))) < len(c.Ladder):
		return fmt.Errorf("retry logs need waits that rise, not %v", c.Ladder)
	case c.Spread < 0 || c.Spread >= 1:
		return fmt.Errorf("retry logs cannot spread waits by %v: use 0 to 1, without 1", c.Spread)
	}
	return nil
}

// Logs is all retry logs and parked logs of a yard. All methods but Run may be called by many
// goroutines at once.
type Logs struct {
	cfg     Config
	log     *slog.Logger
	metrics *Metrics
	counts  *counts
	// now is the wall clock; changed by tests only.
	now func() time.Time
	// logs are the ladder's, and behind them those that a longer ladder once had.
	logs  []*retryLog
	books *books
	// seen is when Run last looked at the clock; of its goroutine.
	seen time.Time
	// wake tells Run that there is something to read, dirty its saver that a cursor has moved.
	wake, dirty chan struct{}
	running     atomic.Bool

	mu         sync.Mutex
	parkedLogs map[string]*Parked // guarded by mu
}

// Open finds the cursors. It starts no goroutine and opens no log. Of a shard it writes them once
// under the holder's epoch: once it has returned nobody who held the shard before moves them, and
// shards.ErrLost is the answer if a later holder has begun.
func Open(ctx context.Context, cfg Config) (*Logs, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	metrics := cfg.Metrics
	if metrics == nil {
		var err error
		if metrics, err = NewMetrics(nil, nil); err != nil {
			return nil, err
		}
	}
	books, err := openBooks(ctx, cfg.Meta, cfg.Held)
	if err != nil {
		return nil, fmt.Errorf("open retry logs: %w", err)
	}
	t := &Logs{
		cfg: cfg, log: cfg.Log, metrics: metrics, counts: newCounts(), now: time.Now, books: books,
		wake: make(chan struct{}, 1), dirty: make(chan struct{}, 1), parkedLogs: make(map[string]*Parked),
	}
	// The retry logs are those of the ladder, and those that only the book still knows.
	known := books.waiting.entry.Load().Value.Cursors
	positions := len(cfg.Ladder)
	for name := range known {
		positions = max(positions, retryLogPosition(name)+1)
	}
	// The waits are partitions of one log, which has to keep what waits longest.
	shape := eventlog.Shape{Partitions: positions, Kind: eventlog.RetryKind(cfg.Ladder[len(cfg.Ladder)-1])}
	room := aheadBytes
	if cfg.Held != nil {
		room = aheadBytesOfShard
	}
	for position := range positions {
		wait := time.Duration(known[retryLogName(position)].WaitMS) * time.Millisecond
		if position < len(cfg.Ladder) {
			wait = cfg.Ladder[position]
		}
		t.logs = append(t.logs, newRetryLog(t, position, wait, shape, max(room/positions, aheadBytesMin)))
	}
	return t, nil
}

// Put stores pending deliveries that are due after wait (rounded up to the ladder, with jitter; Due
// is set). Durable when it returns nil; after an error they may or may not be there, and the
// caller, who still has them, tries again: a repeat does no harm. Up to 128 KiB by Delivery.Bytes
// are stored whole or not at all; of more, some may be there after an error and others not.
//
// A pending delivery that is too large for any batch is eventlog.ErrTooLarge, and stays so.
func (t *Logs) Put(ctx context.Context, wait time.Duration, deliveries []pending.Delivery) error {
	if len(deliveries) == 0 {
		return nil
	}
	position, _ := slices.BinarySearch(t.cfg.Ladder, wait)
	retryLog := t.logs[min(position, len(t.cfg.Ladder)-1)]
	now := t.now()
	for i := range deliveries {
		jitter := t.cfg.Spread * max(-1, min(1, t.cfg.Jitter()))
		deliveries[i].Due = dueAfter(now, retryLog.wait+time.Duration(jitter*float64(retryLog.wait)))
	}
	return retryLog.put(ctx, deliveries)
}

// dueAfter is in whole milliseconds, as pending deliveries keep it, and not too early.
func dueAfter(now time.Time, wait time.Duration) time.Time {
	due := now.Add(wait)
	if whole := due.Truncate(time.Millisecond); !whole.Equal(due) {
		return whole.Add(time.Millisecond)
	}
	return due.Round(0) // without what is known of this process's clock only
}

// Entry is one pending delivery handed out. Done is to be called once its fate is durable elsewhere
// (delivered, put into another retry log, on a parked log, dead-lettered or dropped); it is safe
// twice and from any goroutine. One that is not done is not handed out again by this process, but
// by the next.
type Entry struct {
	pending.Delivery
	Done func()
}

// Waiting is how much of a subscription waits in one retry log.
type Waiting struct {
	Log    time.Duration
	Count  int64
	Oldest time.Time // publish time of the oldest; it may be of one that is done, some minutes before
}

// Waiting tells it for a subscription, retry logs without any left out: what was put and is not
// done. After a start it is complete once the logs were counted, which Run does first, in the
// background.
func (t *Logs) Waiting(subscription string) []Waiting {
	var all []Waiting
	for _, retryLog := range t.logs {
		if count, oldest := t.counts.of(subscription, retryLog.position); count > 0 {
			all = append(all, Waiting{Log: retryLog.wait, Count: count, Oldest: oldest})
		}
	}
	return all
}

// Parked gives a subscription's. It costs nothing until it is used. The same subscription gives
// the same parked log.
func (t *Logs) Parked(subscription string) *Parked {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.parkedLogs[subscription]
	if s == nil {
		s = &Parked{}
		shape := eventlog.Shape{Partitions: 1, Kind: eventlog.KindParked}
		s.init(t, eventlog.PartitionID{Log: "shelf-" + subscription}, shape, t.parkedBook(subscription), subscription)
		t.parkedLogs[subscription] = s
	}
	return s
}

// Forget removes a subscription's parked log, for good: puts that are under way, and later ones,
// are eventlog.ErrRemoved. What waits of it in retry logs is handed out when due, and is the
// taker's to drop. After an error it can be called again, also by a later process.
func (t *Logs) Forget(ctx context.Context, subscription string) error {
	if err := t.Parked(subscription).remove(ctx); err != nil {
		return fmt.Errorf("forget the parked log of %s: %w", subscription, err)
	}
	t.mu.Lock()
	delete(t.parkedLogs, subscription) // the next one finds that the log is gone
	t.mu.Unlock()
	return nil
}
