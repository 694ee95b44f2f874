package handshake

import (
	"context"
	"log/slog"
	"sync"

	"github.com/eventyard/eventyard/internal/grid/topics"
)

// Bounds of deletion notices.
const (
	maxNotices    = 1000
	noticesAtOnce = 4
)

// Registry is the registry of topics for callers that delete: it notifies endpoints of the Event
// Grid schema that their subscription is gone. A notice is sent once, without retry: when more than
// maxNotices wait, or the yard stops, the rest is dropped.
type Registry struct {
	*topics.Registry
	asker *Asker
	gone  chan *topics.Subscription // pointers: a thousand subscriptions are most of a megabyte
	log   *slog.Logger
}

// NewRegistry needs Run for the notices to be sent.
func NewRegistry(r *topics.Registry, asker *Asker, log *slog.Logger) *Registry {
	return &Registry{Registry: r, asker: asker, gone: make(chan *topics.Subscription, maxNotices), log: log}
}

// Delete deletes a subscription and notifies its endpoint.
func (r *Registry) Delete(ctx context.Context, source topics.Source, name string) error {
	s, unknown := r.Find(source, name)
	if err := r.Registry.Delete(ctx, source, name); err != nil || unknown != nil {
		return err
	}
	r.notify(s)
	return nil
}

// DeleteTopic deletes a topic with its subscriptions, and notifies their endpoints.
func (r *Registry) DeleteTopic(ctx context.Context, name string) error {
	all, unknown := r.Subscriptions(topics.Source{Topic: name})
	if err := r.Registry.DeleteTopic(ctx, name); err != nil || unknown != nil {
		return err
	}
	for _, s := range all {
		r.notify(s)
	}
	return nil
}

// notify queues a notice for Run and never waits.
func (r *Registry) notify(s topics.Subscription) {
	if s.Webhook == nil {
		return
	}
	select {
	case r.gone <- &s:
	default:
		r.log.Debug("too many subscriptions were deleted at once to notify every endpoint", "subscription", s.Name)
	}
}

// Run sends notices until ctx ends.
func (r *Registry) Run(ctx context.Context) error {
	var all sync.WaitGroup
	for range noticesAtOnce {
		all.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case s := <-r.gone:
					r.asker.Deleted(ctx, *s, s.Resource)
				}
			}
		})
	}
	all.Wait()
	return nil
}
