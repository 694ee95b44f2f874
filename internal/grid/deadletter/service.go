package deadletter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/grid/shards"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/setaside"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// Service keeps dead letters. All methods may be called by many goroutines at once.
type Service struct {
	cfg     Config
	metrics *metrics
	deliver func(ctx context.Context, deliveries []pending.Delivery) error // set before the first Redrive

	// turns bound how many writes are under way, each of which has its letters in memory. Targets
	// that failed before have turns of their own: those that hang do not stand in the way of
	// others.
	turns, turnsOfFailed setaside.Turn

	// whole is the desk of a yard on one machine; nil: Serve makes one for each shard.
	whole *desk

	mu    sync.Mutex
	desks map[int]*desk // of the shards that this node holds; guarded by mu
}

// maxWriting is how many writes are under way at once, and of those that failed before as many
// again.
const maxWriting = 8

// Open reads which subscriptions have dead letters, unless Config.Sharded: then Serve does. It starts
// no goroutine.
func Open(ctx context.Context, cfg Config) (*Service, error) {
	cfg.Delay = cmp.Or(cfg.Delay, 5*time.Minute)
	cfg.GiveUp = cmp.Or(cfg.GiveUp, 4*time.Hour)
	cfg.Keep = cmp.Or(cfg.Keep, 30*24*time.Hour)
	cfg.MaxRedrives = cmp.Or(cfg.MaxRedrives, setaside.MaxRedrives)
	cfg.Log = cmp.Or(cfg.Log, slog.Default())
	metrics, err := newMetrics(cfg.Metrics)
	if err != nil {
		return nil, fmt.Errorf("open dead letters: %w", err)
	}
	s := &Service{
		cfg: cfg, metrics: metrics, turns: make(setaside.Turn, maxWriting), turnsOfFailed: make(setaside.Turn, maxWriting),
		desks: map[int]*desk{},
	}
	if cfg.Sharded {
		return s, nil
	}
	s.whole = newDesk(s, nil)
	if err := s.whole.load(ctx); err != nil {
		return nil, fmt.Errorf("open dead letters: %w", err)
	}
	return s, nil
}

// desk gives that of a subscription; shards.ErrElsewhere where another node has it.
func (s *Service) desk(id string) (*desk, error) {
	if s.whole != nil {
		return s.whole, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.desks[shards.Of(id)]
	if d == nil {
		return nil, shards.ErrElsewhere
	}
	return d, nil
}

// provide has the engine provide a box's log, unless it has. What the log holds is not removed for
// its age before somebody has looked whether it has been written.
func (s *Service) provide(ctx context.Context, b *box) error {
	b.retaining.Lock()
	defer b.retaining.Unlock()
	if b.retained != nil {
		return nil
	}
	return s.retainLocked(ctx, b, eventlog.Retention{})
}

// retain lets the engine remove letters that are old, or keeps it from that. Where it cannot, that is
// left to the next call: until then they are kept as before.
func (s *Service) retain(ctx context.Context, b *box, forever bool) {
	retention := eventlog.Retention{Age: s.cfg.Keep}
	if forever {
		retention = eventlog.Retention{}
	}
	b.retaining.Lock()
	defer b.retaining.Unlock()
	if b.retained != nil && *b.retained == retention {
		return
	}
	if err := s.retainLocked(ctx, b, retention); err != nil && !errors.Is(err, eventlog.ErrRemoved) && ctx.Err() == nil {
		s.cfg.Log.Warn("cannot change for how long dead letters are kept, trying again", "subscription", b.id, "error", err)
	}
}

func (s *Service) retainLocked(ctx context.Context, b *box, r eventlog.Retention) error {
	err := s.cfg.Engine.Provide(ctx, logOf(b.id), eventlog.Shape{Partitions: 1, Kind: eventlog.KindDeadLetters, Retention: r})
	if err == nil {
		b.retained = &r
	}
	return err
}

// box gives that of a subscription; nil if it never had a dead letter. shards.ErrElsewhere as desk.
func (s *Service) box(id string) (*box, error) {
	d, err := s.desk(id)
	if err != nil {
		return nil, err
	}
	b := d.box(id)
	if b != nil && b.present().Revision == 0 {
		return nil, nil // its first letter is on its way: the log may not be there yet
	}
	return b, nil
}

// Put keeps pending deliveries with their reasons for a subscription that has a target; durable
// when it returns nil. They are written to the target later, by Run. After an error some may have
// been kept: a repeat does no harm.
func (s *Service) Put(ctx context.Context, sub *topics.Subscription, deliveries []pending.Delivery) error {
	if len(deliveries) == 0 {
		return nil
	}
	d, err := s.desk(sub.ID)
	if err != nil {
		return fmt.Errorf("keep dead letters of subscription %s: %w", sub.Name, err)
	}
	b, err := d.openBox(sub.ID)
	if err == nil {
		err = s.provide(ctx, b)
	}
	if err == nil {
		err = b.prepare(ctx)
	}
	if err == nil {
		err = b.append(ctx, deliveries)
	}
	if errors.Is(err, eventlog.ErrRemoved) && !errors.Is(err, eventlog.ErrUncertain) {
		return nil // the subscription is gone, and its dead letters with it
	}
	if err != nil {
		return fmt.Errorf("keep dead letters of subscription %s: %w", sub.Name, err)
	}
	if !written(sub.DeadLetter) {
		s.retain(ctx, b, false)
		return nil
	}
	d.want(sub.ID)
	return nil
}

// written says whether letters leave the yard for a target.
func written(t topics.Target) bool { return t.Kind != "" && t.Kind != topics.TargetYard }

// Counts gives how much there is of a subscription.
func (s *Service) Counts(ctx context.Context, subscription string) (Counts, error) {
	b, err := s.box(subscription)
	if err != nil || b == nil {
		return Counts{}, err
	}
	bounds, err := b.log.Bounds(ctx)
	if err != nil {
		return Counts{}, fmt.Errorf("count dead letters: %w", err)
	}
	first, next, marks := int64(bounds.First), int64(bounds.Next), b.book.Marks()
	c := Counts{Kept: marks.Kept(first, next)}
	if sub := s.cfg.Topics.Snapshot().Subscriptions.Get(subscription); sub != nil && written(sub.DeadLetter) {
		c.Unwritten = marks.Kept(min(max(first, b.reached()), next), next)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	c.Dropped, c.Problem, c.Since = b.dropped, b.trouble, b.state.Value.Since
	return c, nil
}
