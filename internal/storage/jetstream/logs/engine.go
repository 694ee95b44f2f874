package logs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/eventyard/eventyard/internal/sleep"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/jetstream/frames"
	"github.com/eventyard/eventyard/internal/storage/jetstream/streams"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/holds"
)

// minMessageBytes is what the servers must take: a batch of the largest size in its frame.
const minMessageBytes = 4 << 20

// Fillers fill in, when a frame of a form is read, the number of its first event and its time; see
// eventlog.Batch.Place. The process that reads need not be the one that was given the batch.
type Fillers map[eventlog.Form]func(raw []byte, first eventlog.Sequence, ms int64)

// Config is what an engine works with. Storage and Store are required; their owner closes them after
// the engine.
type Config struct {
	Storage streams.Storage
	Store   meta.Store
	// Fill has a function for each form that has something to fill in.
	Fill Fillers
	// Replicas is how many servers keep each stream; zero means 3.
	Replicas int
	// HubStreams is how many streams a new hub's log is spread over; zero means one for each 16
	// partitions, at most 16.
	HubStreams int
	// MaxStreamBytes is where a stream that this engine makes is full; zero means no limit. One that is there keeps
	// the limit that it has. An eighth of it is kept for what has to be stored before anything can be removed.
	MaxStreamBytes int64
	// CacheBytes is what newest frames are kept in memory; zero means 64 MiB.
	CacheBytes int64
	// TendInterval is the pause between two looks for what is due to be marked or removed; zero means
	// ten seconds.
	TendInterval time.Duration
	// Ahead is how far the clock that all nodes go by is ahead of this one's; nil means that it is the
	// same. It may be called at any time, and does not block.
	Ahead func() time.Duration
	// Log is where the engine writes what it carries on from; nil means slog.Default().
	Log *slog.Logger

	idle        time.Duration // how long a stream that nobody uses is followed; zero means a minute
	indexFrames int           // how many frames an index has at most; zero means 1,024
	markFrames  int           // after how many frames a mark is due; zero means as frames.Unmarked says
	thinBytes   int64         // what is not worth purging by subject; zero means 1 MiB
}

func (cfg Config) withDefaults() Config {
	cfg.Replicas = cmp.Or(cfg.Replicas, 3)
	cfg.CacheBytes = cmp.Or(cfg.CacheBytes, 64<<20)
	cfg.TendInterval = cmp.Or(cfg.TendInterval, 10*time.Second)
	if cfg.Ahead == nil {
		cfg.Ahead = func() time.Duration { return 0 }
	}
	cfg.Log = cmp.Or(cfg.Log, slog.Default())
	cfg.idle = cmp.Or(cfg.idle, time.Minute)
	cfg.indexFrames = cmp.Or(cfg.indexFrames, 1024)
	cfg.thinBytes = cmp.Or(cfg.thinBytes, 1<<20)
	return cfg
}

// Engine is an eventlog.Engine. See New.
type Engine struct {
	cfg     Config
	process frames.WriterID
	cache   *cache
	// life ends what the engine has started.
	life    context.Context
	end     context.CancelCauseFunc
	started sync.WaitGroup
	removed sync.Map      // the names of logs that were removed
	due     chan struct{} // has room for one: a mark is due
	outcome outcome

	mu sync.Mutex
	// All guarded by mu.
	closed   bool
	watching bool
	logs     map[string]*log
	streams  map[string]*stream

	holding turn
	holds   *holds.Looker // guarded by holding
}

var _ eventlog.Engine = (*Engine)(nil)

// New makes an engine. It does no I/O and starts nothing: that comes with the first use.
func New(cfg Config) *Engine {
	life, end := context.WithCancelCause(context.Background())
	cfg = cfg.withDefaults()
	return &Engine{
		cfg: cfg, process: frames.WriterID{ID: rand.Uint64()}, cache: newCache(cfg.CacheBytes), life: life, end: end,
		holding: newTurn(), holds: holds.NewLooker(cfg.Store, holds.Trimmed), due: make(chan struct{}, 1), logs: map[string]*log{}, streams: map[string]*stream{},
	}
}

// stamp is a time of this node's clock as all nodes have it, in milliseconds: what is stored, and what is
// compared with that.
func (e *Engine) stamp(now time.Time) int64 { return now.Add(e.cfg.Ahead()).UnixMilli() }

// start runs something that ends with the engine's life, and is waited for.
func (e *Engine) start(do func(context.Context)) {
	e.started.Go(func() { do(e.life) })
}

// Partition is eventlog.Engine's.
func (e *Engine) Partition(id eventlog.PartitionID) (eventlog.Partition, error) {
	if err := checkID(id); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	l, err := e.logLocked(id.Log)
	if err != nil {
		return nil, err
	}
	p := l.handles[id.Number]
	if p == nil {
		p = &partition{log: l, id: id}
		l.handles[id.Number] = p
	}
	return p, nil
}

