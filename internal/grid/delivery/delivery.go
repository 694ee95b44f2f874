package delivery

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"

	"github.com/eventyard/eventyard/internal/activity"
	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/retrylog"
	"github.com/eventyard/eventyard/internal/grid/shards"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/grid/webhook"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/tracing"
)

// ErrNotFound: the service knows no such subscription (yet, or any more). Where the yard has several
// nodes every method about a subscription whose shard this node does not hold gives
// shards.ErrElsewhere.
var ErrNotFound = errors.New("subscription is not being delivered")

// ErrNotPull: the subscription is pushed; it cannot be received from.
var ErrNotPull = errors.New("subscription is not one to receive from")

// Topics is what delivery needs of the definitions.
type Topics interface {
	Snapshot() *topics.Snapshot
	OnChange(f func()) (stop func())
	Log(t *topics.Topic) (eventlog.Partition, error)
	DisableAt(ctx context.Context, id, url, why string) error
	// Deleted reports whether a subscription that existed does no more, whatever this node has heard
	// of it. It asks the store, and may write to it.
	Deleted(ctx context.Context, id string) (bool, error)
}

// Broker is what delivery needs of the broker, for source hubs.
type Broker interface {
	Namespace() string
	Hub(name string) (broker.Hub, error)
	Cursor(ctx context.Context, hub, group, partition string, at eventlog.Position) (eventlog.Cursor, error)
	Partition(ctx context.Context, hub, partition string) (broker.PartitionInfo, error)
	End(ctx context.Context, hub, partition string) (eventlog.Sequence, error)
}

// Sender carries batches.
type Sender interface {
	Prepare(s *topics.Subscription, topic string) (*webhook.Order, error)
	Deliver(ctx context.Context, o *webhook.Order, batch []*pending.Delivery) webhook.Result
}

// Dead takes what cannot be delivered; durable when it returns nil.
type Dead interface {
	Put(ctx context.Context, sub *topics.Subscription, deliveries []pending.Delivery) error
}

// Config is what the service works with.
type Config struct {
	Meta   meta.Store
	Topics Topics
	Broker Broker
	Sender Sender
	Dead   Dead
	// RetryLogs are those of all subscriptions, of a yard on one machine. Where it has several nodes
	// they are nil, and OpenLogs opens those of a shard, as retrylog.Open does with its Held.
	RetryLogs *retrylog.Logs
	OpenLogs  func(ctx context.Context, held shards.Held) (*retrylog.Logs, error)
	// Probation says when endpoints are put aside.
	Probation retry.Probation
	// Notes takes that they are, and are well again; nil means nobody does.
	Notes activity.Notes
	// QueueEvents and QueueBytes bound what one lane has in memory (zero: 1,000 and 1 MiB),
	// MemoryBytes all of them together (zero: 64 MiB).
	QueueEvents, QueueBytes, MemoryBytes int
	// Workers is how many goroutines send, of all lanes together; zero: 2,048.
	Workers int
	// Attempts is how many are remembered for each subscription, at most: of all together there are some
	// 50,000. Zero: 50.
	Attempts int
	// Grace is how long requests under way may go on when the service stops; zero: 5 s; negative:
	// they are cancelled at once.
	Grace time.Duration
	// Log nil: slog.Default(). Metrics nil: none are registered. Tracer nil: no spans are made.
	Log     *slog.Logger
	Metrics prometheus.Registerer
	Tracer  tracing.Tracer
}

// What the zero values of a Config stand for.
const (
	defaultQueueEvents = 1_000
	defaultQueueBytes  = 1 << 20
	defaultMemoryBytes = 64 << 20
	defaultWorkers     = 2_048
	defaultAttempts    = 50
	defaultGrace       = 5 * time.Second
)

func (c Config) withDefaults() Config {
	c.QueueEvents = cmp.Or(c.QueueEvents, defaultQueueEvents)
	c.QueueBytes = cmp.Or(c.QueueBytes, defaultQueueBytes)
	c.MemoryBytes = cmp.Or(c.MemoryBytes, defaultMemoryBytes)
	c.Workers = cmp.Or(c.Workers, defaultWorkers)
	c.Attempts = cmp.Or(c.Attempts, defaultAttempts)
	c.Grace = cmp.Or(c.Grace, defaultGrace)
	c.Log = cmp.Or(c.Log, slog.Default())
	return c
}

