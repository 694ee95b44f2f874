package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/eventyard/eventyard/internal/api/gridwire"
	"github.com/eventyard/eventyard/internal/api/subscribe"
	"github.com/eventyard/eventyard/internal/grid/topics"
)

const (
	// subscribeAgain is how long to wait before a configured subscription that could not be made is
	// tried again: its endpoint may come up later than the yard.
	subscribeAgain = 15 * time.Second
	// subscribeAtOnce is how many endpoints are asked at once.
	subscribeAtOnce = 8
)

// ensureSubscriptions makes the configured subscriptions, each again and again until it is there: an
// endpoint that does not answer is no reason for others to wait. It ends with ctx.
func (y *yard) ensureSubscriptions(ctx context.Context, cfg Config) error {
	var all sync.WaitGroup
	turns := make(chan struct{}, subscribeAtOnce)
	for _, s := range cfg.Subscriptions {
		all.Go(func() { y.keepEnsuring(ctx, s, turns, cfg.Log.With("subscription", s.Name)) })
	}
	all.Wait()
	<-ctx.Done()
	return nil
}

// keepEnsuring says what is in the way once, not each time.
func (y *yard) keepEnsuring(ctx context.Context, s Subscription, turns chan struct{}, log *slog.Logger) {
	said := ""
	for {
		err := y.takeTurn(ctx, s, turns, log)
		if err == nil || ctx.Err() != nil {
			return
		}
		if errors.Is(err, topics.ErrInvalid) {
			log.Error("configured subscription cannot be made as it stands in the configuration", "error", err)
			return
		}
		if text := err.Error(); text != said {
			log.Warn("configured subscription could not be made, it is tried again", "error", err)
			said = text
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(subscribeAgain):
		}
	}
}

// takeTurn makes one subscription when it is its turn.
func (y *yard) takeTurn(ctx context.Context, s Subscription, turns chan struct{}, log *slog.Logger) error {
	select {
	case turns <- struct{}{}:
	case <-ctx.Done():
		return nil
	}
	defer func() { <-turns }()
	made, err := y.ensureSubscription(ctx, s)
	if err == nil && made.State == topics.Pending {
		log.Warn("configured subscription waits for its endpoint to agree: let it answer the handshake, or open the link",
			"link", y.grid.links(made, made.Validation.Token), "until", made.Validation.Until)
	}
	return err
}

// ensureSubscription leaves one paused that an operator has paused, for which the configuration has
// no word.
func (y *yard) ensureSubscription(ctx context.Context, s Subscription) (topics.Subscription, error) {
	settings, err := s.settings()
	if err != nil {
		return topics.Subscription{}, err
	}
	source := topics.Source{Topic: s.Topic, Hub: s.SourceHub}
	if there, err := y.grid.topics.Find(source, s.Name); err == nil {
		settings.Paused = there.Paused
	}
	return y.grid.topics.Ensure(ctx, source, s.Name, settings)
}

// settings reads what is configured; what is wrong with it by itself is an error that wraps
// topics.ErrInvalid.
func (s Subscription) settings() (settings topics.Settings, err error) {
	request, err := s.request()
	if err != nil {
		return settings, err
	}
	if err := subscribe.Apply(request, &settings); err != nil {
		return settings, err
	}
	if err := settings.Retry.Check(); err != nil {
		return settings, fmt.Errorf("%w: retry: %w", topics.ErrInvalid, err)
	}
	return settings, nil
}

// request puts a configured subscription into the words of the API.
func (s Subscription) request() (gridwire.SubscriptionRequest, error) {
	r := gridwire.SubscriptionRequest{
		Endpoint: ifGiven(s.Endpoint), Hub: ifGiven(s.Hub), Types: s.Types, SubjectBeginsWith: &s.SubjectBeginsWith,
		SubjectEndsWith: &s.SubjectEndsWith, Schema: &s.Schema, MaxEvents: &s.MaxEvents, PreferredKiB: &s.PreferredKiB,
		Attempts: &s.Attempts, TTL: &s.TTL, RetrySchedule: &s.RetrySchedule, DeadLetter: &s.DeadLetter, SigningKeys: s.SigningKeys,
		OrderBy: &s.OrderBy, Concurrency: &s.Concurrency, SkipValidation: &s.SkipValidation,
	}
	if s.Pull {
		r.Pull = &gridwire.Pull{}
	}
	for _, text := range s.Filters {
		quoted, err := json.Marshal(text)
		if err != nil {
			return r, err
		}
		r.Filters = append(r.Filters, quoted)
	}
	for _, pair := range s.RetryFloors {
		status, least, found := strings.Cut(pair, "=")
		if !found {
			return r, fmt.Errorf("%w: retryFloors: %q: write it like 503=5s", topics.ErrInvalid, pair)
		}
		if r.RetryFloors == nil {
			r.RetryFloors = map[string]string{}
		}
		r.RetryFloors[status] = least
	}
	for _, pair := range s.Headers {
		header, err := gridwire.ParseHeader(pair)
		if err != nil {
			return r, fmt.Errorf("%w: headers: %w", topics.ErrInvalid, err)
		}
		r.Headers = append(r.Headers, header)
	}
	return r, nil
}

func ifGiven(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
