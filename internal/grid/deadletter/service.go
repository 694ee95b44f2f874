package deadletter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta"
)

// Service keeps dead letters. All methods may be called by many goroutines at once.
type Service struct {
	cfg     Config
	metrics *metrics
	turns   turns
	deliver func(ctx context.Context, deliveries []pending.Delivery) error // set before the first Redrive

	mu    sync.Mutex
	boxes map[string]*box // guarded by mu: by the subscription's ID
	// writers are at work, by subscription; guarded by mu.
	writers map[string]*writer
	// wanted are subscriptions that have letters and no writer; guarded by mu. begin tells Run of them.
	wanted map[string]bool
	begin  chan struct{}
}

func (c Config) withDefaults() Config {
	c.Delay = cmp.Or(c.Delay, 5*time.Minute)
	c.GiveUp = cmp.Or(c.GiveUp, 4*time.Hour)
	c.Keep = cmp.Or(c.Keep, 30*24*time.Hour)
	c.MaxRedrives = cmp.Or(c.MaxRedrives, 3)
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return c
}

// Open reads which subscriptions have dead letters. It starts no goroutine.
func Open(ctx context.Context, cfg Config) (*Service, error) {
	cfg = cfg.withDefaults()
	metrics, err := newMetrics(cfg.Metrics)
	if err != nil {
		return nil, fmt.Errorf("open dead letters: %w", err)
	}
	s := &Service{cfg: cfg, metrics: metrics, turns: newTurns(), boxes: map[string]*box{}, writers: map[string]*writer{},
		wanted: map[string]bool{}, begin: make(chan struct{}, 1)}
	entries, err := cfg.Meta.List(ctx, entryPrefix)
	if err != nil {
		return nil, fmt.Errorf("open dead letters: %w", err)
	}
	for _, e := range entries {
		if err := s.load(ctx, e); err != nil {
			return nil, fmt.Errorf("open dead letters: %w", err)
		}
	}
	return s, nil
}

// load takes one entry in: a subscription's state, or, if its key goes on, marks.
func (s *Service) load(ctx context.Context, e meta.Entry) error {
	id, _, isLeaf := strings.Cut(strings.TrimPrefix(e.Key, entryPrefix), "/")
	b := s.boxes[id]
	if b == nil {
		var err error
		if b, err = s.openBox(id); errors.Is(err, eventlog.ErrRemoved) {
			return s.cfg.Meta.Delete(ctx, e.Key, e.Revision) // a removal that was interrupted
		}
		if err != nil {
			return err
		}
		s.boxes[id] = b
	}
	if isLeaf {
		return b.book.Adopt(e)
	}
	var err error
	b.state, err = stateCodec.Read(e)
	return err
}

// openBox makes one. What it holds is not removed for its age before somebody has looked whether it
// has been written.
func (s *Service) openBox(id string) (*box, error) {
	log, err := s.cfg.Engine.Partition(eventlog.PartitionID{Log: logOf(id)}, eventlog.Retention{})
	if err != nil {
		return nil, err
	}
	return newBox(id, log, s.cfg.Meta), nil
}

// retain lets the engine remove letters that are old, or keeps it from that.
func (s *Service) retain(b *box, forever bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.forever == forever {
		return
	}
	retention := eventlog.Retention{Age: s.cfg.Keep}
	if forever {
		retention = eventlog.Retention{}
	}
	// It fails only where there is nothing left to be kept or removed.
	if _, err := s.cfg.Engine.Partition(eventlog.PartitionID{Log: logOf(b.id)}, retention); err == nil {
		b.forever = forever
	}
}

// box gives that of a subscription; nil if it never had a dead letter.
func (s *Service) box(id string) *box {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.boxes[id]
}

// boxFor gives that of a subscription, ready for letters, and makes it if need be.
func (s *Service) boxFor(ctx context.Context, id string) (*box, error) {
	s.mu.Lock()
	b := s.boxes[id]
	if b == nil {
		var err error
		if b, err = s.openBox(id); err != nil {
			s.mu.Unlock()
			return nil, err
		}
		s.boxes[id] = b
	}
	s.mu.Unlock()
	return b, b.prepare(ctx)
}

// Put keeps pending deliveries with their reasons for a subscription that has a place; durable when it
// returns nil. They are written to the place later, by Run. After an error some may have been
// kept: a repeat does no harm.
func (s *Service) Put(ctx context.Context, sub *topics.Subscription, deliveries []pending.Delivery) error {
	if len(deliveries) == 0 {
		return nil
	}
	b, err := s.boxFor(ctx, sub.ID)
	if err == nil {
		err = b.append(ctx, deliveries)
	}
	if errors.Is(err, eventlog.ErrRemoved) && !errors.Is(err, eventlog.ErrUncertain) {
		return nil // the subscription is gone, and its dead letters with it
	}
	if err != nil {
		return fmt.Errorf("keep dead letters of subscription %s: %w", sub.Name, err)
	}
	if written(sub.DeadLetter) {
		s.ring(sub.ID)
	} else {
		s.retain(b, false)
	}
	return nil
}

// written tells whether letters leave the yard for a place.
func written(p topics.Target) bool { return p.Kind != "" && p.Kind != topics.TargetYard }

// Counts tells how much there is of a subscription.
func (s *Service) Counts(ctx context.Context, subscription string) (Counts, error) {
	b := s.box(subscription)
	if b == nil {
		return Counts{}, nil
	}
	bounds, err := b.log.Bounds(ctx)
	if err != nil {
		return Counts{}, fmt.Errorf("count dead letters: %w", err)
	}
	c := b.counts(bounds)
	if sub := s.cfg.Topics.Snapshot().Subscriptions[subscription]; sub == nil || !written(sub.DeadLetter) {
		c.Unwritten = 0
	}
	return c, nil
}