// Service delivers the events of all subscriptions. All methods but Run may be called by many
// goroutines at once.
type Service struct {
	cfg     Config
	log     *slog.Logger
	metrics *metrics
	// crew are those who work for all holdings.
	crew   crew
	clock  *clock
	budget *budget
	seats  *seats
	late   lates
	shared *shared // nil on one machine
	// complained is the second in which an unreadable event was last logged.
	complained atomic.Int64
	// loops bounds how often an event that went round is logged.
	loops rate.Sometimes
	// stopping is closed when Run is to end.
	stopping chan struct{}
	// changed and unsaved notify Run's goroutine that definitions have changed, or marks have
	// moved.
	changed, unsaved chan struct{}

	reconciler *reconciler // Run's goroutine's, and Open's before
	// whole is the holding of a yard on one machine; nil: Serve is called for each shard.
	whole *holding
	// requests are what Run's goroutine is to do for those who serve shards. serving counts these.
	requests chan func()
	serving  serving

	mu    sync.RWMutex
	lanes map[string]*lane // by subscription; guarded by mu
	// laneCount is how many these are. It is written with mu held, and read without.
	laneCount atomic.Int64
	// here are the shards that are held; guarded by mu. One machine does not need it.
	here [shards.Count]bool
}

// Open finds where each subscription stands. It starts no goroutine.
func Open(ctx context.Context, cfg Config) (*Service, error) {
	if cfg.Meta == nil || cfg.Topics == nil || cfg.Broker == nil || cfg.Sender == nil || cfg.Dead == nil || (cfg.RetryLogs == nil) == (cfg.OpenLogs == nil) {
		return nil, errors.New("open delivery: definitions, a broker, a meta store, a sender, dead letters and retry logs are required")
	}
	cfg = cfg.withDefaults()
	s := &Service{
		cfg: cfg, log: cfg.Log, clock: newClock(), stopping: make(chan struct{}),
		changed: make(chan struct{}, 1), unsaved: make(chan struct{}, 1),
		lanes: make(map[string]*lane), loops: rate.Sometimes{Interval: time.Minute}, requests: make(chan func()),
	}
	s.budget, s.seats = newBudget(cfg.MemoryBytes, s.clock), newSeats(cfg.Workers, s.clock)
	s.reconciler = newReconciler(s)
	var err error
	if cfg.RetryLogs != nil {
		if s.whole, err = s.newHolding(ctx, nil, cfg.RetryLogs); err != nil {
			return nil, err
		}
		s.reconciler.adopt(s.whole)
	} else {
		s.shared = newShared(s)
	}
	if s.metrics, err = newMetrics(s, cfg.Metrics); err != nil {
		return nil, err
	}
	s.reconciler.reconcile(ctx)
	if s.reconciler.ahead {
		return nil, errors.New("open delivery: cursors that are ahead of their logs cannot be put right, see the log and try again")
	}
	return s, nil
}

// lane gives a subscription's. ErrNotFound; shards.ErrElsewhere where another node would have it.
func (s *Service) lane(subscription string) (*lane, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	l := s.lanes[subscription]
	switch {
	case l != nil:
		return l, nil
	case s.whole == nil && !s.here[shards.Of(subscription)]:
		return nil, shards.ErrElsewhere
	}
	return nil, ErrNotFound
}

// note says whether a shard is held here.
func (s *Service) note(held *shards.Held, here bool) {
	if held == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.here[held.Shard] = here
}

func (s *Service) allLanes() []*lane {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Collect(maps.Values(s.lanes))
}

// Probe ends the probation of a subscription's endpoint now.
func (s *Service) Probe(_ context.Context, subscription string) error {
	l, err := s.lane(subscription)
	if err != nil {
		return err
	}
	l.mu.Lock()
	e := l.endpoint
	l.mu.Unlock()
	if e != nil {
		e.resume(l, time.Now())
	}
	return nil
}

// Redeliver puts pending deliveries into their subscriptions' parked logs, which are drained first.
// They are durable when it returns nil.
func (s *Service) Redeliver(ctx context.Context, deliveries []pending.Delivery) error {
	groups := make(map[string][]pending.Delivery)
	for _, p := range deliveries {
		groups[p.Subscription] = append(groups[p.Subscription], p)
	}
	for id, group := range groups {
		l, err := s.lane(id)
		if err != nil {
			return err
		}
		for _, portion := range portions(group, func(p pending.Delivery) pending.Delivery { return p }) {
			if err := l.shelve(ctx, portion); err != nil {
				return err
			}
		}
	}
	return nil
}

// unreadable reports an event that cannot be understood, and is passed: each is counted, and one a
// second is written to the log.
func (s *Service) unreadable(log *slog.Logger, n int64, err error) {
	s.metrics.unreadable.Inc()
	now, last := time.Now().Unix(), s.complained.Load()
	if now != last && s.complained.CompareAndSwap(last, now) {
		log.Error("an event cannot be read and is left out, as others may be", "sequence", n, "error", err)
	}
}

// nudge notifies a goroutine, unless a notification waits for it already.
func nudge(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// How long is waited before something that failed (storage, mostly) is tried again: longer
// each time in a row.
const (
	firstPause   = time.Second
	longestPause = 30 * time.Second
)
