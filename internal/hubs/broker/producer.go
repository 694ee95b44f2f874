package broker

import (
	"context"
	"fmt"

	"github.com/eventyard/eventyard/internal/quota"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// ProducerConfig says who wants to publish exactly once. Nil fields: the broker chooses.
type ProducerConfig struct {
	// ID nil: a new producer.
	ID *int64
	// Epoch nil: 0 for a new producer, else the one after the present. An epoch ends all
	// lower ones. The same one again is the same producer, come back.
	Epoch *int16
	// Last is the newest number that the producer knows to be stored; nil asks the broker, -1 says
	// that there is none. A producer that has stored nothing goes on behind it: with nil it begins
	// at 1, with -1 at 0. One that has goes on where it was, whatever it says, and hears by its
	// batches when it is wrong; only a new epoch may begin at 0 again, by -1.
	Last *int32
	// Quota gives that of who publishes, besides the hub's: Submit asks each time, since it may be
	// another by then. Nil, or giving nil: none.
	Quota func() *quota.Meter
	// Account is who publishes, for a share of all producers that are remembered; empty: nobody in particular.
	Account string
	// Yard: it is one inside the yard's process. Its id becomes a negative one, which nobody else can
	// have: who learns the id cannot publish in its name, so that what it publishes passes for a
	// repeat.
	Yard bool
	// frames: it is the producer of a frame, and the epoch is kept by that.
	frames bool
}

// apart gives the config with an id that is the caller's to use.
func (c ProducerConfig) apart() (ProducerConfig, error) {
	switch {
	case c.ID == nil:
	case *c.ID < 0:
		return c, fmt.Errorf("producer %d: ids below 0 are the yard's own: %w", *c.ID, ErrProducerFenced)
	case c.Yard:
		c.ID = new(^*c.ID)
	}
	return c, nil
}

// Producer publishes to one partition with numbers of its own, so that what is sent
// again is stored once. Its state is as durable as the events.
type Producer struct {
	ledger *ledger
	// account is what the producer was given; another has taken its place in the ledger
	// where it was forgotten and began anew.
	account *account
	epoch   int16
	last    int32
	quota   func() *quota.Meter
}

// Producer begins a producer's epoch, or goes on with it. When it returns what lower
// epochs had under way is stored or refused, nothing more comes from them, and that
// lasts. Where it fails it may have ended them all the same.
//
// A lower epoch than the present one begins nothing and ends nothing, but is no error
// here: clients expect to hear of it from Submit, which refuses all that it sends.
//
// A partition remembers maxProducers producers, for producerLife, and a node maxAllProducers, of which an account may have half; those unused for longer, or
// longest, are forgotten once nobody holds them any more, and may begin as if they were new.
//
// Errors: ErrProducerFenced where no epoch is left or the id is one of the yard's own, ErrOutOfOrder for a Last that is no
// number, *NotFoundError, the store's and the engine's.
func (b *Broker) Producer(ctx context.Context, hub, partition string, cfg ProducerConfig) (*Producer, error) {
	h, number, err := b.locate(ctx, hub, partition)
	if err == nil {
		cfg, err = cfg.apart()
	}
	if err != nil {
		return nil, err
	}
	producer, err := b.ledgers.of(h, number).begin(ctx, cfg)
	if err != nil {
		return nil, b.gone(h, fmt.Errorf("begin producer of %s/%s: %w", h.Name, partition, err))
	}
	if producer.quota = cfg.Quota; cfg.Quota == nil {
		producer.quota = func() *quota.Meter { return nil }
	}
	return producer, nil
}

// ID is the producer's, chosen by the broker where none was asked for.
func (p *Producer) ID() int64 { return p.account.id }

// Epoch is the one that the producer began.
func (p *Producer) Epoch() int16 { return p.epoch }

// Last is the number that the producer takes for its newest: the one it gave, since there
// are clients that number anew from what they are told here and whose repeats would else
// not be recognised; where it gave none, the newest that was stored when it began, or 0.
// The next number is the one behind it; 0 follows the largest.
func (p *Producer) Last() int32 { return p.last }

// Submit publishes events numbered from first on, without waiting. A batch that is
// stored already is not stored again: Wait then returns once the first sending of
// it is durable. Errors: ErrProducerFenced, ErrOutOfOrder, and those of Broker.Submit.
//
// It may have to wait, until ctx ends, also for a new epoch that is about to begin, or
// until it is known what became of a batch before it.
//
// When a batch is not stored, none of those submitted behind it is. Where storage,
// patience or room in a quota failed, the same batch is to be submitted again, under the same
// numbers: also, and above all, where it is unknown whether it was stored.
func (p *Producer) Submit(ctx context.Context, first int32, events []eventlog.Event) (*Pending, error) {
	l := p.ledger
	batch := eventlog.Batch{Events: events, Producer: eventlog.Producer{ID: p.account.id, Epoch: p.epoch, First: first, Set: true}}
	pending := &Pending{broker: l.broker, hub: l.hub, partition: l.number, count: len(events), bytes: batch.Bytes(), at: eventlog.NoSequence}
	// The batch is checked here because it may have to wait in memory before the engine sees it.
	err := checkKeys("", events)
	switch {
	case pending.count == 0:
		err = eventlog.ErrEmptyBatch
	case pending.bytes > eventlog.MaxBatchBytes:
		err = tooLarge(pending)
	case err == nil:
		err = l.publish(ctx, p.account, pending, p.quota(), batch)
	}
	if err != nil {
		err = l.broker.gone(l.hub, pending.failure(err))
		l.broker.metrics.failed(err)
		return nil, err
	}
	if !pending.repeat {
		l.broker.countKeys(l.hub, l.number, events)
	}
	return pending, nil
}
