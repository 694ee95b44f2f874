package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/eventyard/eventyard/processor"
	"github.com/eventyard/eventyard/processor/internal/stores"
)

// askAfter is how long a subscription is silent before the connection is asked whether it
// still stands; as long again without an answer, and it does not.
const askAfter = 15 * time.Second

// Watch reports changes until ctx ends, by a subscription. When its connection breaks it subscribes
// again and reports a change, as some may have been missed; it returns an error only when it cannot
// subscribe.
func (s *Store) Watch(ctx context.Context, g processor.Group, ready func(), changed chan<- struct{}) error {
	begun := func() { // the first time nothing was missed yet
		if ready == nil {
			stores.Notify(changed)
			return
		}
		ready()
		ready = nil
	}
	for {
		subscribed, err := s.subscribe(ctx, s.channel(g), begun, changed)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !subscribed {
			return fmt.Errorf("watch %s/%s: %w", g.Hub, g.Group, err)
		}
	}
}

// subscribe hears until the connection breaks, and reports whether it had begun to.
func (s *Store) subscribe(ctx context.Context, channel string, begun func(), changed chan<- struct{}) (subscribed bool, err error) {
	// Subscribe sends the subscription but waits for nothing.
	subscription := s.client.Subscribe(ctx, channel)
	defer subscription.Close()
	// Reading heeds no context.
	defer context.AfterFunc(ctx, func() { subscription.Close() })()
	silent := false
	for {
		message, err := subscription.ReceiveTimeout(ctx, askAfter)
		switch message.(type) {
		case *redis.Subscription:
			subscribed = true
			begun()
		case *redis.Message:
			stores.Notify(changed)
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