// partAt gives a partition of a log as its stream knows it. Handles and what is known of a stream stay
// as long as the engine: they are few words each.
func (e *Engine) partAt(l *log, at address) (*part, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.usableLocked(l); err != nil {
		return nil, err
	}
	s := e.streamLocked(at.stream)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.partLocked(at.subject), nil
}

// streamLocked gives a stream, which need not be followed yet.
func (e *Engine) streamLocked(name string) *stream {
	s := e.streams[name]
	if s == nil {
		s = newStream(e, name)
		e.streams[name] = s
	}
	return s
}

// Run does the background work; see eventlog.Engine.
func (e *Engine) Run(ctx context.Context) error {
	var visiting sync.WaitGroup
	defer visiting.Wait()
	visiting.Go(func() { visitor{e}.visit(ctx) })
	var swept time.Time
	for sleep.For(ctx, e.cfg.TendInterval, e.due) == nil && e.life.Err() == nil {
		// Others see at the same time that something is due: whoever is first does it.
		if sleep.About(ctx, min(e.cfg.TendInterval, dueSpread)) != nil {
			break
		}
		if time.Since(swept) >= sweepInterval {
			swept = time.Now()
			if err := errors.Join(e.sweep(ctx), forgetting{e}.forget(ctx)); err != nil && ctx.Err() == nil {
				e.cfg.Log.Warn("streams and entries of removed logs are not swept", "error", err)
			}
		}
		for _, s := range e.followed() {
			e.warn(ctx, s.name, tending{stream: s}.tend(ctx))
		}
	}
	return nil
}

// warn says why a stream is not tended, unless it, or the engine, is not there any more.
func (e *Engine) warn(ctx context.Context, stream string, err error) {
	for _, gone := range []error{streams.ErrClosed, eventlog.ErrClosed, eventlog.ErrRemoved} {
		if errors.Is(err, gone) {
			return
		}
	}
	if err != nil && ctx.Err() == nil {
		e.cfg.Log.Warn("stream is not tended", "stream", stream, "error", err)
	}
}

// dueSpread is how long a node waits at most before it does what is due.
const dueSpread = 200 * time.Millisecond

// sweepInterval is how often streams of removed logs are looked for.
const sweepInterval = time.Hour

// sweep deletes the streams of removed logs that somebody has left behind. One whose log has no entry
// is left alone: it is not known whose it is.
func (e *Engine) sweep(ctx context.Context) error {
	names, err := e.cfg.Storage.Names(ctx)
	if err != nil {
		return err
	}
	for _, stream := range names {
		log, ok := hubLog(stream)
		if !ok {
			continue
		}
		d, revision, err := e.read(ctx, log)
		if err != nil {
			return err
		}
		if revision != 0 && d.state == isRemoved {
			if err := e.cfg.Storage.Delete(ctx, stream); err != nil {
				return err
			}
		}
	}
	return nil
}

// followed are the streams that this node follows.
func (e *Engine) followed() (all []*stream) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range e.streams {
		s.mu.Lock()
		if s.running && s.readyLocked() {
			all = append(all, s)
		}
		s.mu.Unlock()
	}
	return all
}

// Close is eventlog.Engine's. What was submitted is stored, or has waited for long enough.
func (e *Engine) Close() error {
	e.mu.Lock()
	all := make([]*stream, 0, len(e.streams))
	for _, s := range e.streams {
		all = append(all, s)
	}
	again := e.closed
	e.closed = true
	e.mu.Unlock()
	if !again {
		var drained sync.WaitGroup
		for _, s := range all {
			drained.Go(s.drain)
		}
		drained.Wait()
		for _, s := range all {
			s.close()
		}
	}
	e.end(eventlog.ErrClosed)
	e.started.Wait()
	return nil
}

// drain waits until nothing is under way; no more can be submitted.
func (s *stream) drain() {
	s.mu.Lock()
	for _, p := range s.parts {
		p.draining = true // from now on nothing is submitted
	}
	s.mu.Unlock()
	_ = s.until(context.Background(), func() (bool, error) { // what is late is told so
		for w := range s.active {
			if !w.w.Idle() {
				return false, nil
			}
		}
		return true, nil
	})
}

// close ends all that waits, and the feeder.
func (s *stream) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.parts {
		p.endLocked(eventlog.ErrClosed)
	}
	s.closing = true
	s.rouse()
}

// usableLocked: the log can be used.
func (e *Engine) usableLocked(l *log) error {
	switch {
	case e.closed:
		return eventlog.ErrClosed
	case l.def.state == isRemoved:
		return eventlog.ErrRemoved
	}
	return nil
}

// checkServers refuses servers that do not take the largest batch.
func (e *Engine) checkServers() error {
	if most := e.cfg.Storage.MaxMessageBytes(); most > 0 && most < minMessageBytes {
		return fmt.Errorf("the NATS servers take messages of %d bytes, and %d are needed: set max_payload: 8MB at each of them", most, minMessageBytes)
	}
	return nil
}
