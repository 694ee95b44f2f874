// Package journal keeps changes of state (package activity) for a while: in a log of its own, which all
// nodes of a yard write to and read.
//
// Whoever notes a change does not wait for the log. What is noted goes into a queue, which Run writes
// from; when the storage does not keep up, or is full, the queue is, and what comes then is dropped and
// counted. The count is an entry of its own as soon as there is room, so that who reads knows that
// something is missing, and how much.
//
// Partitions change their owners by the hundreds at once. What happens to one group within a moment is one
// entry (moves.go). And who looks at keys again and again reveals them once (reveals).
package journal

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/eventyard/eventyard/internal/activity"
	"github.com/eventyard/eventyard/internal/sleep"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/prometheus/client_golang/prometheus"
)

// LogName is the log's. Hubs' logs have a random part, so that none has this name.
const LogName = "activity"

// How long entries are kept, and how many bytes of them.
const (
	KeepFor   = 7 * 24 * time.Hour
	KeepBytes = 32 << 20
)

// Bounds of what waits to be written.
const (
	// maxQueued is how many entries may wait; maxBatch and maxBatchBytes are how many are written at
	// once, and maxEntryBytes is how long one may be: a batch is far from what a log refuses.
	maxQueued     = 4096
	maxBatch      = 256
	maxBatchBytes = 512 << 10
	maxEntryBytes = 64 << 10
	// gatherFor is how long moves of a group are gathered, and maxMoves how many may be in all.
	gatherFor = time.Second
	maxMoves  = 16_384
	// revealEvery is how often it is noted that the same one looks at the same keys.
	revealEvery = 10 * time.Minute
	maxReveals  = 1024
	// reportEvery is how often the journal says how many were dropped.
	reportEvery = time.Minute
)

// How long the journal waits before it writes again what it could not, and how long it may take for what
// is left when the yard stops.
const (
	pauseFirst = 250 * time.Millisecond
	pauseMost  = 5 * time.Second
	lastWrite  = 2 * time.Second
)

// Shape is what the log is provided with. Its kind is that of dead letters: logs that share storage hold up
// each other's removal, and those are kept for longer.
var Shape = eventlog.Shape{
	Partitions: 1, Kind: eventlog.KindDeadLetters, Retention: eventlog.Retention{Age: KeepFor, Bytes: KeepBytes},
}

// Config is what a journal works with.
type Config struct {
	// Engine has the log. Required.
	Engine eventlog.Engine
	// Node is this one's name.
	Node string
	// Publish publishes events of the yard's own, in the form of Event Grid's schema; nil: nothing is
	// published. An error is reported to Log: the journal itself has them.
	Publish func(ctx context.Context, events [][]byte) error
	// Log takes what the journal carries on from; nil means slog.Default().
	Log *slog.Logger
	// Metrics is where its counters are registered; nil means nowhere.
	Metrics prometheus.Registerer
}

// Journal is one node's way to the log. All methods may be called by many goroutines at once, Run by one.
type Journal struct {
	cfg       Config
	partition eventlog.Partition
	wake      chan struct{}
	metrics   *metrics

	mu    sync.Mutex
	queue []noted // guarded by mu, as are the rest
	moves moves
	quota clients
	// dropped is how many were, since; reported when the journal last said so; revealed when who last looked
	// at which keys.
	dropped  int
	since    time.Time
	reported time.Time
	revealed map[string]time.Time
}

// New makes a journal. It does no I/O.
func New(cfg Config) (*Journal, error) {
	if cfg.Engine == nil {
		return nil, errors.New("keep activity: an engine is required")
	}
	cfg.Log = cmp.Or(cfg.Log, slog.Default())
	partition, err := cfg.Engine.Partition(eventlog.PartitionID{Log: LogName})
	if err != nil {
		return nil, fmt.Errorf("keep activity: %w", err)
	}
	m, err := newMetrics(cfg.Metrics)
	if err != nil {
		return nil, fmt.Errorf("keep activity: %w", err)
	}
	return &Journal{
		cfg: cfg, partition: partition, wake: make(chan struct{}, 1), metrics: m, moves: moves{}, quota: newClients(), revealed: map[string]time.Time{},
	}, nil
}

// PublishBy sets what Config.Publish says, before Run.
func (j *Journal) PublishBy(publish func(ctx context.Context, events [][]byte) error) {
	j.cfg.Publish = publish
}

// Note takes a change, without waiting.
func (j *Journal) Note(_ context.Context, e activity.Entry) {
	e.Node = j.cfg.Node
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case e.Kind == activity.KeyRevealed && j.seenLocked(e):
		return
	case e.Kind == activity.OwnershipMoved:
		j.gatherLocked(e)
	default:
		j.putLocked(e)
	}
	select {
	case j.wake <- struct{}{}:
	default: // it is awake
	}
}

