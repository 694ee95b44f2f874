package broker

import (
	"context"
	"fmt"
	"strconv"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// Pending is a publication under way: it has its place behind all earlier ones of its
// partition, and nothing is promised yet.
type Pending struct {
	broker    *Broker
	hub       *hub
	partition int
	count     int
	bytes     int

	// receipt is the engine's, for a publication without producer.
	receipt eventlog.Receipt
	// flight is what a producer's events travel with, offset how many are before them in
	// it. Nil where they were stored before they were submitted.
	flight *flight
	offset int
}

// Wait returns once the events are as durable as the engine promises. It is to be called
// exactly once, by any goroutine. Errors as for Publish.
func (p *Pending) Wait(ctx context.Context) (Published, error) {
	stored, err := p.wait(ctx)
	if err != nil {
		err = p.broker.gone(p.hub, err)
		p.broker.metrics.failed(err)
	}
	return stored, err
}

func (p *Pending) wait(ctx context.Context) (Published, error) {
	if p.receipt == nil {
		return p.waitForFlight(ctx)
	}
	stored, err := p.receipt.Wait(ctx)
	if err != nil {
		return Published{}, p.failure(err)
	}
	p.hub.metrics.published(p.count, p.bytes)
	return p.published(stored), nil
}

// waitForFlight is for the publication of a producer. The flight counts what it stores.
func (p *Pending) waitForFlight(ctx context.Context) (Published, error) {
	if p.flight == nil {
		return p.published(eventlog.Appended{First: eventlog.NoSequence}), nil
	}
	select {
	case <-p.flight.landed:
	case <-ctx.Done():
		return Published{}, p.failure(context.Cause(ctx))
	}
	if p.flight.err != nil {
		return Published{}, p.failure(p.flight.err)
	}
	stored := p.flight.stored
	if stored.First += eventlog.Sequence(p.offset); p.offset < 0 { // it begins in an earlier one
		stored = eventlog.Appended{First: eventlog.NoSequence}
	}
	return p.published(stored), nil
}

func (p *Pending) published(stored eventlog.Appended) Published {
	return Published{Partition: strconv.Itoa(p.partition), First: stored.First, Time: stored.Time, Count: p.count}
}

func (p *Pending) failure(err error) error {
	return fmt.Errorf("publish to %s/%d: %w", p.hub.Name, p.partition, err)
}
