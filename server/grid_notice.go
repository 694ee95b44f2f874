package server

import (
	"context"
	"log/slog"
	"sync"

	"github.com/eventyard/eventyard/internal/grid/handshake"
	"github.com/eventyard/eventyard/internal/grid/topics"
)

// Bounds of deletion notices.
const (
	maxNotices    = 1000
	noticesAtOnce = 4
)

// deletionNotice is the definitions for those who delete some: it tells endpoints of the Event Grid schema
// that their subscription is gone. It is a courtesy, tried once: where very many are deleted together, or
// the yard stops, some are not told.
type deletionNotice struct {
	*topics.Registry
	asker *handshake.Asker
	gone  chan topics.Subscription
	log   *slog.Logger
}

func newDeletionNotice(k *topics.Registry, asker *handshake.Asker, log *slog.Logger) *deletionNotice {
	return &deletionNotice{Registry: k, asker: asker, gone: make(chan topics.Subscription, maxNotices), log: log}
}

// Delete is the registry's.
func (f *deletionNotice) Delete(ctx context.Context, source topics.Source, name string) error {
	s, unknown := f.Find(source, name)
	if err := f.Registry.Delete(ctx, source, name); err != nil || unknown != nil {
		return err
	}
	f.bid(s)
	return nil
}

// DeleteTopic is the registry's.
func (f *deletionNotice) DeleteTopic(ctx context.Context, name string) error {
	all, unknown := f.Subscriptions(topics.Source{Topic: name})
	if err := f.Registry.DeleteTopic(ctx, name); err != nil || unknown != nil {
		return err
	}
	for _, s := range all {
		f.bid(s)
	}
	return nil
}

// bid leaves word for Run, and waits for nobody.
func (f *deletionNotice) bid(s topics.Subscription) {
	if s.Webhook == nil {
		return
	}
	select {
	case f.gone <- s:
	default:
		f.log.Debug("too many subscriptions were deleted to tell all of their endpoints", "subscription", s.Name)
	}
}

// Run tells endpoints until ctx ends.
func (f *deletionNotice) Run(ctx context.Context) error {
	var all sync.WaitGroup
	for range noticesAtOnce {
		all.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case s := <-f.gone:
					f.asker.Deleted(ctx, s, s.Resource)
				}
			}
		})
	}
	all.Wait()
	return nil
}
