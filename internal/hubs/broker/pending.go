package broker

import (
	"context"
	"fmt"
	"strconv"

	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// Pending is a publication under way: it comes behind all earlier ones of its partition, and
// nothing is promised yet.
type Pending struct {
	broker    *Broker
	hub       *hub
	partition int
	count     int
	bytes     int
	paid      charge

	// receipt is the engine's, for a publication without producer.
	receipt eventlog.Receipt
	// flight is what a producer's events travel with, batch which of its batches they end in, and
	// offset how many are before them there. Nil where they were stored before they were submitted:
	// then at is where, NoSequence if nobody remembers.
	flight        *flight
	batch, offset int
	at            eventlog.Sequence
	// repeat: a producer's events were submitted before.
	repeat bool
	// verify and account are FrameTarget's.
	verify  func(ctx context.Context) error
	account string
}

// Wait returns once the events are as durable as the engine promises. It is to be called
// exactly once, by any goroutine. Errors as for Publish.
func (p *Pending) Wait(ctx context.Context) (Published, error) {
	stored, err := p.wait(ctx)
	if err != nil {
		err = p.broker.gone(p.hub, err)
		p.paid.ended(err)
		p.broker.metrics.failed(err)
	}
	return stored, err
}

func (p *Pending) wait(ctx context.Context) (Published, error) {
	var stored eventlog.Appended
	var err error
	switch {
	case p.receipt != nil:
		if stored, err = p.receipt.Wait(ctx); err == nil {
			p.hub.metrics.published(p.count, p.bytes) // a flight counts what it stores itself
		}
	case p.flight == nil:
		stored.First = p.at
	default:
		if err = until(ctx, p.flight.landed); err != nil {
			break
		}
		stored, err = p.flight.outcome(p.batch)
		if stored.First += eventlog.Sequence(p.offset); p.offset < 0 { // it begins in an earlier one
			stored = eventlog.Appended{First: eventlog.NoSequence}
		}
	}
	if err != nil {
		return Published{}, p.failure(err)
	}
	return Published{Partition: strconv.Itoa(p.partition), First: stored.First, Time: stored.Time, Count: p.count}, nil
}

func (p *Pending) failure(err error) error {
	return fmt.Errorf("publish to %s/%d: %w", p.hub.Name, p.partition, err)
}
