package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/eventyard/eventyard/processor"
)

// askAfter is how long a subscription is silent before the connection is asked whether it
// still stands; as long again without an answer, and it does not.
const askAfter = 15 * time.Second

// Watch tells of changes until ctx ends, by a subscription. When its connection breaks it
// subscribes again and tells of a change, as some may have been missed; it returns an error only
// when it cannot subscribe.
func (s *Store) Watch(ctx context.Context, g processor.Group, ready func(), changed chan<- struct{}) error {
	w := watch{ready: ready, changed: changed}
	for {
		subscribed, err := w.subscribe(ctx, s.client, s.channel(g))
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !subscribed {
			return fmt.Errorf("watch %s/%s: %w", g.Hub, g.Group, err)
		}
	}
}

// watch is one call of Watch.
type watch struct {
	ready   func() // nil once it was called
	changed chan<- struct{}
}

// subscribe hears until the connection breaks, and tells whether it had begun to.
func (w *watch) subscribe(ctx context.Context, client redis.UniversalClient, channel string) (subscribed bool, err error) {
	// Subscribe sends the subscription but waits for nothing.
	subscription := client.Subscribe(ctx, channel)
	defer subscription.Close()
	// Reading heeds no context.
	defer context.AfterFunc(ctx, func() { subscription.Close() })()
	silent := false
	for {
		message, err := subscription.ReceiveTimeout(ctx, askAfter)
		switch message.(type) {
		case *redis.Subscription:
			subscribed = true
			w.begun()
		case *redis.Message:
			w.notify()
		}
		if silent, err = ask(ctx, subscription, silent, err); err != nil {
			return subscribed, err
		}
	}
}

// ask asks a silent connection for a word; the second time in a row it is broken.
func ask(ctx context.Context, subscription *redis.PubSub, silent bool, err error) (bool, error) {
	var timeout net.Error
	if err == nil || !errors.As(err, &timeout) || !timeout.Timeout() {
		return false, err
	}
	if silent {
		return true, fmt.Errorf("no answer to a ping: %w", err)
	}
	return true, subscription.Ping(ctx)
}

// begun is called when a subscription stands: the first time nothing was missed yet.
func (w *watch) begun() {
	if w.ready == nil {
		w.notify()
		return
	}
	w.ready()
	w.ready = nil
}

func (w *watch) notify() {
	select {
	case w.changed <- struct{}{}:
	default: // it has yet to hear of an earlier one and will read both
	}
}