// putLocked has an entry wait to be written.
func (j *Journal) putLocked(e activity.Entry) {
	n := fit(e)
	if len(j.queue) >= maxQueued || !j.quota.take(n, time.Now()) {
		j.dropLocked(e.At)
		return
	}
	j.queue = append(j.queue, n)
}

func (j *Journal) dropLocked(at time.Time) {
	if j.dropped == 0 {
		j.since = at
	}
	j.dropped++
	j.metrics.dropped.Inc()
}

func (j *Journal) gatherLocked(e activity.Entry) {
	if j.moves.count() >= maxMoves {
		j.dropLocked(e.At)
		return
	}
	j.moves.add(e)
}

// seenLocked tells whether it was noted of late that the same one looked at the same keys.
func (j *Journal) seenLocked(e activity.Entry) bool {
	key := e.Object + "\n" + e.By + "\n" + e.Address
	last, known := j.revealed[key]
	if known && e.At.Sub(last) < revealEvery {
		return true
	}
	if len(j.revealed) >= maxReveals {
		clear(j.revealed) // then some are noted once more
	}
	j.revealed[key] = e.At
	return false
}

// Run writes what is noted until ctx ends, and then what is left, for a moment.
func (j *Journal) Run(ctx context.Context) error {
	gather := time.NewTicker(gatherFor)
	defer gather.Stop()
	pause := pauseFirst
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWrite)
			defer cancel()
			if err := j.write(last, true); err != nil {
				j.cfg.Log.Warn("the latest activity could not be kept", "error", err)
			}
			return nil
		case <-gather.C:
		case <-j.wake:
		}
		err := j.write(ctx, false)
		if err == nil {
			pause = pauseFirst
			continue
		}
		if pause == pauseFirst && ctx.Err() == nil {
			j.cfg.Log.Warn("activity cannot be kept now; trying again", "error", err)
		}
		_ = sleep.About(ctx, pause) // its end is looked at above
		pause = min(2*pause, pauseMost)
	}
}

// write writes all that is due; all: also moves that are still being gathered.
func (j *Journal) write(ctx context.Context, all bool) error {
	for {
		due := j.due(time.Now(), all)
		if len(due) == 0 {
			return nil
		}
		if err := j.append(ctx, due); err != nil {
			return err
		}
		j.written(len(due))
		j.publish(ctx, due)
	}
}

// due gives what is to be written next. It stays in the queue until it was.
func (j *Journal) due(now time.Time, all bool) (entries []activity.Entry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for len(j.queue) < maxQueued {
		e, ok := j.moves.take(now, all)
		if !ok {
			break
		}
		j.putLocked(e)
	}
	if j.dropped > 0 && len(j.queue) < maxQueued && (all || now.Sub(j.reported) >= reportEvery) {
		j.queue = append(j.queue, fit(activity.Entry{
			At: now.UTC(), Kind: activity.Dropped, Object: "activity", Node: j.cfg.Node, Count: j.dropped, Silent: true,
			Detail: fmt.Sprintf("%d changes since %s could not be kept: there were too many, or the storage did not take them", j.dropped, j.since.Format(time.RFC3339)),
		}))
		j.dropped, j.reported = 0, now
	}
	bytes := 0
	for _, n := range j.queue[:min(len(j.queue), maxBatch)] {
		if bytes += n.bytes; bytes > maxBatchBytes {
			break
		}
		entries = append(entries, n.Entry)
	}
	return entries
}

// written takes entries from the queue. Only Run does so.
func (j *Journal) written(count int) {
	j.metrics.kept.Add(float64(count))
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.queue = j.queue[count:]; len(j.queue) == 0 {
		j.queue = nil
	}
}

// append writes entries to the log. After a failure that leaves it open whether they were stored they are
// written again: an entry may be there twice, and none is lost.
func (j *Journal) append(ctx context.Context, entries []activity.Entry) error {
	if err := j.cfg.Engine.Provide(ctx, LogName, Shape); err != nil {
		return err
	}
	b := eventlog.Batch{Events: make([]eventlog.Event, len(entries))}
	for i, e := range entries {
		text, err := json.Marshal(e)
		if err != nil {
			return fmt.Errorf("encode an entry: %w", err)
		}
		b.Events[i].Message = text
	}
	_, err := eventlog.Append(ctx, j.partition, b)
	return err
}

type metrics struct{ kept, dropped prometheus.Counter }

func newMetrics(r prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		kept:    prometheus.NewCounter(prometheus.CounterOpts{Name: "eventyard_activity_kept_total", Help: "Changes of state that were put into the activity journal."}),
		dropped: prometheus.NewCounter(prometheus.CounterOpts{Name: "eventyard_activity_dropped_total", Help: "Changes of state that the activity journal could not keep."}),
	}
	if r == nil {
		return m, nil
	}
	return m, errors.Join(r.Register(m.kept), r.Register(m.dropped))
}
