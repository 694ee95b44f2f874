package delivery

import (
	"cmp"
	"fmt"
	"time"

	"golang.org/x/time/rate"

	"github.com/eventyard/eventyard/internal/grid/filter"
	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/grid/webhook"
)

// What a subscription gets that asks for nothing.
const (
	defaultConcurrency   = 16
	defaultLock          = time.Minute
	defaultMaxDeliveries = 10
)

// terms is a definition made ready: what a lane goes by. It does not change; a new definition
// makes new terms, which hold from the next attempt on.
type terms struct {
	sub *topics.Subscription
	// hold says why nothing is sent; empty: it is.
	hold string
	// filter is nil where it cannot be used: then the lane stands still. order is nil where there
	// is nothing to be sent with: for a pull subscription, or likewise.
	filter *filter.Filter
	order  *webhook.Order
	policy retry.Policy
	ttl    time.Duration

	concurrency               int
	queueEvents, queueBytes   int
	limit                     rate.Limit // requests a second; zero: any
	ordered, pull, deadTarget bool
	lock                      time.Duration
	maxDeliveries             int
}

func newTerms(cfg *Config, sub *topics.Subscription, resource string) *terms {
	t := &terms{
		sub: sub, policy: sub.Retry, ttl: cmp.Or(sub.Retry.TimeToLive, retry.DefaultTimeToLive),
		concurrency: cmp.Or(sub.Concurrency, defaultConcurrency), queueEvents: cfg.QueueEvents, queueBytes: cfg.QueueBytes,
		ordered: sub.OrderBy != "" && sub.Pull == nil, pull: sub.Pull != nil, deadTarget: sub.DeadLetter.Kind != "",
		limit: limitOf(sub),
	}
	t.policy.Resource = sub.Settings.Hub != ""
	switch {
	case sub.Paused:
		t.hold = string(topics.Paused)
	case sub.State != topics.Active && sub.State != topics.Expired: // an expired one gets what is left
		t.hold = string(sub.State)
	}
	var err error
	if t.pull {
		t.lock, t.maxDeliveries = cmp.Or(sub.Pull.Lock, defaultLock), cmp.Or(sub.Pull.MaxDeliveries, defaultMaxDeliveries)
	} else if t.order, err = cfg.Sender.Prepare(sub, resource); err != nil {
		t.order, t.hold = nil, fmt.Sprintf("it cannot be delivered to: %v", err)
	} else { // queues have room for two full batches
		t.queueEvents = max(t.queueEvents, 2*t.batchEvents())
		t.queueBytes = max(t.queueBytes, 2*t.order.PreferredBytes)
	}
	if t.filter, err = filter.Compile(sub.Matches()); err != nil {
		t.hold = fmt.Sprintf("its filter cannot be used: %v", err)
	}
	return t
}

// batchEvents is the most that go into one request.
func (t *terms) batchEvents() int {
	if t.order == nil || !t.order.Batched {
		return 1
	}
	return max(t.order.MaxEvents, 1)
}

// server is what lanes share that send to the same machine.
func (t *terms) server() string {
	if t.order == nil {
		return ""
	}
	return t.order.Server
}

// takes reports whether an event published at a time is meant for the subscription: one that has
// expired gets what was published before.
func (t *terms) takes(published time.Time) bool {
	return t.sub.Expires.IsZero() || published.Before(t.sub.Expires)
}

func (t *terms) expired(it *item, now time.Time) bool { return retry.Expired(t.policy, it.Alive, now) }

// limitOf is the lower of what the subscription asks for and what its endpoint allowed.
func limitOf(s *topics.Subscription) rate.Limit {
	limit := rate.Limit(s.Rate)
	if perSecond := rate.Limit(s.Validation.Rate) / 60; perSecond > 0 && (limit == 0 || perSecond < limit) {
		limit = perSecond
	}
	return limit
}

// limiter makes one that lets a tenth of a second's requests go at once, so that a high limit is
// not lost in the coarseness of timers.
func (t *terms) limiter() *rate.Limiter {
	if t.limit <= 0 {
		return nil
	}
	return rate.NewLimiter(t.limit, max(1, int(t.limit/10)))
}
