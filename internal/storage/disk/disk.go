// Package disk is the embedded engine: the eventlog contract over segment files in one
// folder of this machine.
//
// # Commit
//
// A partition's appends gather in a group, in memory and already encoded. Whoever waits for a
// receipt while nobody commits becomes the committer: it takes the whole group, writes it behind
// the newest segment with one write, syncs the file once, makes the events readable and settles
// every receipt. What was submitted meanwhile is the next group, committed by a goroutine that
// lives only as long as there is work. So a lone writer pays no hand-over, many writers share each
// sync, and the slower the disk, the larger the groups. Partitions commit in parallel; the engine
// bounds how many syncs run at once, and those that wait for their turn gather more.
//
// # Who may touch what
//
// One mutex guards all of a partition's state (segments.mu). The right to write to its files and
// to change its list of segments is a token (partition.committing): its holder does I/O
// without the lock. Readers never wait for a sync: they see what was acknowledged, no more.
//
// # When storage fails
//
// A failed write for lack of space takes back what it wrote and refuses the group; the
// next append tries again. Any other failed write or sync means that nobody knows what is
// on disk: the segment is left as it is, readable up to what was acknowledged, and the
// partition goes on in a new segment whose first number voids whatever the failed one may
// hold beyond. A failed sync is never tried again.
package disk

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/eventyard/eventyard/internal/parallel"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/vfs"
)

// SyncMode says what an acknowledgement promises.
type SyncMode int

const (
	// Always syncs before it acknowledges: what was acknowledged survives power loss.
	Always SyncMode = iota
	// Interval acknowledges once the operating system has the bytes and syncs now and
	// then: power loss costs at most the last interval.
	Interval
	// OS acknowledges once the operating system has the bytes and leaves syncing to it:
	// survives the end of the process, not of the machine.
	OS
)

var syncNames = [...]string{Always: "always", Interval: "interval", OS: "os"}

func (m SyncMode) String() string { return syncNames[m] }

// ParseSync reads a mode by name.
func ParseSync(name string) (SyncMode, error) {
	for mode, n := range syncNames {
		if n == name {
			return SyncMode(mode), nil
		}
	}
	return 0, fmt.Errorf("sync mode %q: use always, interval or os", name)
}

// Defaults of Config.
const (
	DefaultSegmentBytes = 64 << 20
	DefaultSyncInterval = time.Second
	DefaultOpenSegments = 512
	minSegmentBytes     = 4 << 10
	// maxSyncs bounds how many partitions sync at once. More would cost a thread each
	// and gain nothing: beyond this the device is the limit and waiting makes groups larger.
	maxSyncs = 32
)

// Config says where and how to store.
type Config struct {
	// Dir is the data folder. Required unless FS is given.
	Dir string
	// FS is the file system to use; nil means the real one at Dir.
	FS vfs.FS
	// Sync is what an acknowledgement promises; the zero value is Always.
	Sync SyncMode
	// SyncInterval is for sync mode Interval; zero means DefaultSyncInterval.
	SyncInterval time.Duration
	// SegmentBytes is the size of a full segment; zero means DefaultSegmentBytes.
	SegmentBytes int64
	// OpenSegments is how many segments are open at most; zero means DefaultOpenSegments. The lock,
	// the journal and operations on names take some thirty descriptors more.
	OpenSegments int
	// Claimed is called once the folder is this process's alone and before anything in it is
	// changed; its error ends Open. Nil means nothing.
	Claimed func() error
	// Renew makes the folder known as one of the present format. Before it has succeeded nothing is
	// written that an older version does not know. Open calls it when it has made what room it can,
	// and ends with its error unless that is a lack of room: then it is called again when there may
	// be some. Nil means that there is nothing to do.
	Renew func() error
	// NoJournal makes every partition sync its own file, however many commit at once. It is
	// there to measure what the journal gains.
	NoJournal bool
	// RetentionInterval is how often retention is applied; zero means every 10 seconds.
	RetentionInterval time.Duration
	// Log takes what an operator should know; nil means slog.Default().
	Log *slog.Logger
	// Metrics registers the engine's metrics; nil means none.
	Metrics prometheus.Registerer

	// For tests: when and how the journal is used; see journal.
	journalFrom   int
	journalBytes  int64
	journalInline bool
}

func (c Config) withDefaults() Config {
	if c.FS == nil {
		c.FS = vfs.OS(c.Dir)
	}
	if c.SyncInterval <= 0 {
		c.SyncInterval = DefaultSyncInterval
	}
	if c.SegmentBytes <= 0 {
		c.SegmentBytes = DefaultSegmentBytes
	}
	c.SegmentBytes = max(c.SegmentBytes, minSegmentBytes)
	if c.OpenSegments <= 0 {
		c.OpenSegments = DefaultOpenSegments
	}
	if c.RetentionInterval <= 0 {
		c.RetentionInterval = 10 * time.Second
	}
	c.Log = cmp.Or(c.Log, slog.Default())
	c.journalFrom = cmp.Or(c.journalFrom, journalFrom)
	c.journalBytes = cmp.Or(c.journalBytes, defaultJournalBytes)
	return c
}

