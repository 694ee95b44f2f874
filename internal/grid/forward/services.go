package forward

import (
	"context"
	"time"

	"github.com/eventyard/eventyard/internal/grid/deadletter"
	"github.com/eventyard/eventyard/internal/grid/delivery"
)

// Stats is delivery.Service.Stats.
func (f *Forwarder) Stats(ctx context.Context, subscription string) (delivery.Stats, error) {
	return f.stats.call(ctx, subscription, none{}, 0)
}

// Attempts is delivery.Service.Attempts.
func (f *Forwarder) Attempts(ctx context.Context, subscription string) ([]delivery.AttemptRecord, error) {
	return f.attempts.call(ctx, subscription, none{}, 0)
}

// Trace is delivery.Service.Trace.
func (f *Forwarder) Trace(ctx context.Context, subscription string, partition int, number int64) (delivery.Trace, error) {
	return f.trace.call(ctx, subscription, tracing{partition, number}, 0)
}

// Probe is delivery.Service.Probe.
func (f *Forwarder) Probe(ctx context.Context, subscription string) error {
	_, err := f.probe.call(ctx, subscription, none{}, 0)
	return err
}

// Receive is delivery.Service.Receive. From another node no more comes than one answer carries. What
// was handed out there and did not arrive comes again when its lock has run out.
func (f *Forwarder) Receive(ctx context.Context, subscription string, max int, wait time.Duration) ([]delivery.Received, error) {
	got, err := f.cfg.Delivery.Receive(ctx, subscription, max, wait)
	if !isMoving(err) {
		return got, err
	}
	return f.receive.call(ctx, subscription, receiving{max, receiveBytes, wait}, wait)
}

// Settle is delivery.Service.Settle.
func (f *Forwarder) Settle(ctx context.Context, subscription string, how delivery.Settlement, delay time.Duration, tokens []string) ([]delivery.Settled, error) {
	all, err := f.settle.call(ctx, subscription, settling{how, delay, tokens}, 0)
	if err != nil {
		return nil, err
	}
	result := make([]delivery.Settled, len(all))
	for i, s := range all {
		result[i] = delivery.Settled{Token: s.Token, Err: s.Err.err()}
	}
	return result, nil
}

func settledOf(all []delivery.Settled) []settled {
	result := make([]settled, len(all))
	for i, s := range all {
		result[i] = settled{s.Token, failureOf(s.Err)}
	}
	return result
}

// GiveBack is delivery.Service.GiveBack. A node asks for it by itself, when whom it has received events
// for has left or may receive no more.
func (f *Forwarder) GiveBack(ctx context.Context, subscription string, tokens []string) error {
	_, err := f.giveBack.call(ctx, subscription, tokens, 0)
	return err
}

// List is deadletter.Service.List. From another node no more comes than one answer carries.
func (f *Forwarder) List(ctx context.Context, subscription string, q deadletter.Query) (deadletter.Page, error) {
	page, err := f.cfg.Dead.List(ctx, subscription, q)
	if !isMoving(err) {
		return page, err
	}
	q.MaxBytes = listBytes
	return f.list.call(ctx, subscription, q, 0)
}

// Get is deadletter.Service.Get.
func (f *Forwarder) Get(ctx context.Context, subscription string, number int64) (deadletter.Letter, error) {
	return f.get.call(ctx, subscription, number, 0)
}

// redriveTime is how long a round of redriving may take.
const redriveTime = time.Minute

// Redrive is deadletter.Service.Redrive.
func (f *Forwarder) Redrive(ctx context.Context, subscription string, q deadletter.Query, o deadletter.RedriveOptions) (deadletter.Redriven, error) {
	return f.redrive.call(ctx, subscription, redriving{q, o}, redriveTime)
}

// Purge is deadletter.Service.Purge.
func (f *Forwarder) Purge(ctx context.Context, subscription string, q deadletter.Query) (int, error) {
	return f.purge.call(ctx, subscription, q, redriveTime)
}

// Counts is deadletter.Service.Counts.
func (f *Forwarder) Counts(ctx context.Context, subscription string) (deadletter.Counts, error) {
	return f.count.call(ctx, subscription, none{}, 0)
}
