package server

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/eventyard/eventyard/admin"
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

// ensureSubscriptions makes the configured subscriptions, each again and again until it is there:
// an endpoint that does not answer is no reason for others to wait. It ends with ctx.
func (y *yard) ensureSubscriptions(ctx context.Context) error {
	var all sync.WaitGroup
	turns := make(chan struct{}, subscribeAtOnce)
	for _, s := range y.cfg.Subscriptions {
		all.Go(func() { y.keepEnsuring(ctx, s, turns, y.cfg.Log.With("subscription", s.Name)) })
	}
	all.Wait()
	<-ctx.Done()
	return nil
}

// keepEnsuring makes one subscription, and logs what is in the way when it changes.
func (y *yard) keepEnsuring(ctx context.Context, s Subscription, turns chan struct{}, log *slog.Logger) {
	logged := ""
	for {
		select {
		case turns <- struct{}{}:
		case <-ctx.Done():
			return
		}
		made, err := y.ensureSubscription(ctx, s)
		<-turns
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			if made.State == topics.Pending {
				log.Warn("configured subscription waits for its endpoint to agree: let it answer the handshake, or open the link",
					"link", y.validationURL(made, made.Validation.Token), "until", made.Validation.Until)
			}
			return
		case errors.Is(err, topics.ErrInvalid):
			log.Error("configured subscription cannot be made as it stands in the configuration", "error", err)
			return
		case err.Error() != logged:
			logged = err.Error()
			log.Warn("configured subscription could not be made, it is tried again", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(subscribeAgain):
		}
	}
}

// ensureSubscription leaves one paused that an operator has paused, unless the configuration says
// otherwise, and a signing key that was made for it.
func (y *yard) ensureSubscription(ctx context.Context, s Subscription) (topics.Subscription, error) {
	settings, err := settingsOf(s)
	if err != nil {
		return topics.Subscription{}, err
	}
	if there, err := y.topics.Find(s.source(), s.Name); err == nil {
		if s.Paused == nil {
			settings.Paused = there.Paused
		}
		if s.Sign != nil && subscribe.SameAlgorithm(there.Keys, settings.Keys) {
			settings.Keys = there.Keys
		}
	}
	return y.topics.Ensure(ctx, s.source(), s.Name, settings)
}

func (s Subscription) source() topics.Source {
	return topics.Source{Topic: s.Topic, DomainTopic: s.DomainTopic, Hub: s.SourceHub}
}

// settingsOf reads what is configured; what is wrong with it by itself is an error that wraps
// topics.ErrInvalid.
func settingsOf(s Subscription) (settings topics.Settings, err error) {
	if err := subscribe.Apply(admin.SubscriptionRequest(s), &settings); err != nil {
		return settings, err
	}
	return settings, topics.CheckSubscription(s.source(), s.Name, settings)
}