// Engine implements eventlog.Engine.
type Engine struct {
	cfg     Config
	fs      vfs.FS
	log     *slog.Logger
	metrics *metrics
	lock    io.Closer
	handles *handles
	spares  *spares
	journal *journal
	renewal *renewal
	syncs   chan struct{} // a place for each sync of a segment that may run at once
	busy    atomic.Int32  // how many partitions are committing
	// reportedNoSpace is when the log was last told that storage is full, in Unix seconds.
	reportedNoSpace atomic.Int64
	holds           atomic.Int32 // how many hold what Trim allows to be removed
	groups          sync.Pool    // *group
	chunks          sync.Pool    // *chunk: what cursors read into
	tickets         sync.Pool    // *ticket
	// committers counts the goroutines that commit or work for the journal, and removals.
	committers sync.WaitGroup

	mu         sync.Mutex
	partitions map[eventlog.PartitionID]*partition // guarded by mu
	logs       map[string]*provided                // guarded by mu: of all partitions, and what else was provided
	removed    map[string]bool                     // guarded by mu: logs that are gone
	closed     bool                                // guarded by mu
	done       chan struct{}                       // closed when Close has ended
}

var _ eventlog.Engine = (*Engine)(nil)

// Open takes the data folder for this process. It answers vfs.ErrLocked when another has
// it. Partitions are opened when they are first used.
func Open(cfg Config) (*Engine, error) {
	cfg = cfg.withDefaults()
	lock, reserve, renewal, err := claim(cfg)
	if err != nil {
		return nil, fmt.Errorf("open data folder %s: %w", cfg.Dir, err)
	}
	e := &Engine{
		cfg: cfg, fs: cfg.FS, log: cfg.Log, lock: lock, renewal: renewal,
		metrics:    newMetrics(cfg.Metrics),
		syncs:      make(chan struct{}, maxSyncs),
		partitions: make(map[eventlog.PartitionID]*partition),
		logs:       make(map[string]*provided),
		removed:    make(map[string]bool),
		done:       make(chan struct{}),
	}
	e.handles = newHandles(cfg.OpenSegments, e.metrics.openSegments)
	e.spares = &spares{e: e, reserve: reserve}
	e.journal = &journal{e: e, off: cfg.NoJournal}
	e.journal.cond.L = &e.journal.mu
	e.groups.New = func() any { return new(group) }
	e.chunks.New = func() any { return new(chunk) }
	e.tickets.New = func() any { return &ticket{settled: make(chan outcome, 1)} }
	if err := e.spares.restock(); err != nil { // retention tries again
		e.log.Warn("on a full disk the newest segments cannot be removed", "error", err)
	}
	return e, nil
}

// claim takes the folder's lock and makes it ready. It gives the reserve of spares, if there is one.
func claim(cfg Config) (lock io.Closer, reserve string, renewal *renewal, err error) {
	if err := cfg.FS.MkdirAll("."); err != nil {
		return nil, "", nil, err
	}
	if lock, err = cfg.FS.Lock(lockName); err != nil {
		return nil, "", nil, err
	}
	if cfg.Claimed != nil {
		err = cfg.Claimed()
	}
	if err == nil {
		reserve, err = tidy(cfg)
	}
	if err == nil {
		renewal, err = renewFolder(cfg)
	}
	if err != nil {
		lock.Close()
		return nil, "", nil, err
	}
	return lock, reserve, renewal, nil
}

// Remove deletes a log; see eventlog.Engine.
func (e *Engine) Remove(ctx context.Context, log string) error {
	if err := checkID(eventlog.PartitionID{Log: log}); err != nil {
		return err
	}
	gone, err := e.forget(log)
	if err != nil {
		return err
	}
	defer e.committers.Done()
	for _, p := range gone {
		p.end(eventlog.ErrRemoved)
	}
	if err := e.throwAway(log); err != nil {
		return fmt.Errorf("remove log %s: %w", log, err)
	}
	return nil
}

// forget takes a log's partitions out of the map, for good: its name is not used again.
// Close waits for the removal, which says when it is done.
func (e *Engine) forget(log string) ([]*partition, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, eventlog.ErrClosed
	}
	e.committers.Add(1)
	e.removed[log] = true
	delete(e.logs, log)
	var gone []*partition
	for id, p := range e.partitions {
		if id.Log == log {
			gone = append(gone, p)
			delete(e.partitions, id)
		}
	}
	return gone, nil
}

// Run applies retention and, in sync mode Interval, syncs, until ctx ends.
func (e *Engine) Run(ctx context.Context) error {
	retention := time.NewTicker(e.cfg.RetentionInterval)
	defer retention.Stop()
	var syncs <-chan time.Time
	if e.cfg.Sync == Interval {
		t := time.NewTicker(e.cfg.SyncInterval)
		defer t.Stop()
		syncs = t.C
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-retention.C:
			e.applyRetention(ctx)
		case <-syncs:
			e.syncLate(ctx)
		}
	}
}

func (e *Engine) known() []*partition {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Collect(maps.Values(e.partitions))
}

// Close ends all partitions and frees the folder. Safe twice.
func (e *Engine) Close() error {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		<-e.done
		return nil
	}
	e.closed = true
	e.mu.Unlock()
	defer close(e.done)
	for _, p := range e.known() {
		p.end(eventlog.ErrClosed)
	}
	e.committers.Wait()
	e.journal.close()
	known := e.known()
	parallel.Each(len(known), maxSyncs, func(i int) { known[i].closeFiles() })
	return e.lock.Close()
}

func checkID(id eventlog.PartitionID) error {
	if !isLogName(id.Log) || id.Number < 0 {
		return fmt.Errorf("partition %s: not a storage name", id)
	}
	return nil
}
