package broker

import (
	"context"
	"fmt"

	"github.com/eventyard/eventyard/internal/eventlog"
)

// ProducerConfig says who wants to publish exactly once. Nil fields: the broker chooses.
type ProducerConfig struct {
	// ID nil: a new producer.
	ID *int64
	// Epoch nil: 0 for a new producer, else the one after the present. An epoch ends all
	// lower ones. The same one again is the same producer, come back.
	Epoch *int16
	// Last is the newest number that the producer knows to be stored; nil asks the broker.
	// It counts where the epoch has stored nothing so far: the numbers go on behind it. A
	// producer that is known may go on where it was, or begin at 0 with a Last of -1; with
	// nil its first batch may do either.
	Last *int32
}

// Producer publishes to one partition with numbers of its own, so that what is sent
// again is stored once. Its state is as durable as the events.
type Producer struct {
	ledger *ledger
	id     int64
	begun  record
}

// Producer begins a producer's epoch, or goes on with it. When it returns what lower
// epochs had under way is stored or refused, nothing more comes from them, and that
// lasts. Where it fails it may have ended them all the same.
//
// A partition remembers maxProducers producers; of more, those unused for longest are
// forgotten, and may begin as if they were new.
//
// Errors: ErrProducerFenced, ErrOutOfOrder, *NotFoundError, the store's and the engine's.
func (b *Broker) Producer(ctx context.Context, hub, partition string, cfg ProducerConfig) (*Producer, error) {
	h, p, err := b.locate(hub, partition)
	if err != nil {
		return nil, err
	}
	number, err := h.partitionNumber(partition)
	if err != nil {
		return nil, err
	}
	producer, err := b.ledgers.of(b, h, number, p).begin(ctx, cfg)
	if err != nil {
		return nil, b.gone(h, fmt.Errorf("begin producer of %s/%s: %w", h.Name, partition, err))
	}
	return producer, nil
}

// ID is the producer's, chosen by the broker where none was asked for.
func (p *Producer) ID() int64 { return p.id }

// Epoch is the one in force.
func (p *Producer) Epoch() int16 { return p.begun.epoch }

// Last is the newest number that was stored when the producer began, -1 if there was none.
// The next number is the one behind it; 0 follows the largest.
func (p *Producer) Last() int32 { return p.begun.last }

// Submit publishes events numbered from first on, without waiting. Events that are
// stored already are not stored again: Wait then returns once the first sending of
// them is durable. Errors: ErrProducerFenced, ErrOutOfOrder, and those of Broker.Submit.
//
// It may have to wait, until ctx ends, also for a new epoch that is about to begin, or
// until it is known what became of a batch before it.
//
// When a batch is not stored, none of those submitted behind it is. Where storage or
// patience failed, the same batch is to be submitted again, under the same numbers: also,
// and above all, where it is unknown whether it was stored.
func (p *Producer) Submit(ctx context.Context, first int32, events []eventlog.Event) (*Pending, error) {
	pending, err := p.submit(ctx, first, events)
	if err != nil {
		err = p.ledger.broker.gone(p.ledger.hub, pending.failure(err))
		p.ledger.broker.metrics.failed(err)
		return nil, err
	}
	return pending, nil
}

func (p *Producer) submit(ctx context.Context, first int32, events []eventlog.Event) (*Pending, error) {
	l := p.ledger
	batch := eventlog.Batch{Events: events}
	pending := &Pending{broker: l.broker, hub: l.hub, partition: l.number, count: len(events), bytes: batch.Bytes()}
	// Asked here because it may have to wait in memory before the engine sees it.
	switch {
	case pending.count == 0:
		return pending, eventlog.ErrEmptyBatch
	case pending.bytes > eventlog.MaxBatchBytes:
		return pending, eventlog.ErrTooLarge
	}
	if err := checkKeys("", events); err != nil {
		return pending, err
	}
	if err := l.submit(ctx, p, pending, first, events); err != nil {
		return pending, fmt.Errorf("producer %d: %w", p.id, err)
	}
	return pending, nil
}
