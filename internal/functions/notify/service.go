package notify

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

const (
	// giveUp is how long a notice is tried.
	giveUp = 24 * time.Hour
	// defaultLinkLife covers a weekend.
	defaultLinkLife = 72 * time.Hour
	// attemptTime bounds one attempt to send something that is no mail; mail has SMTP.Timeout.
	attemptTime = 30 * time.Second
)

var defaultRetry = []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, 30 * time.Minute}

// Service sends notices and answers links. All methods may be called by many goroutines at once,
// Run by one.
type Service struct {
	*sender
	*outbox
	*pages
}

func (c Config) withDefaults() Config {
	c.LinkLife = cmp.Or(c.LinkLife, defaultLinkLife)
	c.SMTP.Timeout = cmp.Or(c.SMTP.Timeout, attemptTime)
	if len(c.Retry) == 0 {
		c.Retry = defaultRetry
	}
	if c.Link == nil {
		c.Link = func() string { return "" }
	}
	c.Log = cmp.Or(c.Log, slog.Default())
	return c
}

// Open reads the signing secret, or makes it. It starts no goroutine.
func Open(ctx context.Context, cfg Config) (*Service, error) {
	if cfg.Circuits == nil || cfg.Topics == nil || cfg.Meta == nil {
		return nil, errors.New("open notices: Circuits, Topics and Meta are required")
	}
	cfg = cfg.withDefaults()
	sends := &sender{cfg: cfg}
	s := &Service{sends, &outbox{sender: sends, node: rand.Text(), paces: newPaces(), lanes: map[laneID]*lane{}}, &pages{sends}}
	s.follow(cfg.Meta)
	var err error
	if s.mailer, err = newMailer(cfg.SMTP); err != nil {
		return nil, fmt.Errorf("open notices: %w", err)
	}
	if s.secret, err = openSecret(ctx, cfg.Meta); err != nil {
		return nil, fmt.Errorf("open notices: %w", err)
	}
	if s.metrics, err = newMetrics(cfg.Metrics); err != nil {
		return nil, fmt.Errorf("open notices: %w", err)
	}
	return s, nil
}

// Run watches and sends until ctx ends. A change is noticed at least once, also over a restart, by
// one event on the grid with an id that stays; people are told when an incident begins, also where
// an operator began it, and when what they were told of has ended.
func (s *Service) Run(ctx context.Context) error {
	var parts sync.WaitGroup
	notified := make(chan Circuit)
	parts.Go(func() { s.watchCircuits(ctx, notified) })
	parts.Go(func() { s.noteAll(ctx, notified) })
	parts.Go(func() { s.watchLedgers(ctx) })
	parts.Wait()
	return nil
}

// Test sends a notice to a target now, to try the settings.
func (s *Service) Test(ctx context.Context, target string) error {
	if err := s.cfg.CheckTarget(target); err != nil {
		return err
	}
	if err := s.send(ctx, target, sampleNotice(time.Now())); err != nil {
		s.metrics.count(mediumOf(target), failed)
		return fmt.Errorf("send a test notice to %s: %w", showTarget(target), err)
	}
	s.metrics.count(mediumOf(target), sent)
	return nil
}
